"""Deterministic influence graphs: an edge u -> v says that v was made from u; nodes stand in order of birth.

Families: `provenance` looks like an agent's memory, `random_dag` has no structure at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]


class Instance(NamedTuple):
    """Edges as they arrive. Repeats are possible, self-loops are not."""

    num_nodes: int
    sources: Ids
    targets: Ids


def provenance(num_nodes: int, seed: int = 0) -> Instance:
    """
    Every other node on average is a record; the rest were made from 3 to 9 older nodes, so about 3 edges a node.

    Half of the parents are recent, half popular (a power law in age), as when an agent reads its latest notes and the
    same few policies. Edges come child by child with sorted parents, the order in which a store reads them.
    """
    rng = np.random.default_rng(seed)
    made = np.flatnonzero(rng.random(num_nodes) < 0.5)
    made = made[made >= 16]
    targets = np.repeat(made, rng.integers(3, 10, len(made)))
    draw = rng.random(len(targets))
    popular = (targets * draw**3).astype(np.int64)
    back = np.minimum(40 * (np.maximum(draw, 1e-9) ** -0.8 - 1), targets - 1).astype(np.int64)
    sources = np.where(rng.random(len(targets)) < 0.5, popular, targets - 1 - back)
    sources = sources[np.lexsort((sources, targets))]
    return Instance(num_nodes, sources.astype(np.uint32), targets.astype(np.uint32))


def random_dag(num_nodes: int, seed: int = 0) -> Instance:
    """Three random edges a node, each from the smaller to the larger id, in random order."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, num_nodes, (2, 3 * num_nodes))
    kept = first != second
    sources, targets = np.minimum(first, second)[kept], np.maximum(first, second)[kept]
    return Instance(num_nodes, sources.astype(np.uint32), targets.astype(np.uint32))


FAMILIES = {"provenance": provenance, "random_dag": random_dag}
