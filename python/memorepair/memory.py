"""The in-memory backend: the reference for every other one.

Contract: as in protocol.py, but durable only as long as the process.
How: every row is kept under its epoch and a snapshot reads the newest row at or before its own, so readers need no
lock; the epoch is raised last. Nothing is ever dropped, which is the point of a reference.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import numpy as np
from msgspec.structs import replace

from memorepair.errors import ClosedStoreError, StoreBusyError, StoreError
from memorepair.protocol import (
    AttemptRow,
    Batch,
    ContentRow,
    EventRow,
    FateRow,
    Head,
    Ids,
    LateRow,
    LedgerRow,
    StageRow,
    UseRow,
    VersionRow,
)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


GATE_SECONDS = 5.0


class _Table(Generic[K, V]):
    """A dict whose values remember the epoch that wrote them; None is a removed row."""

    def __init__(self) -> None:
        self._rows: dict[K, list[tuple[int, V | None]]] = {}

    def put(self, key: K, value: V | None, epoch: int) -> None:
        self._rows.setdefault(key, []).append((epoch, value))

    def get(self, key: K, epoch: int) -> V | None:
        for written, value in reversed(self._rows.get(key, ())):
            if written <= epoch:
                return value
        return None

    def items(self, epoch: int) -> Iterator[tuple[K, V]]:
        for key in list(self._rows):
            value = self.get(key, epoch)
            if value is not None:
                yield key, value


class _Scope:
    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.writer = 0  # the thread behind the gate
        self.epoch = 0
        self.next_version: dict[int, int] = {0: 1}
        self.versions: _Table[int, VersionRow] = _Table()
        self.contents: _Table[int, ContentRow] = _Table()
        self.heads: _Table[str, Head] = _Table()
        self.events: _Table[str, EventRow] = _Table()
        self.late: _Table[tuple[int, int], LateRow] = _Table()
        self.fates: _Table[int, FateRow] = _Table()
        self.attempts: _Table[int, AttemptRow] = _Table()
        self.stages: _Table[tuple[int, int], StageRow] = _Table()
        self.uses: _Table[str, UseRow] = _Table()
        self.similar: _Table[tuple[int, int], int] = _Table()
        self.ledger: list[LedgerRow] = []


class MemorySnapshot:
    """One scope at one epoch."""

    def __init__(self, scope: _Scope) -> None:
        self._scope = scope
        self.epoch = scope.epoch
        self.next_version = scope.next_version[self.epoch]

    def head(self, key: str) -> Head | None:
        return self._scope.heads.get(key, self.epoch)

    def heads(self, prefix: str = "") -> Iterator[tuple[Head, VersionRow]]:
        for key, head in sorted(self._scope.heads.items(self.epoch), key=lambda item: item[0].encode()):
            row = self.version(head.head)
            if key.startswith(prefix) and row is not None:
                yield head, row

    def head_versions(self) -> Ids:
        return np.array(sorted(head.head for _, head in self._scope.heads.items(self.epoch)), dtype=np.uint32)

    def version(self, version: int) -> VersionRow | None:
        return self._scope.versions.get(version, self.epoch)

    def versions(self, ids: Iterable[int]) -> dict[int, VersionRow]:
        rows = ((version, self.version(version)) for version in ids)
        return {version: row for version, row in rows if row is not None}

    def num_versions(self) -> int:
        return sum(1 for _ in self.all_versions())

    def all_versions(self) -> Iterator[VersionRow]:
        yield from (row for _, row in sorted(self._scope.versions.items(self.epoch)))

    def expiring(self) -> list[tuple[int, int]]:
        return [(row.version, row.expires_at) for row in self.all_versions() if row.expires_at is not None]

    def parents(self, ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]:
        rows = self.all_versions() if ids is None else self.versions(sorted(ids)).values()
        yield from ((row.version, row.parents) for row in rows)

    def content(self, version: int) -> ContentRow | None:
        return self._scope.contents.get(version, self.epoch)

    def changes(self, since: int) -> list[LedgerRow]:
        return [row for row in self._scope.ledger[since:] if row.epoch <= self.epoch]

    def event(self, event_id: str) -> EventRow | None:
        return self._scope.events.get(event_id, self.epoch)

    def events(self, since: int = 0) -> list[EventRow]:
        rows = (row for _, row in self._scope.events.items(self.epoch) if row.epoch > since)
        return sorted(rows, key=lambda row: row.epoch)

    def late(self, since: int = 0) -> list[LateRow]:
        rows = (row for _, row in self._scope.late.items(self.epoch) if row.epoch > since)
        return sorted(rows, key=lambda row: (row.epoch, row.event_epoch, row.version))

    def fates(self, heads: Iterable[int]) -> dict[int, FateRow]:
        rows = ((head, self._scope.fates.get(head, self.epoch)) for head in heads)
        return {head: row for head, row in rows if row is not None}

    def attempt(self, attempt: int) -> AttemptRow | None:
        return self._scope.attempts.get(attempt, self.epoch)

    def attempts(self) -> list[AttemptRow]:
        return [row for _, row in sorted(self._scope.attempts.items(self.epoch))]

    def stages(self, attempt: int | None) -> list[StageRow]:
        rows = sorted(self._scope.stages.items(self.epoch))
        return [row for (owner, _), row in rows if attempt in (None, owner)]

    def uses(self, keys: Iterable[str]) -> dict[str, UseRow]:
        return {key: self._scope.uses.get(key, self.epoch) or UseRow(key, 0, 0) for key in keys}

    def head_costs(self, unit: str) -> tuple[int, int]:
        costs = [row.cost for _, row in self.heads() if row.unit == unit and row.cost is not None]
        return sum(costs), len(costs)

    def similar(self, version: int) -> list[tuple[int, int]]:
        items = sorted(self._scope.similar.items(self.epoch))
        return [(target, score) for (source, target), score in items if source == version]


class MemoryTransaction(MemorySnapshot):
    """A snapshot behind the gate, with one commit."""

    def commit(self, batch: Batch) -> None:
        scope, epoch = self._scope, self.epoch + 1
        self._check(batch)  # nothing below raises, so a batch is applied whole or not at all
        for row in batch.versions:
            scope.versions.put(row.version, row, epoch)
        for content in batch.contents:
            scope.contents.put(content.version, content, epoch)
        for key, head in batch.heads.items():
            scope.heads.put(key, head, epoch)
        for version, parents, num_required in batch.reparented:
            old = self.version(version)
            assert old is not None
            scope.versions.put(version, replace(old, parents=parents, num_required=num_required), epoch)
        for event in batch.events:
            scope.events.put(event.event_id, event, epoch)
        for late in batch.late:
            scope.late.put((late.event_epoch, late.version), late, epoch)
        for event_id in batch.abandoned:
            event_row = self.event(event_id)
            assert event_row is not None
            scope.events.put(event_id, replace(event_row, abandoned=[*event_row.abandoned, epoch]), epoch)
        for source, target, score in batch.similar:
            scope.similar.put((source, target), score, epoch)
        for fate in batch.fates:
            scope.fates.put(fate.version, fate, epoch)
        for attempt in batch.attempts:
            scope.attempts.put(attempt.attempt, attempt, epoch)
        for stage in batch.stages:
            scope.stages.put((stage.attempt, stage.row.version), stage, epoch)
        for staged in batch.unstaged:
            scope.stages.put(staged, None, epoch)
        for use in batch.uses:
            old_use = self.uses([use.key])[use.key]
            scope.uses.put(use.key, UseRow(use.key, old_use.reads + use.reads, old_use.gaps + use.gaps), epoch)
        assert batch.ledger is not None
        scope.ledger.append(batch.ledger)
        scope.next_version[epoch] = batch.next_version
        scope.epoch = epoch

    def _check(self, batch: Batch) -> None:
        """Refuse a batch that would alter rows which never change."""
        versions = [row.version for row in batch.versions]
        events = [event.event_id for event in batch.events]
        is_fresh = len({*versions}) == len(versions) and len({*events}) == len(events)
        if not is_fresh or self.versions(versions) or any(self.event(event) is not None for event in events):
            raise StoreError("write: a version or event of the batch exists already; nothing was changed")
        if batch.ledger is None or self.epoch != self._scope.epoch:
            raise StoreError("write: expected one batch with a ledger row per transaction; nothing was changed")


class MemoryBackend:
    """Rows in dicts; one process, gone when it ends."""

    def __init__(self) -> None:
        self.uuid = uuid.uuid4().hex
        self.incarnation = 1
        self.is_closed = False
        self._scopes: dict[int, _Scope] = {}
        self._names: dict[str, int] = {}
        self._lock = threading.Lock()

    def check_open(self) -> None:
        """Raise ClosedStoreError after close."""
        if self.is_closed:
            raise ClosedStoreError("the store was closed; open a new one")

    def scope_id(self, name: str) -> int:
        with self._lock:
            scope = self._names.setdefault(name, len(self._names) + 1)
            self._scopes.setdefault(scope, _Scope())
            return scope

    def scopes(self) -> list[str]:
        return sorted(self._names)

    def epoch(self, scope: int) -> int:
        return self._scopes[scope].epoch

    @contextmanager
    def snapshot(self, scope: int, keys: Sequence[str] = ()) -> Iterator[MemorySnapshot]:
        yield MemorySnapshot(self._scopes[scope])

    @contextmanager
    def transaction(self, scope: int, keys: Sequence[str] = ()) -> Iterator[MemoryTransaction]:
        held = self._scopes[scope]
        if held.writer == threading.get_ident():
            raise StoreError("write: this thread is inside a transaction of the scope already; nothing was changed")
        if not held.gate.acquire(timeout=GATE_SECONDS):
            raise StoreBusyError("write: another thread holds the scope; nothing was changed, try again")
        try:
            held.writer = threading.get_ident()
            yield MemoryTransaction(held)
        finally:
            held.writer = 0
            held.gate.release()

    def integrity(self) -> list[str]:
        return []

    def close(self) -> None:
        """Refuse every later call."""
        self.is_closed = True
