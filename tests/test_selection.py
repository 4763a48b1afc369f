"""Selection as plans use it: exact at any cost weight, certified both ways, and honest within a budget."""

from __future__ import annotations

import pydoc
import random
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference_frontier as reference
from stores import echo_rules

import memorepair as mr
from memorepair import _core
from memorepair.amounts import share
from memorepair.errors import PlanError, WeightOverflowError
from memorepair.selection import NEVER, Problem, Selection, select_at, select_within, solve_frontier
from memorepair.testing.invariants import plan_is_exact


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


def withdrawn(store: mr.Store, costs: dict[str, str | None]) -> mr.Rules:
    """Independent artifacts of one source, all withdrawn by its correction; the rules that rebuild them."""
    source = store.put("source", "x")
    for key, cost in costs.items():
        store.derive(key, "x", kind="cache", parents=[source], operator="echo@1", cost=cost)
    store.correct("source", "y")
    return echo_rules()


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


# -- plans and trade-offs over a store ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [10**3, 10**8, 10**11])
def test_one_dear_candidate_leaves_the_others_their_costs(store: mr.Store, factor: int) -> None:
    rules = withdrawn(store, {"a": "1 tokens", "b": "2 tokens", "dear": f"{factor} tokens"})
    mean = Fraction(3 + factor, 3)
    solved = mr.frontier(store, None, rules)
    assert [point.cost_weight for point in solved.points] == [mean, mean / 2, mean / factor, 0]
    for index, point in enumerate(solved.points):
        plan = mr.plan(store, None, rules, cost_weight=point.cost_weight)
        assert plan.selected == solved.selected(index)
        plan_is_exact(plan)
        exact = [Fraction(plan[key].recorded_cost, 10**6) / mean for key in plan.selected]
        assert point.cost_weight is not None
        assert Fraction(plan.objective) == len(exact) - point.cost_weight * sum(exact)
        assert Fraction(plan.mean_cost or 0) == mean
        assert min(item.cost for item in plan.items) > 0
    assert mr.plan(store, None, rules, cost_weight="0.34").selected == ("a", "b")


def test_a_missing_cost_is_the_mean_and_never_nothing(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "0 tokens", "b": "0 tokens", "c": "0.000001 tokens", "plain": None})
    plan = mr.plan(store, None, rules)
    assert (plan["plain"].recorded_cost, plan["a"].cost) == (1, 0)
    plan_is_exact(plan)
    assert mr.plan(store, None, rules, budget="0 tokens").selected == ("a", "b")


def test_without_recorded_costs_every_candidate_costs_one(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": None, "b": None})
    plan = mr.plan(store, None, rules)
    assert ([item.cost for item in plan.items], plan.mean_cost, plan.unit) == ([10**6, 10**6], None, "")
    assert mr.plan(store, None, rules, cost_weight=1).selected == ()


def three(store: mr.Store) -> tuple[mr.Rules, Any]:
    """Values 3, 4, 4, costs ten times that: nothing is dearer for its worth than anything else."""
    worth = {"a": 3, "b": 4, "c": 4}
    rules = withdrawn(store, {key: f"{10 * value} tokens" for key, value in worth.items()})
    return rules, lambda candidate: (worth[candidate.key], 1)


def test_a_plan_within_a_budget_says_what_is_certified(store: mr.Store) -> None:
    rules, worth = three(store)
    plan = mr.plan(store, None, rules, budget="85 tokens", schedule=worth)
    assert (plan.value, plan.bound) == (7_000_000, "17/2")  # 8 was possible: b with c
    assert (plan.cost_weight, plan.budget_weight, plan.objective) == (None, "infinite", "0")
    assert str(plan).splitlines()[0] == (
        "plan within 85 tokens: 2 of 3 candidates selected, 2 filled in, cost 70 tokens of 110 tokens for all, "
        "value 7 (no selection within the budget exceeds 8.5); "
        "certificate verified for the frontier point (0 selected) and the bound"
    )
    report = mr.repair(store, plan, rules)
    assert (report.selected, report.filled, report.cost_weight, report.budget) == (2, 2, None, "85 tokens")
    assert report["a"].is_fill
    assert not report["c"].is_fill
    lines = str(report).splitlines()
    assert lines[0] == (
        "repair: 2 published of 2 selected of 3 candidates, 2 filled in, planned cost 0.64 of all; "
        "certificate verified for the frontier point (0 selected)"
    )
    assert "  published    a (filled in)" in lines


def test_the_bound_that_is_printed_is_never_below_the_value(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "1 tokens", "b": "3 tokens"})
    plan = mr.plan(store, None, rules, budget="1 tokens", schedule=lambda c: (7_419_811, 1))
    assert "value 7419811 (no selection within the budget exceeds 7419811)" in str(plan)
    plan = mr.plan(store, None, rules, budget="2 tokens", schedule=lambda c: (2, 1))
    assert (plan.value, plan.bound) == (2_000_000, "8/3")
    assert "value 2 (no selection within the budget exceeds 2.666667)" in str(plan)


def test_reasons_within_a_budget_speak_of_the_budget(store: mr.Store) -> None:
    p = store.put("p", "x")
    base = store.derive("base", "x", kind="cache", parents=[p], operator="echo@1", cost="6 tokens")
    for key, cost in {"cheap": "2 tokens", "idle": "1 tokens", "dear": "50 tokens"}.items():
        store.derive(key, "x", kind="cache", parents=[p], operator="echo@1", cost=cost)
    store.derive("top", "x", kind="cache", parents=[base], operator="echo@1", cost="1 tokens")
    store.correct("p", "y")
    worth = {"base": 1, "cheap": 5, "idle": 0, "dear": 9, "top": 3}
    rules = echo_rules()
    plan = mr.plan(store, None, rules, budget="6 tokens", schedule=lambda c: (worth[c.key], 1))
    assert {item.key: (item.decision, item.reason) for item in plan.items} == {
        "base": ("left out", "it costs 6 tokens, more than the 4 tokens that are left of the budget"),
        "cheap": ("selected", ""),
        "dear": ("left out", "it costs 50 tokens, more than the 4 tokens that are left of the budget"),
        "idle": ("not worth it", "it is worth nothing, and nothing selected needs it"),
        "top": (
            "left out",
            "with the required parents it lacks it costs 7 tokens, more than the 4 tokens that are left of the budget",
        ),
    }
    assert plan.warnings == ()
    plan = mr.plan(store, None, rules, budget="1 tokens", schedule=lambda c: (worth[c.key], 1))
    assert plan.warnings == ("nothing is selected: the budget pays for nothing that is worth anything",)
    plan = mr.plan(store, None, rules, budget="1000 tokens", schedule=lambda c: (1, 1))
    assert plan.warnings == ("everything that can be repaired is selected: the budget pays for all of it",)
    plan = mr.plan(store, None, rules, cost_weight=5, schedule=lambda c: (worth[c.key], 2))
    assert plan["cheap"].reason == "its value is at most cost_weight x cost, with the required parents it lacks"
    assert plan.warnings == ("nothing is selected: are values and costs in sensible units?",)


def test_a_fill_brings_few_required_parents_along(store: mr.Store) -> None:
    parent = store.put("p", "x")
    for number in range(70):
        parent = store.derive(f"c{number:02}", "x", kind="cache", parents=[parent], operator="echo@1", cost="1 tokens")
    store.correct("p", "y")
    worth = {"c62": 5, "c69": 10}
    plan = mr.plan(store, None, echo_rules(), budget="69 tokens", schedule=lambda c: (worth.get(c.key, 0), 1))
    assert (len(plan.selected), plan["c62"].decision) == (63, "fill")
    assert plan["c62"].reason == plan["c00"].reason == "fits in what the frontier point leaves of the budget"
    assert "more than the 6 tokens that are left" in plan["c69"].reason
    plan = mr.plan(store, None, echo_rules(), budget="70 tokens", schedule=lambda c: (int(c.key == "c69"), 1))
    assert len(plan.selected) == 70
    store.derive("x", "x", kind="cache", parents=[store.get("p")], operator="echo@1", cost="1 tokens")
    store.derive("y", "x", kind="cache", parents=[store.get("p")], operator="echo@1", cost="1000 tokens")
    store.correct("p", "z")
    worth = {"c69": 10, "x": 1000, "y": 1000}
    left = "more than the 9 tokens that are left of the budget"
    for budget, reason in {
        "100 tokens": "it lacks more required parents than a fill brings along",
        "10 tokens": f"with the required parents it lacks it costs at least 64 tokens, {left}",
    }.items():
        plan = mr.plan(store, None, echo_rules(), budget=budget, schedule=lambda c: (worth.get(c.key, 0), 1))
        assert (plan.selected, plan["c69"].reason) == (("x",), reason)


def test_what_is_filled_in_is_listed_before_the_list_is_cut(store: mr.Store) -> None:
    rules = withdrawn(store, {**{f"a{n:02}": "1 tokens" for n in range(60)}, "z1": "50 tokens", "z2": "90 tokens"})
    plan = mr.plan(store, None, rules, budget="110 tokens", schedule=lambda c: (20 if c.key == "z2" else 1, 1))
    assert plan.fill == ("z1",)
    assert str(plan).splitlines()[1].split()[:3] == ["fill", "recompute", "z1"]
    assert str(plan).splitlines()[-1] == "  ... and 12 more"
    assert "  published    z1 (filled in)" in str(mr.repair(store, plan, rules)).splitlines()


def test_points_and_tables_are_asked_for_within_range(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "1 tokens", "b": "2 tokens"})
    solved = mr.frontier(store, None, rules)
    assert len(solved.points) == 3
    assert [solved.selected(point) for point in range(3)] == [(), ("a",), ("a", "b")]
    assert solved.selected(np.int64(1)) == ("a",)
    assert solved.table(np.uint8(2)) == solved.table(2)
    for point in (-1, 3, 99, True, "1", 1.0, None):
        with pytest.raises(mr.InvalidRequestError, match="point: expected an int from 0 to 2, got"):
            solved.selected(point)  # type: ignore[arg-type]
    for rows in (-1, 0, 1, True, "5", 2.5, None):
        with pytest.raises(mr.InvalidRequestError, match="max_points: expected an int of 2 or more, got"):
            solved.table(rows)  # type: ignore[arg-type]
    assert len(solved.table(2).splitlines()) == 6


def test_a_trade_off_knows_which_point_a_cost_weight_gives(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "1 tokens", "b": "2 tokens", "c": "27 tokens"})
    solved = mr.frontier(store, None, rules)
    assert solved.cost_weight == Fraction(3, 10)
    for weight in (0, "0.3", Fraction(10, 27), 1, 5, 10, 11):
        chosen = mr.plan(store, None, rules, cost_weight=weight).selected
        assert solved.selected(solved.at(weight)) == chosen
    assert [solved.at(weight) for weight in (10, 5, Fraction(10, 27), "0.3")] == [0, 1, 2, 3]
    with pytest.raises(mr.InvalidAmountError, match="cost_weight"):
        solved.at(-1)
    assert mr.frontier(store, None, rules, schedule=lambda c: (1, 1)).cost_weight == 1
    assert isinstance(solved.points[0], mr.TradeOffPoint)
    assert solved.table(2).splitlines() == [
        "frontier by normalised: 3 of 3 candidates can be rebuilt, value 3, cost 30 tokens; certificate verified",
        "  * is the choice at 3/10, the schedule's own cost weight",
        "  2 of 4 points, evenly spread by number of points",
        "  cost weight  selected  value  of all  cost tokens  of all",
        "           10         0      0    0.00            0    0.00",
        "*           0         3      3    1.00           30    1.00",
    ]
    worth = {"a": 5, "b": 3, "c": 1}
    solved = mr.frontier(store, None, rules, schedule=lambda c: (worth[c.key], 2))
    assert [line.split() for line in solved.table(2).splitlines()[4:]] == [
        ["2.5", "0", "0", "0.00", "0", "0.00"],
        ["*", "0.5", "2", "8", "0.89", "3", "0.10"],
        ["0", "3", "9", "1.00", "30", "1.00"],
    ]


def test_errors_name_what_is_wrong_and_not_another_call(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": None})
    for call in (mr.plan, mr.frontier):
        for wrong in ((store, "no", rules), (store, None, 5), (store, None, rules)):
            with pytest.raises(mr.MemorepairError) as refused:
                call(*wrong, keys=["none"])  # type: ignore[arg-type]
            assert not str(refused.value).startswith("plan:")
    for budget in ("-5 tokens", "5", -5):
        with pytest.raises(mr.InvalidAmountError, match="budget: expected a number >= 0 and a unit"):
            mr.plan(store, None, rules, budget=budget)  # type: ignore[arg-type]
    with pytest.raises(mr.InvalidRequestError, match="budget: expected candidates with recorded costs, got none"):
        mr.plan(store, None, rules, budget="5 tokens")


def test_a_cost_that_nobody_recorded_is_told_as_what_it_is_taken_for(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "4 tokens", "b": None, "c": "7 tokens"})
    warning = "1 of 3 candidates that can be rebuilt has no recorded cost; counted as the mean, 5.5 tokens"
    plan = mr.plan(store, None, rules, budget="6 tokens")
    assert plan.warnings == (warning,)
    assert [item.has_recorded_cost for item in plan] == [True, False, True]
    assert plan["b"].reason == (
        "it is taken to cost 5.5 tokens (mean; none recorded), more than the 2 tokens that are left of the budget"
    )
    lines = str(plan).splitlines()
    assert lines[1:3] == [f"  warning: {warning}", "  selected     recompute a  value 1 cost 4 tokens"]
    assert "  left out     recompute b  value 1 cost ~5.5 tokens (it is taken to cost" in lines[3]
    assert "recompute b  value 1 cost ~1" in str(mr.plan(store, None, rules))
    own = mr.plan(store, None, rules, schedule=lambda c: (2, 1))
    assert "recompute b  value 2 cost 1" in str(own)  # the function's own cost, nobody's guess
    assert mr.frontier(store, None, rules).warnings == own.warnings[:1] == (warning,)
    assert f"  warning: {warning}" in str(mr.frontier(store, None, rules)).splitlines()


def test_required_parents_without_a_cost_are_told_too(store: mr.Store) -> None:
    p = store.put("p", "x")
    base = store.derive("base", "x", kind="cache", parents=[p], operator="echo@1")
    store.derive("top", "x", kind="cache", parents=[base], operator="echo@1", cost="4 tokens")
    store.correct("p", "y")
    plan = mr.plan(store, None, echo_rules(), budget="5 tokens", schedule=lambda c: (int(c.key == "top"), 1))
    assert plan["top"].reason == (
        "with the required parents it lacks it is taken to cost 8 tokens (mean where none recorded), "
        "more than the 5 tokens that are left of the budget"
    )


def test_several_keys_are_asked_for_as_several(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "1 tokens"})
    for call in (mr.plan, mr.frontier):
        for keys, got in {"summary/refunds": "the text 'summary/refunds'", 5: "5"}.items():
            expected = f"keys: expected several keys such as ['summary/refunds'], got {got}"
            with pytest.raises(mr.InvalidRequestError, match=re.escape(expected)):
                call(store, None, rules, keys=keys)  # type: ignore[arg-type]
        with pytest.raises(mr.InvalidKeyError, match="key: expected a str, got int"):
            call(store, None, rules, keys=[5])  # type: ignore[list-item]


def test_plans_and_reports_can_be_looked_through(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "1 tokens", "b": "2 tokens"})
    plan = mr.plan(store, None, rules)
    report = mr.repair(store, plan, rules)
    for answer, name in ((plan, "plan"), (report, "report")):
        assert "a" in answer
        assert "nope" not in answer
        assert 0 not in answer
        assert [part.key for part in answer] == ["a", "b"]
        assert all(part in answer and answer[part.key] == part for part in answer)
        with pytest.raises(mr.UnknownKeyError, match=f"^'nope' is not among the 2 candidates of this {name}$"):
            answer["nope"]
    with pytest.raises(mr.UnknownKeyError, match=r"among the 0 candidates"):
        mr.plan(store, None, rules)["a"]


def test_what_is_no_store_and_no_plan_is_refused_by_name(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "1 tokens"})
    plan: Any = mr.plan(store, None, rules)
    wrong: dict[Any, str] = {
        "a": "got str",
        None: "got NoneType",
        store.aio: "got AsyncStore; pass the store itself, in asyncio.to_thread",
    }
    for thing, got in wrong.items():
        for call in (mr.plan, mr.frontier, lambda s, _, r: mr.repair(s, plan, r)):
            with pytest.raises(mr.InvalidRequestError, match=f"^store: expected a Store from mr.open\\(\\), {got}$"):
                call(thing, None, rules)
    wrong_plan: Any = "a"
    with pytest.raises(mr.InvalidRequestError, match=r"^plan: expected a Plan from mr.plan\(\), got str$"):
        mr.repair(store, wrong_plan, rules)
    with pytest.raises(mr.InvalidRequestError, match=r"^rules: expected Rules, got Plan$"):
        mr.repair(store, plan, plan)
    for call in (mr.plan, mr.frontier):
        with pytest.raises(mr.InvalidRequestError, match="event: expected an Event or its id, or None for all, got 5"):
            call(store, 5, rules)


def test_an_error_of_a_schedule_says_at_which_key(store: mr.Store) -> None:
    rules = withdrawn(store, {"child": "1 tokens"})

    def fails(candidate: mr.Candidate) -> tuple[object, object]:
        return {}[candidate.key], 1

    with pytest.raises(KeyError) as failed:
        mr.plan(store, None, rules, schedule=fails)
    assert failed.value.__notes__ == ["schedule, at key 'child'"]


def test_help_tells_what_a_schedule_reads_and_what_plans_hold() -> None:
    for field in ("key", "mode", "needs", "row.cost", "row.unit", "row.kind", "row.weight", "use.reads"):
        assert f"`{field}`" in pydoc.getdoc(mr.Candidate)
        assert f"`{field}`" in pydoc.getdoc(mr.plan)
    for field in ("bound", "budget_weight", "mean_cost", "objective", "order"):
        assert f"`{field}`" in pydoc.getdoc(mr.Plan)
    assert "`enters`" in pydoc.getdoc(mr.TradeOff)


def test_when_nothing_is_held_that_is_said(store: mr.Store) -> None:
    rules = echo_rules()
    assert mr.plan(store, None, rules).warnings == mr.frontier(store, None, rules).warnings == ("nothing is held",)
    rules = withdrawn(store, {"a": "1 tokens"})
    assert mr.plan(store, None, rules, keys=[]).warnings == ("nothing of what was asked for is held",)


def test_numbers_out_of_all_proportion_are_told_so(store: mr.Store) -> None:
    rules = withdrawn(store, {"a": "1 tokens"})
    for weight in ("1e-400", "1e400", "1" * 50, f"1/{'1' * 50}"):
        with pytest.raises(mr.InvalidAmountError, match="cost_weight: expected a number >= 0 of sensible size such as"):
            mr.plan(store, None, rules, cost_weight=weight)
    for budget in ("1e400 tokens", "1e-400 tokens", f"{'1' * 50} tokens"):
        with pytest.raises(mr.InvalidAmountError, match="budget: expected a number >= 0 of sensible size and a unit"):
            mr.plan(store, None, rules, budget=budget)
    for budget in ("1e tokens", "5000", "x tokens"):
        with pytest.raises(mr.InvalidAmountError, match="budget: expected a number >= 0 and a unit"):
            mr.plan(store, None, rules, budget=budget)


def test_a_share_that_is_not_all_is_not_printed_as_all(store: mr.Store) -> None:
    for part, whole, text in ((1012354, 1012363, "<1.00"), (1, 10**9, ">0.00"), (0, 5, "0.00"), (5, 5, "1.00"),
                              (2, 3, "0.67"), (0, 0, "-")):  # fmt: skip
        assert share(part, whole) == text
    rules = withdrawn(store, {"a": "1012354 tokens", "b": "9 tokens"})
    report = mr.repair(store, mr.plan(store, None, rules, schedule=lambda c: (2 * (c.key == "a"), 1)), rules)
    assert "planned cost <1.00 of all" in str(report)


@pytest.mark.parametrize(
    "kind",
    ["Certificate", "Closure", "Frontier", "FrontierCertificate", "FrontierPoint", "BudgetChoice", "ProvenanceGraph"],
)
def test_help_tells_what_every_member_of_the_core_is(kind: str) -> None:
    cls = getattr(_core, kind)
    for name in [kind, *(name for name in vars(cls) if not name.startswith("_"))]:
        told = pydoc.getdoc(cls if name == kind else getattr(cls, name))
        told = told.split("\n\n", 1)[-1] if told.startswith(f"{name}(") else told  # the signature comes first
        assert len(told) > 6, (kind, name)
        assert "(self: " not in told, (kind, name)
    for text in ("None", "point(0)"):
        assert text in pydoc.getdoc(_core.FrontierPoint.cost_weight)
    assert "not certified" in pydoc.getdoc(_core.BudgetChoice)
