"""Rows of one scope in SQLite: what a snapshot reads and what a transaction writes.

Contract: as in protocol.py. A snapshot lives inside one read transaction of its connection, a transaction inside
BEGIN IMMEDIATE; opening, closing and settings are sqlite.py's business.
Invariants: values are always bound; no statement replaces a row; every apsw error leaves here as one of ours.
Format: schema.sql.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw
import msgspec
import numpy as np

from memorepair.errors import (
    ClosedStoreError,
    DamagedStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    UnknownOutcomeError,
)
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
    Root,
    StageRow,
    UseRow,
    VersionRow,
    lost_scope,
)

_VERSION_COLUMNS = (
    "key, kind, digest, epoch, origin, form, namespace, title, labels, operator, operator_version, cost, unit, weight, "
    "expires_at, completeness, parents, num_required, previous, facts"
)
_SELECT_VERSION = f"SELECT id & 4294967295, {_VERSION_COLUMNS} FROM version"


def typed_error(what: str, error: apsw.Error) -> StoreError:
    """Return apsw's error as ours; nothing was changed unless the error says so."""
    match error:
        case apsw.BusyError():
            return StoreBusyError(f"{what}: another process holds the store; nothing was changed, try again ({error})")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return DamagedStoreError(
                f"{what}: the file is damaged or is no database ({error}); keep it and restore a backup"
            )
        case apsw.IOError() if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            return DamagedStoreError(f"{what}: a page fails its checksum, the file is damaged; restore a backup")
        case apsw.FullError():
            return StoreFullError(f"{what}: the disk or the store is full; nothing was changed ({error})")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreReadOnlyError(f"{what}: the store cannot be written; nothing was changed ({error})")
        case apsw.CantOpenError():
            return StoreReadOnlyError(f"{what}: cannot open the file; check the path and its rights ({error})")
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return ClosedStoreError(f"{what}: the store was closed; open it again")
    return StoreError(f"{what}: {error}")


@contextmanager
def typed(what: str) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise typed_error(what, error) from error
    except msgspec.DecodeError as error:
        raise DamagedStoreError(f"{what}: a row does not hold what it should ({error}); restore a backup") from error


class SqliteSnapshot:
    """One scope inside one read transaction."""

    def __init__(self, connection: apsw.Connection, scope: int) -> None:
        self._db, self._scope, self._base = connection, scope, scope << 32
        row = connection.execute("SELECT epoch, next_version FROM scope WHERE id = ?", (scope,)).fetchone()
        if row is None:
            raise lost_scope(scope)
        self.epoch: int = row[0]
        self.next_version: int = row[1]

    def _all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with typed("read"):
            return list(self._db.execute(sql, (self._scope, *values)))

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        try:  # the hot path of every read: no context manager
            for row in self._db.execute(sql, values):
                return tuple(row)
        except apsw.Error as error:
            raise typed_error("read", error) from error
        return None

    def head(self, key: str) -> Head | None:
        row = self._one("SELECT key, head, latest, floor FROM head WHERE scope = ? AND key = ?", self._scope, key)
        return None if row is None else Head(*row)

    def heads(self, prefix: str = "") -> Iterator[tuple[Head, VersionRow]]:
        # A prefix is a range of keys: no pattern language, so no character of a key is special.
        with typed("read"):
            rows = self._db.execute(
                f"SELECT h.key, h.head, h.latest, h.floor, v.id & 4294967295, "
                f"{_VERSION_COLUMNS.replace('key,', 'v.key,', 1)} "
                "FROM head AS h JOIN version AS v ON v.id = (h.scope << 32) + h.head "
                "WHERE h.scope = ? AND h.key >= ? ORDER BY h.key",
                (self._scope, prefix),
            )
            for key, head, latest, floor, *columns in rows:
                if not key.startswith(prefix):
                    return
                yield Head(key, head, latest, floor), VersionRow(*columns)

    def head_versions(self) -> Ids:
        rows = self._all("SELECT head FROM head WHERE scope = ?")
        return np.sort(np.fromiter((row[0] for row in rows), dtype=np.uint32, count=len(rows)))

    def version(self, version: int) -> VersionRow | None:
        row = self._one(f"{_SELECT_VERSION} WHERE id = ?", self._base + version)
        return None if row is None else VersionRow(*row)

    def versions(self, ids: Iterable[int]) -> dict[int, VersionRow]:
        wanted = msgspec.json.encode([self._base + int(version) for version in ids]).decode()
        with typed("read"):
            rows = self._db.execute(f"{_SELECT_VERSION} WHERE id IN (SELECT value FROM json_each(?))", (wanted,))
            return {row[0]: VersionRow(*row) for row in rows}

    def num_versions(self) -> int:
        row = self._one("SELECT count(*) FROM version WHERE id BETWEEN ? AND ?", self._base, self._base + 2**32 - 1)
        return 0 if row is None else int(row[0])

    def all_versions(self) -> Iterator[VersionRow]:
        with typed("read"):
            rows = self._db.execute(
                f"{_SELECT_VERSION} WHERE id BETWEEN ? AND ? ORDER BY id", (self._base, self._base + 2**32 - 1)
            )
            for row in rows:
                yield VersionRow(*row)

    def expiring(self) -> list[tuple[int, int]]:
        with typed("read"):
            return list(
                self._db.execute(
                    "SELECT id & 4294967295, expires_at FROM version "
                    "WHERE expires_at IS NOT NULL AND id BETWEEN ? AND ?",
                    (self._base, self._base + 2**32 - 1),
                )
            )

    def parents(self, ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]:
        with typed("read"):
            if ids is None:
                yield from self._db.execute(
                    "SELECT id & 4294967295, parents FROM version WHERE id BETWEEN ? AND ? ORDER BY id",
                    (self._base, self._base + 2**32 - 1),
                )
                return
            for version in sorted(ids):
                row = self._db.execute("SELECT parents FROM version WHERE id = ?", (self._base + version,)).fetchone()
                if row is not None:
                    yield version, row[0]

    def content(self, version: int) -> ContentRow | None:
        row = self._one("SELECT state, codec, body FROM content WHERE id = ?", self._base + version)
        return None if row is None else ContentRow(version, *row)

    def changes(self, since: int) -> list[LedgerRow]:
        sql = (
            "SELECT epoch, kind, inserted, crowned, dethroned, reparented, expiring, event_id, recorded_at "
            "FROM ledger WHERE scope = ? AND epoch > ? ORDER BY epoch"
        )
        return [LedgerRow(*row) for row in self._all(sql, since)]

    _EVENT = (
        "SELECT event_id, kind, epoch, digest, roots, closure, num_withdrawn, reason, soft, undoes, restored, "
        "abandoned, recorded_at FROM event WHERE scope = ?"
    )

    def event(self, event_id: str) -> EventRow | None:
        with typed("read"):
            return next((_event_row(row) for row in self._all(f"{self._EVENT} AND event_id = ?", event_id)), None)

    def events(self, since: int = 0) -> list[EventRow]:
        with typed("read"):
            return [_event_row(row) for row in self._all(f"{self._EVENT} AND epoch > ? ORDER BY epoch", since)]

    def late(self, since: int = 0) -> list[LateRow]:
        sql = (
            "SELECT event_epoch, version, epoch FROM late WHERE scope = ? AND epoch > ? "
            "ORDER BY epoch, event_epoch, version"
        )
        return [LateRow(*row) for row in self._all(sql, since)]

    def fates(self, heads: Iterable[int]) -> dict[int, FateRow]:
        sql = (
            "SELECT version, key, fate, reason, attempt, epoch FROM fate "
            "WHERE scope = ? AND version IN (SELECT value FROM json_each(?))"
        )
        wanted = msgspec.json.encode([int(head) for head in heads]).decode()
        return {row[0]: FateRow(*row) for row in self._all(sql, wanted)}

    _ATTEMPT = (
        "SELECT attempt, state, token, event_id, plan_digest, plan_epoch, owner, heartbeat, reason "
        "FROM attempt WHERE scope = ?"
    )

    def attempt(self, attempt: int) -> AttemptRow | None:
        row = self._one(f"{self._ATTEMPT} AND attempt = ?", self._scope, attempt)
        return None if row is None else AttemptRow(*row)

    def attempts(self) -> list[AttemptRow]:
        return [AttemptRow(*row) for row in self._all(f"{self._ATTEMPT} ORDER BY attempt")]

    def stages(self, attempt: int | None) -> list[StageRow]:
        sql = (
            "SELECT attempt, row, codec, body, head, head_parents, state, reason FROM stage "
            "WHERE scope = ? AND attempt = ifnull(?, attempt) ORDER BY attempt, version"
        )
        with typed("read"):
            return [
                StageRow(row[0], msgspec.msgpack.decode(row[1], type=VersionRow), *row[2:])
                for row in self._all(sql, attempt)
            ]

    def uses(self, keys: Iterable[str]) -> dict[str, UseRow]:
        names = list(keys)
        sql = "SELECT key, reads, gaps FROM use WHERE scope = ? AND key IN (SELECT value FROM json_each(?))"
        known = {row[0]: UseRow(*row) for row in self._all(sql, msgspec.json.encode(names).decode())}
        return {name: known.get(name) or UseRow(name, 0, 0) for name in names}

    def head_costs(self, unit: str) -> tuple[int, int]:
        sql = (
            "SELECT v.cost FROM head AS h JOIN version AS v ON v.id = (h.scope << 32) + h.head "
            "WHERE h.scope = ? AND v.unit = ? AND v.cost IS NOT NULL"
        )
        rows = self._all(sql, unit)
        return sum(row[0] for row in rows), len(rows)  # summed here: Python's integers do not overflow

    def similar(self, version: int) -> list[tuple[int, int]]:
        sql = "SELECT target, score FROM similar WHERE scope = ? AND source = ? ORDER BY target"
        return [(row[0], row[1]) for row in self._all(sql, version)]


def _event_row(row: tuple[Any, ...]) -> EventRow:
    roots = msgspec.json.decode(row[4], type=list[Root])
    restored = msgspec.json.decode(row[10], type=list[Root])
    abandoned = msgspec.json.decode(row[11], type=list[int])
    columns: list[Any] = [*row[:4], roots, *row[5:8], bool(row[8]), row[9], restored, abandoned, row[12]]
    return EventRow(*columns)


class SqliteTransaction(SqliteSnapshot):
    """A snapshot inside BEGIN IMMEDIATE: the gate of every scope in the file."""

    def commit(self, batch: Batch) -> None:
        with typed("write"):
            self._write(batch)
        try:
            self._db.execute("COMMIT")
        except apsw.BusyError as error:
            raise StoreBusyError(f"commit: readers hold the store; nothing was changed, try again ({error})") from error
        except apsw.FullError as error:
            raise StoreFullError(f"commit: the disk or the store is full; nothing was changed ({error})") from error
        except apsw.Error as error:
            raise UnknownOutcomeError(
                f"commit: {error}; ask again with the same event id to learn what happened"
            ) from error

    def _write(self, batch: Batch) -> None:
        scope, base, epoch = self._scope, self._base, self.epoch + 1
        many = self._db.executemany
        self._db.execute(
            "UPDATE scope SET epoch = ?, next_version = ? WHERE id = ?", (epoch, batch.next_version, scope)
        )
        many(
            f"INSERT INTO version(id, {_VERSION_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            ((base + row[0], *row[1:]) for row in map(msgspec.structs.astuple, batch.versions)),
        )
        many(
            "INSERT INTO content(id, state, codec, body) VALUES(?,?,?,?)",
            ((base + row.version, row.state, row.codec, row.body) for row in batch.contents),
        )
        many(
            "INSERT INTO head(scope, key, head, latest, floor) VALUES(?,?,?,?,?) ON CONFLICT(scope, key) "
            "DO UPDATE SET head = excluded.head, latest = excluded.latest, floor = excluded.floor",
            ((scope, head.key, head.head, head.latest, head.floor) for head in batch.heads.values()),
        )
        many(
            "UPDATE version SET parents = ?, num_required = ? WHERE id = ?",
            ((parents, num_required, base + version) for version, parents, num_required in batch.reparented),
        )
        for event in batch.events:
            columns = msgspec.structs.astuple(event)
            lists = (event.roots, event.restored, event.abandoned)
            roots, restored, abandoned = (msgspec.json.encode(items).decode() for items in lists)
            self._db.execute(
                "INSERT INTO event(scope, event_id, kind, epoch, digest, roots, closure, num_withdrawn, reason, soft, "
                "undoes, restored, abandoned, recorded_at) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (
                    *(scope, *columns[:4], roots, *columns[5:8], int(event.soft), event.undoes),
                    *(restored, abandoned, event.recorded_at),
                ),
            )
        many(
            "INSERT INTO late(scope, event_epoch, version, epoch) VALUES(?,?,?,?) ON CONFLICT DO NOTHING",
            ((scope, row.event_epoch, row.version, row.epoch) for row in batch.late),
        )
        many(
            "UPDATE event SET abandoned = json_insert(abandoned, '$[#]', ?) WHERE scope = ? AND event_id = ?",
            ((epoch, scope, event_id) for event_id in batch.abandoned),
        )
        many(
            "INSERT INTO similar(scope, source, target, score) VALUES(?,?,?,?) "
            "ON CONFLICT(scope, source, target) DO UPDATE SET score = excluded.score",
            ((scope, *edge) for edge in batch.similar),
        )
        self._write_repair(batch)
        assert batch.ledger is not None
        self._db.execute(
            "INSERT INTO ledger(scope, epoch, kind, inserted, crowned, dethroned, reparented, expiring, event_id, "
            "recorded_at) VALUES(?,?,?,?,?,?,?,?,?,?)",
            (scope, *msgspec.structs.astuple(batch.ledger)),
        )

    def _write_repair(self, batch: Batch) -> None:
        scope, many = self._scope, self._db.executemany
        many(
            "INSERT INTO fate(scope, version, key, fate, reason, attempt, epoch) VALUES(?,?,?,?,?,?,?) "
            "ON CONFLICT(scope, version) DO UPDATE SET fate = excluded.fate, reason = excluded.reason, "
            "attempt = excluded.attempt, epoch = excluded.epoch",
            ((scope, *msgspec.structs.astuple(row)) for row in batch.fates),
        )
        many(
            "INSERT INTO attempt(scope, attempt, state, token, event_id, plan_digest, plan_epoch, owner, heartbeat, "
            "reason) VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(scope, attempt) DO UPDATE SET state = excluded.state, "
            "token = excluded.token, owner = excluded.owner, heartbeat = excluded.heartbeat, reason = excluded.reason",
            ((scope, *msgspec.structs.astuple(row)) for row in batch.attempts),
        )
        many(
            "INSERT INTO stage(scope, attempt, version, row, codec, body, head, head_parents, state, reason) "
            "VALUES(?,?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT(scope, attempt, version) DO UPDATE SET state = excluded.state, reason = excluded.reason",
            (
                (
                    scope,
                    stage.attempt,
                    stage.row.version,
                    msgspec.msgpack.encode(stage.row),
                    stage.codec,
                    stage.body,
                    stage.head,
                    stage.head_parents,
                    stage.state,
                    stage.reason,
                )
                for stage in batch.stages
            ),
        )
        many(
            "DELETE FROM stage WHERE scope = ? AND attempt = ? AND version = ?",
            ((scope, attempt, version) for attempt, version in batch.unstaged),
        )
        many(
            "INSERT INTO use(scope, key, reads, gaps) VALUES(?,?,?,?) "
            "ON CONFLICT(scope, key) DO UPDATE SET reads = reads + excluded.reads, gaps = gaps + excluded.gaps",
            ((scope, *msgspec.structs.astuple(row)) for row in batch.uses),
        )
