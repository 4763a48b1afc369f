"""The frontier kernel: every breakpoint, the smallest set at each, one certificate for all, and choices in a budget.

Oracles: every closed set of small graphs (reference_frontier.py), single solves of the closure kernel on larger ones,
and two verifiers that share nothing. The kinds of mistakes listed here are ones that other parametric solvers make: a
breakpoint missed, two close ones merged, one at the end of the interval, largest and smallest sets mixed at a tie.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference_frontier as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_frontier import NEVER, Problem
from reference_kernels import is_closed, reach, reverse
from test_closure import MILLION, TOP, build, ids, mask, million, mine, requires, selected

from memorepair._core import Frontier, Mask, ProvenanceGraph, verify_frontier
from memorepair.errors import InvalidAmountError, InvalidGraphError, NodeRangeError, WeightOverflowError


def int64(numbers: Sequence[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def masks(problem: Problem) -> tuple[Mask | None, Mask | None]:
    return mask(problem.executable, problem.num_nodes), mask(problem.within, problem.num_nodes)


def graph_of(problem: Problem) -> ProvenanceGraph:
    return build(problem.num_nodes, list(problem.edges))


def solve(problem: Problem) -> Frontier:
    return graph_of(problem).frontier(int64(problem.values), int64(problem.costs), *masks(problem))


def flow_of(frontier: Frontier) -> list[tuple[int, int, int]]:
    """The certificate's flow in plain integers."""
    c = frontier.certificate
    amounts = [high * 2**64 + low for high, low in zip(c.flow_high.tolist(), c.flow_low.tolist(), strict=True)]
    return list(zip(c.sources.tolist(), c.targets.tolist(), amounts, strict=True))


def check_certificate(problem: Problem, frontier: Frontier) -> None:
    """Both verifiers accept."""
    assert frontier.verify()
    pairs = list(zip(frontier.numerators.tolist(), frontier.denominators.tolist(), strict=True))
    assert pairs == [(x.numerator, x.denominator) for x in frontier.breakpoints]
    assert reference.certificate_holds(problem, frontier.piece.tolist(), pairs, flow_of(frontier))


def check_points(problem: Problem, frontier: Frontier) -> None:
    """The arrays, the masks and the points say the same, and points are nested."""
    piece = frontier.piece.tolist()
    last = len(frontier.breakpoints)
    assert len(frontier) == last + 1 == len(frontier.values) == len(frontier.costs) == len(frontier.sizes)
    before: set[int] = set()
    for index in range(last + 1):
        members = {node for node, at in enumerate(piece) if at <= index}
        point = frontier.point(index)
        assert selected(point) == members > before or not index
        assert (point.value, point.cost) == (problem.value(members), problem.cost(members))
        assert (frontier.values[index], frontier.costs[index]) == (point.value, point.cost)
        assert frontier.sizes[index] == len(members)
        assert point.selected.size == problem.num_nodes
        before = members
    assert set(frontier.free.ids().tolist()) == {node for node, at in enumerate(piece) if at == 0}
    assert all(a > b for a, b in pairwise(frontier.breakpoints))
    assert all(x > 0 for x in frontier.breakpoints)


def check_against_every_closed_set(problem: Problem) -> int:
    frontier = solve(problem)
    breakpoints, corners = reference.frontier(problem)
    assert frontier.breakpoints == breakpoints
    assert frontier.piece.tolist() == reference.pieces(problem.num_nodes, corners)
    assert list(zip(frontier.values.tolist(), frontier.costs.tolist(), strict=True)) == [c[:2] for c in corners]
    check_points(problem, frontier)
    check_certificate(problem, frontier)
    # At a breakpoint the smaller set is the answer; just below it the larger one.
    for index, corner in enumerate(corners):
        lowest = breakpoints[index] if index < len(breakpoints) else Fraction(0)
        highest = breakpoints[index - 1] if index else lowest + 1
        for x in (lowest, (lowest + 2 * highest) / 3, (999 * lowest + highest) / 1000):
            point = frontier.at(x)
            assert (selected(point), point.value, point.cost) == (corner.members, corner.value, corner.cost)
    return len(breakpoints)


# -- random graphs -----------------------------------------------------------------------------------------------------


def random_edges(rng: random.Random, n: int, most: int) -> list[tuple[int, int]]:
    if n < 2:
        return [(0, 0)] if n and rng.random() < 0.2 else []
    kind = rng.choice(["any", "dag", "tree", "chain", "projects", "layers"])
    if kind == "tree":
        return [(rng.randrange(v), v) for v in range(1, n)]
    if kind == "chain":
        return [(v, v + 1) for v in range(n - 1)]
    if kind == "projects":  # tools 0..n/2 are required by projects
        return [(rng.randrange((n + 1) // 2), rng.randrange(n // 2, n)) for _ in range(rng.randint(0, most))]
    edges = [(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, most))]
    if kind == "layers":
        width = rng.randint(1, 4)
        return [(s, t) for s, t in edges if s // width < t // width]
    return edges if kind == "any" else [(min(e), max(e)) for e in edges]


def random_problem(rng: random.Random, max_nodes: int) -> Problem:
    n = rng.randint(0, max_nodes)
    most_value, most_cost = (rng.choice([1, 3, 10, 1000, TOP // max(n, 1)]) for _ in range(2))
    lowest = rng.choice([0, 0, -most_value, -most_value // 2])
    no_cost, no_value = rng.choice([0, 0, 0.3, 1]), rng.choice([0, 0, 0.3])
    values = [0 if rng.random() < no_value else rng.randint(lowest, most_value) for _ in range(n)]
    costs = [0 if rng.random() < no_cost else rng.randint(0, most_cost) for _ in range(n)]
    if rng.random() < 0.2:  # equal ratios
        values = [2 * cost for cost in costs] if most_cost < TOP // max(n, 1) else values
    executable = {v for v in range(n) if rng.random() < 0.85} if rng.random() < 0.3 else None
    within = {v for v in range(n) if rng.random() < 0.75} if rng.random() < 0.3 else None
    return Problem(n, random_edges(rng, n, 3 * n), values, costs, executable, within)


@st.composite
def problems(draw: st.DrawFn, max_nodes: int = 7) -> Problem:
    n = draw(st.integers(0, max_nodes))
    node = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * n)) if n else []
    amount = st.one_of(st.integers(0, 3), st.integers(0, TOP // max(n, 1)))
    values = draw(st.lists(st.one_of(amount, amount.map(lambda a: -a)), min_size=n, max_size=n))
    costs = draw(st.lists(amount, min_size=n, max_size=n))
    some = st.one_of(st.none(), st.sets(node, max_size=n)) if n else st.none()
    return Problem(n, edges, values, costs, draw(some), draw(some))


def test_random_graphs_against_every_closed_set() -> None:
    rng = random.Random(30)
    found = sum(check_against_every_closed_set(random_problem(rng, 8)) for _ in range(2500))
    assert found > 1500


@settings(max_examples=300)
@given(problems())
def test_any_small_graph_against_every_closed_set(problem: Problem) -> None:
    check_against_every_closed_set(problem)


@pytest.mark.slow
def test_ten_thousand_random_graphs_against_every_closed_set() -> None:
    rng = random.Random(31)
    for _ in range(10_000):
        check_against_every_closed_set(random_problem(rng, 12))


def large_problem(rng: random.Random, n: int) -> Problem:
    """Long enough frontiers: heavy-tailed values and costs, in shapes that neither peel away nor tie everywhere."""
    edges = random_edges(rng, n, rng.choice([1, 2, 3]) * n)
    values = [int(rng.paretovariate(0.8)) * rng.choice([1, 1, 1, -1]) for _ in range(n)]
    costs = [int(rng.paretovariate(0.8)) * rng.choice([1, 1, 1, 0]) for _ in range(n)]
    executable = {v for v in range(n) if rng.random() < 0.98} if rng.random() < 0.3 else None
    within = {v for v in range(n) if rng.random() < 0.9} if rng.random() < 0.3 else None
    return Problem(n, edges, values, costs, executable, within)


def check_against_single_solves(problem: Problem, frontier: Frontier, weights: list[Fraction]) -> None:
    graph, chosen = graph_of(problem), masks(problem)
    for x in weights:
        p, q = x.numerator, x.denominator
        weight = [q * value - p * cost for value, cost in zip(problem.values, problem.costs, strict=True)]
        point = frontier.at(x)
        closure = graph.closure(int64(weight), *chosen)
        assert point.selected == closure.selected
        assert q * point.value - p * point.cost == closure.objective


@pytest.mark.parametrize("size", [200, 600, 2000])
def test_larger_graphs_against_single_solves(size: int) -> None:
    rng = random.Random(32 + size)
    points = 0
    for _ in range(6):
        problem = large_problem(rng, size)
        frontier = solve(problem)
        check_points(problem, frontier)
        check_certificate(problem, frontier)
        weights = [Fraction(rng.randint(0, 4000), rng.randint(1, 1000)) for _ in range(20)]
        for x in rng.sample(frontier.breakpoints, min(20, len(frontier.breakpoints))):
            weights += [x, x + Fraction(1, 10**9), x - Fraction(1, 10**9)]
        check_against_single_solves(problem, frontier, [x for x in weights if x >= 0])
        points += len(frontier)
    assert points > 60


def test_the_answer_depends_on_neither_edge_order_nor_numbering_nor_growth() -> None:
    rng = random.Random(33)
    for _ in range(150):
        problem = random_problem(rng, 30)
        n, expected = problem.num_nodes, solve(problem)
        again = solve(problem._replace(edges=rng.sample(problem.edges, len(problem.edges)) * 2))
        assert (again.breakpoints, again.piece.tolist()) == (expected.breakpoints, expected.piece.tolist())
        graph = ProvenanceGraph.from_edges(0, ids([]), ids([]))
        graph.append(n, ids([]), ids([]))
        for source, target in problem.edges:
            graph.append(0, ids([source]), ids([target]))
        grown = graph.frontier(int64(problem.values), int64(problem.costs), *masks(problem))
        assert (grown.piece.tolist(), grown.verify()) == (expected.piece.tolist(), True)
        to = rng.sample(range(n), n)
        back = {new: old for old, new in enumerate(to)}
        moved = Problem(
            n,
            [(to[s], to[t]) for s, t in problem.edges],
            [problem.values[back[v]] for v in range(n)],
            [problem.costs[back[v]] for v in range(n)],
            *(None if m is None else {to[v] for v in m} for m in (problem.executable, problem.within)),
        )
        other = solve(moved)
        assert other.breakpoints == expected.breakpoints
        assert [other.piece[to[v]] for v in range(n)] == expected.piece.tolist()


def test_the_free_point_and_the_last_one_are_single_solves() -> None:
    rng = random.Random(34)
    for _ in range(200):
        problem = random_problem(rng, 40)
        frontier, graph = solve(problem), graph_of(problem)
        everything = graph.closure(int64(problem.values), *masks(problem))
        assert frontier.point(len(frontier) - 1).selected == everything.selected == frontier.at(0).selected
        # What is free: nothing that costs, nor what depends on it, may be selected.
        inside = set(range(problem.num_nodes)) if problem.within is None else problem.within
        may = inside if problem.executable is None else problem.executable
        able = mask({v for v in may if not problem.costs[v]}, problem.num_nodes)
        free = graph.closure(int64(problem.values), able, mask(problem.within, problem.num_nodes))
        assert free.selected == frontier.free == frontier.point(0).selected


# -- certificates ------------------------------------------------------------------------------------------------------


def verdicts(problem: Problem, graph: ProvenanceGraph, claim: dict[str, Any], **changed: Any) -> tuple[bool, bool]:
    """What the two verifiers say to a claim with some arrays replaced."""
    arrays = {**claim, **changed}
    theirs = verify_frontier(graph, int64(problem.values), int64(problem.costs), *masks(problem), **arrays)
    lengths = {name: len(array) for name, array in arrays.items()}
    flow_arrays = ("sources", "targets", "flow_high", "flow_low")
    if len({lengths[name] for name in flow_arrays}) > 1 or lengths["numerators"] != lengths["denominators"]:
        return theirs, False
    sources, targets, high, low = (arrays[name].tolist() for name in flow_arrays)
    flow = [(s, t, h * 2**64 + part) for s, t, h, part in zip(sources, targets, high, low, strict=True)]
    pairs = list(zip(arrays["numerators"].tolist(), arrays["denominators"].tolist(), strict=True))
    return theirs, reference.certificate_holds(problem, arrays["piece"].tolist(), pairs, flow)


def claim_of(frontier: Frontier) -> dict[str, Any]:
    certificate = frontier.certificate
    claim = {name: getattr(frontier, name) for name in ("piece", "numerators", "denominators")}
    return claim | {name: getattr(certificate, name) for name in ("sources", "targets", "flow_high", "flow_low")}


def replaced(array: np.ndarray, position: int, number: int) -> np.ndarray:
    copy = array.copy()
    copy[position] = number
    return copy


def test_every_change_of_a_certificate_is_refused() -> None:
    rng = random.Random(35)
    refused = 0
    for _ in range(400):
        problem = random_problem(rng, 9)
        n, graph, frontier = problem.num_nodes, graph_of(problem), solve(problem)
        claim, points = claim_of(frontier), len(frontier)
        assert verdicts(problem, graph, claim) == (True, True)
        piece, numerators, denominators = (claim[name] for name in ("piece", "numerators", "denominators"))
        changes: list[dict[str, Any]] = []
        # The claim itself has one right answer: no node may move, no breakpoint may change, split or vanish.
        for node in range(n):
            moves = {*range(points + 1), NEVER, NEVER - 1} - {int(piece[node])}
            changes += [{"piece": replaced(piece, node, to)} for to in moves]
        for first, second in ((a, b) for a in range(points) for b in range(a)):
            swapped = piece.copy()
            swapped[piece == first], swapped[piece == second] = second, first
            if not (swapped == piece).all():
                changes.append({"piece": swapped})
        changes += [{"piece": piece[:-1].copy()}] if n else []
        changes.append({"piece": np.append(piece, ids([NEVER]))})
        for i in range(points - 1):
            for name, array in (("numerators", numerators), ("denominators", denominators)):
                changes += [{name: replaced(array, i, int(array[i]) + d)} for d in (1, -1)]
                changes += [{name: replaced(array, i, to)} for to in (0, -1, -(2**63))]
            changes.append({name: np.delete(claim[name], i) for name in ("numerators", "denominators")})
            if max(numerators[i], denominators[i]) < TOP:  # the same fraction, not reduced
                changes.append({name: replaced(claim[name], i, 2 * int(claim[name][i])) for name in ("numerators", "denominators")})  # fmt: skip # noqa: E501
        changes.append({name: np.append(claim[name], int64([1])) for name in ("numerators", "denominators")})
        changes.append({"numerators": np.append(numerators, int64([1]))})
        # Flow inside a finite piece is balanced to the unit.
        for i, (source, target) in enumerate(zip(claim["sources"], claim["targets"], strict=True)):
            amount = int(claim["flow_high"][i]) * 2**64 + int(claim["flow_low"][i])
            if 0 < piece[source] < NEVER:
                for other in (amount + 1, amount - 1, amount + 2**64, amount - 2**64):
                    low, high = other % 2**64, other // 2**64
                    changes.append({"flow_high": replaced(claim["flow_high"], i, high),
                                    "flow_low": replaced(claim["flow_low"], i, low)})  # fmt: skip
                changes.append({name: np.delete(claim[name], i) for name in ("sources", "targets", "flow_high", "flow_low")})  # fmt: skip # noqa: E501
            changes.append({"flow_high": replaced(claim["flow_high"], i, -1)})
            changes.append({"flow_high": replaced(claim["flow_high"], i, -(2**63))})
            changes += [{name: replaced(claim[name], i, n)} for name in ("sources", "targets")]
            changes += [{name: replaced(claim[name], i, 2**32 - 1)} for name in ("sources", "targets")]
            backwards = (int(target), int(source))
            if backwards not in problem.edges:
                changes.append({"sources": replaced(claim["sources"], i, int(target)),
                                "targets": replaced(claim["targets"], i, int(source))})  # fmt: skip
            changes.append({"flow_low": claim["flow_low"][:-1].copy()})
        refused += len(changes)
        for change in changes:
            assert verdicts(problem, graph, claim, **change) == (False, False), (problem, change)
    assert refused > 10_000


def test_both_verifiers_agree_on_changed_flow_and_on_two_changes_at_once() -> None:
    """Flow among what is free or never selected has room, so a change may still prove the same: they must agree."""
    rng = random.Random(36)
    seen = {True: 0, False: 0}
    for _ in range(600):
        problem = random_problem(rng, 8)
        graph, frontier = graph_of(problem), solve(problem)
        claim = claim_of(frontier)
        edges = sorted({(s, t) for s, t in problem.edges if s != t})
        for _ in range(6):
            change: dict[str, Any] = {}
            if edges and rng.random() < 0.6:  # one more arc
                source, target = rng.choice(edges)
                extra = {"sources": source, "targets": target, "flow_high": 0, "flow_low": rng.choice([1, 2, 2**40])}
                change = {name: np.append(claim[name], claim[name].dtype.type(n)) for name, n in extra.items()}
            elif len(claim["sources"]):
                i = rng.randrange(len(claim["sources"]))
                amount = max(0, int(claim["flow_low"][i]) + rng.choice([-1, 1]))
                change = {"flow_low": replaced(claim["flow_low"], i, amount)}
            if problem.num_nodes and rng.random() < 0.3:
                node, other = (rng.randrange(problem.num_nodes) for _ in range(2))
                moved = replaced(claim["piece"], node, rng.choice([0, 1, 2, NEVER]))
                change["piece"] = replaced(moved, other, int(moved[node]))
            theirs, ours = verdicts(problem, graph, claim, **change)
            assert theirs == ours, (problem, change)
            if theirs:
                assert (change.get("piece", claim["piece"]) == claim["piece"]).all()
            seen[theirs] += 1
    assert min(seen.values()) > 300


def test_what_costs_nothing_and_is_worth_nothing_enters_only_where_it_is_required() -> None:
    """Balance alone would let such a node sit in any piece: the smallest set must be reached from what costs."""
    problem = Problem(5, [(3, 1)], [6, 4, 0, 0, 0], [2, 2, 0, 0, 5])
    frontier = solve(problem)
    assert frontier.breakpoints == [3, 2]
    assert frontier.piece.tolist() == [1, 2, NEVER, 2, NEVER]
    claim, graph = claim_of(frontier), graph_of(problem)
    for node, to in ((2, 0), (2, 1), (2, 2), (3, 1), (3, 0), (3, NEVER)):
        assert verdicts(problem, graph, claim, piece=replaced(claim["piece"], node, to)) == (False, False)


# -- kinds of mistakes -------------------------------------------------------------------------------------------------

F = Fraction


@pytest.mark.parametrize(
    ("values", "costs", "edges", "breakpoints", "piece"),
    [
        ([], [], "", [], []),
        ([5], [2], "", [F(5, 2)], [1]),
        ([5], [0], "", [], [0]),
        ([0], [2], "", [], [NEVER]),
        ([0], [0], "", [], [NEVER]),
        ([-5], [0], "", [], [NEVER]),
        ([-5], [2], "", [], [NEVER]),
        ([4, 0, -4, 4, 0, -4], [0, 0, 0, 1, 1, 1], "", [4], [0, NEVER, NEVER, 1, NEVER, NEVER]),  # isolated
        ([2, 4, 6], [1, 2, 3], "", [2], [1, 1, 1]),  # equal ratios are one breakpoint
        ([2, 4, 6], [1, 2, 3], "0>1 1>2", [2], [1, 1, 1]),
        ([3, 2, 1], [1, 1, 1], "0>1 1>2", [2], [1, 1, 1]),  # the best needs the rest
        ([1, 2, 3], [1, 1, 1], "0>1 1>2", [3, 2, 1], [3, 2, 1]),  # the best stands alone
        ([0, 0, 9], [1, 1, 1], "2>0", [F(9, 2)], [1, NEVER, 1]),
        ([7, 0], [0, 0], "0>1", [], [0, 0]),  # free with what it needs
        ([7, -7], [0, 0], "0>1", [], [NEVER, NEVER]),  # nets nothing: not taken
        ([7, -6], [0, 0], "0>1", [], [0, 0]),
        ([7, 0], [0, 7], "0>1", [1], [1, 1]),  # costs nothing, but what it needs does
        ([7, 1], [0, 1], "0>1", [8], [1, 1]),
        ([5, 5], [1, 1], "0>1 1>0", [5], [1, 1]),  # a cycle is one node
        ([9, 1], [1, 1], "0>1 1>0 0>0", [5], [1, 1]),
        ([9, -9], [0, 1], "0>1 1>0", [], [NEVER, NEVER]),
        ([9, -8], [0, 0], "0>1 1>0", [], [0, 0]),
        ([9, 1], [1, 1], "0>1 0>1 0>1", [5], [1, 1]),  # parallel edges
        ([6, -2, 3], [1, 1, 1], "0>1", [3, 2], [2, 2, 1]),  # negative and positive at every weight
        ([-2, 6, -3], [1, 1, 0], "1>0 2>1", [2], [1, 1, NEVER]),
        ([3, 3, -5], [1, 1, 1], "0>2 1>2", [F(1, 3)], [1, 1, 1]),  # neither alone pays
        ([2**31 + 1, 2**53 + 1, 2**61], [2**31, 2**53, 2**61 - 1], "",
         [F(2**31 + 1, 2**31), F(2**53 + 1, 2**53), F(2**61, 2**61 - 1)], [1, 2, 3]),
        ([2**61, 2**61 - 1], [2**61 - 1, 2**61], "", [F(2**61, 2**61 - 1), F(2**61 - 1, 2**61)], [1, 2]),
        ([2**61, 2**61], [2**61, 2**61], "0>1", [1], [1, 1]),
        ([1, 1], [TOP - 1, 1], "", [1, F(1, TOP - 1)], [2, 1]),
        ([TOP - 1, 1], [1, TOP - 1], "", [TOP - 1, F(1, TOP - 1)], [1, 2]),
        ([-TOP], [TOP], "", [], [NEVER]),
    ],
)  # fmt: skip
def test_small_kinds(values: list, costs: list, edges: str, breakpoints: list, piece: list) -> None:
    problem = Problem(len(values), requires(edges), values, costs)
    frontier = solve(problem)
    assert (frontier.breakpoints, frontier.piece.tolist()) == (breakpoints, piece)
    check_points(problem, frontier)
    check_certificate(problem, frontier)


def test_close_breakpoints_are_not_merged() -> None:
    """Ratios 1 and 1 + 1e-9 (and 1 - 1e-16, where doubles see none) come back as two."""
    for digits in (8, 9, 16, 17, 18):
        one = 10**digits
        frontier = solve(Problem(3, [], [one + 1, one, one - 1], [one, one, one]))
        assert frontier.breakpoints == [F(one + 1, one), F(1), F(one - 1, one)]
        assert frontier.piece.tolist() == [1, 2, 3]
        chained = solve(Problem(3, requires("2>1 1>0"), [one + 1, one, one - 1], [one, one, one]))
        assert chained.breakpoints == frontier.breakpoints
        joined = solve(Problem(3, requires("0>1 1>2"), [one + 1, one, one - 1], [one, one, one]))
        assert (joined.breakpoints, joined.piece.tolist()) == ([F(1)], [1, 1, 1])


def test_decimals_that_floats_cannot_hold_are_exact_as_integers() -> None:
    """0.1 + 0.2 against 0.3: equal as integers of a tenth, so one breakpoint."""
    frontier = solve(Problem(3, requires("0>1"), [1, 2, 3], [10, 20, 30]))
    assert (frontier.breakpoints, frontier.piece.tolist()) == ([F(1, 10)], [1, 1, 1])


def test_no_breakpoint_is_missed_when_every_node_is_one() -> None:
    """A chain with falling ratios against the order of ids, and one with distinct ratios nowhere near each other."""
    n = 300
    values = [2**61 // n - v for v in range(n)]
    costs = [2**60 // n + 7 * v for v in range(n)]
    ratios = sorted({F(v, c) for v, c in zip(values, costs, strict=True)}, reverse=True)
    assert len(ratios) == n
    chain = [(v, v + 1) for v in range(n - 1)]
    for edges in ([], chain):
        frontier = solve(Problem(n, edges, values, costs))
        assert frontier.breakpoints == ratios
        assert frontier.piece.tolist() == list(range(1, n + 1))


def test_a_tie_takes_the_smallest_set() -> None:
    """At a breakpoint both ends of the jump are optimal; the answer there is the one before it, the same all over."""
    problem = Problem(4, requires("0>1 2>3"), [4, 0, 4, 0], [1, 1, 1, 1])
    frontier = solve(problem)
    assert frontier.breakpoints == [2]
    assert selected(frontier.at(2)) == set()
    assert selected(frontier.at(F(2 * 10**18 - 1, 10**18))) == {0, 1, 2, 3}


def test_wrong_rules_would_be_noticed() -> None:
    """Merging on a larger local ratio is wrong: the requirement may have a better dependant, alone with it."""
    problem = Problem(3, requires("0>2 1>2"), [1, 100, 0], [1, 10, 10])
    frontier = solve(problem)
    breakpoints, corners = reference.frontier(problem)
    assert breakpoints == [F(5), F(1)] == frontier.breakpoints
    assert frontier.piece.tolist() == reference.pieces(3, corners) == [2, 1, 1]
    assert merged_by_local_ratio(problem) == [F(101, 21)]
    wrong = 0
    rng = random.Random(37)
    for _ in range(400):
        n = rng.randint(3, 7)
        problem = Problem(n, [(rng.randrange(v), v) for v in range(1, n)], [rng.randint(0, 9) for _ in range(n)],
                          [rng.randint(1, 9) for _ in range(n)])  # fmt: skip
        breakpoints, _ = reference.frontier(problem)
        assert solve(problem).breakpoints == breakpoints
        wrong += merged_by_local_ratio(problem) != breakpoints
    assert wrong > 20


def merged_by_local_ratio(problem: Problem) -> list[Fraction]:
    """A wrong solver: a node joins its only requirement whenever its own ratio is at least that one's."""
    n, edges = problem.num_nodes, {(s, t) for s, t in problem.edges if s != t}
    values, costs = list(problem.values), list(problem.costs)
    alive = set(range(n))
    while True:
        for node in sorted(alive):
            above = {s for s, t in edges if t == node}
            if len(above) == 1:
                (needed,) = above
                if values[node] * costs[needed] >= values[needed] * costs[node]:
                    break
        else:
            break
        values[needed] += values[node]
        costs[needed] += costs[node]
        alive.remove(node)
        edges = {tuple(needed if end == node else end for end in edge) for edge in edges}
        edges = {(s, t) for s, t in edges if s != t}
    left = sorted(alive)
    index = {node: place for place, node in enumerate(left)}
    contracted = Problem(
        len(left), [(index[s], index[t]) for s, t in edges], [values[v] for v in left], [costs[v] for v in left]
    )
    return reference.frontier(contracted)[0]


def test_what_cannot_run_or_lies_outside_is_never_selected() -> None:
    edges = [(0, 1), (1, 2)]
    blocked = solve(Problem(4, edges, [1, 10, 10, 1], [1, 1, 1, 1], executable={1, 2, 3}))
    assert (blocked.breakpoints, blocked.piece.tolist()) == ([F(1)], [NEVER, NEVER, NEVER, 1])
    # Outside `within` nothing counts: 2 no longer depends on 0 through 1.
    apart = solve(Problem(4, edges, [1, 10, 10, 1], [1, 1, 1, 1], executable={1, 2, 3}, within={0, 2, 3}))
    assert (apart.breakpoints, apart.piece.tolist()) == ([F(10), F(1)], [NEVER, NEVER, 1, 2])
    nothing = solve(Problem(4, edges, [1, 1, 1, 1], [1, 1, 1, 1], executable=set()))
    assert (len(nothing), nothing.piece.tolist(), nothing.verify()) == (1, [NEVER] * 4, True)


@pytest.mark.parametrize("kind", ["chain", "chain against the ids", "fan-out", "fan-in", "ring", "ladder"])
def test_a_million_nodes_need_neither_stack_nor_quadratic_time(kind: str) -> None:
    graph = ProvenanceGraph.from_edges(MILLION, *million(kind))
    rng = np.random.default_rng(9)
    frontier = graph.frontier(rng.integers(-3, 11, MILLION), rng.integers(1, 11, MILLION))
    assert frontier.verify()
    values, costs = np.zeros(MILLION, dtype=np.int64), np.zeros(MILLION, dtype=np.int64)
    for worth, dear in ((0, -1), (-1, 0)):
        values[:], costs[:] = 0, 0
        values[worth], costs[dear] = 6, 3
        frontier = graph.frontier(values, costs)
        assert frontier.verify()
        assert frontier.breakpoints in ([], [F(2)])


def test_many_pieces_do_not_take_quadratic_time() -> None:
    """A chain whose every node is a piece, and a star whose every leaf is one."""
    n = 20_000
    v = np.arange(n, dtype=np.int64)
    chain = build(n, [(i, i + 1) for i in range(n - 1)])
    star = build(n, [(0, i) for i in range(1, n)])
    for graph in (chain, star):
        frontier = graph.frontier(3 * n - v, np.full(n, 2, dtype=np.int64))
        assert len(frontier) == n + 1
        assert frontier.verify()


def test_a_long_chain_below_one_valuable_node_takes_no_quadratic_time() -> None:
    """All of a million nodes merge into the one that pays for them."""
    one, v = np.uint32(1), np.arange(MILLION - 2, dtype=np.uint32)
    last = np.uint32(MILLION - 1)
    graph = ProvenanceGraph.from_edges(MILLION, np.append(v[:-1], [v[-1], last - one]), np.append(v[1:], [last, last]))
    values, costs = np.zeros(MILLION, dtype=np.int64), np.ones(MILLION, dtype=np.int64)
    values[-1] = 2 * MILLION
    closure = graph.closure(values - costs)
    assert (closure.objective, closure.verify()) == (MILLION, True)
    frontier = graph.frontier(values, costs)
    assert (frontier.breakpoints, frontier.verify()) == ([2], True)


def test_a_budget_around_a_hub_takes_no_quadratic_time() -> None:
    """Each of many nodes lacks a hub that lacks as many: no package is small enough, and each is refused at once."""
    wide = 200_000
    v, hub = np.arange(wide, dtype=np.uint32), np.full(wide, wide, dtype=np.uint32)
    graph = ProvenanceGraph.from_edges(2 * wide + 1, np.r_[v, hub], np.r_[hub, v + np.uint32(wide + 1)])
    values = np.zeros(2 * wide + 1, dtype=np.int64)
    values[wide + 1 :] = 5
    choice = graph.frontier(values, np.ones(2 * wide + 1, dtype=np.int64)).for_budget(wide // 2)
    assert (choice.value, choice.cost, choice.bound) == (0, 0, F(5 * wide, 2 * wide + 1) * (wide // 2))


# -- mines, as parametric instances ------------------------------------------------------------------------------------


def split_mine(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks as value and cost: a block of positive weight is worth it, any other costs what it loses."""
    return np.maximum(weights, 0), np.maximum(-weights, 0)


def test_mine_sim2d76() -> None:
    graph, weights = mine("sim2d76.dat", (75, 1, 40), [(-1, 0, 1), (0, 0, 1), (1, 0, 1)])
    values, costs = split_mine(weights)
    frontier = graph.frontier(values, costs)
    assert frontier.verify()
    point = frontier.at(1)
    assert (point.value - point.cost, point.selected.count()) == (295_932, 945)
    edges = list(zip(*edges_of(graph), strict=True))
    problem = Problem(graph.num_nodes, edges, values.tolist(), costs.tolist())
    check_points(problem, frontier)
    check_certificate(problem, frontier)
    below = [x - Fraction(1, 10**6) for x in frontier.breakpoints]
    check_against_single_solves(problem, frontier, [*frontier.breakpoints, *(x for x in below if x >= 0)])


def edges_of(graph: ProvenanceGraph) -> tuple[list[int], list[int]]:
    sources, targets = [], []
    for node in range(graph.num_nodes):
        parents = graph.parents(node).tolist()
        sources += parents
        targets += [node] * len(parents)
    return sources, targets


@pytest.mark.slow
def test_mine_bauxitemed() -> None:
    offsets = [(-1, 0, 1), (0, -1, 1), (0, 0, 1), (0, 1, 1), (1, 0, 1)]
    offsets += [(a, b, 3) for a in (-2, 2) for b in (-2, 2)]
    offsets += [(a, b, 5) for a in (-4, 4) for b in (-3, 3)] + [(a, b, 5) for a in (-3, 3) for b in (-4, 4)]
    graph, weights = mine("bauxitemed.dat.gz", (120, 120, 26), offsets)
    values, costs = split_mine(weights)
    frontier = graph.frontier(values, costs)
    assert frontier.verify()
    point = frontier.at(1)
    assert (point.value - point.cost, point.selected.count()) == (28_416_592, 74_412)
    rng = random.Random(38)
    for x in rng.sample(frontier.breakpoints, 12):
        p, q = x.numerator, x.denominator
        if p + q < 2**20:
            assert frontier.at(x).selected == graph.closure(q * values - p * costs).selected


# -- budgets -----------------------------------------------------------------------------------------------------------


def check_choice(problem: Problem, frontier: Frontier, budget: int, tie_order: np.ndarray | None = None) -> int:
    """What any caller may rely on; returns the value."""
    choice = frontier.for_budget(budget, tie_order)
    taken, certified, fill = selected(choice), set(choice.certified.ids().tolist()), choice.fill.tolist()
    assert certified == selected(frontier.point(choice.point))
    assert len(set(fill)) == len(fill)
    assert taken == certified | set(fill)
    assert not certified & set(fill)
    assert (choice.value, choice.cost) == (problem.value(taken), problem.cost(taken))
    assert choice.cost <= budget
    eligible = problem.eligible()
    assert taken <= eligible
    assert is_closed(problem.edges, taken, problem.within)
    needs, have = problem.needs(), set(certified)
    above = reverse([(other, node) for node, others in needs.items() for other in others])
    for node in fill:  # what a node needs is added before it; only a cycle comes as one
        assert all(node in reach(above, [other]) for other in needs[node] - have)
        have.add(node)
    affordable = [i for i in range(len(frontier)) if frontier.costs[i] <= budget]
    assert choice.point in (0, affordable[-1])
    assert choice.value >= frontier.values[affordable[-1]]
    assert choice.value <= choice.bound
    assert reference.plain_greedy(problem, budget, taken) == choice.value  # nothing more fits
    order = None if tie_order is None else tie_order.tolist()
    for start in (set(), set(frontier.free.ids().tolist())):
        assert choice.value >= reference.plain_greedy(problem, budget, start, order)
    for node in sorted(eligible)[-20:]:
        alone = reach(above, [node])
        if len(alone) <= 20 and problem.cost(alone) <= budget:
            assert choice.value >= problem.value(alone)
    return choice.value


def some_budgets(rng: random.Random, problem: Problem, frontier: Frontier) -> list[int]:
    whole = int(frontier.costs[-1])
    corners = [int(cost) + d for cost in frontier.costs for d in (-1, 0, 1)]
    return [0, whole, whole + 1, *(rng.randint(0, whole) for _ in range(3)), *rng.sample(corners, min(3, len(corners)))]


def test_a_choice_within_a_budget_against_every_closed_set() -> None:
    rng = random.Random(39)
    best = ours = packages = 0
    for _ in range(800):
        problem = random_problem(rng, 8)
        frontier = solve(problem)
        breakpoints, corners = reference.frontier(problem)
        for budget in some_budgets(rng, problem, frontier):
            if budget < 0:
                continue
            tie_order = ids(rng.sample(range(problem.num_nodes), problem.num_nodes)) if rng.random() < 0.5 else None
            value = check_choice(problem, frontier, budget, tie_order)
            optimum = reference.best_within(problem, budget)
            bound = frontier.for_budget(budget).bound
            assert value <= optimum <= bound
            assert bound == reference.bound_within(breakpoints, corners, budget)
            best += value == optimum
            if optimum < 10**6:
                ours += value
                packages += reference.package_greedy(problem, budget)
    assert best > 4000
    assert ours >= packages


@settings(max_examples=150)
@given(problems(), st.integers(0, TOP))
def test_any_budget_keeps_its_promises(problem: Problem, budget: int) -> None:
    frontier = solve(problem)
    value = check_choice(problem, frontier, budget)
    assert value <= reference.best_within(problem, budget) <= frontier.for_budget(budget).bound


def test_budgets_on_larger_graphs() -> None:
    rng = random.Random(40)
    for _ in range(10):
        problem = large_problem(rng, 150)
        frontier = solve(problem)
        for budget in some_budgets(rng, problem, frontier):
            if budget >= 0:
                check_choice(problem, frontier, budget)


def test_a_budget_takes_a_package_when_its_parts_are_worth_nothing_alone() -> None:
    """A requirement without value is never ready to be bought alone; with its dependant it is."""
    problem = Problem(4, requires("0>1"), [9, 0, 40, 1], [4, 1, 10, 1])
    frontier = solve(problem)
    choice = frontier.for_budget(6)
    assert (choice.point, sorted(choice.fill.tolist())) == (0, [0, 1, 3])
    assert choice.fill.tolist().index(1) < choice.fill.tolist().index(0)
    assert (choice.value, choice.cost) == (10, 6)
    assert choice.bound == 24


def test_a_cheap_node_with_a_better_ratio_does_not_crowd_out_a_dear_one() -> None:
    frontier = solve(Problem(3, [(1, 2)], [1, 0, 4999], [1, 2000, 3000]))
    choice = frontier.for_budget(5000)
    assert (selected(choice), choice.value, choice.point) == ({1, 2}, 4999, 0)


def test_what_was_too_much_at_first_comes_within_reach() -> None:
    """A chain: what lacks 100 parents lacks 49 once what is half way up is in; and then what is above that."""
    size = 202
    values, costs = [0] * size, [1] * size
    for node, value in ((50, 5), (100, 5), (150, 5), (200, 1000)):
        values[node] = value
    costs[200] = 100
    frontier = solve(Problem(size, list(pairwise(range(size))), values, costs))
    assert (frontier.for_budget(120).value, frontier.for_budget(170).value) == (10, 15)


@pytest.mark.parametrize("fan", [20, 25, 63, 64])
def test_a_package_may_be_dense(fan: int) -> None:
    """Everything needs everything before it; 63 parents may be lacking, and no more."""
    edges = [(low, high) for high in range(fan + 1) for low in range(high)]
    values, costs = [0] * fan + [10, 1000], [1] * (fan + 1) + [1000]
    frontier = solve(Problem(fan + 2, [*edges, (fan, fan + 1)], values, costs))
    assert frontier.for_budget(100).value == (10 if fan <= 63 else 0)


def test_worthless_nodes_do_not_disturb_the_order_of_the_others() -> None:
    """What is worth nothing and costs nothing has no ratio, so it may not stand between two that have one."""
    problem = Problem(5, [], [2, 0, 0, 3, 3], [2, 0, 0, 2, 2])
    assert solve(problem).for_budget(2).fill.tolist() == [3]


def test_what_the_free_point_opens_does_not_crowd_out_what_was_open() -> None:
    """Node 1 is open only beside the free point, and ties with node 3, which is worth more within the budget."""
    problem = Problem(4, requires("1>0 2>0"), [0, 1, 1, 5], [0, 1, 0, 5])
    choice = solve(problem).for_budget(5)
    assert (choice.value, selected(choice)) == (6, {0, 2, 3})


def test_a_package_with_a_cycle_comes_after_what_it_needs() -> None:
    problem = Problem(4, requires("0>1 1>2 2>1"), [9, 0, 0, 40], [1, 1, 1, 10])
    choice = solve(problem).for_budget(5)
    assert sorted(choice.fill.tolist()) == [0, 1, 2]
    assert choice.fill[-1] == 0


def test_a_budget_on_a_corner_is_that_corner() -> None:
    rng = random.Random(41)
    for _ in range(100):
        problem = random_problem(rng, 20)
        frontier = solve(problem)
        for index in range(len(frontier)):
            choice = frontier.for_budget(int(frontier.costs[index]))
            assert choice.value == frontier.values[index] == choice.bound
        everything = frontier.for_budget(TOP)
        assert (everything.point, everything.fill.size) == (len(frontier) - 1, 0)
        assert everything.bound == frontier.values[-1]


def test_ties_within_a_budget_follow_the_order_given() -> None:
    problem = Problem(4, [], [5, 5, 5, 5], [2, 2, 2, 2])
    frontier = solve(problem)
    assert frontier.breakpoints == [F(5, 2)]
    assert frontier.for_budget(5).fill.tolist() == [0, 1]
    assert frontier.for_budget(5, ids([3, 2, 1, 0])).fill.tolist() == [3, 2]
    assert frontier.for_budget(7, ids([1, 9, 0, 5])).fill.tolist() == [2, 0, 3]


def test_growing_from_nothing_may_be_worth_more_than_the_best_point() -> None:
    """The best ratio fills the budget badly: two that are a little worse are worth more together."""
    problem = Problem(3, [], [60, 50, 50], [6, 5, 5])
    frontier = solve(problem)
    for budget in range(17):
        assert check_choice(problem, frontier, budget) <= reference.best_within(problem, budget)


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_sums_past_the_limit_are_refused() -> None:
    graph = build(3, [(0, 1)])
    zero = int64([0, 0, 0])
    for numbers in ([TOP, 1, 0], [2**63 - 1, 0, 0], [2**63 - 1] * 3, [TOP // 2, TOP // 2, 1]):
        for values, costs in ((int64(numbers), zero), (-int64(numbers), zero), (zero, int64(numbers))):
            with pytest.raises(WeightOverflowError, match="2\\^62"):
                graph.frontier(values, costs)
    with pytest.raises(WeightOverflowError):
        graph.frontier(int64([-(2**63), 0, 0]), zero)
    full = graph.frontier(int64([TOP - 1, 0, -1]), int64([1, TOP - 2, 1]))
    assert full.verify()
    # What is outside does not count towards the limit.
    inside = mask({2}, 3)
    assert graph.frontier(int64([TOP, TOP, 7]), int64([TOP, TOP, 1]), None, inside).breakpoints == [7]


def test_negative_costs_are_refused() -> None:
    graph = build(2, [])
    for costs in ([-1, 5], [0, -(2**63)]):
        with pytest.raises(InvalidAmountError, match="cost"):
            graph.frontier(int64([1, 1]), int64(costs))


def test_arrays_that_do_not_fit_are_refused() -> None:
    graph = build(3, [(0, 1)])
    good = int64([1, 2, 3])
    for call in (
        lambda: graph.frontier(int64([1, 2]), good),
        lambda: graph.frontier(good, int64([1, 2, 3, 4])),
        lambda: graph.frontier(good, good, Mask(4)),
        lambda: graph.frontier(good, good, None, Mask(4)),
    ):
        with pytest.raises(InvalidGraphError, match=r"expected .*got"):
            call()
    two_d = int64([1, 2, 3]).reshape(3, 1)
    for wrong in (
        np.zeros(3), np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.uint64), np.zeros(3, dtype=bool),
        int64([1, 2, 3, 4, 5, 6])[::2], int64([1, 2, 3]).byteswap().view(">i8"), [1, 2, 3], None, two_d, "abc",
    ):  # fmt: skip
        with pytest.raises(TypeError):
            graph.frontier(wrong, good)
        with pytest.raises(TypeError):
            graph.frontier(good, wrong)
    for wrong in ({1}, [1], good):
        with pytest.raises(TypeError):
            graph.frontier(good, good, wrong)
    # Shorter masks are zero-extended.
    assert graph.frontier(good, good, mask({0}, 1)).piece.tolist() == [1, NEVER, NEVER]


class Ratio(NamedTuple):
    """Looks rational."""

    numerator: object
    denominator: object


def test_questions_that_make_no_sense_are_refused() -> None:
    frontier = solve(Problem(3, [(0, 1)], [4, 2, 1], [1, 1, 1]))
    for index in (-1, len(frontier), 2**40, 2**80):
        with pytest.raises((NodeRangeError, OverflowError)):
            frontier.point(index)
    for x in (F(-1, 10**9), -1, np.int64(-1), Ratio(1, 0)):
        with pytest.raises(InvalidAmountError, match="cost_weight"):
            frontier.at(x)  # type: ignore[arg-type]
    for x in (0.5, "1", None, float("nan"), True, np.float64(1), Ratio(1.5, 1), Ratio(1, None)):
        with pytest.raises(TypeError):
            frontier.at(x)  # type: ignore[arg-type]
    for budget in (0.5, "1", None):
        with pytest.raises(TypeError):
            frontier.for_budget(budget)  # type: ignore[arg-type]
    with pytest.raises(InvalidAmountError, match="budget"):
        frontier.for_budget(-1)
    for order in (ids([0, 1]), ids([0, 1, 2, 3])):
        with pytest.raises(InvalidGraphError, match="tie_order"):
            frontier.for_budget(1, order)
    for order in (int64([0, 1, 2]), [0, 1, 2], np.zeros(3)):
        with pytest.raises(TypeError):
            frontier.for_budget(1, order)  # type: ignore[arg-type]


def test_cost_weights_of_any_size() -> None:
    frontier = solve(Problem(2, [], [4, 2], [1, 1]))
    assert frontier.breakpoints == [4, 2]
    assert selected(frontier.at(10**40)) == set()
    assert selected(frontier.at(F(10**40, 10**40 + 1))) == {0, 1}
    assert selected(frontier.at(F(4 * 10**40 - 1, 10**40))) == {0}
    assert selected(frontier.at(F(4 * 10**40 + 1, 10**40))) == set()
    assert selected(frontier.at(F(2 * 10**40 + 1, 10**40))) == {0}


def test_numpy_integers_do_not_wrap() -> None:
    frontier = solve(Problem(1, [], [2**61 + 1], [2**61]))
    for five in (5, np.int64(5), np.uint8(5), F(5), Ratio(np.int64(10), np.int8(2))):
        assert selected(frontier.at(five)) == set()  # type: ignore[arg-type]
    assert selected(frontier.at(np.int64(1))) == {0}  # type: ignore[arg-type]


def test_a_frontier_knows_its_graph_and_copies_its_arrays() -> None:
    graph = build(2, [(0, 1)])
    values, costs = int64([1, 5]), int64([1, 1])
    frontier = graph.frontier(values, costs)
    values[:], costs[:] = 0, 9
    assert frontier.verify()
    assert frontier.for_budget(2).value == 6
    graph.append(0, ids([0]), ids([1]))  # a duplicate changes nothing
    assert frontier.verify()
    arrays = [frontier.piece, frontier.values, frontier.costs, frontier.sizes, *claim_of(frontier).values()]
    for array in arrays:
        assert not array.flags.writeable
    assert repr(frontier) == "Frontier(points=2)"
    graph.append(1, ids([]), ids([]))
    with pytest.raises(InvalidGraphError, match="grown"):
        frontier.verify()
    piece = frontier.piece
    del frontier, graph
    assert piece.tolist() == [1, 1]


def test_what_a_point_says_about_itself() -> None:
    frontier = solve(Problem(3, [], [4, 2, 7], [1, 1, 0]))
    assert frontier.breakpoints == [4, 2]
    assert [frontier.point(i).cost_weight for i in range(3)] == [None, 2, 0]
    assert [type(x) for x in frontier.breakpoints] == [Fraction, Fraction]
    assert [type(number) for number in (frontier.point(1).value, frontier.point(1).cost)] == [int, int]


def test_no_state_is_kept_between_solves() -> None:
    rng = random.Random(42)
    edges = [(rng.randrange(s + 1), s + 1) for s in range(199) for _ in range(2)]
    graph = build(200, edges)
    asked = [(int64([rng.randint(-3, 9) for _ in range(200)]), int64([rng.randint(0, 9) for _ in range(200)]))
             for _ in range(8)]  # fmt: skip
    first = [graph.frontier(*pair).piece.tolist() for pair in asked]
    assert first == [graph.frontier(*pair).piece.tolist() for pair in asked]
    results: list[list[list[int]]] = []
    threads = [
        threading.Thread(target=lambda: results.append([graph.frontier(*pair).piece.tolist() for pair in asked]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [first] * 4
