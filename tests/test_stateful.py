"""A state machine that drives a store and the plain reference model side by side.

What it proves: over put, derive, add_parent, batch, every event, undo, abandon, plan, repair, stale repair and reopen,
on each backend, the store gives the same answers, the same errors, the same visible set, the same states, edges, holds
and fates, the same candidates and the same exact selection as the model; and its own invariants hold after each step.
How: pools of keys, contents and event ids are tiny, so that rules collide and ids repeat.
Source: docs/SEMANTICS.md sections 3 to 5.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

import postgres_server
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import memorepair as mr
from memorepair.errors import MemorepairError
from memorepair.testing import Reference, invariants
from memorepair.testing import strategies as mine

KEYS = ("a", "b", "m", "s", "é/%")
EVENTS = ("e1", "e2", "e3", "e4")
PRICES = {"a": (3, 2), "b": (1, 5), "m": (4, 0), "s": (2, 9), "é/%": (0, 1)}
COST_WEIGHTS = ("0", "1/3", "0.5", "1", "7")

keys = st.sampled_from(KEYS)
event_ids = st.sampled_from(EVENTS)
words = st.sampled_from(["x", "y"])
labels = st.sampled_from([{}, {}, {"team": "cs"}])
some_keys = st.lists(keys, max_size=2, unique=True)
operators = st.sampled_from(["build@1", "build@1", "build2@3", "build2", "lost@1", None])
cost_weights = st.sampled_from(COST_WEIGHTS)
# Rare states, counted by `seen`; one test below walks through all of them by hand.
SOMETIMES = (
    "a write was born withdrawn",
    "a candidate could not be executed",
    "a candidate was not worth it",
    "an optional parent was needed",
    "an event was repeated",
    "an event id came again with another request",
    "an old plan was stopped by the fence",
    "an old plan was published",
    "a repair failed and another key was published",
    "a repair was blocked by a failed parent",
    "an undo brought something back",
    "an undo left something withdrawn",
    "an abandoned event was reopened",
)
seen: Counter[str] = Counter()


def schedule(candidate):
    return PRICES[candidate.key]


class StoreMachine(RuleBasedStateMachine):
    """The machine; subclasses say which backend."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Reference()
        self.backend = self.new_backend()
        self.store = mr.open(self.backend, max_cascade=None)
        self.withdrawn = frozenset()
        self.acknowledged: dict[int, str] = {}
        self.plans: list[tuple[mr.Plan, object]] = []

    def new_backend(self):
        return mr.MemoryBackend()

    def reopened_backend(self):
        return self.backend

    def both(self, call):
        """Make one call on the store and on the model; both must answer alike."""
        answers = []
        for target in (self.store, self.model):
            try:
                answer = call(target)
            except MemorepairError as error:
                answers.append(("refused", type(error).__name__))
                continue
            if hasattr(answer, "event_id"):
                answer = mine.reply_of(answer)
            elif hasattr(answer, "__index__"):
                answer = answer.__index__()
            answers.append(("done", answer))
        real, expected = answers
        assert real == expected, f"the store says {real}, the model {expected}"
        seen["an event id came again with another request"] += real == ("refused", "EventConflictError")
        if real[0] == "done" and isinstance(real[1], int):
            seen["a write was born withdrawn"] += real[1] in self.model.withdrawn
            self.acknowledged[real[1]] = self.model.versions[real[1]].key

    def numbers(self, names):
        """The heads of some keys that exist, withdrawn or not."""
        return [self.model.heads[name] for name in names if name in self.model.heads]

    def a_version(self, data):
        return data.draw(st.integers(1, self.model.next_number), label="version")

    # -- writes ----------------------------------------------------------------------------------------------------

    @rule(key=keys, content=words, labels=labels, supersede=st.sampled_from([False, False, True]))
    def put(self, key, content, labels, supersede):
        before = len(self.store.events())
        self.both(
            lambda target: (
                target.put(key, content, labels=labels, supersede=supersede)
                if target is self.store
                else target.put(key, content, labels=labels, supersede=supersede, event_id=self.newest_event(before))
            )
        )

    @rule(key=st.sampled_from(["m", "b"]), content=words)
    def put_interface(self, key, content):
        before = len(self.store.events())
        self.both(
            lambda target: (
                target.put(key, content, form="interface")
                if target is self.store
                else target.put(key, content, form="interface", event_id=self.newest_event(before))
            )
        )

    def newest_event(self, before):
        """The id that the store gave to a put that was a correction."""
        events = self.store.events()
        return events[-1].event_id if len(events) > before else "no event"

    @rule(
        key=keys,
        content=words,
        parents=some_keys,
        optional=some_keys,
        operator=operators,
        kind=st.sampled_from(["summary", "cache", "skill"]),
        stale=st.sampled_from(["reject", "withdraw"]),
    )
    def derive(self, key, content, parents, optional, operator, kind, stale):
        fields = {"kind": kind, "operator": operator, "stale": stale}
        required, spare = self.numbers(parents), self.numbers(optional)
        self.both(lambda target: target.derive(key, content, parents=required, optional=spare, **fields))

    @rule(key=keys, content=words, source=keys, stale=st.sampled_from(["reject", "withdraw"]))
    def roll(self, key, content, source, stale):
        """A rolling summary: its own former version and one source."""
        required, spare = self.numbers([source]), self.numbers([key])
        fields = {"kind": "summary", "operator": "build@1", "stale": stale}
        self.both(lambda target: target.derive(key, content, parents=required, optional=spare, **fields))

    @rule(key=keys, content=words, data=st.data(), stale=st.sampled_from(["reject", "withdraw"]))
    def derive_from_history(self, key, content, data, stale):
        """A derivation from any version, unknown ones among them."""
        parent = self.a_version(data)
        fields = {"kind": "cache", "operator": "build@1", "stale": stale}
        self.both(lambda target: target.derive(key, content, parents=[parent], **fields))

    @rule(names=st.permutations(KEYS), optional=st.booleans())
    def build_up(self, names, optional):
        """A small tree over what is there, so that later rules have something to take down."""
        source, first, second, third = names[:4]
        self.put(source, "x", {}, False)
        for key, parent, other in ((first, source, None), (second, first, source), (third, second, first)):
            spare = [other] if other and optional else []
            self.derive(key, "y", [parent], spare, "build@1", "cache", "withdraw")

    @rule(data=st.data(), optional=st.booleans())
    def add_parent(self, data, optional):
        child, parent = self.a_version(data), self.a_version(data)
        self.both(lambda target: target.add_parent(child, parent, optional=optional))

    @rule(calls=st.lists(st.tuples(keys, words, some_keys), min_size=1, max_size=3))
    def batch(self, calls):
        """Derivations in one transaction; the later ones name the earlier ones. All or nothing."""
        known, fresh = set(self.model.versions), []
        try:
            with self.store.batch() as batch:
                for key, content, parents in calls:
                    named = [*self.numbers(parents), *fresh[-1:]]
                    fresh.append(
                        batch.derive(key, content, kind="cache", parents=named, operator="build@1", stale="withdraw")
                    )
        except MemorepairError as error:
            raise AssertionError(f"a batch of legal derivations was refused: {error}") from error
        heads = dict(self.model.heads)
        for (key, content, parents), number in zip(calls, list(fresh), strict=True):
            named = [heads[name] for name in parents if name in heads]
            named += fresh[fresh.index(number) - 1 : fresh.index(number)] if number != fresh[0] else []
            made = self.model.derive(key, content, kind="cache", parents=named, operator="build@1", stale="withdraw")
            assert made == number, f"the batch made {fresh}, the model {made}"
        assert set(fresh) <= known | set(self.model.versions)

    @rule(key=keys)
    def batch_that_raises(self, key):
        with pytest.raises(ZeroDivisionError), self.store.batch() as batch:
            batch.put(key, "never", supersede=True)
            raise ZeroDivisionError

    # -- events ----------------------------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(["delete", "suspect"]), roots=st.lists(keys, min_size=1, max_size=2), event_id=event_ids)
    def take(self, kind, roots, event_id):
        known = self.model.events.get(event_id)
        seen["an event was repeated"] += known is not None and known.payload == (kind, frozenset(roots))
        self.both(lambda target: getattr(target, kind)(roots, event_id=event_id))

    @rule(kind=st.sampled_from(["delete", "suspect"]), data=st.data(), event_id=event_ids)
    def take_version(self, kind, data, event_id):
        number = self.a_version(data)
        self.both(lambda target: getattr(target, kind)([number], event_id=event_id))

    @rule(kind=st.sampled_from(["correct", "correct", "migrate"]), key=keys, content=words, event_id=event_ids)
    def exchange(self, kind, key, content, event_id):
        self.both(lambda target: getattr(target, kind)(key, content, event_id=event_id))

    @rule(contents=st.dictionaries(keys, words, min_size=1, max_size=2), event_id=event_ids)
    def correct_many(self, contents, event_id):
        self.both(lambda target: target.correct(contents, event_id=event_id))

    @rule(data=st.data())
    def undo(self, data):
        self.undo_of(data.draw(st.sampled_from([*self.model.events, "no such event"]), label="event"))

    def undo_of(self, event_id):
        is_new = f"undo:{event_id}" not in self.model.events
        self.both(lambda target: target.undo(event_id))
        undone = self.model.events.get(f"undo:{event_id}")
        if undone is not None and is_new:
            seen["an undo brought something back"] += bool(undone.restored)
            seen["an undo left something withdrawn"] += bool(undone.left)

    @rule(event_id=event_ids)
    def abandon(self, event_id):
        self.both(lambda target: target.abandon(event_id))

    # -- plan and repair -------------------------------------------------------------------------------------------

    def planned(self, event_id, cost_weight, names):
        """Plan on both sides and compare candidates, flags, edges, selection and objective."""
        rules = mine.deterministic_rules(names)
        plan = mr.plan(self.store, event_id, rules, schedule=schedule, cost_weight=cost_weight)
        expected = self.model.plan(event_id, names, PRICES, Fraction(cost_weight))
        items = {item.key: item for item in plan.items}
        assert list(items) == sorted(expected.candidates)
        for key, candidate in expected.candidates.items():
            item = items[key]
            assert item.head == candidate.head, key
            assert item.is_executable == candidate.is_executable, f"{key}: {item}"
            assert set(item.waits_for) == candidate.waits_for, key
            assert not item.is_executable or set(item.needs) == candidate.needs, key
            assert set(item.events) == self.model.holders(key)
            seen["a candidate could not be executed"] += not item.is_executable
            seen["a candidate was not worth it"] += item.decision == "not worth it"
            required = self.model.inputs(candidate.head).required
            seen["an optional parent was needed"] += item.is_executable and bool(candidate.needs - required)
        assert set(plan.selected) == expected.selected
        assert Fraction(plan.objective) == expected.objective
        invariants.plan_is_exact(plan)
        return plan, expected

    @rule(data=st.data(), cost_weight=cost_weights, names=st.sampled_from([("build", "build2"), ("build",)]))
    def plan(self, data, cost_weight, names):
        event_id = data.draw(st.sampled_from([None, *self.model.events]), label="event")
        plan, expected = self.planned(event_id, cost_weight, names)
        if plan.selected:
            self.plans.append((plan, expected))

    @rule(
        data=st.data(),
        cost_weight=st.sampled_from(["0", "0.1", "0.5"]),
        broken=st.sets(keys, max_size=2),
        publish=st.sampled_from(["ready", "at_end"]),
    )
    def plan_and_repair(self, data, cost_weight, broken, publish):
        event_id = data.draw(st.sampled_from([None, *self.model.events]), label="event")
        self.repaired(*self.planned(event_id, cost_weight, mine.OPERATORS), broken, publish)

    @precondition(lambda self: self.plans)
    @rule(data=st.data(), broken=st.sets(keys, max_size=1), publish=st.sampled_from(["ready", "at_end"]))
    def repair_an_old_plan(self, data, broken, publish):
        """The fence: what happened since the plan decides what may still be published."""
        plan, expected = data.draw(st.sampled_from(self.plans), label="plan")
        fates = self.repaired(plan, expected, broken, publish)
        is_old = expected.num_events < len(self.model.events)
        seen["an old plan was stopped by the fence"] += "stalled" in fates.values()
        seen["an old plan was published"] += is_old and "published" in fates.values()

    def repaired(self, plan, expected, broken, publish):
        rules = mine.deterministic_rules(is_broken=broken.__contains__)
        report = mr.repair(self.store, plan, rules, publish=publish)
        fates = self.model.repair(expected, plan.selected, is_broken=broken.__contains__, is_at_end=publish == "at_end")
        told = {
            key: "left" if fate.fate in ("not worth it", "removed", "blocked") and fates[key] == "left" else fate.fate
            for key, fate in report.outcomes.items()
        }
        assert told == fates, f"the store says {told}, the model {fates}"
        for key, outcome in report.outcomes.items():
            if outcome.fate == "published":
                self.acknowledged[outcome.version] = key
                assert self.model.heads[key] == outcome.version
        outcomes = set(fates.values())
        seen["a repair failed and another key was published"] += {"failed", "published"} <= outcomes
        seen["a repair was blocked by a failed parent"] += {"failed", "blocked"} <= outcomes
        return fates

    @rule(
        key=keys,
        content=words,
        verb=st.sampled_from(["put", "derive", "delete", "suspect", "correct", "undo", "abandon", "nothing"]),
        event_id=event_ids,
        publish=st.sampled_from(["ready", "at_end"]),
    )
    def repair_across_a_change(self, key, content, verb, event_id, publish):
        """Plan, let something happen, repair: the fence in one step."""
        plan, expected = self.planned(None, "0", mine.OPERATORS)
        match verb:
            case "put":
                self.put(key, content, {}, False)
            case "derive":
                self.roll(key, content, key, "withdraw")
            case "delete" | "suspect":
                self.take(verb, [key], event_id)
            case "correct":
                self.exchange(verb, key, content, event_id)
            case "undo":
                self.both(lambda target: target.undo(event_id))
            case "abandon":
                self.abandon(event_id)
        fates = self.repaired(plan, expected, (), publish)
        seen["an old plan was stopped by the fence"] += "stalled" in fates.values()
        is_old = expected.num_events < len(self.model.events)
        seen["an old plan was published"] += is_old and "published" in fates.values()

    @rule(fault=mine.faulty_operators())
    def repair_with_a_faulty_operator(self, fault):
        """Nothing that a broken operator does can publish anything or break the store."""
        self.repair_in_vain(fault[1], None)

    @rule(fault=mine.faulty_validators())
    def repair_with_a_faulty_validator(self, fault):
        self.repair_in_vain(mine.build, fault[1])

    def repair_in_vain(self, operator, validator):
        rules = mr.Rules()
        for name in mine.OPERATORS:
            rules.operator(name, version="1", timeout_seconds=mine.HANG_TIMEOUT_SECONDS if not validator else 30)(
                operator
            )
        if validator is not None:
            rules.validator("faulty", timeout_seconds=mine.HANG_TIMEOUT_SECONDS)(validator)
        plan, expected = self.planned(None, "0", mine.OPERATORS)
        if len(plan.selected) > 2:
            return  # hanging costs time
        report = mr.repair(self.store, plan, rules)
        fates = self.model.repair(expected, plan.selected, is_broken=lambda key: True)
        assert report.published == 0, report
        assert {key for key, fate in fates.items() if fate == "failed"} == {
            key for key, outcome in report.outcomes.items() if outcome.fate == "failed"
        }

    # -- reopen ----------------------------------------------------------------------------------------------------

    @rule()
    def reopen(self):
        token = self.store.status().token
        self.backend = self.reopened_backend()
        self.store = mr.open(self.backend, max_cascade=None, count_reads=False)
        assert self.store.status().token.rpartition(".")[0] == token.rpartition(".")[0]

    def teardown(self):
        self.store.close()
        self.backend.close()

    # -- after each step -------------------------------------------------------------------------------------------

    @invariant()
    def all_is_well(self):
        self.the_same_is_visible()
        self.every_key_reads_the_same()
        self.history_is_the_same()
        self.counts_are_the_same()
        self.promises_hold()

    def the_same_is_visible(self):
        numbers = list(range(self.model.next_number + 2))
        seen = {number for number, flag in zip(numbers, self.store.visible(numbers), strict=True) if flag}
        assert seen == self.model.visible, f"visible {sorted(seen)}, the model says {sorted(self.model.visible)}"
        assert self.store.filter(numbers) == sorted(seen)

    def every_key_reads_the_same(self):
        for key, answer in zip((*KEYS, "none"), self.store.get_many([*KEYS, "none"]), strict=True):
            state = self.model.state(key)
            if isinstance(answer, mr.Artifact):
                assert state == "visible", key
                version = self.model.versions[self.model.heads[key]]
                assert (answer.version, answer.content) == (version.number, version.content)
                assert (answer.kind, answer.labels) == (version.kind, dict(version.labels))
            else:
                assert (answer.state, answer.version) == (state, self.model.heads.get(key, 0))
                taken_by = [e.event_id for e in self.model.events.values() if answer.version in e.closure]
                assert list(answer.events) == taken_by

    def history_is_the_same(self):
        for key, numbers in self.model.history.items():
            rows = self.store.history(key)
            assert [row.version for row in rows] == numbers[::-1]
            for row in rows:
                version = self.model.versions[row.version]
                assert set(row.parents) == version.parents
                assert row.state == self.model.version_state(row.version)
                needed = {number for number in row.required if self.model.versions[number].key != key}
                assert needed == {n for n in version.required if self.model.versions[n].key != key}

    def counts_are_the_same(self):
        status = self.store.status()
        held = set().union(*self.model.holds.values()) if self.model.holds else set()
        assert status.visible == len(self.model.visible)
        assert status.held == len(held)
        for event in status.events:
            assert event.held == len(self.model.holds[event.event_id]), f"{event}, {self.model.holds}"
            assert event.state == self.model.event_state(event.event_id), event
            is_abandoned = self.model.events[event.event_id].is_abandoned
            seen["an abandoned event was reopened"] += is_abandoned and event.state == "open"

    def promises_hold(self):
        invariants.check_store(self.store)
        now = invariants.withdrawn_set(self.store)
        invariants.barrier_monotone(self.withdrawn, now)
        assert now == self.model.withdrawn
        self.withdrawn = now
        invariants.nothing_lost(self.store, self.acknowledged, self.model.events)


class SqliteMachine(StoreMachine):
    def new_backend(self):
        return mr.SqliteBackend(":memory:")


class FileMachine(StoreMachine):
    def new_backend(self):
        self.folder = tempfile.TemporaryDirectory()
        return mr.SqliteBackend(Path(self.folder.name) / "agent.db")

    def reopened_backend(self):
        self.store.close()
        self.backend.close()
        return mr.SqliteBackend(self.backend.path)

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


class PostgresMachine(StoreMachine):
    def new_backend(self):
        from memorepair.postgres import PostgresBackend

        self.url = postgres_server.database()
        return PostgresBackend(self.url)

    def reopened_backend(self):
        self.store.close()
        self.backend.close()
        return type(self.backend)(self.url)

    def teardown(self):
        super().teardown()
        postgres_server.release(self.url)


MACHINES = {
    "memory": (StoreMachine, 500),
    "sqlite": (SqliteMachine, 150),
    "file": (FileMachine, 100),
    "postgres": (PostgresMachine, 25),
}


def machine_named(name):
    if name == "postgres":
        postgres_server.server_url()  # skips here, outside the machine
    return MACHINES[name]


@pytest.mark.parametrize("name", MACHINES)
def test_the_store_agrees_with_the_model(name):
    machine, examples = machine_named(name)
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=25))


@pytest.mark.parametrize("name", MACHINES)
def test_rare_states_by_hand(name):
    """Every state of SOMETIMES, reached without luck and compared with the model after each step."""
    seen.clear()
    machine = machine_named(name)[0]()

    def step(rule, *values):
        rule(*values)
        machine.all_is_well()

    def repair(event_id, broken):
        machine.repaired(*machine.planned(event_id, "0", mine.OPERATORS), broken, "ready")

    names = ["m", "a", "b", "s", "é/%"]
    step(machine.build_up, names, False)
    step(machine.take, "suspect", ["a"], "e1")
    step(machine.take, "suspect", ["a"], "e1")
    step(machine.take, "delete", ["a"], "e1")
    step(repair, "e1", {"a"})
    step(repair, "e1", {"s"})
    step(machine.put, "é/%", "x", {}, False)
    step(machine.repair_across_a_change, "é/%", "x", "suspect", "e5", "ready")
    step(machine.derive, "é/%", "x", [], ["a", "b"], "build@1", "summary", "reject")
    step(machine.take, "suspect", ["a"], "e3")
    step(machine.planned, None, "1/3", mine.OPERATORS)
    step(machine.repair_across_a_change, "m", "y", "correct", "e2", "ready")
    step(machine.repair_across_a_change, "m", "x", "delete", "e4", "at_end")
    step(machine.abandon, "e4")
    step(machine.derive, "s", "late", ["m"], [], "build@1", "cache", "withdraw")
    step(machine.both, lambda target: target.undo("e4"))
    step(machine.undo_of, "e2")
    step(machine.undo_of, "e3")
    step(machine.put, "m", "x", {}, False)
    step(machine.take, "suspect", ["m"], "e6")
    step(machine.planned, None, "0", mine.OPERATORS)
    step(machine.undo_of, "e6")
    step(machine.reopen)
    machine.teardown()
    missed = [state for state in SOMETIMES if not seen[state]]
    assert not missed, f"states that were not reached: {missed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_the_store_agrees_with_the_model_for_long(name):
    machine, examples = machine_named(name)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=20 * examples, stateful_step_count=40, derandomize=False)
    )
