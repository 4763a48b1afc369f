"""Adopting another store: its ids, digests and source columns become versions here; content stays where it is.

Contract: the whole file is read and checked before anything is written; a bad row is an InvalidRequestError with its
line. Rows are written parents first in batches, each all or nothing. Adopting the same file again changes nothing; a
changed digest is reported and, with `apply_changes`, all of them become one correct event. A derived row that is held
here and has a digest that was never withdrawn was rebuilt elsewhere, and is derived anew from its parents as they are.
`count_served` tells which ids that the other store still serves are withdrawn here.
Invariants: nobody's word is made up: a derived row without parents is opaque, one with unknown parents is partial, and
a row in a cycle of parents is opaque, without the edges of the cycle.
Source: docs/SEMANTICS.md section 3 (completeness) and invariant I10.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memorepair.adopt.rows import Columns, Row, read_rows
from memorepair.candidates import graph_of
from memorepair.errors import InvalidRequestError
from memorepair.events import Event, walk_history
from memorepair.holds import find_holds
from memorepair.keys import checked_name, escaped
from memorepair.scope import View
from memorepair.store import BatchWriter, Store

BATCH_ROWS = 10_000
SHOWN = 5
Progress = Callable[[str], None]


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """
    What adopting a file did, or would do. `rows` = `added` + `unchanged` + changed + withdrawn + rebuilt rows.

    `withdrawn`: withdrawn here and left so. `rebuilt`: withdrawn and held here, and now derived anew. Counts by kind,
    completeness and edges are of added and rebuilt rows. `unknown_parents` and `cycles` are (id, parent id).
    `event_withdrawn`: what the correct event `event_id` withdrew, with the changed rows themselves.
    """

    rows: int
    added: int
    unchanged: int
    changed: tuple[str, ...]
    withdrawn: tuple[str, ...]
    kinds: dict[str, int]
    complete: int
    partial: int
    opaque: int
    edges: int
    unknown_parents: tuple[tuple[str, str], ...]
    cycles: tuple[tuple[str, str], ...]
    rebuilt: tuple[str, ...] = ()
    event_id: str | None = None
    event_withdrawn: int = 0
    is_dry_run: bool = False

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.items())
        lines = [
            f"{self.rows} rows: {self.added} new, {self.unchanged} known and unchanged, {len(self.changed)} changed, "
            f"{len(self.rebuilt)} rebuilt elsewhere, {len(self.withdrawn)} withdrawn here",
            f"  new: {kinds or 'none'}; complete {self.complete}, partial {self.partial}, opaque {self.opaque}; "
            f"{self.edges} edges",
        ]
        lines += _pairs("unknown parents", self.unknown_parents)
        lines += _pairs("edges in cycles, left out", self.cycles)
        if self.changed and self.event_id is None:
            lines.append(f"  changed digests, left alone without apply_changes: {_some(self.changed)}")
        if self.event_id is not None:
            digests = "1 changed digest is" if len(self.changed) == 1 else f"{len(self.changed)} changed digests are"
            artifacts = "1 artifact" if self.event_withdrawn == 1 else f"{self.event_withdrawn} artifacts"
            lines.append(f"  {digests} correct event {escaped(self.event_id)}: {artifacts} withdrawn")
        adopted = self.added + len(self.rebuilt)
        lines.append("dry run: nothing was changed" if self.is_dry_run else f"done: {adopted} rows adopted")
        return "\n".join(lines)


class Served(msgspec.Struct, frozen=True):
    """What another store serves, seen from here. `withdrawn` are the ids that it should not serve."""

    ids: int
    visible: int
    unknown: int
    withdrawn: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.ids} ids served elsewhere: {self.visible} visible here, {self.unknown} unknown here"]
        lines += [f"  withdrawn here: {escaped(key)}" for key in self.withdrawn[:50]]
        if len(self.withdrawn) > 50:
            lines.append(f"  ... and {len(self.withdrawn) - 50} more")
        return "\n".join([*lines, f"{len(self.withdrawn)} withdrawn ids are still served"])


def adopt(
    store: Store,
    path: str | os.PathLike[str],
    *,
    file_format: str,
    columns: Columns | None = None,
    completeness: str = "complete",
    apply_changes: bool = False,
    confirm: str | None = None,
    dry_run: bool = False,
    batch_rows: int = BATCH_ROWS,
    on_progress: Progress = lambda text: None,
) -> Adopted:
    """
    Load the ids, digests and parents of another store.

    `file_format`: "jsonl" or "csv" with a header. A row needs an id and a digest; without a kind it is a record, or a
    cache when it has parents. Parents are required for records and caches, optional for summaries and skills.
    `completeness`: "complete" when the parents column lists every input, "partial" when it may not. A known row is
    compared by its digest alone. `confirm`: lets `apply_changes` pass the guard.
    Raises InvalidRequestError with the line; CascadeTooLargeError from `apply_changes`; then nothing was changed.
    """
    if completeness not in ("complete", "partial"):
        raise InvalidRequestError(f"completeness: expected 'complete' or 'partial', got {completeness!r}")
    if batch_rows < 1:
        raise InvalidRequestError(f"batch_rows: expected at least 1, got {batch_rows}")
    rows = read_rows(path, file_format, columns or Columns())
    on_progress(f"{len(rows)} rows read")
    work = _Adoption(store, rows, completeness)
    event = None
    if not dry_run:
        if apply_changes and work.changed:
            changes = {row.key: row.content for row in work.changed}
            event = store.correct(changes, reason="adopt: the digest changed", confirm=confirm)
        work.write(batch_rows, on_progress)
    return work.result(event, dry_run)


def count_served(store: Store, ids: Iterable[str]) -> Served:
    """Tell which of the ids that another store serves are withdrawn here; blank lines are skipped."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InvalidRequestError(f"ids: expected several ids, got {type(ids).__name__}")
    names: dict[str, None] = {}
    for number, line in enumerate(ids, 1):
        if not isinstance(line, str):
            raise InvalidRequestError(f"ids: item {number}: expected text, got {type(line).__name__}")
        if name := line.strip():
            names[name] = None
    unknown = 0
    withdrawn = []
    with store._reading() as view:
        for name in names:
            head = view.head(checked_name(name, "id"))
            if head is None:
                unknown += 1
            elif not view.barrier.is_visible(head.head, view.now_micros):
                withdrawn.append(name)
    return Served(len(names), len(names) - unknown - len(withdrawn), unknown, tuple(withdrawn))


# -- writing -----------------------------------------------------------------------------------------------------------


class _Adoption:
    """The rows against what the store holds: what is new, in which order, with which edges."""

    def __init__(self, store: Store, rows: list[Row], completeness: str) -> None:
        self.store, self.rows, self.completeness = store, rows, completeness
        self.versions: dict[str, int] = {}  # heads of keys that the store knows, then of what is written
        self.changed: list[Row] = []
        self.withdrawn: list[str] = []
        self.rebuilt: list[str] = []
        fresh = self._compare()
        self.unchanged = len(rows) - len(fresh) - len(self.changed) - len(self.withdrawn)
        self.unknown: list[tuple[str, str]] = []
        self.cycles: list[tuple[str, str]] = []
        self.cyclic: set[str] = set()
        self.edges: dict[str, list[str]] = {}
        self.fresh = self._ordered(fresh)

    def _compare(self) -> list[Row]:
        """Split off rows that the store has; digests decide."""
        fresh = []
        with self.store._reading() as view:
            held = find_holds(view).by_version
            for row in self.rows:
                head = view.head(row.key)
                if head is None:
                    fresh.append(row)
                elif head.head in held and _is_rebuilt(view, row, head.latest):
                    fresh.append(row)
                    self.rebuilt.append(row.key)
                elif not view.barrier.is_visible(head.head, view.now_micros):
                    self.withdrawn.append(row.key)
                elif view.row(head.head).digest != row.content.digest.encode():
                    self.changed.append(row)
        return fresh

    def _ordered(self, fresh: list[Row]) -> list[Row]:
        """The new rows, parents first; edges inside a cycle and edges to unknown ids are noted and left out."""
        index = {row.key: node for node, row in enumerate(fresh)}
        known = {row.key for row in self.rows} | self._known({p for row in fresh for p in row.parents} - set(index))
        inside = [[index[parent] for parent in row.parents if parent in index] for row in fresh]
        # A self edge is left out first: a group of one node is then always a plain node.
        inside = [[parent for parent in parents if parent != node] for node, parents in enumerate(inside)]
        groups: Any = graph_of(inside).groups() if fresh else ()
        for node, row in enumerate(fresh):
            kept = self.edges[row.key] = []
            for parent in row.parents:
                place = index.get(parent)
                if place is not None and groups[place] == groups[node]:
                    self.cycles.append((row.key, parent))
                    self.cyclic.add(row.key)
                elif place is not None or parent in known:
                    kept.append(parent)
                else:
                    self.unknown.append((row.key, parent))
        acyclic = [
            [parent for parent in parents if groups[parent] != groups[node]] for node, parents in enumerate(inside)
        ]
        return [fresh[int(node)] for node in graph_of(acyclic).order()] if fresh else []

    def _known(self, keys: set[str]) -> set[str]:
        with self.store._reading() as view:
            return {key for key in keys if view.head(key) is not None}

    def completeness_of(self, row: Row) -> str:
        """What is known of a new row's inputs."""
        if not row.parents:
            return "complete" if row.kind == "record" else "opaque"
        dropped = len(row.parents) - len(self.edges[row.key])
        if not dropped:
            return self.completeness
        return "opaque" if row.key in self.cyclic or not self.edges[row.key] else "partial"

    def write(self, batch_rows: int, on_progress: Progress) -> None:
        """Write the new rows in batches; a parent that was withdrawn meanwhile makes a row born withdrawn."""
        outside = {parent for parents in self.edges.values() for parent in parents} - {row.key for row in self.fresh}
        with self.store._reading([*outside]) as view:
            for key in outside:
                head = view.head(key)
                assert head is not None
                self.versions[key] = head.head
        for start in range(0, len(self.fresh), batch_rows):
            rows = self.fresh[start : start + batch_rows]
            with self.store.batch([row.key for row in rows]) as batch:
                for row in rows:
                    self.versions[row.key] = self._write(batch, row)
            on_progress(f"{min(start + batch_rows, len(self.fresh))} of {len(self.fresh)} rows written")

    def _write(self, batch: BatchWriter, row: Row) -> int:
        fields: dict[str, Any] = {
            "title": row.title,
            "namespace": row.namespace,
            "labels": row.labels,
            "kind": row.kind,
        }
        if row.kind == "record" and not row.parents:
            return batch.put(row.key, row.content, **fields)
        parents = [self.versions[parent] for parent in self.edges[row.key]]
        role = "optional" if row.kind in ("summary", "skill") else "parents"
        fields |= {role: parents, "completeness": self.completeness_of(row), "stale": "withdraw"}
        return batch.derive(row.key, row.content, **fields)

    def result(self, event: Event | None, dry_run: bool) -> Adopted:
        """Sum up."""
        inputs = Counter(self.completeness_of(row) for row in self.fresh)
        return Adopted(
            rows=len(self.rows),
            added=len(self.fresh) - len(self.rebuilt),
            unchanged=self.unchanged,
            changed=tuple(row.key for row in self.changed),
            withdrawn=tuple(self.withdrawn),
            kinds=dict(sorted(Counter(row.kind for row in self.fresh).items())),
            complete=inputs["complete"],
            partial=inputs["partial"],
            opaque=inputs["opaque"],
            edges=sum(map(len, self.edges.values())),
            unknown_parents=tuple(self.unknown),
            cycles=tuple(self.cycles),
            rebuilt=tuple(self.rebuilt),
            event_id=event.event_id if event else None,
            event_withdrawn=event.withdrawn if event else 0,
            is_dry_run=dry_run,
        )


def _is_rebuilt(view: View, row: Row, latest: int) -> bool:
    """Whether a row of a held key has content that is derived and was never withdrawn: going back is no rebuild."""
    if not row.parents:
        return False
    digest = row.content.digest.encode()
    return all(old.digest != digest or view.state(old) != "withdrawn" for old in walk_history(view, latest))


def _pairs(what: str, pairs: tuple[tuple[str, str], ...]) -> list[str]:
    if not pairs:
        return []
    return [f"  {len(pairs)} {what}: {_some([f'{child} <- {parent}' for child, parent in pairs])}"]


def _some(names: Iterable[str]) -> str:
    listed = [escaped(name) for name in names]
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more
