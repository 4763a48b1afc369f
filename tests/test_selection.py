"""Selection as plans use it: exact at any cost weight, certified both ways, and honest within a budget."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
import reference_frontier as reference

from memorepair import _core
from memorepair.errors import PlanError, WeightOverflowError
from memorepair.selection import NEVER, Problem, Selection, select_at, select_within, solve_frontier


def problem(
    values: list[int], costs: list[int], needs: dict[int, list[int]] | None = None, *, idle: Any = ()
) -> Problem:
    """Node k needs needs[k]; the `idle` ones cannot be executed."""
    rows = tuple(tuple((needs or {}).get(node, ())) for node in range(len(values)))
    return Problem(tuple(values), tuple(costs), tuple(node not in idle for node in range(len(values))), rows)


def random_problem(rng: random.Random) -> Problem:
    n = rng.randint(0, 9)
    needs = {node: sorted(rng.sample(range(node), rng.randint(0, min(node, 2)))) for node in range(n)}
    costs = [rng.choice([0, 1, rng.randint(0, 20)]) for _ in range(n)]
    return problem(
        [rng.randint(0, 9) for _ in range(n)], costs, needs, idle={v for v in range(n) if rng.random() < 0.1}
    )


def as_reference(asked: Problem) -> reference.Problem:
    edges = [(parent, node) for node, parents in enumerate(asked.needs) for parent in parents]
    may = {node for node, flag in enumerate(asked.executable) if flag}
    return reference.Problem(len(asked.values), edges, asked.values, asked.costs, may)


def test_every_way_to_choose_agrees_with_every_closed_set() -> None:
    rng = random.Random(50)
    for _ in range(300):
        asked = random_problem(rng)
        breakpoints, corners = reference.frontier(as_reference(asked))
        frontier = solve_frontier(asked)
        assert frontier.breakpoints == breakpoints
        for index, corner in enumerate(corners):
            weight = breakpoints[index] if index < len(breakpoints) else Fraction(0)
            chosen = frozenset(corner.members)
            assert select_at(asked, weight) == Selection(chosen, weight, chosen)
        budget = rng.randint(0, sum(asked.costs) + 1)
        selection = select_within(asked, budget)
        assert selection.certified <= selection.taken
        assert asked.cost(selection.taken) <= budget
        best = reference.best_within(as_reference(asked), budget)
        assert selection.bound is not None
        assert asked.value(selection.taken) <= best <= selection.bound
        assert asked.value(selection.taken) >= reference.plain_greedy(as_reference(asked), budget)
        if selection.cost_weight is None:
            assert selection.certified == corners[0].members
        else:
            assert selection.certified == select_at(asked, selection.cost_weight).certified


@pytest.mark.parametrize("kind", ["Closure", "Frontier"])
def test_a_certificate_that_fails_is_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    asked = problem([3, 2], [1, 1])
    monkeypatch.setattr(getattr(_core, kind), "verify", lambda self: False)
    ways = {
        "Closure": [lambda: select_at(asked, Fraction(1))],
        "Frontier": [
            lambda: select_within(asked, 1),
            lambda: solve_frontier(asked),
            lambda: select_at(asked, Fraction(1, 2**62)),
        ],
    }
    for way in ways[kind]:
        with pytest.raises(PlanError, match="does not verify; nothing was planned"):
            way()


def test_sums_past_the_limit_say_what_to_do() -> None:
    for asked, what in (
        (problem([2**61, 2**61, 1], [1, 1, 1]), "values"),
        (problem([1, 1, 1], [2**61, 2**61, 1]), "costs"),
        (problem([2**80], [1]), "values"),
    ):
        for way in (lambda p=asked: select_within(p, 5), lambda p=asked: solve_frontier(p)):
            with pytest.raises(
                WeightOverflowError, match=f"the sum of {what} is .*use larger units, or plan fewer keys"
            ):
                way()
    with pytest.raises(WeightOverflowError):
        select_at(problem([2**80], [1]), Fraction(1))


def test_what_cannot_run_counts_for_nothing() -> None:
    asked = problem([5, 2**61, 2**61, 2**61], [1, 1, 1, 1], {3: [1]}, idle={1, 2, 3})
    frontier = solve_frontier(asked)
    assert (frontier.breakpoints, frontier.piece.tolist()) == ([5], [1, NEVER, NEVER, NEVER])
    assert select_within(asked, 10).taken == {0}
    assert select_at(asked, Fraction(1)).taken == {0}


def test_a_cost_weight_of_any_length_is_exact() -> None:
    """Weights of a single solve would pass 2**62 here; a breakpoint and what lies a hair beside it stay apart."""
    values, costs = [3 * 10**12 + 1, 10**12], [10**12 + 7, 10**12 + 9]
    asked = problem(values, costs)
    for node in (0, 1):
        ratio, hair = Fraction(values[node], costs[node]), Fraction(1, 10**40)
        assert node not in select_at(asked, ratio).taken
        assert node not in select_at(asked, ratio + hair).taken
        assert node in select_at(asked, ratio - hair).taken


def test_a_budget_takes_packages_and_breaks_ties_by_the_order_of_nodes() -> None:
    selection = select_within(problem([0, 9, 40], [1, 4, 10], {1: [0]}), 6)
    assert selection == Selection(frozenset(), None, frozenset({0, 1}), Fraction(24))
    assert select_within(problem([5] * 4, [2] * 4), 5).taken == {0, 1}
    selection = select_within(problem([7, 6, 5, 0], [1, 2, 5, 0]), 4)
    assert (selection.certified, selection.cost_weight, selection.taken) == ({0, 1}, 1, {0, 1})
    assert selection.bound == 14


def test_what_is_free_is_taken_whatever_the_budget() -> None:
    asked = problem([1, 0, 8, 0], [0, 0, 3, 0], {0: [1]})
    assert select_within(asked, 0) == Selection(frozenset({0, 1}), None, frozenset({0, 1}), Fraction(1))
    everything = select_within(asked, 2**100)
    assert everything == Selection(frozenset({0, 1, 2}), Fraction(0), frozenset({0, 1, 2}), Fraction(9))
    assert select_within(problem([], []), 5) == Selection(frozenset(), None, frozenset(), Fraction(0))
