"""Maximum closure by every solver that pip installs, as processes: `python closure_peers.py PEER FILE`.

Contract: a peer gets a Cut and returns the chosen nodes as flags. All it needs to build is inside its time; the arrays
are there already, in the dtype it likes best. A closure is a minimum cut (Picard 1976): the source feeds each node of
positive weight, each node of negative weight drains into the sink, and from a node to what it needs leads an arc that
no cut can afford. Nodes that must not be chosen weigh more than all there is to win.
The file holds sources, targets, weights and executable (.npz).
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from workers import Arrays, Peer, serve

Flags = npt.NDArray[np.bool_]
INT32_MAX = 2**31 - 1


class Cut(NamedTuple):
    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]
    executable: Flags
    priced: npt.NDArray[np.int64]  # weights, what cannot be executed priced out
    unaffordable: int

    @property
    def num_nodes(self) -> int:
        return len(self.weights)


def load(arrays: Arrays) -> Cut:
    weights, executable = arrays["weights"], arrays["executable"]
    unaffordable = int(weights[executable & (weights > 0)].sum()) + 1
    priced = np.where(executable, weights, -unaffordable)
    sources, targets = arrays["sources"].view(np.int32), arrays["targets"].view(np.int32)
    return Cut(sources, targets, weights, executable, priced, unaffordable)


def facts(cut: Cut, chosen: Flags) -> dict[str, Any]:
    """What has to be the same for all, and what must be true of each."""
    closed = not (chosen[cut.targets] & ~chosen[cut.sources]).any() and not (chosen & ~cut.executable).any()
    return {"objective": int(cut.weights[chosen].sum()), "closed": bool(closed), "count": int(chosen.sum())}


def by_memorepair(cut: Cut) -> Flags:
    from memorepair._core import Mask, ProvenanceGraph

    graph = ProvenanceGraph.from_edges(cut.num_nodes, cut.sources.view(np.uint32), cut.targets.view(np.uint32))
    executable = None
    if not cut.executable.all():
        executable = Mask.from_ids(np.flatnonzero(cut.executable).astype(np.uint32), cut.num_nodes)
    chosen = np.zeros(cut.num_nodes, dtype=bool)
    chosen[graph.closure(cut.weights, executable).selected.ids()] = True
    return chosen


def by_pymineflow(cut: Cut) -> Flags:
    import pymineflow

    chosen: Flags = pymineflow.ExplicitPit(cut.num_nodes, cut.targets, cut.sources, cut.priced).solve()[0]
    return chosen


def by_pymaxflow(cut: Cut) -> Flags:
    import maxflow

    graph = maxflow.GraphInt(cut.num_nodes, len(cut.sources))
    nodes = graph.add_nodes(cut.num_nodes)
    never = np.full(len(cut.sources), cut.unaffordable)
    graph.add_edges(cut.targets.astype(np.int64), cut.sources.astype(np.int64), never, np.zeros_like(never))
    graph.add_grid_tedges(nodes, np.maximum(cut.priced, 0), np.maximum(-cut.priced, 0))
    graph.maxflow()
    answer: Flags = ~graph.get_grid_segments(nodes)
    return answer


class Network(NamedTuple):
    """Arcs with capacities; the source is num_nodes, the sink num_nodes + 1."""

    tails: npt.NDArray[np.int32]
    heads: npt.NDArray[np.int32]
    capacities: npt.NDArray[np.int64]


def network(cut: Cut) -> Network:
    fed, drained = np.flatnonzero(cut.priced > 0), np.flatnonzero(cut.priced < 0)
    source, sink = cut.num_nodes, cut.num_nodes + 1
    tails = np.concatenate([np.full(len(fed), source), drained, cut.targets])
    heads = np.concatenate([fed, np.full(len(drained), sink), cut.sources])
    never = np.full(len(cut.sources), cut.unaffordable)
    capacities = np.concatenate([cut.priced[fed], -cut.priced[drained], never])
    return Network(tails.astype(np.int32), heads.astype(np.int32), capacities)


def by_ortools(cut: Cut) -> Flags:
    from ortools.graph.python import max_flow

    solver = max_flow.SimpleMaxFlow()
    solver.add_arcs_with_capacity(*network(cut))
    if solver.solve(cut.num_nodes, cut.num_nodes + 1) != solver.OPTIMAL:
        raise RuntimeError("not solved")
    chosen = np.zeros(cut.num_nodes + 2, dtype=bool)
    chosen[np.asarray(solver.get_source_side_min_cut())] = True
    return chosen[: cut.num_nodes]


def pseudoflow_cuts(
    num_nodes: int, arcs: npt.NDArray[np.float64], low: float, high: float
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """
    Call the library of `pseudoflow` itself; its Python wrapper builds lists and is many times slower.

    `arcs`: rows tail, head, capacity, capacity per lambda; node 0 is the source and the last one the sink.
    Returns the cuts (one row of flags each) and the upper end of the lambdas at which each of them holds.
    """
    import pseudoflow

    library = ctypes.CDLL(str(Path(pseudoflow.__file__).with_name("libhpf.so")))
    number, real = ctypes.c_int, ctypes.c_double
    count = number()
    cuts, ends = ctypes.POINTER(number)(), ctypes.POINTER(real)()
    library.hpf_solve(
        number(num_nodes),
        number(len(arcs)),
        number(0),
        number(num_nodes - 1),
        arcs.ctypes.data_as(ctypes.POINTER(real)),
        (real * 2)(low, high),
        number(0),
        ctypes.byref(count),
        ctypes.byref(cuts),
        ctypes.byref(ends),
        (number * 5)(),
        (real * 3)(),
    )
    found = count.value
    return np.ctypeslib.as_array(cuts, (found, num_nodes)), np.ctypeslib.as_array(ends, (found,)).copy()


def by_pseudoflow(cut: Cut) -> Flags:
    flow = network(cut)
    size = cut.num_nodes
    place = np.concatenate([np.arange(1, size + 1), [0, size + 1]])  # the source comes first
    arcs = np.zeros((len(flow.tails), 4))
    arcs[:, 0], arcs[:, 1], arcs[:, 2] = place[flow.tails], place[flow.heads], flow.capacities
    cuts, _ = pseudoflow_cuts(size + 2, arcs, 0.0, 0.0)
    chosen: Flags = cuts[0][1 : size + 1] != 0
    return chosen


def by_scipy(cut: Cut) -> Flags:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    flow = network(cut)
    if flow.capacities.max() > INT32_MAX:
        raise ValueError("32-bit")  # wider capacities are narrowed in silence
    size, source = cut.num_nodes, cut.num_nodes
    capacities = csr_array((flow.capacities.astype(np.int32), (flow.tails, flow.heads)), shape=(size + 2, size + 2))
    residual = csr_array(capacities - maximum_flow(capacities, source, source + 1).flow)
    residual.eliminate_zeros()
    chosen: Flags = np.zeros(size + 2, dtype=bool)
    chosen[breadth_first_order(residual, source, return_predecessors=False)] = True
    return chosen[:size]


def by_igraph(cut: Cut) -> Flags:
    import igraph

    flow = network(cut)
    size = cut.num_nodes
    edges = list(zip(flow.tails.tolist(), flow.heads.tolist(), strict=True))
    graph = igraph.Graph(n=size + 2, edges=edges, directed=True)
    sides = graph.mincut(size, size + 1, flow.capacities.astype(np.float64).tolist()).partition
    chosen = np.zeros(size + 2, dtype=bool)
    chosen[next(side for side in sides if size in side)] = True
    return chosen[:size]


OURS = "memorepair"
PEERS = {
    OURS: Peer("memorepair", "memorepair._core", by_memorepair),
    "pymineflow": Peer("pymineflow", "pymineflow", by_pymineflow),
    "PyMaxflow": Peer("PyMaxflow", "maxflow", by_pymaxflow),
    "OR-tools": Peer("ortools", "ortools.graph.python.max_flow", by_ortools),
    "pseudoflow": Peer("pseudoflow", "pseudoflow", by_pseudoflow),
    "scipy": Peer("scipy", "scipy.sparse.csgraph", by_scipy),
    "igraph": Peer("igraph", "igraph", by_igraph),
}

if __name__ == "__main__":
    serve(PEERS, load, facts)
