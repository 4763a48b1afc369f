"""Selection: the exact choice at a cost weight, and the best found within a budget.

Contract: `select_at` returns the smallest maximum-weight predecessor closure at lambda, with a verified certificate.
`select_within` returns the best point of the lambda frontier inside a budget, what is taken (that point and a fill, or
the same fill from nothing where that is worth more), and an upper bound for every selection within the budget.
Invariants: integers only; the sum of absolute weights stays within 2**62 or WeightOverflowError.
Source: Picard 1976; MemoRepair Theorem 1.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np

from memorepair.barrier import mask_of
from memorepair.candidates import graph_of
from memorepair.errors import PlanError, WeightOverflowError

MAX_WEIGHT_SUM = 2**62


class Problem(msgspec.Struct, frozen=True):
    """Nodes 0..n-1 with values, costs, executable flags and the nodes each one needs."""

    values: tuple[int, ...]
    costs: tuple[int, ...]
    executable: tuple[bool, ...]
    needs: tuple[tuple[int, ...], ...]

    def value(self, nodes: frozenset[int]) -> int:
        """The value of a set of nodes."""
        return sum(self.values[node] for node in nodes)

    def cost(self, nodes: frozenset[int]) -> int:
        """The cost of a set of nodes."""
        return sum(self.costs[node] for node in nodes)


class Selection(msgspec.Struct, frozen=True):
    """
    A certified point of the lambda frontier and what was taken in the end.

    `certified` is the smallest optimum at `cost_weight` (None = beyond every ratio: only what is free). Without a
    budget `taken` is the same set. `bound` is an upper bound on the value of any selection within the budget.
    """

    certified: frozenset[int]
    cost_weight: Fraction | None
    taken: frozenset[int]
    bound: Fraction | None = None


def select_at(problem: Problem, cost_weight: Fraction) -> Selection:
    """Return the smallest optimum of value - cost_weight x cost; its certificate was verified."""
    numerator, denominator = cost_weight.numerator, cost_weight.denominator
    weights = [
        denominator * value - numerator * cost if may else 0
        for value, cost, may in zip(problem.values, problem.costs, problem.executable, strict=True)
    ]
    chosen = _closure(problem, weights, problem.executable)
    return Selection(chosen, cost_weight, chosen)


def _closure(problem: Problem, weights: list[int], executable: Sequence[bool]) -> frozenset[int]:
    total = sum(map(abs, weights))
    if total > MAX_WEIGHT_SUM:
        raise WeightOverflowError(
            f"plan: the sum of |value - cost_weight x cost| is {total}, expected at most 2**62; "
            "use a cost weight with a smaller denominator, or larger units"
        )
    if not weights:
        return frozenset()
    graph = graph_of([list(needed) for needed in problem.needs])
    may = mask_of([node for node, flag in enumerate(executable) if flag], len(weights))
    closure = graph.closure(np.array(weights, dtype=np.int64), executable=may)
    if not closure.verify():
        raise PlanError(
            "plan: the certificate of the selection does not verify; nothing was planned. Please report this"
        )
    return frozenset(map(int, closure.selected.ids()))


def select_within(problem: Problem, budget: int) -> Selection:
    """Return the best selection found whose cost is at most `budget`."""
    reduced = _reduced(problem)
    free = _free(reduced)
    high = Selection(free, None, free)  # inside the budget
    low = select_at(reduced, Fraction(0))  # the dearest point of the frontier
    bound = Fraction(problem.value(low.certified))
    if problem.cost(low.certified) <= budget:
        return msgspec.structs.replace(low, bound=bound)
    value_scale, cost_scale = _scale(problem.values), _scale(problem.costs)
    while True:
        rise = problem.value(low.certified) - problem.value(high.certified)
        run = problem.cost(low.certified) - problem.cost(high.certified)
        middle = _select_near(reduced, Fraction(rise * cost_scale, run * value_scale))
        if middle is None or middle.cost_weight is None:
            break
        weight = middle.cost_weight * Fraction(value_scale, cost_scale)
        middle = msgspec.structs.replace(middle, cost_weight=weight)
        value, cost = problem.value(middle.certified), problem.cost(middle.certified)
        bound = min(bound, value + weight * (budget - cost))
        if middle.certified == high.certified:
            high = middle  # nothing of the frontier lies between
            break
        if not problem.cost(high.certified) < cost < problem.cost(low.certified):
            break  # the nearest slope that fits in 62 bits tells nothing new
        if cost <= budget:
            high = middle
        else:
            low = middle
    filled = _fill(problem, high.certified, budget)
    greedy = _fill(problem, frozenset(), budget)
    taken = greedy if problem.value(greedy) > problem.value(filled) else filled
    return Selection(high.certified, high.cost_weight, taken, bound)


def _scale(amounts: Sequence[int]) -> int:
    return math.gcd(*amounts) or 1


def _reduced(problem: Problem) -> Problem:
    """The same problem in the largest common units, so that exact slopes stay small."""
    by_value, by_cost = _scale(problem.values), _scale(problem.costs)
    return Problem(
        tuple(value // by_value for value in problem.values),
        tuple(cost // by_cost for cost in problem.costs),
        problem.executable,
        problem.needs,
    )


def _free(problem: Problem) -> frozenset[int]:
    """What costs nothing and is worth something, with what it needs."""
    executable = [may and not cost for may, cost in zip(problem.executable, problem.costs, strict=True)]
    weights = [value if may else 0 for value, may in zip(problem.values, executable, strict=True)]
    return _closure(problem, weights, executable)


def _select_near(problem: Problem, slope: Fraction) -> Selection | None:
    """Select at `slope`, or at the nearest fraction whose weights fit in 62 bits; None when none does."""
    limit = slope.denominator
    while limit:
        near = slope.limit_denominator(limit)
        try:
            return select_at(problem, near)
        except WeightOverflowError:
            limit = near.denominator // 2
    return None


def _fill(problem: Problem, chosen: frozenset[int], budget: int) -> frozenset[int]:
    """Add affordable nodes whose needs are met, best value for cost first, ties by node order."""
    taken, left = set(chosen), budget - problem.cost(chosen)
    children: list[list[int]] = [[] for _ in problem.needs]
    waiting = [0] * len(problem.needs)
    for node, needed in enumerate(problem.needs):
        for parent in needed:
            if parent not in taken:
                children[parent].append(node)
                waiting[node] += 1
    ready = [
        (_rank(problem, node), node)
        for node, may in enumerate(problem.executable)
        if may and node not in taken and not waiting[node]
    ]
    heapq.heapify(ready)
    while ready:
        _, node = heapq.heappop(ready)
        if problem.costs[node] > left or not problem.values[node]:
            continue
        taken.add(node)
        left -= problem.costs[node]
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child] and problem.executable[child]:
                heapq.heappush(ready, (_rank(problem, child), child))
    return frozenset(taken)


def _rank(problem: Problem, node: int) -> Fraction:
    cost = problem.costs[node]
    return -Fraction(problem.values[node], cost) if cost else Fraction(-MAX_WEIGHT_SUM)
