"""Plan and repair: candidates, selection, execution, validation, publication."""

from __future__ import annotations

import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from stores import chain, echo_rules

import memorepair as mr
from memorepair import validators
from memorepair.planner import frontier


def test_the_main_job(store: mr.Store) -> None:
    chain(store)
    event = store.correct("p", "better")
    rules = echo_rules()
    plan = mr.plan(store, event, rules)
    assert plan.selected == ("a", "b", "c")
    assert (plan.cost_weight, plan.certificate, plan.unit) == ("3/10", "verified", "tokens")
    report = mr.repair(store, plan, rules)
    assert (report.candidates, report.selected, report.executed, report.published) == (3, 3, 3, 3)
    assert store.get("c").content == "better | better"
    assert store.get("c").operator_version == "2"
    assert set(store.get("c").parents) == {store.get("a").version, store.get("b").version}
    assert store.status().open_events == 0
    assert mr.plan(store, None, rules).items == ()


def test_a_plan_changes_nothing_and_prints_why(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "better")
    epoch = store.status().epoch
    plan = mr.plan(store, None, mr.Rules())
    assert store.status().epoch == epoch
    assert plan.selected == ()
    assert plan["a"].decision == "removed"
    assert "not registered" in plan["a"].reason
    assert plan["b"].decision == "removed"
    assert "removed" in str(plan)


def test_what_is_blocked_says_by_whom(store: mr.Store) -> None:
    p = store.put("p", "x")
    a = store.derive("a", "x", kind="cache", parents=[p], operator="lost@1")
    store.derive("b", "x", kind="summary", parents=[a], operator="echo@1")
    store.correct("p", "y")
    plan = mr.plan(store, None, echo_rules())
    assert (plan["b"].decision, plan["b"].blocked_by) == ("blocked", ("a",))


def test_a_deleted_required_parent_blocks_an_optional_one_does_not(store: mr.Store) -> None:
    p, q = store.put("p", "x"), store.put("q", "y")
    store.derive("needs", "x", kind="cache", parents=[p, q], operator="echo@1")
    store.derive("likes", "x", kind="summary", optional=[p, q], operator="echo@1")
    store.derive("alone", "x", kind="summary", optional=[p], operator="echo@1")
    store.delete("p")
    rules = echo_rules()
    plan = mr.plan(store, None, rules)
    assert {item.key: item.decision for item in plan.items} == {
        "alone": "blocked",
        "likes": "selected",
        "needs": "blocked",
    }
    assert plan["alone"].reason == "none of its inputs is left"
    report = mr.repair(store, plan, rules)
    assert report["likes"].absent == ("p",)
    assert store.get("likes").content == "y"
    assert store.get("likes").parents == (q.version,)


def test_a_rolling_summary_keeps_the_other_messages(store: mr.Store) -> None:
    m1, m2 = store.put("m1", "secret"), store.put("m2", "weather")
    s1 = store.derive("s", "secret", kind="summary", optional=[m1], operator="echo@1")
    store.derive("s", "secret, weather", kind="summary", optional=[s1, m2], operator="echo@1")
    store.delete("m1")
    rules = echo_rules()
    mr.repair(store, mr.plan(store, None, rules), rules)
    assert store.get("s").content == "weather"
    assert "secret" not in str(store.get("s"))


def test_a_rolling_summary_builds_on_its_own_former_version(store: mr.Store) -> None:
    m1, m2 = store.put("m1", "one"), store.put("m2", "two")
    s1 = store.derive("s", "one", kind="summary", optional=[m1], operator="echo@1")
    store.derive("s", "one, two", kind="summary", optional=[s1, m2], operator="echo@1")
    store.correct("m2", "TWO")
    rules = echo_rules()
    mr.repair(store, mr.plan(store, None, rules), rules)
    assert store.get("s").content == "TWO | one"
    assert set(store.get("s").parents) == {s1.version, store.get("m2").version}


def test_interfaces_arrive_apart_from_inputs(store: mr.Store) -> None:
    tool, doc = store.put("tool", {"v": 1}, form="interface"), store.put("doc", "x")
    store.derive("call", "r", kind="cache", parents=[tool, doc], operator="replay@1")
    store.migrate("tool", {"v": 2})
    rules = mr.Rules()
    seen: list[mr.Job] = []

    @rules.operator("replay", version="2")
    def replay(job: mr.Job) -> mr.Draft:
        seen.append(job)
        return mr.Draft(f"{job.inputs['doc']} by v{job.interface['tool']['v']}")

    mr.repair(store, mr.plan(store, None, rules), rules)
    assert store.get("call").content == "x by v2"
    assert (seen[0].mode, seen[0].kind, seen[0].roots) == ("recompute", "cache", ("tool",))
    assert seen[0].version == store.get("call").version


def hang(job: mr.Job) -> Any:
    threading.Event().wait(30)


def lie(job: mr.Job) -> Any:
    raise SystemExit(3)


FAULTY: dict[str, Any] = {
    "raises": lambda job: 1 // 0,
    "exits": lie,
    "returns nothing": lambda job: None,
    "returns text": lambda job: "text",
    "returns None content": lambda job: mr.Draft(None),
    "returns NaN": lambda job: mr.Draft({"x": float("nan")}),
    "returns a lone surrogate": lambda job: mr.Draft("\ud83d"),
    "costs without a unit": lambda job: mr.Draft("x", cost="5"),
    "costs below zero": lambda job: mr.Draft("x", cost="-5 tokens"),
    "facts that are no JSON": lambda job: mr.Draft("x", facts={"x": object()}),
    "hangs": hang,
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_failing_operator_keeps_its_artifact_and_dependants_withdrawn(store: mr.Store, fault: str) -> None:
    chain(store)
    q = store.put("q", "fine")
    store.derive("other", "x", kind="cache", parents=[q], operator="good@1", cost="1 tokens")
    store.correct({"p": "better", "q": "fine too"})
    rules = mr.Rules()
    rules.operator("echo", version="2", timeout_seconds=0.05)(FAULTY[fault])
    rules.operator("good", version="1")(lambda job: mr.Draft("good"))
    report = mr.repair(store, mr.plan(store, None, rules, cost_weight=0), rules)
    assert {key: outcome.fate for key, outcome in report.outcomes.items()} == {
        "a": "failed",
        "b": "blocked",
        "c": "blocked",
        "other": "published",
    }
    assert report["a"].reason
    with pytest.raises(mr.WithdrawnError, match="failed"):
        store.get("a")
    assert store.get("other").content == "good"


VERDICTS: dict[str, Any] = {
    "raises": lambda job, draft: 1 // 0,
    "hangs": lambda job, draft: threading.Event().wait(30),
    "none": lambda job, draft: None,
    "true": lambda job, draft: True,
    "one": lambda job, draft: 1,
    "ok": lambda job, draft: "ok",
    "object": lambda job, draft: object(),
    "truthy verdict": lambda job, draft: mr.Verdict(1),  # type: ignore[arg-type]
    "failed": lambda job, draft: mr.failed("no"),
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_only_an_explicit_pass_is_a_pass(store: mr.Store, verdict: str) -> None:
    chain(store)
    store.correct("p", "better")
    rules = echo_rules()
    rules.validator("strict", kinds=["summary"], timeout_seconds=0.05)(VERDICTS[verdict])
    report = mr.repair(store, mr.plan(store, None, rules), rules)
    assert [report[key].fate for key in "abc"] == ["published", "failed", "blocked"]
    assert "strict" in report["b"].reason
    assert not store.visible([2, 3, 4]).any()


def test_nothing_user_code_does_later_can_change_what_was_staged(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "better")
    rules = mr.Rules()
    kept: list[dict[str, Any]] = []

    @rules.operator("echo", version="2")
    def echo(job: mr.Job) -> mr.Draft:
        content = {"inputs": len(job.inputs)}
        kept.append(content)
        return mr.Draft(content)

    @rules.validator("vandal")
    def vandal(job: mr.Job, draft: mr.Draft) -> mr.Verdict:
        draft.content["inputs"] = "changed by a validator"
        kept[-1]["inputs"] = "changed by an operator"
        job.inputs.clear()
        return mr.passed()

    mr.repair(store, mr.plan(store, None, rules), rules)
    assert [store.get(key).content for key in "abc"] == [{"inputs": 1}, {"inputs": 1}, {"inputs": 2}]


def test_old_content_is_refused_after_delete_and_suspect(store: mr.Store) -> None:
    p, q = store.put("p", "x"), store.put("q", "y")
    store.derive("s", "old words", kind="summary", optional=[p, q], operator="edit@1")
    rules, bold = mr.Rules(), mr.Rules()
    for chosen, reads_old in ((rules, False), (bold, True)):
        chosen.operator("edit", version="2", reads_old=reads_old)(lambda job: mr.Draft(job.old() + "!"))
    store.suspect("p", event_id="e1")
    report = mr.repair(store, mr.plan(store, None, rules), rules)
    assert "reads_old" in report["s"].reason
    report = mr.repair(store, mr.plan(store, None, bold), bold)
    assert store.get("s").content == "old words!"
    store.correct("q", "z")
    mr.repair(store, mr.plan(store, None, rules), rules)
    assert store.get("s").content == "old words!!"


def test_a_neural_skill_needs_a_param_operator(store: mr.Store) -> None:
    p = store.put("p", "x")
    store.derive("n", "weights", kind="skill", form="neural", parents=[p], operator="train@1")
    store.correct("p", "y")
    rules, tuned = mr.Rules(), mr.Rules()
    rules.operator("train", version="2")(lambda job: mr.Draft("w"))
    tuned.operator("train", version="2", mode="param")(lambda job: mr.Draft("w"))
    assert mr.plan(store, None, rules)["n"].decision == "removed"
    assert mr.plan(store, None, tuned)["n"].mode == "param"


def test_an_event_after_the_plan_is_fenced_and_planned_again(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "better")
    rules = mr.Rules()

    @rules.operator("echo", version="2")
    def echo(job: mr.Job) -> mr.Draft:
        if job.key == "a":
            store.correct("p", "best")  # an operator may call back into the store, and events are taken at once
        return mr.Draft(" | ".join(map(str, job.inputs.values())))

    report = mr.repair(store, mr.plan(store, None, rules), rules)
    assert report["a"].fate == "stalled"
    with pytest.raises(mr.WithdrawnError):
        store.get("a")
    plain = echo_rules()
    mr.repair(store, mr.plan(store, None, plain), plain)
    assert store.get("c").content == "best | best"


def test_a_key_put_anew_during_the_repair_is_not_overwritten(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "better")
    rules = mr.Rules()

    @rules.operator("echo", version="2")
    def echo(job: mr.Job) -> mr.Draft:
        if job.key == "b":
            store.put("b", "by hand", kind="summary")
        return mr.Draft("made")

    report = mr.repair(store, mr.plan(store, None, rules), rules)
    assert report["b"].fate == "stalled"
    assert store.get("b").content == "by hand"


def test_two_repairs_of_one_plan_publish_once(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "better")
    rules = echo_rules()
    plan = mr.plan(store, None, rules)
    assert mr.repair(store, plan, rules).published == 3
    version = store.get("a").version
    again = mr.repair(store, plan, rules)
    assert again.counts == {"stalled": 3}
    assert store.get("a").version == version


def test_publish_at_end_is_one_transaction(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "better")
    rules = mr.Rules()
    seen: list[bool] = []

    @rules.operator("echo", version="2")
    def echo(job: mr.Job) -> mr.Draft:
        seen.append(any(isinstance(answer, mr.Artifact) for answer in store.get_many("abc")))
        return mr.Draft("+".join(map(str, job.inputs.values())))

    report = mr.repair(store, mr.plan(store, None, rules), rules, publish="at_end")
    assert seen == [False, False, False]
    assert report.published == 3
    assert store.get("c").content == "better+better"
    assert len({store.get(key).epoch for key in "abc"}) == 1


def test_plans_of_one_event_take_required_predecessors_along(store: mr.Store) -> None:
    p, q = store.put("p", "x"), store.put("q", "x")
    a = store.derive("a", "x", kind="cache", parents=[p], operator="echo@1")
    store.derive("b", "x", kind="cache", parents=[a, q], operator="echo@1")
    store.derive("z", "x", kind="cache", parents=[p], operator="echo@1")
    store.correct("p", "y", event_id="e1")
    store.correct("q", "y", event_id="e2")
    assert [item.key for item in mr.plan(store, "e2", echo_rules()).items] == ["a", "b"]
    assert [item.key for item in mr.plan(store, None, echo_rules(), keys=["b"]).items] == ["a", "b"]
    with pytest.raises(mr.UnknownKeyError):
        mr.plan(store, "e9", echo_rules())
    with pytest.raises(mr.UnknownKeyError, match="not held"):
        mr.plan(store, None, echo_rules(), keys=["p"])


def test_cycles_of_keys_by_optional_edges_run_by_required_edges_wait(store: mr.Store) -> None:
    p = store.put("p", "x")
    x1 = store.derive("x", "1", kind="summary", optional=[p], operator="echo@1")
    y1 = store.derive("y", "1", kind="summary", optional=[x1, p], operator="echo@1")
    store.derive("x", "2", kind="summary", optional=[y1, p], operator="echo@1")
    r1 = store.derive("r", "1", kind="cache", parents=[p], operator="echo@1")
    t1 = store.derive("t", "1", kind="cache", parents=[r1], operator="echo@1")
    store.derive("r", "2", kind="cache", parents=[t1], operator="echo@1")
    store.derive("u", "1", kind="cache", parents=[t1], operator="echo@1")
    store.correct("p", "y")
    rules = echo_rules()
    plan = mr.plan(store, None, rules, cost_weight=0)
    decisions = {item.key: item.decision for item in plan.items}
    assert decisions == {"r": "blocked", "t": "blocked", "u": "blocked", "x": "selected", "y": "selected"}
    assert "cycle" in plan["r"].reason
    assert mr.repair(store, plan, rules).published == 2


def priced(store: mr.Store, costs: dict[str, str | None], reads: dict[str, int] | None = None) -> None:
    p = store.put("p", "x")
    for key, cost in costs.items():
        store.derive(key, "x", kind="cache", parents=[p], operator="echo@1", cost=cost)
    for key, count in (reads or {}).items():
        for _ in range(count):
            store.get(key)
    store.correct("p", "y")


def test_the_normalised_schedule(store: mr.Store) -> None:
    priced(store, {"cheap": "1 tokens", "dear": "8 tokens", "plain": None}, reads={"dear": 0, "cheap": 2})
    plan = mr.plan(store, None, echo_rules())
    numbers = {item.key: (item.value, item.cost, item.recorded_cost, item.decision) for item in plan.items}
    assert numbers == {
        "cheap": (3_000_000, 222_222, 1_000_000, "selected"),
        "dear": (1_000_000, 1_777_778, 8_000_000, "selected"),
        "plain": (1_000_000, 1_000_000, 4_500_000, "selected"),
    }
    assert [item.key for item in mr.plan(store, None, echo_rules(), cost_weight=1).items if item.is_selected] == [
        "cheap"
    ]


def test_cost_weights_are_exact(store: mr.Store) -> None:
    priced(store, {"a": "1 tokens"})
    for weight in (1, "1", "1/1", Fraction(1), Decimal("1.0")):
        assert mr.plan(store, None, echo_rules(), cost_weight=weight).selected == ()  # a tie is not worth it
    assert mr.plan(store, None, echo_rules(), cost_weight="0.999999").selected == ("a",)
    for weight in (0.3, -1, "x", "1/0", True, float("nan")):
        with pytest.raises(mr.InvalidAmountError):
            mr.plan(store, None, echo_rules(), cost_weight=weight)  # type: ignore[arg-type]


def test_units_never_mix(store: mr.Store) -> None:
    priced(store, {"a": "1 tokens", "b": "1 ms"})
    with pytest.raises(mr.MixedUnitsError, match="'ms', 'tokens'"):
        mr.plan(store, None, echo_rules())
    assert mr.plan(store, None, echo_rules(), keys=["a"]).selected == ("a",)


def test_a_budget_is_met_and_filled(store: mr.Store) -> None:
    priced(store, {"a": "5 tokens", "b": "6 tokens", "c": "100 tokens"}, reads={"b": 1, "c": 3})
    plan = mr.plan(store, None, echo_rules(), budget="11 tokens")
    assert set(plan.selected) == {"a", "b"}
    assert Fraction(plan.bound or 0) >= 3
    assert plan.planned_cost.micro <= 11_000_000
    assert mr.plan(store, None, echo_rules(), budget="4 tokens").selected == ()
    assert len(mr.plan(store, None, echo_rules(), budget="1000 tokens").selected) == 3
    with pytest.raises(mr.MixedUnitsError):
        mr.plan(store, None, echo_rules(), budget="5 ms")
    with pytest.raises(mr.InvalidRequestError, match="two ways"):
        mr.plan(store, None, echo_rules(), budget="5 tokens", cost_weight=1)


def test_a_budget_says_what_is_certified_and_what_fills_it(store: mr.Store) -> None:
    priced(
        store, {"a": "5 tokens", "b": "6 tokens", "c": "100 tokens", "d": "7 tokens"}, reads={"b": 2, "c": 3, "d": 1}
    )
    plan = mr.plan(store, None, echo_rules(), budget="12 tokens")
    decisions = {item.key: item.decision for item in plan.items}
    assert decisions == {"a": "fill", "b": "selected", "c": "left out", "d": "left out"}
    assert (plan.fill, plan.budget_weight) == (("a",), "2/7")
    assert plan["a"].reason == "fits in what the frontier point leaves of the budget"
    assert Fraction(plan.bound or 0) == 3 + Fraction(2, 7) * 6
    assert Fraction(plan.objective) == 3 - Fraction(2, 7) * 6
    assert "value 4 (no selection within the budget exceeds 4.714286)" in str(plan)
    nothing = mr.plan(store, None, echo_rules(), budget="0 tokens")
    assert (nothing.selected, nothing.budget_weight, nothing.objective) == ((), "infinite", "0")
    report = mr.repair(store, plan, echo_rules())
    assert report.counts == {"left out": 2, "published": 2}
    assert store.explain("d").fate == "left out"
    with pytest.raises(mr.WithdrawnError, match="last repair: left out, it costs 7 tokens, more than the 1 tokens"):
        store.get("d")


def test_a_budget_buys_what_is_needed_along(store: mr.Store) -> None:
    """A requirement that is worth nothing by itself, in a budget that the best point does not fit in."""
    p = store.put("p", "x")
    tool = store.derive("tool", "x", kind="cache", parents=[p], operator="echo@1", cost="2 tokens")
    store.derive("use", "x", kind="cache", parents=[tool], operator="echo@1", cost="3 tokens")
    store.derive("more", "x", kind="cache", parents=[p], operator="echo@1", cost="6 tokens")
    store.correct("p", "y")
    worth = {"tool": 0, "use": 5, "more": 20}
    plan = mr.plan(store, None, echo_rules(), budget="5 tokens", schedule=lambda c: (worth[c.key], 1))
    assert plan.selected == ("tool", "use")
    assert plan.fill == ("tool", "use")
    assert mr.repair(store, plan, echo_rules()).published == 2


def test_a_frontier_holds_every_plan(store: mr.Store) -> None:
    priced(store, {"a": "5 tokens", "b": "6 tokens", "c": "100 tokens", "d": None}, reads={"b": 1, "c": 3})
    epoch, rules = store.status().epoch, echo_rules()
    solved = frontier(store, None, rules)
    assert store.status().epoch == epoch
    assert (solved.keys, solved.unit, solved.certificate) == (("a", "b", "c", "d"), "tokens", "verified")
    assert [solved.selected(index) for index in range(len(solved.points))] == [
        (), ("b",), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")
    ]  # fmt: skip
    for index, point in enumerate(solved.points):
        plan = mr.plan(store, None, rules, cost_weight=point.cost_weight)
        assert plan.selected == solved.selected(index)
        assert plan.planned_cost.micro == point.recorded_cost
        assert (sum(plan[key].value for key in plan.selected), sum(plan[key].cost for key in plan.selected)) == (
            point.value, point.cost
        )  # fmt: skip
        if index:
            just_above = solved.points[index - 1].cost_weight
            assert just_above is not None
            assert mr.plan(store, None, rules, cost_weight=just_above - Fraction(1, 10**9)).selected == plan.selected
    assert solved.repair_all == msgspec.structs.replace(solved.points[-1], cost_weight=None)
    assert [frontier(store, None, rules, keys=["a"]).keys, frontier(store, None, rules, keys=["a"]).enters] == [
        ("a",),
        (1,),
    ]
    one_each = frontier(store, None, rules, schedule=lambda c: (1, 1))
    assert [(point.cost_weight, point.selected) for point in one_each.points] == [(1, 0), (0, 4)]
    assert str(solved).splitlines()[0].startswith("frontier by normalised: 4 of 4 candidates can be rebuilt, value 8, ")
    with pytest.raises(mr.InvalidRequestError):
        frontier(store, None, 5)  # type: ignore[arg-type]


def test_a_schedule_may_be_a_function(store: mr.Store) -> None:
    priced(store, {"a": "1 tokens", "b": "1 ms"})
    plan = mr.plan(store, None, echo_rules(), schedule=lambda c: (2, 1 if c.key == "a" else 3), keys=["a"])
    assert (plan.selected, plan.cost_weight) == (("a",), "1")
    for wrong in (lambda c: (float("nan"), 1), lambda c: (1, -1), lambda c: (True, 1), lambda c: ("5", 1)):
        with pytest.raises(mr.InvalidAmountError):
            mr.plan(store, None, echo_rules(), schedule=wrong, keys=["a"])
    for odd in (lambda c: 5, "break_odd"):
        with pytest.raises(mr.InvalidRequestError):
            mr.plan(store, None, echo_rules(), schedule=odd, keys=["a"])  # type: ignore[arg-type]


def test_overflowing_weights_are_refused_before_any_solve(store: mr.Store) -> None:
    priced(store, {"a": "1 tokens", "b": "1 tokens"})
    with pytest.raises(mr.WeightOverflowError):
        mr.plan(store, None, echo_rules(), schedule=lambda c: (2**42, 0))
    assert store.status().held == 2


def test_a_plan_of_another_store_is_refused(tmp_path: Path) -> None:
    with mr.open(tmp_path / "a.db") as one, mr.open(tmp_path / "b.db") as two:
        for opened in (one, two):
            chain(opened)
            opened.correct("p", "y")
        plan = mr.plan(one, None, echo_rules())
        with pytest.raises(mr.PlanError):
            mr.repair(two, plan, echo_rules())
        with pytest.raises(mr.PlanError):
            mr.repair(
                one,
                mr.Plan(**{**{f: getattr(plan, f) for f in plan.__struct_fields__}, "certificate": "no"}),
                echo_rules(),
            )


def test_what_was_not_worth_it_stays_withdrawn_and_can_come_later(store: mr.Store) -> None:
    priced(store, {"a": "1 tokens", "dear": "1000 tokens"}, reads={"a": 5})
    rules = echo_rules()
    report = mr.repair(store, mr.plan(store, None, rules, cost_weight=1), rules)
    assert report["dear"].fate == "not worth it"
    with pytest.raises(mr.WithdrawnError, match="not worth it") as refused:
        store.get("dear")
    assert (refused.value.gap.fate, refused.value.gap.retained) == ("not worth it", ("p",))
    assert store.status().events[0].state == "settled"
    assert store.status().held == 1
    mr.repair(store, mr.plan(store, None, rules, cost_weight=0, keys=["dear"]), rules)
    assert store.get("dear").content == "y"


def test_report_counts_costs_and_unchecked_kinds(store: mr.Store) -> None:
    priced(store, {"a": "1 tokens", "dear": "9 tokens"}, reads={"a": 5})
    rules = echo_rules()
    rules.validator("not empty", kinds=["summary"])(validators.not_empty())
    report = mr.repair(store, mr.plan(store, None, rules, cost_weight=1), rules)
    assert report.cost_ratio == 0.1
    assert [str(cost) for cost in report.spent] == ["10 tokens"]  # what the operator said it took
    assert report.unchecked_kinds == ("cache",)
    assert report.validators["summary"] == ("not empty",)
    text = str(report)
    assert "no validator watches kind cache" in text
    assert report.to_json()["counts"] == {"not worth it": 1, "published": 1}


def test_built_in_validators(store: mr.Store) -> None:
    job: Any = None
    assert not validators.not_empty()(job, mr.Draft(" \n")).is_passed
    assert not validators.not_empty()(job, mr.Draft({})).is_passed
    assert validators.not_empty()(job, mr.Draft(0)).is_passed
    schema = validators.json_schema({"type": "object", "required": ["to"]})
    assert schema(job, mr.Draft({"to": "x"})).is_passed
    assert "'to' is a required property" in schema(job, mr.Draft({})).reason
    retired = validators.no_retired_content(lambda job: ["SECRET"])
    assert retired(job, mr.Draft({"a": ["fine"]})).is_passed
    for content in ("a SECRET b", {"a": ["SECRET"]}, b"..SECRET.."):
        assert not retired(job, mr.Draft(content)).is_passed
    assert not validators.no_retired_content(lambda job: [""])(job, mr.Draft("x")).is_passed


def test_rules_refuse_what_makes_no_sense() -> None:
    rules = mr.Rules()
    for wrong in (
        {"mode": "magic"},
        {"timeout_seconds": 0},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": True},
    ):
        with pytest.raises(mr.InvalidRequestError):
            rules.operator("x", version="1", **wrong)  # type: ignore[arg-type]
    with pytest.raises(mr.InvalidRequestError):
        rules.operator("x@1", version="1")
    with pytest.raises(mr.InvalidRequestError):
        rules.validator("x", kinds=["note"])
    rules.operator("x", version="1")(lambda job: mr.Draft("x"))
    with pytest.raises(mr.InvalidRequestError, match="registered already"):
        rules.operator("x", version="2")


def test_a_repair_of_nothing_is_a_report_of_nothing(store: mr.Store) -> None:
    store.put("p", "x")
    store.delete("p")
    rules = echo_rules()
    plan = mr.plan(store, None, rules)
    report = mr.repair(store, plan, rules)
    assert (plan.items, report.candidates, report.cost_ratio) == ((), 0, None)


def test_progress_is_told(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "better")
    rules = echo_rules()
    told: list[tuple[str, str]] = []
    mr.repair(store, mr.plan(store, None, rules), rules, on_progress=lambda key, state: told.append((key, state)))
    assert told[:3] == [("a", "running"), ("a", "validating"), ("a", "published")]


def test_ten_thousand_long_chain_end_to_end(store: mr.Store) -> None:
    with store.batch() as batch:
        last = batch.put("k0", "x")
        for i in range(1, 10_000):
            last = batch.derive(f"k{i}", "x", kind="cache", parents=[last], operator="echo@1")
    event = store.delete("k0", confirm=store.impact("k0").confirm)
    assert event.withdrawn == 10_000
    assert len(store.impact(["k0"]).rows) == 0
    assert len(store.explain("k9999").causes[0].path) == 10_000
    plan = mr.plan(store, event, echo_rules())
    assert plan.selected == ()
    assert len(plan.items) == 9_999
