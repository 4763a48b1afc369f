"""Many threads on one store: readers see all of a cascade or nothing of it, writers never tear it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from stores import chain, echo_rules

import memorepair as mr


def together(*works: Callable[[], None]) -> None:
    """Run every work in a thread of its own; raise what any of them raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        return run

    threads = [threading.Thread(target=guarded(work)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_a_reader_loop_sees_all_or_nothing_of_a_cascade(store: mr.Store) -> None:
    p = store.put("p", "x")
    with store.batch() as batch:
        made = [batch.derive(f"d{i}", "x", kind="cache", parents=[p]) for i in range(500)]
    seen: set[int] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(int(store.visible(made).sum()))
            answers = store.get_many(["p", "d0", "d499"])
            assert len({isinstance(answer, mr.Gap) for answer in answers}) == 1

    def withdraw() -> None:
        store.suspect("p")
        done.set()

    together(read, read, withdraw)
    assert seen <= {0, 500}
    assert not store.visible(made).any()


def test_nothing_acknowledged_is_served_afterwards(store: mr.Store) -> None:
    """A deriver that read before an event can never make its result visible after it."""
    rounds = 40

    def derive() -> None:
        for i in range(rounds):
            try:
                parent = store.get("p")
                store.derive(f"d{i}", parent.content, kind="cache", parents=[parent])
            except (mr.StaleDependencyError, mr.RefusalError):
                continue

    def correct() -> None:
        for i in range(rounds):
            store.correct("p", f"v{i}")
            now = store.get("p").version
            assert all(info.parents == (now,) for info in store.find(prefix="d"))  # only this thread corrects

    store.put("p", "start")
    together(derive, derive, correct)
    last = store.get("p").version
    assert all(info.parents == (last,) for info in store.find(prefix="d"))


def test_engines_side_by_side_publish_each_key_once(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "y")
    rules = echo_rules()
    plan = mr.plan(store, None, rules)
    reports: list[mr.Report] = []
    together(*[lambda: reports.append(mr.repair(store, plan, rules))] * 4)
    published = [
        outcome.version for report in reports for outcome in report.outcomes.values() if outcome.fate == "published"
    ]
    assert len(published) == len(set(published))
    for key in "abc":
        assert sum(report[key].fate == "published" for report in reports) <= 1
        assert len(store.history(key)) <= 2
    mr.repair(store, mr.plan(store, None, rules), rules)
    assert store.get("c").content == "y | y"


def test_who_waits_for_a_snapshot_keeps_nobody_from_ending_theirs(
    store: mr.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory a commit waits for open snapshots, and new ones for the commit."""
    store.put("p", "x")
    scope, backend = store._scope, store._scope.backend
    is_committing, is_opening = threading.Event(), threading.Event()
    commit, snapshot = scope._commit, backend.snapshot

    def committing(*arguments: Any) -> None:
        is_committing.set()
        commit(*arguments)

    def opening(*arguments: Any) -> Any:
        is_opening.set()
        return snapshot(*arguments)

    with scope.read() as view:
        monkeypatch.setattr(scope, "_commit", committing)
        writer = threading.Thread(target=store.put, args=("q", "y"))
        writer.start()
        assert is_committing.wait(60)
        monkeypatch.setattr(backend, "snapshot", opening)
        reader = threading.Thread(target=store.get, args=("p",))
        reader.start()
        assert is_opening.wait(60)
        assert scope._lock.acquire(timeout=60)
        scope._lock.release()
        assert view.events == []
    for thread in (writer, reader):
        thread.join(120)
        assert not thread.is_alive()
    assert store.get("q").content == "y"


def test_many_writers_lose_nothing(store: mr.Store) -> None:
    def write(name: str) -> Callable[[], None]:
        def work() -> None:
            for i in range(50):
                p = store.put(f"{name}/p{i}", "x")
                store.derive(f"{name}/d{i}", "y", kind="cache", parents=[p])

        return work

    together(*[write(name) for name in "abcd"])
    assert len(store.find()) == 400
    assert store.status().versions == 400


def test_a_snapshot_that_others_were_ahead_of_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mr.open(tmp_path / "agent.db") as store:
        store.put("p", "x")
        scope = store._scope
        snapshot, opened = scope.backend.snapshot, []

        @contextmanager
        def overtaken(*arguments: Any) -> Iterator[Any]:
            with snapshot(*arguments) as old:
                opened.append(old.epoch)
                if len(opened) == 1:  # another thread writes, and reads what it has written
                    together(lambda: store.delete("p"), lambda: None)
                    together(lambda: store.find(), lambda: None)
                yield old

        monkeypatch.setattr(scope.backend, "snapshot", overtaken)
        with scope.read() as view:
            assert view.snapshot.epoch == view.barrier.epoch == 2
        assert opened == [1, 2, 2]
