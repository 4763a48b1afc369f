"""A conformance suite for backends: what protocol.py promises, as tests to inherit.

How to use: subclass `BackendConformance`, implement `backend()`, and `reopen(backend)` when rows outlive the object;
pytest (or anything that calls `test_` methods on a fresh instance) does the rest.
Contract: the suite uses nothing but the protocol; a backend that passes it can stand below a Store.
Source: protocol.py; docs/SEMANTICS.md sections 1 (rule 1) and 6.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from memorepair.errors import ClosedStoreError, MemorepairError, StoreBusyError
from memorepair.protocol import (
    MAX_VERSION,
    AttemptRow,
    Backend,
    Batch,
    ContentRow,
    EventRow,
    FateRow,
    Head,
    LateRow,
    LedgerRow,
    Root,
    StageRow,
    Transaction,
    UseRow,
    VersionRow,
    pack_ids,
)
from memorepair.testing.strategies import HOSTILE_KEYS

WAIT_SECONDS = 30.0


def _raises(call: Callable[[], object], *expected: type[BaseException]) -> BaseException:
    """Return the error of `call`; fail when it raises none or another one."""
    try:
        call()
    except expected as error:
        return error
    raise AssertionError(f"expected {' or '.join(kind.__name__ for kind in expected)}, nothing was raised")


def version_row(version: int, key: str, epoch: int, **fields: Any) -> VersionRow:
    """A version row with what is needed and nothing else."""
    return VersionRow(version, key, fields.pop("kind", "record"), b"\0digest", epoch, "put", **fields)


def batch_of(transaction: Transaction, *keys: str, **extra: Any) -> Batch:
    """A legal batch that adds one version per key, with content and head."""
    epoch, number = transaction.epoch + 1, transaction.next_version
    batch = Batch(number + len(keys), **extra)
    for offset, key in enumerate(keys):
        row = version_row(number + offset, key, epoch)
        batch.versions.append(row)
        batch.contents.append(ContentRow(row.version, "inline", "text", key.encode()))
        batch.heads[key] = Head(key, row.version, row.version)
    inserted = pack_ids(row.version for row in batch.versions)
    batch.ledger = LedgerRow(epoch, "put", inserted=inserted, crowned=inserted)
    return batch


class BackendConformance:
    """
    Inherit, implement `backend`, and collect.

    `has_free_readers`: a commit does not wait for open snapshots; else it may raise StoreBusyError.
    """

    has_free_readers = True

    def backend(self) -> Backend:
        """Return an empty backend."""
        raise NotImplementedError

    def reopen(self, backend: Backend) -> Backend | None:
        """Close `backend` and return another object over the same rows; None when rows die with the object."""
        return None

    # -- scopes ----------------------------------------------------------------------------------------------------

    def test_scopes_are_named_once_and_share_nothing(self) -> None:
        backend = self.backend()
        first, second = backend.scope_id("first"), backend.scope_id("second")
        assert first != second
        assert backend.scope_id("first") == first
        assert backend.scopes() == ["first", "second"]
        with backend.transaction(first) as transaction:
            transaction.commit(batch_of(transaction, "k"))
        with backend.snapshot(first) as view:
            assert view.head("k") == Head("k", 1, 1)
            assert _head_elsewhere(backend, second, "k") == (None, 0)
        assert (backend.epoch(first), backend.epoch(second)) == (1, 0)

    def test_identity_is_stable(self) -> None:
        backend = self.backend()
        assert len(backend.uuid) >= 16
        assert backend.incarnation >= 1
        assert self.backend().uuid != backend.uuid

    # -- one batch -------------------------------------------------------------------------------------------------

    def test_an_empty_scope(self) -> None:
        backend = self.backend()
        with backend.snapshot(backend.scope_id("s")) as view:
            assert (view.epoch, view.next_version) == (0, 1)
            assert list(view.heads()) == []
            assert view.head_versions().tolist() == []
            assert view.head_versions().dtype == "uint32"
            assert (view.version(1), view.versions([1, 2]), view.content(1)) == (None, {}, None)
            assert list(view.all_versions()) == []
            assert list(view.parents(None)) == list(view.parents([1])) == []
            assert view.event("e") is None
            for rows in (view.events(), view.late(), view.changes(0), view.attempts(), view.stages(1)):
                assert not rows
            assert (view.fates([1, 2]), view.attempt(1), view.num_versions()) == ({}, None, 0)
            assert view.uses(["k"])["k"] == UseRow("k", 0, 0)
            assert view.head_costs("tokens") == (0, 0)
            assert view.expiring() == view.similar(1) == []

    def test_every_row_comes_back_equal(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        full = version_row(
            1,
            "k",
            1,
            kind="cache",
            form="embedding",
            namespace="n s",
            title="\u6f22 'q'",
            labels='{"a":"b"}',
            operator="op",
            operator_version="1.0",
            cost=2**61,
            unit="tokens",
            weight=7,
            expires_at=-5,
            completeness="opaque",
            facts='{"f":1}',
        )
        child = version_row(2, "c", 1, parents=pack_ids([1]), num_required=1, previous=0, cost=5, unit="tokens")
        bodies = [ContentRow(1, "inline", "bytes", b"\0\xff"), ContentRow(2, "external", "external", b"")]
        event = EventRow(
            "e'1", "correct", 1, b"\0", [Root("k", [1, 2], 3), Root("\u6f22", [])], b"\0mask", 4, "why", True, "e0",
            [Root("k", [1], 9)], [], 12,
        )  # fmt: skip
        attempt = AttemptRow(1, "staging", 3, "e'1", "digest", 1, "me:1", 2, "because")
        stage = StageRow(
            1, version_row(3, "k", 0, parents=pack_ids([1, 2])), "json", b"[1]", 1, pack_ids([7]), "staged", "so"
        )
        with backend.transaction(scope) as transaction:
            batch = batch_of(transaction)
            batch.next_version = 4
            batch.versions, batch.contents = [full, child], bodies
            batch.heads = {"k": Head("k", 1, 1), "c": Head("c", 2, 2)}
            batch.events, batch.late = [event], [LateRow(1, 2, 1)]
            batch.similar, batch.fates = [(1, 2, 500)], [FateRow(1, "k", "failed", "r", 1, 1)]
            batch.attempts, batch.stages, batch.uses = [attempt], [stage], [UseRow("k", 2, 1)]
            ledger = LedgerRow(1, "x", b"\1\0\0\0", b"\2\0\0\0", b"\3\0\0\0", b"\4\0\0\0", b"\5" * 16, "e'1", 9)
            batch.ledger = ledger
            transaction.commit(batch)
        for stands in self._again(backend):
            with stands.snapshot(stands.scope_id("s")) as view:
                assert (view.epoch, view.next_version) == (1, 4)
                assert list(view.all_versions()) == [full, child]
                assert view.versions([2, 1, 7]) == {1: full, 2: child}
                assert [view.content(1), view.content(2)] == bodies
                assert list(view.heads()) == [(Head("c", 2, 2), child), (Head("k", 1, 1), full)]
                assert view.head_versions().tolist() == [1, 2]
                assert view.expiring() == [(1, -5)]
                assert sorted(view.parents(None)) == [(1, b""), (2, pack_ids([1]))]
                assert list(view.parents([2, 9])) == [(2, pack_ids([1]))]
                assert view.event("e'1") == event
                assert view.events() == [event]
                assert view.events(1) == []
                assert view.late() == [LateRow(1, 2, 1)]
                assert view.fates([1, 2, 3]) == {1: FateRow(1, "k", "failed", "r", 1, 1)}
                assert view.attempts() == [view.attempt(1)] == [attempt]
                assert view.stages(1) == [stage]
                assert view.stages(2) == []
                assert view.uses(["k"])["k"] == UseRow("k", 2, 1)
                assert view.head_costs("tokens") == (2**61 + 5, 2)
                assert view.head_costs("ms") == (0, 0)
                assert view.similar(1) == [(2, 500)]
                assert view.changes(0) == [ledger]
                assert view.changes(1) == []

    def test_later_batches_change_what_may_change(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        with backend.transaction(scope) as transaction:
            batch = batch_of(transaction, "p", "k")
            batch.attempts = [AttemptRow(1, "staging", 1, None, "d", 0, "me")]
            batch.stages = [StageRow(1, version_row(9, "k", 0), "text", b"x", 2, b"", "staged")]
            batch.events = [EventRow("e", "delete", 1, b"d", [], b"", 0)]
            batch.uses = [UseRow("k", 2, 1)]
            transaction.commit(batch)
        with backend.transaction(scope) as transaction:
            batch = batch_of(transaction, "k")
            batch.reparented = [(2, pack_ids([1]), 1)]
            batch.abandoned = ["e"]
            batch.attempts = [AttemptRow(1, "published", 5, None, "d", 0, "you", 3, "r")]
            batch.unstaged = [(1, 9)]
            batch.fates = [FateRow(2, "k", "failed", "r", 1, 2)]
            batch.uses = [UseRow("k", 3, 4)]
            transaction.commit(batch)
        for stands in self._again(backend):
            with stands.snapshot(stands.scope_id("s")) as view:
                row, event = view.version(2), view.event("e")
                assert row is not None
                assert (row.required, row.optional) == ([1], [])
                assert view.head("k") == Head("k", 3, 3)
                assert view.head_versions().tolist() == [1, 3]
                assert event is not None
                assert event.abandoned == [2]
                assert view.attempts() == [AttemptRow(1, "published", 5, None, "d", 0, "you", 3, "r")]
                assert view.stages(1) == []
                assert view.fates([2])[2].fate == "failed"
                assert view.uses(["k"])["k"] == UseRow("k", 5, 5)

    def test_the_largest_ids(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        other = backend.scope_id("t")
        with backend.transaction(scope) as transaction:
            batch = Batch(MAX_VERSION + 1)
            batch.versions = [version_row(MAX_VERSION, "k", 1)]
            batch.contents = [ContentRow(MAX_VERSION, "inline", "text", b"last")]
            batch.heads = {"k": Head("k", MAX_VERSION, MAX_VERSION)}
            batch.ledger = LedgerRow(1, "put", inserted=pack_ids([MAX_VERSION]))
            transaction.commit(batch)
        with backend.snapshot(scope) as view:
            assert view.next_version == MAX_VERSION + 1
            assert [row.version for row in view.all_versions()] == [MAX_VERSION]
            assert view.head_versions().tolist() == [MAX_VERSION]
            content = view.content(MAX_VERSION)
            assert content is not None
            assert content.body == b"last"
        with backend.snapshot(other) as view:
            assert list(view.all_versions()) == []

    # -- heads and prefixes ----------------------------------------------------------------------------------------

    def test_prefixes_are_plain_text_and_heads_come_in_byte_order(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        keys = sorted({*HOSTILE_KEYS, *(f"{key}x"[:200] for key in HOSTILE_KEYS), "ax", "a%", "a_b", "ab", "A"})
        with backend.transaction(scope) as transaction:
            transaction.commit(batch_of(transaction, *keys))
        with backend.snapshot(scope) as view:
            for prefix in (
                "",
                "a",
                "a%",
                "a_",
                "%",
                "_",
                "*",
                "[",
                "'",
                '"',
                "\\",
                "\u6f22",
                "\U0001f98a",
                "zz",
                "k" * 512,
            ):
                wanted = sorted((key for key in keys if key.startswith(prefix)), key=str.encode)
                assert [head.key for head, _ in view.heads(prefix)] == wanted, f"prefix {prefix!r}"
            for key in keys:
                head = view.head(key)
                assert head is not None, f"head of {key!r}"
                assert head.key == key
            assert view.head("A ") is None

    def test_an_iterator_left_half_way_harms_nothing(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        with backend.transaction(scope) as transaction:
            transaction.commit(batch_of(transaction, *(f"k{number}" for number in range(50))))
        with backend.snapshot(scope) as view:
            next(iter(view.heads()))
            next(iter(view.all_versions()))
        with backend.transaction(scope) as transaction:
            next(iter(transaction.heads()))
            transaction.commit(batch_of(transaction, "more"))
        with backend.snapshot(scope) as view:
            assert view.head("more") is not None

    # -- isolation -------------------------------------------------------------------------------------------------

    def test_a_snapshot_sees_one_epoch(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        with backend.transaction(scope) as transaction:
            transaction.commit(batch_of(transaction, "old"))
        with backend.snapshot(scope) as view:
            if self.has_free_readers:
                _in_thread(lambda: _put(backend, scope, "new"))
            else:
                _raises(lambda: _in_thread(lambda: _put(backend, scope, "new")), StoreBusyError)
            assert view.epoch == 1
            assert view.head("new") is None
            assert [head.key for head, _ in view.heads()] == ["old"]
            assert [row.epoch for row in view.changes(0)] == [1]
            assert view.version(2) is None
            assert list(view.parents(None)) == [(1, b"")]
        if not self.has_free_readers:
            _put(backend, scope, "new")
        with backend.snapshot(scope) as view:
            assert (view.epoch, view.head("new")) == (2, Head("new", 2, 2))

    def test_a_transaction_reads_the_state_before_and_leaves_no_trace_uncommitted(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        with backend.transaction(scope) as transaction:
            assert transaction.epoch == 0
        with backend.snapshot(scope) as view:
            assert (view.epoch, view.next_version, view.changes(0)) == (0, 1, [])

    def test_an_exception_before_the_commit_rolls_back(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")

        def fail() -> None:
            with backend.transaction(scope) as transaction:
                batch_of(transaction, "k")
                raise ZeroDivisionError

        _raises(fail, ZeroDivisionError)
        _put(backend, scope, "k")
        with backend.snapshot(scope) as view:
            assert (view.epoch, view.next_version, view.head("k")) == (1, 2, Head("k", 1, 1))

    def test_a_batch_that_cannot_be_applied_leaves_nothing(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        _put(backend, scope, "k")

        def again(transaction: Transaction, batch: Batch) -> None:
            batch.versions.append(version_row(1, "k", batch_epoch(transaction)))

        def same_event(transaction: Transaction, batch: Batch) -> None:
            row = EventRow("e", "delete", batch_epoch(transaction), b"d", [], b"", 0)
            batch.events = [row, row]

        def no_ledger(transaction: Transaction, batch: Batch) -> None:
            batch.ledger = None

        for spoil in (again, same_event, no_ledger):

            def fail(spoil: Callable[[Transaction, Batch], None] = spoil) -> None:
                with backend.transaction(scope) as transaction:
                    batch = batch_of(transaction, "other")
                    spoil(transaction, batch)
                    transaction.commit(batch)

            _raises(fail, MemorepairError, AssertionError)
            with backend.snapshot(scope) as view:
                assert (view.epoch, view.next_version, view.head("other")) == (1, 2, None), spoil.__name__
        _put(backend, scope, "last")
        for stands in self._again(backend):
            with stands.snapshot(stands.scope_id("s")) as view:
                assert (view.epoch, view.events(), view.head("other")) == (2, [], None)
                assert [row.key for row in view.all_versions()] == ["k", "last"]

    def test_a_transaction_inside_a_transaction_of_the_same_thread_is_refused(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        with backend.transaction(scope) as transaction:
            _raises(lambda: _put(backend, scope, "inner"), MemorepairError)
            transaction.commit(batch_of(transaction, "outer"))
        with backend.snapshot(scope) as view:
            assert [head.key for head, _ in view.heads()] == ["outer"]
            assert [row.epoch for row in view.changes(0)] == [1]

    # -- the gate --------------------------------------------------------------------------------------------------

    def test_writers_of_one_scope_are_serial_and_epoch_order_is_commit_order(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        threads, rounds = 4, 12
        seen: list[int] = []
        inside = threading.Lock()
        start = threading.Barrier(threads)

        def write(number: int) -> None:
            start.wait(WAIT_SECONDS)
            for turn in range(rounds):
                with backend.transaction(scope) as transaction:
                    assert inside.acquire(blocking=False), "two transactions of one scope at once"
                    try:
                        batch = batch_of(transaction, f"k{number}-{turn}")
                        transaction.commit(batch)
                        seen.append(transaction.epoch + 1)
                    finally:
                        inside.release()

        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(write, number) for number in range(threads)]:
                done.result(WAIT_SECONDS)
        assert seen == list(range(1, threads * rounds + 1))
        with backend.snapshot(scope) as view:
            assert view.epoch == threads * rounds
            assert [row.epoch for row in view.changes(0)] == seen
            assert [row.version for row in view.all_versions()] == list(range(1, threads * rounds + 1))
            assert sorted(row.epoch for row in view.all_versions()) == seen

    def test_readers_never_see_half_a_batch(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        is_over = threading.Event()

        def read() -> int:
            rounds = 0
            while not is_over.is_set() or not rounds:
                with backend.snapshot(scope) as view:
                    count = len(list(view.heads()))
                    assert count == 5 * view.epoch, f"{count} heads at epoch {view.epoch}"
                    assert len(view.changes(0)) == view.epoch
                    assert view.next_version == count + 1
                rounds += 1
            return rounds

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            try:
                for turn in range(25):
                    _put(backend, scope, *(f"k{turn}-{part}" for part in range(5)))
            finally:
                is_over.set()
            assert all(reader.result(WAIT_SECONDS) for reader in readers)

    def test_changes_come_in_epoch_order_from_anywhere(self) -> None:
        backend = self.backend()
        scope = backend.scope_id("s")
        for number in range(6):
            _put(backend, scope, f"k{number}")
        with backend.snapshot(scope) as view:
            for since in range(7):
                assert [row.epoch for row in view.changes(since)] == list(range(since + 1, 7))

    # -- the end ---------------------------------------------------------------------------------------------------

    def test_it_is_sound_and_reopens_equal(self) -> None:
        backend = self.backend()
        _put(backend, backend.scope_id("s"), "k")
        assert backend.integrity() == []
        identity = (backend.uuid, backend.incarnation)
        again = self.reopen(backend)
        if again is not None:
            assert backend.is_closed
            assert (again.uuid, again.incarnation) == identity
            assert again.scopes() == ["s"]
            _put(again, again.scope_id("s"), "more")
            _raises(lambda: _put(backend, 1, "k"), ClosedStoreError)
            with again.snapshot(again.scope_id("s")) as view:
                assert view.epoch == 2

    def _again(self, backend: Backend) -> list[Backend]:
        """The backend, and one reopened over the same rows."""
        again = self.reopen(backend)
        return [again] if again is not None else [backend]


def batch_epoch(transaction: Transaction) -> int:
    """The epoch at which a batch of `transaction` will stand."""
    return transaction.epoch + 1


def _head_elsewhere(backend: Backend, scope: int, key: str) -> tuple[Head | None, int]:
    """The head of `key` and the epoch, read in another thread, beside an open snapshot of this one."""
    answer: list[tuple[Head | None, int]] = []

    def read() -> None:
        with backend.snapshot(scope) as view:
            answer.append((view.head(key), view.epoch))

    _in_thread(read)
    return answer[0]


def _in_thread(call: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result(WAIT_SECONDS)


def _put(backend: Backend, scope: int, *keys: str) -> None:
    with backend.transaction(scope) as transaction:
        transaction.commit(batch_of(transaction, *keys))
