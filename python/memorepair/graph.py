"""The resident provenance graph of one scope: nodes are version ids, edges are influence.

Contract: `follow` brings it to a snapshot; it holds every committed version and every recorded edge, required and
optional, and nothing staged. It serves reach and paths; what may be served is the barrier's business.
Invariants: edges run from older to younger, so it is acyclic; it is never the source of truth (the parents blobs are).
Source: docs/SEMANTICS.md sections 1 (rule 3) and 2; MemoRepair section 2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from memorepair._core import ProvenanceGraph as ProvenanceGraph
from memorepair.barrier import Mask, as_ids
from memorepair.errors import DamagedStoreError
from memorepair.protocol import Ids, Snapshot, unpack_ids


class VersionGraph:
    """A growing graph on version ids. Not thread-safe: its scope guards it."""

    def __init__(self) -> None:
        self.epoch = 0
        self._graph = ProvenanceGraph.from_edges(1, as_ids(()), as_ids(()))

    def follow(self, snapshot: Snapshot) -> None:
        """Append what was committed since."""
        if snapshot.epoch == self.epoch:
            return
        touched: list[int] | None = None
        if self.epoch:
            changes = snapshot.changes(self.epoch)
            touched = unpack_ids(b"".join(row.inserted + row.reparented for row in changes))
        versions, blobs = [], []
        for version, parents in snapshot.parents(touched):
            if len(parents) % 4:
                raise DamagedStoreError(f"version {version}: its parents are cut off; restore a backup")
            versions.append(version)
            blobs.append(parents)
        counts = np.fromiter((len(blob) // 4 for blob in blobs), dtype=np.int64, count=len(blobs))
        sources = as_ids(np.frombuffer(b"".join(blobs), dtype="<u4"))
        targets = np.repeat(as_ids(versions), counts)
        if self.epoch:
            self._graph.append(snapshot.next_version - self._graph.num_nodes, sources, targets)
        else:
            self._graph = ProvenanceGraph.from_edges(snapshot.next_version, sources, targets)
        self.epoch = snapshot.epoch

    @property
    def num_edges(self) -> int:
        """Distinct edges."""
        return self._graph.num_edges

    def cascade(self, roots: Iterable[int]) -> Mask:
        """Return every version reachable from `roots` along influence, roots included."""
        return self._graph.reach(as_ids(roots))

    def parents(self, version: int) -> Ids:
        """Versions this one was derived from, sorted."""
        return self._graph.parents(version)

    def children(self, version: int) -> Ids:
        """Versions derived from this one, sorted."""
        return self._graph.children(version)

    def shortest_path(self, version: int, is_goal: Callable[[int], bool], within: Mask) -> list[int]:
        """Return a shortest path from a version with `is_goal` down to `version` inside `within`; [] when none."""
        child_of: dict[int, int] = {version: 0}
        queue = deque([version])
        while queue:
            node = queue.popleft()
            if is_goal(node):
                path = [node]
                while child_of[path[-1]]:
                    path.append(child_of[path[-1]])
                return path
            for parent in map(int, self._graph.parents(node)):
                if parent not in child_of and parent in within:
                    child_of[parent] = node
                    queue.append(parent)
        return []

    def spanning_tree(self, roots: Iterable[int]) -> dict[int, int]:
        """Return, for every version of the cascade, its predecessor on a shortest path from `roots` (0 for a root)."""
        tree = dict.fromkeys(sorted(set(roots)), 0)
        queue = deque(tree)
        while queue:
            node = queue.popleft()
            for child in map(int, self._graph.children(node)):
                if child not in tree:
                    tree[child] = node
                    queue.append(child)
        return tree
