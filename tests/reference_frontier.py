"""The frontier kernel in plain Python: every closed set tried, a certificate checked by hand, budgets by brute force.

Contract: slow and obvious; nothing here imports `_core`. Edges are pairs (source, target), and the target requires the
source. A corner of the frontier is (value, cost, members); corner i is the smallest optimum of value - x * cost for
every x in [breakpoints[i], breakpoints[i - 1]).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import reference_kernels as kernels

NEVER = 2**32 - 1
Edges = Sequence[tuple[int, int]]


class Problem(NamedTuple):
    """What is asked: the parameters of ProvenanceGraph.frontier and of its graph."""

    num_nodes: int
    edges: Edges
    values: Sequence[int]
    costs: Sequence[int]
    executable: set[int] | None = None
    within: set[int] | None = None

    def eligible(self) -> set[int]:
        """The nodes that may be selected."""
        return kernels.eligible(self.num_nodes, self.edges, self.executable, self.within)

    def needs(self) -> dict[int, set[int]]:
        """What each eligible node requires directly; all of that is eligible too."""
        needs: dict[int, set[int]] = {node: set() for node in self.eligible()}
        for source, target in kernels.clean(self.edges):
            if target in needs and source in needs:
                needs[target].add(source)
        return needs

    def value(self, nodes: Iterable[int]) -> int:
        return sum(self.values[node] for node in nodes)

    def cost(self, nodes: Iterable[int]) -> int:
        return sum(self.costs[node] for node in nodes)


class Corner(NamedTuple):
    """One point of the frontier."""

    value: int
    cost: int
    members: set[int]


def closed_sets(problem: Problem) -> Iterator[tuple[int, int, int]]:
    """Yield (value, cost, bits) of every closed set of eligible nodes; bit k is the k-th smallest eligible node."""
    needs = problem.needs()
    nodes = sorted(needs)
    bit = {node: 1 << place for place, node in enumerate(nodes)}
    wanted = [sum(bit[other] for other in needs[node]) for node in nodes]
    values, costs, wants = [0], [0], [0]
    for place, node in enumerate(nodes):
        for rest in range(1 << place):
            values.append(values[rest] + problem.values[node])
            costs.append(costs[rest] + problem.costs[node])
            wants.append(wants[rest] | wanted[place])
    for bits, want in enumerate(wants):
        if not want & ~bits:
            yield values[bits], costs[bits], bits


def frontier(problem: Problem) -> tuple[list[Fraction], list[Corner]]:
    """Return the breakpoints and the corners: the upper concave hull of all closed sets, the smallest set at each."""
    best: dict[int, tuple[int, int]] = {}  # by cost: the greatest value, and what all sets of that value share
    for value, cost, bits in closed_sets(problem):
        known = best.get(cost)
        if known is None or value > known[0]:
            best[cost] = (value, bits)
        elif value == known[0]:
            best[cost] = (value, bits & known[1])
    hull: list[tuple[int, int, int]] = []
    for cost in sorted(best):
        value, bits = best[cost]
        if hull and value <= hull[-1][0]:
            continue  # dearer and worth no more
        while len(hull) > 1 and _slope(hull[-2], (value, cost)) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append((value, cost, bits))
    nodes = sorted(problem.eligible())
    corners = [Corner(v, c, {node for k, node in enumerate(nodes) if bits >> k & 1}) for v, c, bits in hull]
    return [_slope(hull[i], hull[i + 1]) for i in range(len(hull) - 1)], corners


def _slope(first: Sequence[int], second: Sequence[int]) -> Fraction:
    return Fraction(second[0] - first[0], second[1] - first[1])


def pieces(num_nodes: int, corners: Sequence[Corner]) -> list[int]:
    """Return for each node the corner at which it enters, NEVER for none."""
    piece = [NEVER] * num_nodes
    for index, corner in reversed([*enumerate(corners)]):
        for node in corner.members:
            piece[node] = index
    return piece


def bound_within(breakpoints: Sequence[Fraction], corners: Sequence[Corner], budget: int) -> Fraction:
    """Return the height of the concave hull at `budget`: no closed set that costs at most that is worth more."""
    last = max(index for index, corner in enumerate(corners) if corner.cost <= budget)
    if last == len(corners) - 1:
        return Fraction(corners[last].value)
    return corners[last].value + breakpoints[last] * (budget - corners[last].cost)


# -- certificates ------------------------------------------------------------------------------------------------------


def certificate_holds(
    problem: Problem,
    piece: Sequence[int],
    breakpoints: Sequence[tuple[int, int]],
    flow: Iterable[tuple[int, int, int]],
) -> bool:
    """
    Whether the flow proves `piece` and `breakpoints` (numerator, denominator) to be the whole frontier.

    `flow` lists (source, target, amount); it runs from target to source, from a node to what it requires, and is
    scaled by the denominator of its piece (1 for what is free or never selected).

    Why this suffices. For a closed set X no flow leaves X, so value(X) - x * cost(X) is at most the sum over X of
    (l - x) * cost (l = the breakpoint at which a node enters) plus the surplus of what is free; a node that is never
    selected adds nothing. The set of all nodes with l > x attains the greatest value that this bound can take, so it
    is an optimum at x. Every optimum at x then holds each node with l > x and cost > 0 and each free one with a
    surplus, holds what its members require, and takes in no flow from outside: it holds all that is reached from those
    nodes along requirements and against flow. When each piece is reached so from within, {l > x} is the smallest.
    """
    eligible, edges = problem.eligible(), kernels.clean(problem.edges)
    if len(piece) != problem.num_nodes or not _are_breakpoints(breakpoints):
        return False
    if any(not (0 <= index <= len(breakpoints) or index == NEVER) for index in piece):
        return False
    if any(piece[node] != NEVER for node in range(problem.num_nodes) if node not in eligible):
        return False
    inner = [(source, target) for source, target in edges if source in eligible and target in eligible]
    if any(piece[source] > piece[target] for source, target in inner):  # what is required enters first, or together
        return False
    balance = dict.fromkeys(eligible, 0)
    against = defaultdict(list)
    allowed = set(inner)
    for source, target, amount in flow:
        if amount <= 0 or (source, target) not in allowed or piece[source] != piece[target]:
            return False
        balance[source] += amount
        balance[target] -= amount
        against[source].append(target)
    seeds = set()
    for node in eligible:
        index = piece[node]
        if index == NEVER:
            if problem.values[node] + balance[node] > 0:
                return False
            continue
        numerator, denominator = breakpoints[index - 1] if index else (0, 1)
        surplus = denominator * problem.values[node] + balance[node] - numerator * problem.costs[node]
        if (surplus < 0 or problem.costs[node]) if index == 0 else surplus:
            return False
        if (surplus if index == 0 else problem.costs[node]) > 0:
            seeds.add(node)
    for source, target in inner:
        if piece[source] == piece[target]:
            against[target].append(source)
    reached = kernels.reach([(node, other) for node, others in against.items() for other in others], seeds)
    selected = {node for node in eligible if piece[node] != NEVER}
    return selected <= reached and {piece[node] for node in selected} >= set(range(1, len(breakpoints) + 1))


def _are_breakpoints(breakpoints: Sequence[tuple[int, int]]) -> bool:
    if any(numerator <= 0 or denominator <= 0 for numerator, denominator in breakpoints):
        return False
    fractions = [Fraction(numerator, denominator) for numerator, denominator in breakpoints]
    is_reduced = all((f.numerator, f.denominator) == pair for f, pair in zip(fractions, breakpoints, strict=True))
    return is_reduced and all(first > second for first, second in pairwise(fractions))


# -- budgets -----------------------------------------------------------------------------------------------------------


def best_within(problem: Problem, budget: int) -> int:
    """Return the greatest value of a closed set that costs at most `budget`."""
    return max(value for value, cost, _ in closed_sets(problem) if cost <= budget)


def plain_greedy(problem: Problem, budget: int, start: Iterable[int] = (), order: Sequence[int] | None = None) -> int:
    """Return the value of adding, to `start`, affordable nodes of value > 0 whose needs are met, best ratio first."""
    needs, taken = problem.needs(), set(start)
    left = budget - problem.cost(taken)
    while True:
        ready = [
            node
            for node in needs
            if node not in taken and needs[node] <= taken and problem.costs[node] <= left and problem.values[node] > 0
        ]
        if not ready:
            return problem.value(taken)
        node = min(ready, key=lambda v: (*_rank(problem.values[v], problem.costs[v]), order[v] if order else v))
        taken.add(node)
        left -= problem.costs[node]


def package_greedy(problem: Problem, budget: int, start: Iterable[int] = ()) -> int:
    """Return the value of adding, to `start`, affordable nodes with all they lack, best ratio of the whole first."""
    needs, taken = problem.needs(), set(start)
    above = kernels.reverse([(other, node) for node, others in needs.items() for other in others])
    left = budget - problem.cost(taken)
    while True:
        ready = []
        for node in needs.keys() - taken:
            package = kernels.reach(above, [node]) - taken
            value, cost = problem.value(package), problem.cost(package)
            if value > 0 and cost <= left:
                ready.append((*_rank(value, cost), node, package))
        if not ready:
            return problem.value(taken)
        package = min(ready)[-1]
        taken |= package
        left -= problem.cost(package)


def _rank(value: int, cost: int) -> tuple[bool, Fraction]:
    """Free ones first, then by falling ratio."""
    return cost > 0, -Fraction(value, cost or 1)
