"""Selection: the exact choice at a cost weight, the whole trade-off, and the best found within a budget.

Contract: `select_at` returns the smallest maximum-weight predecessor closure at lambda; `solve_frontier` returns it at
every lambda at once; `select_within` returns the best point of that frontier inside a budget, what is taken (that point
and a fill, or what is free and a fill where that is worth more), and an upper bound for every selection within the
budget. Nothing is returned whose certificate does not verify: PlanError.
Invariants: integers only; sums of values and of costs stay within 2**62 or WeightOverflowError.
Source: Picard 1976; Gallo, Grigoriadis and Tarjan 1989; MemoRepair Theorem 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from memorepair.barrier import Mask, mask_of
from memorepair.candidates import graph_of
from memorepair.errors import PlanError, WeightOverflowError

if TYPE_CHECKING:
    from memorepair._core import Closure, Frontier

MAX_WEIGHT_SUM = 2**62
NEVER = 2**32 - 1  # the piece of a node that no cost weight selects
MAX_PACKAGE = 64  # nodes that a fill adds together: one, and the required parents it lacks


class Problem(msgspec.Struct, frozen=True):
    """Nodes 0..n-1 with values, costs, executable flags and the nodes each one needs."""

    values: tuple[int, ...]
    costs: tuple[int, ...]
    executable: tuple[bool, ...]
    needs: tuple[tuple[int, ...], ...]

    def amounts(self) -> tuple[list[int], list[int]]:
        """Values and costs by node; what cannot be executed counts for nothing."""
        values = [value if may else 0 for value, may in zip(self.values, self.executable, strict=True)]
        return values, [cost if may else 0 for cost, may in zip(self.costs, self.executable, strict=True)]

    def value(self, nodes: frozenset[int]) -> int:
        """The value of a set of nodes."""
        return sum(self.values[node] for node in nodes)

    def cost(self, nodes: frozenset[int]) -> int:
        """The cost of a set of nodes."""
        return sum(self.costs[node] for node in nodes)


class Selection(msgspec.Struct, frozen=True):
    """
    A certified point of the lambda frontier and what was taken in the end.

    `certified` is the smallest optimum at `cost_weight` (None = beyond every breakpoint: only what is free). Without a
    budget `taken` is the same set; with one it may hold more. `bound` is an upper bound on the value of any selection
    within the budget.
    """

    certified: frozenset[int]
    cost_weight: Fraction | None
    taken: frozenset[int]
    bound: Fraction | None = None


def select_at(problem: Problem, cost_weight: Fraction) -> Selection:
    """Return the smallest optimum of value - cost_weight x cost."""
    values, costs = problem.amounts()
    # Amounts are mostly whole units: without their common factors the weights of a single solve stay short.
    value_unit, cost_unit = gcd(*values) or 1, gcd(*costs) or 1
    ratio = cost_weight * cost_unit / value_unit
    weights = [
        ratio.denominator * (value // value_unit) - ratio.numerator * (cost // cost_unit)
        for value, cost in zip(values, costs, strict=True)
    ]
    if sum(map(abs, weights)) > MAX_WEIGHT_SUM:
        # A breakpoint, for one, may have a denominator so long that only the frontier's wider integers hold it.
        chosen = _nodes(solve_frontier(problem).at(cost_weight).selected)
    else:
        closure = graph_of([list(needed) for needed in problem.needs]).closure(_array(weights), _executable(problem))
        _check_certificate(closure)
        chosen = _nodes(closure.selected)
    return Selection(chosen, cost_weight, chosen)


def solve_frontier(problem: Problem) -> Frontier:
    """Return the smallest optimum of value - lambda x cost for every lambda >= 0, with its breakpoints."""
    values, costs = problem.amounts()
    _check_sum("values", values)
    _check_sum("costs", costs)
    graph = graph_of([list(needed) for needed in problem.needs])
    frontier = graph.frontier(_array(values), _array(costs), _executable(problem))
    _check_certificate(frontier)
    return frontier


def select_within(problem: Problem, budget: int) -> Selection:
    """Return the best selection found whose cost is at most `budget`; ties go to the earlier node."""
    frontier = solve_frontier(problem)
    choice = frontier.for_budget(min(budget, MAX_WEIGHT_SUM))
    cost_weight = frontier.point(choice.point).cost_weight
    return Selection(_nodes(choice.certified), cost_weight, _nodes(choice.selected), choice.bound)


def _check_sum(what: str, amounts: Sequence[int]) -> None:
    total = sum(amounts)
    if total > MAX_WEIGHT_SUM:
        raise WeightOverflowError(
            f"the sum of {what} is {total} micro-units, expected at most 2**62; "
            "use larger units, or plan fewer keys at a time"
        )


def _check_certificate(answer: Closure | Frontier) -> None:
    if not answer.verify():
        raise PlanError("the certificate of the selection does not verify; nothing was planned. Please report this")


def _array(numbers: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, dtype=np.int64)


def _executable(problem: Problem) -> Mask:
    return mask_of([node for node, may in enumerate(problem.executable) if may], len(problem.executable))


def _nodes(mask: Mask) -> frozenset[int]:
    return frozenset(map(int, mask.ids()))
