"""The closure kernel: value, the exact smallest set, and certificates, against brute force and an independent checker.

The kinds of mistakes listed here are ones that other solvers were found to make: narrowed capacities, infinity that is
too small, the right value with the wrong set, cuts read from the wrong side, recursion, quadratic blow-up and so on.
"""

from __future__ import annotations

import gzip
import os
import random
import threading
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_kernels as reference

from memorepair._core import Closure, Mask, ProvenanceGraph, verify_closure
from memorepair.errors import InvalidGraphError, WeightOverflowError

SHARED = Path(os.environ.get("MEMOREPAIR_SHARED", Path(__file__).resolve().parents[2] / "shared"))
MINES = SHARED / "data" / "mines"
TOP = 2**62


def ids(values: object) -> np.ndarray:
    return np.array(values, dtype=np.uint32)


def mask(values: set[int] | None, size: int) -> Mask | None:
    return None if values is None else Mask.from_ids(ids(sorted(values)), size)


def build(num_nodes: int, edges: list[tuple[int, int]]) -> ProvenanceGraph:
    return ProvenanceGraph.from_edges(num_nodes, ids([s for s, _ in edges]), ids([t for _, t in edges]))


def requires(text: str) -> list[tuple[int, int]]:
    """ "0>2 0>3" = 0 requires 2 and 3, as influence edges."""
    pairs = (part.split(">") for part in text.split())
    return [(int(needed), int(node)) for node, needed in pairs]


def solve(weights: list[int], edges: list[tuple[int, int]], **masks: Mask | None) -> Closure:
    closure = build(len(weights), edges).closure(np.array(weights, dtype=np.int64), **masks)
    assert closure.verify()
    return closure


def selected(choice: Any) -> set[int]:
    """The ids in `choice.selected`, which come sorted and once each."""
    listed: list[int] = choice.selected.ids().tolist()
    assert listed == sorted(set(listed))
    return set(listed)


def proof(closure: Closure) -> dict[str, np.ndarray]:
    certificate = closure.certificate
    return {name: getattr(certificate, name) for name in ("sources", "targets", "flow", "absorbed")}


def random_instance(rng: random.Random, max_nodes: int) -> tuple[int, list, list, set | None, set | None]:
    n = rng.randint(0, max_nodes)
    edges = [(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, 3 * n))] if n else []
    if rng.random() < 0.5:
        edges = [(min(edge), max(edge)) for edge in edges]
    most = rng.choice([1, 4, 1000, TOP // max(n, 1)])
    weights = [
        rng.choice([-1, 1]) * (most if most > 1000 and rng.random() < 0.5 else rng.randint(0, most)) for _ in range(n)
    ]
    executable = {v for v in range(n) if rng.random() < 0.85} if rng.random() < 0.35 else None
    within = {v for v in range(n) if rng.random() < 0.75} if rng.random() < 0.35 else None
    return n, edges, weights, executable, within


def test_random_graphs_against_brute_force_and_an_independent_checker() -> None:
    rng = random.Random(20)
    for _ in range(2500):
        n, edges, weights, executable, within = random_instance(rng, 8)
        graph = build(n, edges)
        closure = graph.closure(np.array(weights, dtype=np.int64), mask(executable, n), mask(within, n))
        value, best = reference.best_closure(n, edges, weights, executable, within)
        assert closure.objective == value
        assert selected(closure) == best
        assert closure.selected.size == n
        assert closure.verify()
        c = closure.certificate
        flow = list(zip(c.sources.tolist(), c.targets.tolist(), c.flow.tolist(), strict=True))
        assert reference.certificate_holds(
            n, edges, weights, executable, within, best, value, flow, c.absorbed.tolist()
        )


def test_larger_random_graphs_against_the_independent_checker() -> None:
    rng = random.Random(21)
    for _ in range(60):
        n, edges, weights, executable, within = random_instance(rng, 120)
        closure = build(n, edges).closure(np.array(weights, dtype=np.int64), mask(executable, n), mask(within, n))
        c = closure.certificate
        flow = list(zip(c.sources.tolist(), c.targets.tolist(), c.flow.tolist(), strict=True))
        assert closure.verify()
        assert reference.certificate_holds(
            n, edges, weights, executable, within, selected(closure), closure.objective, flow, c.absorbed.tolist()
        )


def test_the_answer_depends_on_neither_edge_order_nor_numbering_nor_growth() -> None:
    rng = random.Random(22)
    for _ in range(200):
        n, edges, weights, executable, within = random_instance(rng, 30)
        masks = mask(executable, n), mask(within, n)
        p = np.array(weights, dtype=np.int64)
        expected = build(n, edges).closure(p, *masks)
        shuffled = rng.sample(edges, len(edges))
        assert build(n, shuffled + shuffled).closure(p, *masks).selected == expected.selected
        grown = ProvenanceGraph.from_edges(0, ids([]), ids([]))
        grown.append(n, ids([]), ids([]))
        for source, target in shuffled:
            grown.append(0, ids([source]), ids([target]))
        again = grown.closure(p, *masks)
        assert (again.selected, again.objective, again.verify()) == (expected.selected, expected.objective, True)
        to = rng.sample(range(n), n)
        moved = [0] * n
        for v in range(n):
            moved[to[v]] = weights[v]
        other = build(n, [(to[s], to[t]) for s, t in edges]).closure(
            np.array(moved, dtype=np.int64),
            *(mask(None if m is None else {to[v] for v in m}, n) for m in (executable, within)),
        )
        assert selected(other) == {to[v] for v in selected(expected)}


@pytest.mark.slow
def test_ten_thousand_random_graphs_against_brute_force() -> None:
    rng = random.Random(25)
    for _ in range(10_000):
        n, edges, weights, executable, within = random_instance(rng, 11)
        closure = build(n, edges).closure(np.array(weights, dtype=np.int64), mask(executable, n), mask(within, n))
        assert (closure.objective, selected(closure)) == reference.best_closure(n, edges, weights, executable, within)
        assert closure.verify()


@pytest.mark.slow
def test_a_thousand_random_graphs_against_a_general_flow_code() -> None:
    max_flow = pytest.importorskip("ortools.graph.python.max_flow")
    rng = random.Random(26)
    for _ in range(1000):
        n = rng.randint(1, rng.choice([10, 100, 1000]))
        edges = [(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, 3 * n))]
        if rng.random() < 0.8:
            edges = [(min(edge), max(edge)) for edge in edges]
        most = rng.choice([1, 5, 1000, 2**61 // n])
        weights = [rng.randint(-most, most) for _ in range(n)]
        closure = solve(weights, edges)
        assert (closure.objective, selected(closure)) == by_general_flow(max_flow, n, edges, weights)


def by_general_flow(max_flow: Any, n: int, edges: list[tuple[int, int]], weights: list[int]) -> tuple[int, set[int]]:
    """Value and smallest set by a minimum cut of a network with a source, a sink and arcs that cannot be cut."""
    solver, source, sink, positive = max_flow.SimpleMaxFlow(), n, n + 1, sum(w for w in weights if w > 0)
    for node, weight in enumerate(weights):
        if weight > 0:
            solver.add_arc_with_capacity(source, node, weight)
        # Without an arc at the sink this code says OPTIMAL and names no side of the cut, so every node gets one.
        solver.add_arc_with_capacity(node, sink, max(-weight, 0))
    solver.add_arc_with_capacity(source, sink, 0)
    for needed, node in edges:
        solver.add_arc_with_capacity(node, needed, positive + 1)
    assert solver.solve(source, sink) == solver.OPTIMAL
    return positive - solver.optimal_flow(), {v for v in solver.get_source_side_min_cut() if v < n}


def test_wrong_rules_would_be_noticed() -> None:
    """Taking a node because its closure is worth something alone, or dropping one because it is not, is wrong."""
    edges = requires("0>2 1>2")
    assert selected(solve([3, 3, -5], edges)) == {0, 1, 2}  # neither alone pays
    edges = requires("0>1 0>2 1>3")
    assert selected(solve([4, 2, -5, -1], edges)) == {1, 3}  # closure(0) nets 0, and 1 is better without it
    assert selected(solve([9, 4, -10, -2], edges)) == {1, 3}  # closure(0) nets 1, and 1 alone 2
    assert taken_by_net_weight(4, edges, [9, 4, -10, -2]) == {0, 1, 2, 3}
    rng, wrong = random.Random(27), 0
    for _ in range(1000):
        n, edges, weights, _, _ = random_instance(rng, 7)
        _, best = reference.best_closure(n, edges, weights)
        assert selected(solve(weights, edges)) == best
        wrong += taken_by_net_weight(n, edges, weights) != best
    assert wrong > 10


def taken_by_net_weight(n: int, edges: list[tuple[int, int]], weights: list[int]) -> set[int]:
    """A wrong solver: while some node's requirements, itself included, are worth something together, take them."""
    up, taken = reference.reverse(edges), set()
    while True:
        packages = [reference.reach(up, [node]) - taken for node in range(n)]
        worth = [package for package in packages if sum(weights[v] for v in package) > 0]
        if not worth:
            left = [v for v in range(n) if v not in taken]
            inner = [(left.index(s), left.index(t)) for s, t in edges if s in left and t in left]
            return taken | {left[v] for v in reference.best_closure(len(left), inner, [weights[v] for v in left])[1]}
        taken |= worth[0]


def test_tampered_proofs_are_refused() -> None:
    rng = random.Random(23)
    mutations = 0
    for _ in range(250):
        n, edges, weights, executable, within = random_instance(rng, 9)
        if not n:
            continue
        graph, p = build(n, edges), np.array(weights, dtype=np.int64)
        masks = mask(executable, n), mask(within, n)
        closure = graph.closure(p, *masks)
        arrays = proof(closure)

        def verdict(selected: Mask = closure.selected, objective: int = closure.objective, **changed: object) -> bool:
            return verify_closure(graph, p, *masks, selected, objective, **{**arrays, **changed})  # noqa: B023

        assert verdict()
        bad = [verdict(objective=closure.objective + d) for d in (1, -1, 2**70, -(2**70))]
        # Any other set: larger, smaller, not closed, not executable, of equal value.
        bad += [
            verdict(selected=Mask.from_ids(ids([v for v in range(n) if bits >> v & 1]), n))
            for bits in rng.sample(range(2**n), min(2**n, 40))
            if {v for v in range(n) if bits >> v & 1} != selected(closure)
        ]
        bad.append(verdict(selected=closure.selected.resized(n + 1)))
        for change in (1, -1):
            absorbed = arrays["absorbed"].copy()
            absorbed[rng.randrange(n)] += change
            bad.append(verdict(absorbed=absorbed))
        bad.append(verdict(absorbed=arrays["absorbed"][:-1].copy()))
        if len(arrays["flow"]):
            i = rng.randrange(len(arrays["flow"]))
            for amount in (0, -1, int(arrays["flow"][i]) - TOP, 2**63 - 1):
                flow = arrays["flow"].copy()
                flow[i] = amount
                bad.append(verdict(flow=flow))
            for name, value in product(("sources", "targets"), (n, 2**32 - 1)):
                ends = arrays[name].copy()
                ends[i] = value
                bad.append(verdict(**{name: ends}))
            bad.append(verdict(sources=arrays["targets"], targets=arrays["sources"]) and not cyclic(edges))
            bad.append(verdict(flow=arrays["flow"][:-1].copy()))
        mutations += len(bad)
        assert not any(bad)
    assert mutations > 5000


def cyclic(edges: list[tuple[int, int]]) -> bool:
    return any(s in reference.reach(edges, [t]) for s, t in reference.clean(edges))


def test_the_largest_optimum_is_refused() -> None:
    edges = requires("0>2 0>3 1>3 1>4")
    closure = solve([7, 2, -2, -2, -2], edges)
    graph, p = build(5, edges), np.array([7, 2, -2, -2, -2], dtype=np.int64)
    assert verify_closure(graph, p, None, None, closure.selected, 3, **proof(closure))
    everything = Mask.from_ids(ids(range(5)), 5)
    assert not verify_closure(graph, p, None, None, everything, 3, **proof(closure))


def test_goldens() -> None:
    closure = solve([7, 2, -2, -2, -2], requires("0>2 0>3 1>3 1>4"))
    assert (closure.objective, selected(closure)) == (3, {0, 2, 3})
    p = [3, 8, 1, -2, -2, -2, -2, 0, 0, 0, 0, 0]
    edges = requires("0>3 0>4 1>4 1>5 2>5 2>6 7>0 7>1 8>1 8>2 9>3 9>4 10>4 10>5 11>5 11>6")
    closure = solve(p, edges)
    assert (closure.objective, closure.selected.count()) == (5, 5)


@pytest.mark.parametrize(
    ("weights", "edges", "value", "members"),
    [
        ([], [], 0, set()),
        ([5], [], 5, {0}),
        ([0], [], 0, set()),
        ([-5], [], 0, set()),
        ([0, 0, 0], [(0, 1), (1, 2)], 0, set()),
        ([1, 2, 3], [(0, 1), (1, 2)], 6, {0, 1, 2}),
        ([-1, -2], [(0, 1)], 0, set()),
        ([4, 0, -4], [], 4, {0}),  # isolated: positive, zero, negative
        ([-3, 3], [(0, 1)], 0, set()),  # a tie is not taken
        ([-3, 4], [(0, 1), (0, 1), (0, 1)], 1, {0, 1}),  # parallel edges
        ([-3, 4], [(0, 0), (0, 1), (1, 1)], 1, {0, 1}),  # self edges
        ([-3, 4], [(0, 1), (1, 0)], 1, {0, 1}),  # antiparallel edges
        ([3, -4], [(0, 1), (1, 0)], 0, set()),
        ([0, 0, 1], [(0, 2), (1, 2)], 1, {0, 1, 2}),  # zeroes only where they are required
        ([0, 0, 1, 0], [(2, 0), (2, 3)], 1, {2}),
        ([-(2**31), 2**31 + 1], [(0, 1)], 1, {0, 1}),  # past 32 bits
        ([-(2**61) + 1, 2**61], [(0, 1)], 1, {0, 1}),
        ([2**61, -(2**61)], [(0, 1)], 2**61, {0}),
        ([2**61, -(2**61)], [(1, 0)], 0, set()),
        ([-10, 6, 5], [(0, 1), (0, 2)], 1, {0, 1, 2}),  # two must share
        ([-10, 5, 5], [(0, 1), (0, 2)], 0, set()),
        ([5, -10, 6, 4], [(1, 0), (1, 2), (1, 3)], 5, {0, 1, 2, 3}),
        ([1, 2, -3], [(2, 0), (2, 1)], 0, set()),  # 0.1 + 0.2 - 0.3 in tenths
        ([10**16, -(10**16) + 1], [(1, 0)], 1, {0, 1}),  # 1 - (1 - 1e-16)
    ],
)
def test_small_kinds(weights: list[int], edges: list[tuple[int, int]], value: int, members: set[int]) -> None:
    closure = solve(weights, edges)
    assert (closure.objective, selected(closure)) == (value, members)


def test_the_cut_is_read_against_flow_too() -> None:
    """What shares a requirement with a node in excess is in every optimum: flow of it came in beside."""
    assert selected(solve([5, 1, -4], requires("0>2 1>2"))) == {0, 1, 2}
    for weights in product((1, 3, 6), (1, 4), (-2, -3), (-1, -5), (1, 2)):
        edges = requires("0>2 1>2 1>3 4>3")
        value, best = reference.best_closure(5, edges, list(weights))
        closure = solve(list(weights), edges)
        assert (closure.objective, selected(closure)) == (value, best)


def test_excess_that_nothing_can_absorb_stays_and_is_no_flow() -> None:
    """More is worth something than can ever be absorbed; the rest may neither circle nor count as absorbed."""
    side = 30
    edges = [(side + cost, worth) for worth in range(side) for cost in range(side)]
    edges += [(v, v + 1) for v in range(side - 1)]
    closure = solve([1000] * side + [-1] * side, edges)
    assert (closure.objective, len(selected(closure))) == (1000 * side - side, 2 * side)
    assert int(closure.certificate.absorbed.sum()) == side


def test_bottlenecks_of_every_size() -> None:
    """Capacities far apart along one path, so that an amount remembered from an earlier push is the wrong one."""
    rng = random.Random(28)
    for _ in range(300):
        sizes = [rng.choice([1, 2, 10, 10**6, 2**40]) for _ in range(9)]
        weights = [size if v < 4 else 0 if v == 4 else -size for v, size in enumerate(sizes)]
        edges = [(4, 0), (4, 1), (5, 4), (6, 4), (6, 2), (7, 2), (7, 3), (8, 3), (8, 5)]
        closure = solve(weights, edges)
        assert (closure.objective, selected(closure)) == reference.best_closure(9, edges, weights)


def test_many_zero_weights_are_taken_only_where_they_are_required() -> None:
    rng = random.Random(29)
    for _ in range(400):
        n, edges, weights, executable, within = random_instance(rng, 9)
        weights = [weight if rng.random() < 0.3 else 0 for weight in weights]
        closure = build(n, edges).closure(np.array(weights, dtype=np.int64), mask(executable, n), mask(within, n))
        assert (closure.objective, selected(closure)) == reference.best_closure(n, edges, weights, executable, within)


def test_what_cannot_run_takes_its_dependants_along() -> None:
    weights = [1, 10, 10, 1]
    edges = [(0, 1), (1, 2)]
    assert selected(solve(weights, edges, executable=mask({1, 2, 3}, 4))) == {3}
    # Outside `within` nothing counts: 2 no longer depends on 0 through 1.
    inside = mask({0, 2, 3}, 4)
    assert selected(solve(weights, edges, executable=mask({1, 2, 3}, 4), within=inside)) == {2, 3}
    assert selected(solve(weights, edges, executable=Mask(4))) == set()
    assert selected(solve(weights, edges, executable=mask({0}, 1))) == {0}  # shorter masks are zero-extended


def test_limits() -> None:
    graph = build(3, [(0, 1)])
    for weights in ([TOP, 1, 0], [-(2**63), 0, 0], [-(2**63)] * 3, [2**63 - 1] * 3):
        with pytest.raises(WeightOverflowError, match="2\\^62"):
            graph.closure(np.array(weights, dtype=np.int64))
    closure = graph.closure(np.array([-1, 0, TOP - 1], dtype=np.int64))
    assert (closure.objective, closure.verify()) == (TOP - 1, True)
    # What is outside does not count towards the limit.
    inside = mask({2}, 3)
    assert graph.closure(np.array([TOP, TOP, 7], dtype=np.int64), None, inside).objective == 7
    for call in (
        lambda: graph.closure(np.zeros(2, dtype=np.int64)),
        lambda: graph.closure(np.zeros(3, dtype=np.int64), Mask(4)),
        lambda: graph.closure(np.zeros(3, dtype=np.int64), None, Mask(4)),
    ):
        with pytest.raises(InvalidGraphError, match=r"expected .*got"):
            call()
    with pytest.raises(TypeError, match=r"weights: expected .*int64"):
        graph.closure(np.zeros(3))
    with pytest.raises(TypeError):
        graph.closure(np.zeros(3, dtype=np.int64), {1})  # type: ignore[arg-type]


def test_a_closure_knows_its_graph_and_copies_its_weights() -> None:
    graph = build(2, [(0, 1)])
    weights = np.array([-1, 2], dtype=np.int64)
    closure = graph.closure(weights)
    weights[:] = 0
    assert closure.verify()
    graph.append(0, ids([0]), ids([1]))  # a duplicate changes nothing
    assert closure.verify()
    graph.append(1, ids([]), ids([]))
    with pytest.raises(InvalidGraphError, match="grown"):
        closure.verify()
    for array in proof(closure).values():
        assert not array.flags.writeable
    assert repr(closure) == "Closure(selected=2, objective=1)"
    del graph
    assert selected(closure) == {0, 1}


def test_no_state_is_kept_between_solves() -> None:
    rng = random.Random(24)
    edges = [(rng.randrange(s + 1), s + 1) for s in range(199) for _ in range(2)]
    graph = build(200, edges)
    weights = [np.array([rng.randint(-9, 9) for _ in range(200)], dtype=np.int64) for _ in range(10)]
    first = [graph.closure(p) for p in weights]
    assert [c.selected for c in first] == [graph.closure(p).selected for p in weights]
    results: list[list[Mask]] = []
    threads = [
        threading.Thread(target=lambda: results.append([graph.closure(p).selected for p in weights])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[c.selected for c in first]] * 4


MILLION = 1_000_000


def million(kind: str) -> tuple[np.ndarray, np.ndarray]:
    v = np.arange(MILLION - 1, dtype=np.uint32)
    zero = np.zeros(MILLION - 1, dtype=np.uint32)
    return {
        "chain": (v, v + np.uint32(1)),
        "chain against the ids": (v + np.uint32(1), v),
        "fan-out": (zero, v + np.uint32(1)),
        "fan-in": (v + np.uint32(1), zero),
        "ring": (np.append(v, np.uint32(MILLION - 1)), np.append(v + np.uint32(1), np.uint32(0))),
        "ladder": (np.append(v, v[:-1]), np.append(v + np.uint32(1), v[:-1] + np.uint32(2))),
    }[kind]


@pytest.mark.parametrize("kind", ["chain", "chain against the ids", "fan-out", "fan-in", "ring", "ladder"])
def test_a_million_nodes_need_neither_stack_nor_quadratic_time(kind: str) -> None:
    graph = ProvenanceGraph.from_edges(MILLION, *million(kind))
    weights = np.random.default_rng(9).integers(-10, 11, MILLION)
    assert graph.closure(weights).verify()
    # All that is worth something sits at one end, all that costs at the other.
    for first, last in ((-10, 9), (-10, 11), (11, -10)):
        weights = np.zeros(MILLION, dtype=np.int64)
        weights[0], weights[-1] = first, last
        assert graph.closure(weights).verify()


def test_a_star_with_alternating_edges_takes_no_quadratic_time() -> None:
    n = 200_000
    leaf = np.arange(1, n, dtype=np.uint32)
    hub = np.zeros(n - 1, dtype=np.uint32)
    other = np.where(leaf % 2 == 0, leaf - 1, np.minimum(leaf + 1, n - 1)).astype(np.uint32)
    for first, second in ((hub, leaf), (leaf, hub)):
        graph = ProvenanceGraph.from_edges(n, np.append(first, leaf[::2]), np.append(second, other[::2]))
        weights = np.where(np.arange(n) % 2 == 0, 3, -2).astype(np.int64)
        for at_hub in (-n, -1, 0, 1, n):
            weights[0] = at_hub
            assert graph.closure(weights).verify()


def mine(
    name: str, shape: tuple[int, int, int], offsets: list[tuple[int, int, int]]
) -> tuple[ProvenanceGraph, np.ndarray]:
    path = MINES / name
    if not path.exists():
        pytest.skip(
            f"shared/data/mines/{name} is absent: lay the folder `shared` beside the checkout or set MEMOREPAIR_SHARED"
        )
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    weights = np.array(data.split(), dtype=np.int64)
    nx, ny, nz = shape
    z, y, x = np.meshgrid(np.arange(nz), np.arange(ny), np.arange(nx), indexing="ij")
    sources, targets = [], []
    for dx, dy, dz in offsets:
        inside = (x + dx >= 0) & (x + dx < nx) & (y + dy >= 0) & (y + dy < ny) & (z + dz < nz)
        targets.append((x + nx * (y + ny * z))[inside])
        sources.append((x + dx + nx * (y + dy + ny * (z + dz)))[inside])
    edges = (np.concatenate(ends).astype(np.uint32) for ends in (sources, targets))
    return ProvenanceGraph.from_edges(nx * ny * nz, *edges), weights


def test_mine_sim2d76() -> None:
    graph, weights = mine("sim2d76.dat", (75, 1, 40), [(-1, 0, 1), (0, 0, 1), (1, 0, 1)])
    closure = graph.closure(weights)
    assert (closure.objective, closure.selected.count(), closure.verify()) == (295_932, 945, True)


def test_mine_bauxitemed() -> None:
    """A published 76,813 blocks is wrong: the smallest optimum has 74,412."""
    offsets = [(-1, 0, 1), (0, -1, 1), (0, 0, 1), (0, 1, 1), (1, 0, 1)]
    offsets += [(a, b, 3) for a in (-2, 2) for b in (-2, 2)]
    offsets += [(a, b, 5) for a in (-4, 4) for b in (-3, 3)] + [(a, b, 5) for a in (-3, 3) for b in (-4, 4)]
    graph, weights = mine("bauxitemed.dat.gz", (120, 120, 26), offsets)
    assert (graph.num_nodes, graph.num_edges) == (374_400, 5_349_104)
    closure = graph.closure(weights)
    assert (closure.objective, closure.selected.count(), closure.verify()) == (28_416_592, 74_412, True)
