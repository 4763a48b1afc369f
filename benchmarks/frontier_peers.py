"""The lambda frontier by what pip installs, as processes: `python frontier_peers.py PEER FILE`.

Contract: memorepair and pseudoflow's parametric solver find every breakpoint; pymineflow, which solves one lambda at a
time, finds the closures at the lambdas of the file. Each answers with the optimum at those lambdas, outside its time.
The file holds sources, targets, values, costs, and numerators of the lambdas, increasing, over one denominator (.npz).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from closure_peers import OURS, pseudoflow_cuts
from workers import Arrays, Peer, serve

Amounts = npt.NDArray[np.int64]


class Sweep(NamedTuple):
    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    values: Amounts
    costs: Amounts
    numerators: Amounts
    denominator: int

    def weights(self, at: int) -> Amounts:
        """The exact weights at a lambda, times the denominator."""
        return self.denominator * self.values - int(self.numerators[at]) * self.costs


class Found(NamedTuple):
    breakpoints: int | None
    optimum: Callable[[int], int]  # at a lambda of the sweep, times the denominator


def load(arrays: Arrays) -> Sweep:
    sources, targets = (arrays[name].view(np.int32) for name in ("sources", "targets"))
    denominator = int(arrays["denominator"])
    return Sweep(sources, targets, arrays["values"], arrays["costs"], arrays["numerators"], denominator)


def facts(sweep: Sweep, found: Found) -> dict[str, Any]:
    return {
        "breakpoints": found.breakpoints,
        "optima": [int(found.optimum(at)) for at in range(len(sweep.numerators))],
    }


def by_memorepair(sweep: Sweep) -> Found:
    from memorepair._core import ProvenanceGraph

    graph = ProvenanceGraph.from_edges(len(sweep.values), sweep.sources.view(np.uint32), sweep.targets.view(np.uint32))
    frontier = graph.frontier(sweep.values, sweep.costs)

    def optimum(at: int) -> int:
        numerator = int(sweep.numerators[at])
        point = frontier.at(Fraction(numerator, sweep.denominator))
        return int(sweep.denominator * point.value - numerator * point.cost)

    return Found(len(frontier) - 1, optimum)


class Ring(NamedTuple):
    """Nodes whose rank (at how many of the lambdas they are chosen) is known to be from `low` to `high`."""

    nodes: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int32]  # local numbers
    targets: npt.NDArray[np.int32]
    low: int
    high: int


def by_pymineflow(sweep: Sweep) -> Found:
    """Bisection: closures shrink as lambda grows, so each solve decides only what its neighbours left open."""
    import pymineflow

    size = len(sweep.values)
    rank = np.zeros(size, dtype=np.int64)
    rings = [Ring(np.arange(size), sweep.sources, sweep.targets, 0, len(sweep.numerators))]
    while rings:
        ring = rings.pop()
        if ring.low == ring.high or not len(ring.nodes):
            rank[ring.nodes] = ring.low
            continue
        middle = (ring.low + ring.high) // 2
        priced = sweep.denominator * sweep.values[ring.nodes] - sweep.numerators[middle] * sweep.costs[ring.nodes]
        chosen = priced > 0
        if len(ring.sources):
            chosen = pymineflow.ExplicitPit(len(ring.nodes), ring.targets, ring.sources, priced).solve()[0]
        for side, low, high in ((chosen, middle + 1, ring.high), (~chosen, ring.low, middle)):
            local = np.cumsum(side, dtype=np.int32) - 1
            inside = side[ring.sources] & side[ring.targets]
            sources, targets = (local[ends[inside]] for ends in (ring.sources, ring.targets))
            rings.append(Ring(ring.nodes[side], sources, targets, low, high))
    return Found(None, lambda at: int(sweep.weights(at)[rank > at].sum()))


def by_pseudoflow(sweep: Sweep) -> Found:
    """Its parametric solver, in doubles, over minus lambda: what a node drains has to fall as its parameter grows."""
    size = len(sweep.values)
    nodes, nothing = np.arange(1, size + 1, dtype=np.float64), np.zeros(size)
    never = float(sweep.values.sum() + 1)
    needs = np.full(len(sweep.sources), never)
    arcs = np.concatenate(
        [
            np.column_stack([nothing, nodes, sweep.values, nothing]),
            np.column_stack([nodes, nothing + size + 1, nothing, -sweep.costs]),
            np.column_stack([sweep.targets + 1.0, sweep.sources + 1.0, needs, np.zeros_like(needs)]),
        ]
    )
    lambdas = sweep.numerators / sweep.denominator
    cuts, ends = pseudoflow_cuts(size + 2, np.ascontiguousarray(arcs), -lambdas[-1], -lambdas[0])

    def optimum(at: int) -> int:
        cut = min(int(np.searchsorted(ends, -lambdas[at] - 1e-12)), len(ends) - 1)
        return int(sweep.weights(at)[cuts[cut][1 : size + 1] != 0].sum())

    return Found(len(ends), optimum)


BISECTION, PARAMETRIC = "pymineflow, bisection", "pseudoflow, parametric"
PEERS = {
    OURS: Peer("memorepair", "memorepair._core", by_memorepair),
    BISECTION: Peer("pymineflow", "pymineflow", by_pymineflow),
    PARAMETRIC: Peer("pseudoflow", "pseudoflow", by_pseudoflow),
}

if __name__ == "__main__":
    serve(PEERS, load, facts)
