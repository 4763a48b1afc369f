"""Differential properties: two ways to the same answer must agree.

What it proves: backends agree on equal histories; independent events commute; the order of nodes changes no plan; a
repaired store equals a clean rebuild; the incremental graph and barrier equal rebuilt ones; selection is exact and
selection within a budget keeps its bound, against brute force; hostile keys and contents come back or are refused.
Source: docs/SEMANTICS.md section 9; contract.md section 3; invariants I13 and I14.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import memorepair as mr
from memorepair.errors import InvalidContentError, InvalidKeyError
from memorepair.selection import Problem, select_at, select_within
from memorepair.testing import Reference, invariants
from memorepair.testing import strategies as mine
from memorepair.testing.brute_force import best_closure, best_within
from memorepair.testing.rows import rebuilt

COST_WEIGHTS = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100)])


def memory_store():
    return mr.open(mr.MemoryBackend(), max_cascade=None)


def visible_by_key(store):
    return {info.key: info.version for info in store.find()}


def bare(plan):
    """A plan without what names its store."""
    events = {event: number for number, event in enumerate(sorted({e for item in plan.items for e in item.events}))}
    return [msgspec.structs.replace(item, events=tuple(range(len(events)))[:0]) for item in plan.items], plan.objective


# -- backends ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(mine.histories(), COST_WEIGHTS)
def test_backends_agree_on_equal_histories(history, cost_weight):
    with memory_store() as first, mr.open(":memory:", max_cascade=None) as second:
        answers = [mine.replay(store, history) for store in (first, second)]
        assert answers[0] == answers[1]
        assert visible_by_key(first) == visible_by_key(second)
        assert invariants.withdrawn_set(first) == invariants.withdrawn_set(second)
        plans = [mr.plan(store, None, mine.deterministic_rules(), cost_weight=cost_weight) for store in (first, second)]
        assert bare(plans[0]) == bare(plans[1])
        for store, plan in zip((first, second), plans, strict=True):
            mr.repair(store, plan, mine.deterministic_rules())
            invariants.check_store(store)
        assert invariants.visible_contents(first) == invariants.visible_contents(second)


@settings(max_examples=60)
@given(mine.histories())
def test_a_history_gives_the_answers_of_the_model(history):
    with memory_store() as store:
        model = Reference()
        for number, command in enumerate(history):
            answer = mine.apply(store, command)
            events = store.events()
            assert mine.apply(model, command, events[-1].event_id if events else "none") == answer, number
        assert set(visible_by_key(store).values()) == model.visible


@settings(max_examples=40)
@given(mine.histories())
def test_a_store_in_memory_of_another_process_catches_up(history):
    """Two Store objects over one backend: one writes, the other follows the ledger, a third starts afresh."""
    backend = mr.MemoryBackend()
    writer, follower = mr.open(backend, max_cascade=None), mr.open(backend, max_cascade=None)
    for command in history:
        mine.apply(writer, command)
        assert visible_by_key(follower) == visible_by_key(writer)
    fresh = mr.open(backend)
    for store in (follower, fresh):
        invariants.check_store(store)
        assert visible_by_key(store) == visible_by_key(writer)
    assert invariants.withdrawn_set(follower) == invariants.withdrawn_set(fresh)


# -- events ------------------------------------------------------------------------------------------------------------


def built(store, count, edges, names=None, value="v"):
    """Put and derive `count` artifacts along `edges`; each derived content is what `build` would make."""
    names = names or [f"k{node:02}" for node in range(1, count + 1)]
    for node in range(1, count + 1):
        parents = [store.get(names[parent - 1]) for parent, child in edges if child == node]
        if not parents:
            store.put(names[node - 1], f"{value}{node}")
            continue
        content = rebuilt(names[node - 1], {parent.key: parent.content for parent in parents})
        fields = {"kind": "cache", "operator": "build@1", "cost": f"{1 + node % 5} tokens"}
        store.derive(names[node - 1], content, parents=parents, **fields)
    return names


@settings(max_examples=80)
@given(mine.graphs(), st.data())
def test_independent_events_commute(graph, data):
    count, edges = graph
    verbs = data.draw(
        st.lists(
            st.tuples(st.sampled_from(["delete", "suspect", "correct"]), st.integers(1, count)),
            min_size=2,
            max_size=3,
            unique_by=lambda pair: pair[1],
        )
    )
    seen = []
    for order in (verbs, verbs[::-1]):
        store = memory_store()
        names = built(store, count, edges)
        model_before = invariants.visible_contents(store)
        cascades = [{row.key for row in store.impact(names[node - 1]).rows} for _, node in verbs]
        assume(
            not set.intersection(*cascades[:2]) and (len(cascades) < 3 or not cascades[2] & (cascades[0] | cascades[1]))
        )
        for verb, node in order:
            extra = ("new",) if verb == "correct" else ()
            getattr(store, verb)(names[node - 1], *extra, event_id=f"{verb}{node}")
        invariants.check_store(store)
        seen.append(invariants.visible_contents(store))
        assert set(seen[-1]) <= set(model_before)
    assert seen[0] == seen[1]


@settings(max_examples=80)
@given(mine.graphs(), st.data())
def test_deletions_and_suspicions_commute_even_when_they_overlap(graph, data):
    count, edges = graph
    nodes = data.draw(st.lists(st.integers(1, count), min_size=1, max_size=3, unique=True))
    seen = []
    for order in (nodes, nodes[::-1]):
        store = memory_store()
        names = built(store, count, edges)
        for node in order:
            store.delete(names[node - 1]) if node % 2 else store.suspect(names[node - 1])
        seen.append(invariants.visible_contents(store))
    assert seen[0] == seen[1]


@settings(max_examples=60)
@given(mine.graphs(), st.data())
def test_a_repaired_store_equals_a_clean_rebuild(graph, data):
    """Everything was selected, nothing failed: what is visible is what a store built from the new sources holds."""
    count, edges = graph
    store = memory_store()
    names = built(store, count, edges)
    sources = sorted({1, *range(1, count + 1)} - {child for _, child in edges})
    changed = data.draw(st.lists(st.sampled_from(sources), min_size=1, unique=True))
    for node in changed:
        store.correct(names[node - 1], f"new{node}", event_id=f"c{node}")
    rules = mine.deterministic_rules()
    report = mr.repair(store, mr.plan(store, None, rules, cost_weight=0), rules)
    assert set(report.counts) <= {"published"}
    clean = memory_store()
    for node in range(1, count + 1):
        parents = [clean.get(names[parent - 1]) for parent, child in edges if child == node]
        if parents:
            content = rebuilt(names[node - 1], {parent.key: parent.content for parent in parents})
            clean.derive(names[node - 1], content, kind="cache", parents=parents, operator="build@1")
        else:
            clean.put(names[node - 1], f"new{node}" if node in changed else f"v{node}")
    assert invariants.visible_contents(store) == invariants.visible_contents(clean)
    invariants.check_store(store)


@settings(max_examples=60)
@given(mine.graphs(), st.data())
def test_undo_of_a_correction_brings_everything_back(graph, data):
    count, edges = graph
    store = memory_store()
    names = built(store, count, edges)
    before = invariants.visible_contents(store)
    node = data.draw(st.integers(1, count))
    store.correct(names[node - 1], "new", event_id="c")
    event = store.undo("c")
    assert event.left == ()
    assert invariants.visible_contents(store) == before
    invariants.check_store(store)


# -- plans -------------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(mine.graphs(10), st.permutations(range(10)), st.data(), COST_WEIGHTS)
def test_the_order_of_nodes_changes_no_plan(graph, order, data, cost_weight):
    """The same graph under renamed keys, so that keys sort otherwise, gives the same plan."""
    count, edges = graph
    roots = data.draw(st.lists(st.integers(1, count), min_size=1, max_size=2, unique=True))
    plans = []
    for names in ([f"k{node:02}" for node in range(1, 11)], [f"k{place:02}" for place in order]):
        store = memory_store()
        built(store, count, edges, names)
        for node in roots:
            store.suspect(names[node - 1])
        back = {name: node for node, name in enumerate(names)}
        prices = lambda candidate, back=back: (back[candidate.key] * 7 % 5, back[candidate.key] * 3 % 4)  # noqa: E731
        plan = mr.plan(store, None, mine.deterministic_rules(), schedule=prices, cost_weight=cost_weight)
        invariants.plan_is_exact(plan)
        plans.append({back[item.key]: (item.decision, {back[need] for need in item.needs}) for item in plan.items})
    assert plans[0] == plans[1]


def as_problem(drawn):
    return Problem(drawn.values, drawn.costs, drawn.executable, drawn.needs)


def able(drawn):
    """Nodes that can be executed together with all that they need."""
    nodes = {node for node, may in enumerate(drawn.executable) if may}
    while stuck := {node for node in nodes if not set(drawn.needs[node]) <= nodes}:
        nodes -= stuck
    return nodes


def named(numbers):
    return {str(node): number for node, number in enumerate(numbers)}


@settings(max_examples=400)
@given(mine.selection_problems(), COST_WEIGHTS)
def test_selection_is_the_smallest_optimum(drawn, cost_weight):
    chosen = select_at(as_problem(drawn), cost_weight).certified
    weights = {
        str(node): value - cost_weight * cost
        for node, (value, cost) in enumerate(zip(drawn.values, drawn.costs, strict=True))
    }
    needs = {str(node): [str(other) for other in needed] for node, needed in enumerate(drawn.needs)}
    best, _ = best_closure(weights, needs, [str(node) for node in able(drawn)])
    assert {str(node) for node in chosen} == best


@settings(max_examples=400)
@given(mine.selection_problems())
def test_selection_within_a_budget_keeps_its_bound(drawn):
    problem = as_problem(drawn)
    selection = select_within(problem, drawn.budget)
    value, cost = problem.value(selection.taken), problem.cost(selection.taken)
    assert cost <= drawn.budget
    assert selection.taken <= able(drawn)
    assert all(set(drawn.needs[node]) <= selection.taken for node in selection.taken)
    needs = {str(node): [str(other) for other in needed] for node, needed in enumerate(drawn.needs)}
    best = best_within(
        named(drawn.values), named(drawn.costs), needs, [str(node) for node in able(drawn)], drawn.budget
    )
    assert value <= best
    assert selection.bound is not None
    assert best <= selection.bound
    assert value >= greedy(drawn)


def greedy(drawn):
    """The value of filling by ratio from nothing, one node at a time, whatever it needs being there."""
    nodes, taken, left, value = able(drawn), set(), drawn.budget, 0
    while True:
        ready = [
            node
            for node in nodes - taken
            if set(drawn.needs[node]) <= taken and drawn.costs[node] <= left and drawn.values[node]
        ]
        if not ready:
            return value
        node = min(
            ready, key=lambda n: (-(Fraction(drawn.values[n], drawn.costs[n] or 1) + (not drawn.costs[n]) * 2**70), n)
        )
        taken.add(node)
        left -= drawn.costs[node]
        value += drawn.values[node]


# -- edges of the input ------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(mine.keys(), mine.contents())
def test_any_legal_key_and_content_come_back(key, content):
    with mr.open(":memory:") as store:
        written = store.put(key, content)
        read = store.get(key)
        assert (read.key, read.version) == (key, written.version)
        assert read.content == content
        assert type(read.content) is type(content)
        assert [info.key for info in store.find(prefix=key)] == [key]
        assert store.put(key, content).version == written.version


@settings(max_examples=60)
@given(mine.keys(), mine.keys())
def test_keys_are_never_merged(first, second):
    assume(first != second)
    with mr.open(":memory:") as store:
        store.put(first, "1")
        store.put(second, "2")
        store.delete(first)
        assert store.get(second).content == "2"
        assert visible_by_key(store).keys() == {second}


@given(mine.bad_keys())
def test_bad_keys_are_refused(key):
    store = memory_store()
    with pytest.raises(InvalidKeyError):
        store.put(key, "x")
    assert store.status().versions == 0


@given(mine.bad_contents())
def test_bad_content_is_refused(content):
    store = memory_store()
    with pytest.raises(InvalidContentError):
        store.put("k", content)
    assert store.status().versions == 0


@pytest.mark.parametrize("location", ["memory", "sqlite"])
@pytest.mark.parametrize("reason", ["\ud800", "a\x00b", "\x1b[31m"])
def test_a_reason_that_cannot_be_stored_is_refused_or_comes_back(location, reason):
    """Both backends answer alike: stored as it is, or a typed refusal that changes nothing."""
    store = memory_store() if location == "memory" else mr.open(":memory:")
    store.put("a", "x")
    try:
        event = store.delete("a", event_id="e", reason=reason)
    except mr.MemorepairError:
        assert store.get("a").content == "x"
        assert store.events() == []
    else:
        assert store.events()[0].reason == event.reason
        reason.encode()
    store.close()


# -- found by these tests once, kept -----------------------------------------------------------------------------------


def test_the_same_call_under_the_same_id_gives_the_same_reply_after_the_labels_changed():
    store = memory_store()
    store.put("a", "old")
    first = store.correct("a", "new", event_id="e")
    store.put("a", "new", labels={"team": "cs"})
    assert store.correct("a", "new", event_id="e") == first


def test_a_rolling_summary_whose_every_input_is_gone_cannot_be_executed():
    store = memory_store()
    first = store.put("s", "told")
    store.derive("s", "rolled", kind="summary", optional=[first], operator="build@1")
    store.suspect("s", event_id="e")
    item = mr.plan(store, "e", mine.deterministic_rules())["s"]
    assert (item.is_executable, item.reason) == (False, "none of its inputs is left")


def test_a_late_derivation_reopens_an_abandoned_event():
    store = memory_store()
    source = store.put("a", "old")
    store.derive("b", "from a", kind="cache", parents=[source], operator="build@1")
    store.correct("a", "new", event_id="e")
    store.abandon("e")
    assert [event.state for event in store.status().events] == ["abandoned"]
    store.derive("c", "late", kind="cache", parents=[source], operator="build@1", stale="withdraw")
    assert [(event.state, event.held) for event in store.status().events] == [("open", 1)]
    assert mr.plan(store, "e", mine.deterministic_rules()).selected == ("c",)


def test_an_operator_may_return_external_content():
    store = memory_store()
    source = store.put("a", "old")
    store.derive("b", mr.External("d1", "s3://x"), kind="cache", parents=[source], operator="build@1")
    store.correct("a", "new", event_id="e")
    rules = mr.Rules()
    rules.operator("build", version="2")(lambda job: mr.Draft(mr.External("d2", "s3://y")))
    mr.repair(store, mr.plan(store, "e", rules), rules)
    assert store.get("b").content == mr.External("d2", "s3://y")
    assert store.fsck() == []


@pytest.mark.parametrize("fault", sorted(mine.OPERATOR_FAULTS))
def test_a_faulty_operator_fails_and_publishes_nothing(fault):
    report = one_repair(mine.OPERATOR_FAULTS[fault], lambda job, draft: mr.passed())
    assert report["b"].fate == "failed", report


@pytest.mark.parametrize("fault", sorted(mine.VALIDATOR_FAULTS))
def test_a_faulty_validator_passes_nothing(fault):
    report = one_repair(mine.build, mine.VALIDATOR_FAULTS[fault])
    assert report["b"].fate == "failed", report


def one_repair(operator, validator):
    store = mr.open(":memory:")
    source, spare = store.put("a", "old"), store.put("z", "spare")
    store.derive("b", "from a", kind="summary", optional=[source, spare], operator="build@1")
    store.delete("z", event_id="e")
    rules = mr.Rules()
    rules.operator("build", version="2", timeout_seconds=0.1)(operator)
    rules.validator("check", timeout_seconds=0.1)(validator)
    report = mr.repair(store, mr.plan(store, "e", rules, cost_weight=0), rules)
    assert store.get_many(["b"])[0].fate == "failed"
    invariants.check_store(store)
    store.close()
    return report


def test_two_long_event_ids_with_one_beginning_can_both_be_undone():
    store = memory_store()
    names = ["e" * 511 + end for end in "12"] + ["漢" * 170]
    for number, name in enumerate(names):
        store.put(f"k{number}", "x")
        store.delete(f"k{number}", event_id=name)
    for number, name in enumerate(names):
        assert store.undo(name).restored == (f"k{number}",)
        assert store.undo(name).restored == (f"k{number}",)


def test_importing_memorepair_does_not_import_hypothesis():
    program = "import sys, memorepair; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_without_hypothesis_the_error_says_what_to_install():
    program = "import sys; sys.modules['hypothesis'] = None; import memorepair.testing"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "MissingExtraError" in answer.stderr
    assert "pip install 'memorepair[test]'" in answer.stderr
