"""A store killed, or failed by its disk, at any step reopens legal.

What it proves: SIGKILL before, in the middle of and after the n-th write, sync, truncate or unlink of a small life
(puts, derivations, correct, repair, undo, suspect, batch, migrate, abandon): the file opens, fsck is clean, what was
acknowledged exists and every acknowledged event's cascade is withdrawn, what was not acknowledged is absent or
complete, nothing stale is visible, the life can be lived again under the same ids, and a repair works. A full disk or
an I/O error at step 1, 2, 3, ...: a typed error, and the same.
Source: docs/SEMANTICS.md invariants I3, I4, I5 and section 8.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import crash_vfs
import pytest

import memorepair as mr
from memorepair.errors import MemorepairError, StoreError
from memorepair.testing import invariants
from memorepair.testing import strategies as mine

NORMAL_KILLS = 100
MANY_KILLS = 10_000  # every step in every phase
SCRIPT_EVENTS = ("correct-first", "delete-second", "undo:delete-second", "suspect-hit", "migrate-tool")


@pytest.fixture(scope="module")
def nursery():
    """A process that lives and kills lives on request."""
    program = str(Path(crash_vfs.__file__))
    with subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:

        def live(path, at, phase):
            child.stdin.write(f"{path}\t{at}\t{phase}\n")
            child.stdin.flush()
            return int(child.stdout.readline())

        yield live
        child.stdin.close()


@pytest.fixture(scope="module")
def num_steps(nursery, tmp_path_factory):
    """How many steps an undisturbed life takes."""
    path = tmp_path_factory.mktemp("whole") / "agent.db"
    assert nursery(path, 0, "after") == 0
    lines = acknowledgements(path)
    assert set(SCRIPT_EVENTS) == events_of(lines)
    legal(path, lines)
    return int(lines[-1].split()[1])


def acknowledgements(path):
    log = Path(f"{path}.acks")
    return log.read_text().splitlines() if log.exists() else []


def events_of(lines):
    return {line.split()[1] for line in lines if line.startswith("event")}


def legal(path, lines):
    """Open what a death left behind, check every promise, and live on."""
    with mr.open(path, max_cascade=None) as store:
        is_legal(store, lines)
        lives_on(store)


def is_legal(store, lines):
    versions = {int(line.split()[1]): line.split()[2] for line in lines if line.startswith("version")}
    invariants.check_store(store)
    invariants.nothing_lost(store, versions, events_of(lines))
    with store._reading() as view:
        known = [event.event_id for event in view.snapshot.events()]
        rows = list(view.snapshot.all_versions())
    for event_id in known:  # acknowledged or not: absent, or complete
        invariants.cascade_is_withdrawn(store, event_id)
    batch = [row for row in rows if row.key.startswith("batch")]
    assert len(batch) % 4 == 0, f"half a batch: {batch}"
    assert batch or not any(line.startswith("batch") for line in lines)


def lives_on(store):
    """The same life again under the same ids, then repair all there is."""
    answers = []
    try:
        crash_vfs.script(store, answers.append)
    except MemorepairError as error:
        # What an event of the first life deleted or replaced may refuse a call of the second, by a typed error.
        if isinstance(error, StoreError):
            raise
    replies = [repeated(store) for _ in range(2)]
    assert replies[0] == replies[1]
    rules = mine.deterministic_rules()
    mr.repair(store, mr.plan(store, None, rules, cost_weight=0), rules)
    invariants.check_store(store)


def repeated(store):
    """The events of the script again: their replies are those of the first time."""
    known = {event.event_id: event for event in store.events()}
    replies = []
    for event_id, call in {
        "correct-first": lambda: store.correct("first", "one, corrected", event_id="correct-first"),
        "delete-second": lambda: store.delete("second", event_id="delete-second", reason="asked to"),
        "undo:delete-second": lambda: store.undo("delete-second"),
        "suspect-hit": lambda: store.suspect("hit", event_id="suspect-hit"),
    }.items():
        if event_id in known:
            reply = call()
            assert reply == known[event_id]
            replies.append(reply)
    return replies


def deaths(count, total):
    """`count` deaths, spread evenly over all steps and phases."""
    every = [(at, phase) for at in range(1, total + 1) for phase in crash_vfs.PHASES]
    return every if count >= len(every) else [every[number * len(every) // count] for number in range(count)]


def killed(nursery, folder, count, total):
    num_killed = 0
    for at, phase in deaths(count, total):
        path = folder / f"{at}-{phase}.db"
        status = nursery(path, at, phase)
        assert status in (0, -signal.SIGKILL), f"step {at}, {phase}: exit status {status}"
        num_killed += status != 0
        try:
            legal(path, acknowledgements(path))
        except Exception as error:
            raise AssertionError(f"killed {phase} step {at} of {total}: {error}") from error
        for left in folder.glob(f"{at}-{phase}.db*"):
            left.unlink()
    return num_killed


def test_a_store_killed_at_any_step_reopens_legal(nursery, num_steps, tmp_path):
    assert killed(nursery, tmp_path, NORMAL_KILLS, num_steps) >= NORMAL_KILLS * 9 // 10


@pytest.mark.crash
def test_a_store_killed_at_every_step_reopens_legal(nursery, num_steps, tmp_path):
    assert killed(nursery, tmp_path, MANY_KILLS, num_steps) >= 200


@pytest.mark.crash
def test_a_store_killed_again_while_it_recovers_reopens_legal(nursery, num_steps, tmp_path):
    for at, phase in deaths(40, num_steps):
        path = tmp_path / f"{at}-{phase}.db"
        for again in (at, 1, 2, 3):
            nursery(path, again, phase)
        with mr.open(path, max_cascade=None) as store:
            invariants.check_store(store)


# -- the disk fails ----------------------------------------------------------------------------------------------------


@pytest.fixture
def failing():
    """Steps of this process; harmless again afterwards."""
    steps = crash_vfs.steps
    yield steps
    steps.at, steps.lasts, steps.act = 0, False, lambda phase: None


FAULTS = {"full": apsw.FullError, "input/output": apsw.IOError}


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", ["put", "derive", "correct", "delete", "repair", "undo"])
def test_a_disk_that_fails_at_any_step_gives_a_typed_error_and_changes_nothing(tmp_path, failing, fault, lasts, call):
    """Fail step 1, 2, 3, ... of one call until it succeeds."""
    for at in range(1, 200):
        path = str(tmp_path / f"{at}.db")
        failing.at = 0
        store = crash_vfs.open_counted(path)
        source = store.put("a", "old")
        child = store.derive("b", "from a", kind="cache", parents=[source], operator="build@1", cost="1 tokens")
        store.correct("a", "new", event_id="before")
        calls = {
            "put": lambda store=store: store.put("c", "x" * 9000),
            "derive": lambda store=store: store.derive("c", "y", kind="cache", parents=[store.get("a")]),
            "correct": lambda store=store: store.correct("a", "newest", event_id="e"),
            "delete": lambda store=store: store.delete("a", event_id="e"),
            "repair": lambda store=store: crash_vfs.repaired(store, "before", lambda line: None),
            "undo": lambda store=store: store.undo("before"),
        }
        before = state_of(store)

        def fail(phase):
            if phase == "before":
                raise FAULTS[fault]("told to fail")

        failing.count, failing.act, failing.lasts, failing.at = 0, fail, lasts, at
        failing.phases = ("before",)
        try:
            calls[call]()
        except StoreError as error:
            failed = error
        else:
            failed = None
        was_reached = failing.count >= at
        failing.at, failing.lasts = 0, False
        if call != "repair":  # which takes several transactions
            known = {"e", "undo:before"} & {event.event_id for event in store.events()}
            is_done = bool(known) or store.get_many(["c"])[0].state != "unknown" if failed else True
            assert is_done or state_of(store) == before, f"step {at}: {failed}"
        invariants.check_store(store)
        calls[call]()
        invariants.nothing_lost(store, {source.version: "a", child.version: "b"}, ["before"])
        invariants.check_store(store)
        store.close()
        with mr.open(path) as store:
            invariants.check_store(store)
        if not was_reached:
            return
    raise AssertionError(f"{call} takes more than 200 steps")


def state_of(store):
    """What a caller can see of a store, epochs aside."""
    return invariants.visible_contents(store), store.status().versions, [e.event_id for e in store.events()]


def test_a_file_that_may_not_grow_gives_a_typed_error_and_stays_usable(tmp_path):
    backend = mr.SqliteBackend(tmp_path / "agent.db")
    store = mr.open(backend, max_cascade=None)
    first = store.put("a", "old")
    store.derive("b", "from a", kind="cache", parents=[first], operator="build@1")
    pages = backend._writer.pragma("page_count")
    backend._writer.pragma("max_page_count", pages + 2)
    before = state_of(store)
    with pytest.raises(mr.StoreFullError):
        store.put("big", "x" * 200_000)
    assert state_of(store) == before
    invariants.check_store(store)
    backend._writer.pragma("max_page_count", 2**30)
    store.put("big", "x" * 200_000)
    store.delete("a", event_id="e")
    invariants.cascade_is_withdrawn(store, "e")
    invariants.check_store(store)
    store.close()


def test_opening_fails_typed_at_any_step_and_the_next_open_succeeds(tmp_path, failing):
    """A store that could not be created leaves nothing that the next open trips over."""

    def fail(phase):
        if phase == "before":
            raise apsw.FullError("told to fail")

    for at in range(1, 100):
        path = str(tmp_path / f"{at}.db")
        failing.count, failing.act, failing.at, failing.phases = 0, fail, at, ("before",)
        with suppress(StoreError):
            crash_vfs.open_counted(path).close()
        was_reached = failing.count >= at
        failing.at = 0
        with mr.open(path) as store:
            store.put("a", "x")
            invariants.check_store(store)
        if not was_reached:
            return
    raise AssertionError("opening takes more than 100 steps")
