"""Rows of one scope in PostgreSQL: what a snapshot reads and what a transaction writes.

Contract: as in protocol.py. A snapshot is one REPEATABLE READ transaction; a transaction is READ COMMITTED and takes
its scope's gate as its first statement. Both begin and learn their state in one round trip; connections, opening and
closing are postgres.py's business.
How: a snapshot that others' commits have overtaken brings their ledger rows along (`since`), and a head its row and
small content (`keys`: those to be asked for), so that most reads are answered in one round trip. Long lists come page
by page, by key, so that a reader may stop anywhere. A batch is one pipeline, COMMIT included; rows in bulk go by COPY
before it.
Invariants: values are always bound; no statement replaces a row; every error of the driver leaves here as one of ours,
without the row that the server may quote.
Format: postgres.sql.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import psycopg
from msgspec.structs import astuple
from psycopg import errors

from memorepair.errors import (
    ClosedStoreError,
    DamagedStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
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

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

NOTHING_RECENT = 2**62  # no ledger row is that young
BULK_ROWS = 100  # from here on COPY is worth its own round trip
PAGE_ROWS = 5000
SMALL_BYTES = 8192
IDLE_SECONDS = 60  # the server ends a session that keeps a gate and says nothing: its client may be gone

_VERSION_COLUMNS = ", ".join(VersionRow.__struct_fields__)
_SELECT_VERSION = f"SELECT {_VERSION_COLUMNS} FROM memorepair.version WHERE scope = %s"
_STATE = "next_version, event_epoch, late_epoch"
_CHANGES = (
    "SELECT epoch, kind, inserted, crowned, dethroned, reparented, expiring, event_id, recorded_at "
    "FROM memorepair.ledger WHERE scope = %s AND epoch > %s ORDER BY epoch"
)
# A head's version, found by its key. OFFSET 0 keeps the planner, while its statistics are young and every table looks
# small to it, from reading the whole scope instead.
_ITS_VERSION = (
    f"LATERAL (SELECT {_VERSION_COLUMNS} FROM memorepair.version AS its "
    "WHERE its.scope = h.scope AND its.version = h.head OFFSET 0) AS v"
)
_HEADS = (
    "SELECT h.key, h.head, h.latest, h.floor, c.*, v.* "
    "FROM (SELECT * FROM memorepair.head WHERE scope = %s AND key = ANY(%s::text[])) AS h "
    "LEFT JOIN LATERAL (SELECT its.version, state, codec, "
    f"CASE WHEN octet_length(body) <= {SMALL_BYTES} THEN body END AS body FROM memorepair.content AS its "
    "WHERE %s AND its.scope = h.scope AND its.version = h.head OFFSET 0) AS c ON true "
    f"LEFT JOIN {_ITS_VERSION} ON true"
)
# For one key a plan can be made once; that of a list is made whenever it is asked.
_HEAD = _HEADS.replace("= ANY(%s::text[])", "= %s").replace("WHERE %s AND", "WHERE")


def typed_error(what: str, error: psycopg.Error) -> StoreError:
    """Return the driver's error as ours; nothing was changed unless the error says so."""
    said = error.diag.message_primary or str(error).partition("\n")[0]  # never the detail: it quotes rows
    match error:
        case errors.LockNotAvailable():
            return StoreBusyError(f"{what}: another process holds the scope; nothing was changed, try again ({said})")
        case errors.QueryCanceled() | errors.SerializationFailure() | errors.DeadlockDetected():
            return StoreBusyError(f"{what}: the server gave up waiting; nothing was changed, try again ({said})")
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return StoreReadOnlyError(
                f"{what}: {said}; nothing was changed, grant the role its rights on schema memorepair"
            )
        case errors.DiskFull() | errors.OutOfMemory():
            return StoreFullError(f"{what}: the server's disk or memory is full; nothing was changed ({said})")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return DamagedStoreError(f"{what}: the database is damaged ({said}); keep it and restore a backup")
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName() | errors.DuplicateTable():
            return DamagedStoreError(
                f"{what}: schema memorepair is not that of a store ({said}); use another database or restore a backup"
            )
        case psycopg.OperationalError() | errors.IdleInTransactionSessionTimeout():
            return StoreUnreachableError(
                f"{what}: no connection to the server; nothing was changed, try again or check server and URL ({said})"
            )
    return StoreError(f"{what}: {said}; nothing was changed")


@contextmanager
def typed(what: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise typed_error(what, error) from error
    except msgspec.DecodeError as error:
        raise DamagedStoreError(f"{what}: a row does not hold what it should ({error}); restore a backup") from error


class PostgresSnapshot:
    """One scope inside one REPEATABLE READ transaction; `since` is the epoch that the reader has probably seen."""

    _MOST_CONTENTS = 1000

    def __init__(self, connection: Connection, scope: int, since: int, wait_ms: int, keys: Sequence[str] = ()) -> None:
        self._db, self._scope, self._since, self.is_over = connection, scope, since, False
        self._heads: dict[str, Head | None] = dict.fromkeys(keys)
        self._rows: dict[int, VersionRow] = {}
        self._contents: dict[int, ContentRow] = {}
        with typed("begin"):
            with connection.pipeline():  # one message, one answer
                state = self._begin(wait_ms)
                changes = self._run(_CHANGES, scope, since)
                heads = self._run_heads(keys) if keys else None
            row, self._recent = state.fetchone(), [LedgerRow(*row) for row in changes]
            self._keep_heads(heads or ())
        if row is None:
            raise lost_scope(scope)
        self.epoch: int
        self.next_version: int
        self.epoch, self.next_version, self._event_epoch, self._late_epoch = row

    def _begin(self, wait_ms: int) -> Cursor:
        self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return self._run(f"SELECT epoch, {_STATE} FROM memorepair.scope WHERE id = %s", self._scope)

    def _run(self, sql: str, *values: Any) -> Cursor:
        return self._db.execute(sql, values, binary=True)

    def _run_heads(self, keys: Sequence[str]) -> Cursor:
        if len(keys) == 1:
            return self._run(_HEAD, self._scope, keys[0])
        return self._run(_HEADS, self._scope, list(keys), len(keys) <= self._MOST_CONTENTS)

    def _all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self.is_over:
            raise ClosedStoreError("read: the state this was read from is gone; read it inside its block")
        try:  # the hot path of every read: no context manager
            return self._run(sql, self._scope, *values).fetchall()
        except psycopg.Error as error:
            raise typed_error("read", error) from error

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self._all(sql, *values)
        return rows[0] if rows else None

    def _pages(self, sql: str, *values: Any, after: Any) -> Iterator[tuple[Any, ...]]:
        """Yield all rows, a page at a time; the first column orders them, the last values are `after` and LIMIT."""
        while True:
            rows = self._all(sql, *values, after, PAGE_ROWS)
            yield from rows
            if len(rows) < PAGE_ROWS:
                return
            after = rows[-1][0]

    def head(self, key: str) -> Head | None:
        if key not in self._heads:
            rows = self._all(_HEAD, key)
            self._heads[key] = None
            self._keep_heads(rows)
        return self._heads[key]

    def _keep_heads(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            head, content, version = Head(*row[:4]), row[4:8], row[8:]
            self._heads[head.key] = head
            if version[0] is not None:
                self._rows[head.head] = VersionRow(*version)
            if content[3] is not None:
                self._contents[head.head] = ContentRow(*content)

    def heads(self, prefix: str = "") -> Iterator[tuple[Head, VersionRow]]:
        # `^@` is "starts with": no pattern language, so no character of a key is special.
        rows = self._pages(
            "SELECT h.key, h.head, h.latest, h.floor, v.* FROM (SELECT * FROM memorepair.head "
            "WHERE scope = %s AND key ^@ %s AND key > %s ORDER BY key LIMIT %s) AS h "
            f"JOIN {_ITS_VERSION} ON true ORDER BY h.key",
            prefix,
            after="",
        )
        for key, head, latest, floor, *columns in rows:
            yield Head(key, head, latest, floor), VersionRow(*columns)

    def head_versions(self) -> Ids:
        rows = self._all("SELECT head FROM memorepair.head WHERE scope = %s")
        return np.sort(np.fromiter((row[0] for row in rows), dtype=np.uint32, count=len(rows)))

    def version(self, version: int) -> VersionRow | None:
        if version in self._rows:
            return self._rows[version]
        row = self._one(f"{_SELECT_VERSION} AND version = %s", int(version))
        return None if row is None else VersionRow(*row)

    def versions(self, ids: Iterable[int]) -> dict[int, VersionRow]:
        wanted = list(map(int, ids))
        rows = self._all(f"{_SELECT_VERSION} AND version = ANY(%s::bigint[])", wanted) if wanted else []
        return {row[0]: VersionRow(*row) for row in rows}

    def num_versions(self) -> int:
        row = self._one("SELECT count(*) FROM memorepair.version WHERE scope = %s")
        return 0 if row is None else int(row[0])

    def all_versions(self) -> Iterator[VersionRow]:
        for row in self._pages(f"{_SELECT_VERSION} AND version > %s ORDER BY version LIMIT %s", after=0):
            yield VersionRow(*row)

    def expiring(self) -> list[tuple[int, int]]:
        sql = "SELECT version, expires_at FROM memorepair.version WHERE scope = %s AND expires_at IS NOT NULL"
        return [(row[0], row[1]) for row in self._all(sql)]

    def parents(self, ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]:
        sql = "SELECT version, parents FROM memorepair.version WHERE scope = %s"
        if ids is None:
            rows = self._pages(f"{sql} AND version > %s ORDER BY version LIMIT %s", after=0)
        else:
            rows = iter(self._all(f"{sql} AND version = ANY(%s::bigint[]) ORDER BY version", list(map(int, ids))))
        yield from ((row[0], row[1]) for row in rows)

    def content(self, version: int) -> ContentRow | None:
        if version in self._contents:
            return self._contents[version]
        sql = "SELECT version, state, codec, body FROM memorepair.content WHERE scope = %s AND version = %s"
        row = self._one(sql, int(version))
        return None if row is None else ContentRow(*row)

    def changes(self, since: int) -> list[LedgerRow]:
        if since >= self._since or since >= self.epoch:
            return [row for row in self._recent if row.epoch > since]
        return [LedgerRow(*row) for row in self._all(_CHANGES, since)]

    _EVENT = (
        "SELECT event_id, kind, epoch, digest, roots, closure, num_withdrawn, reason, soft, undoes, restored, "
        "abandoned, recorded_at FROM memorepair.event WHERE scope = %s"
    )

    def event(self, event_id: str) -> EventRow | None:
        row = self._one(f"{self._EVENT} AND event_id = %s", event_id)
        return None if row is None else _event_row(row)

    def events(self, since: int = 0) -> list[EventRow]:
        if since >= self._event_epoch:
            return []
        return [_event_row(row) for row in self._all(f"{self._EVENT} AND epoch > %s ORDER BY epoch", since)]

    def late(self, since: int = 0) -> list[LateRow]:
        if since >= self._late_epoch:
            return []
        sql = (
            "SELECT event_epoch, version, epoch FROM memorepair.late WHERE scope = %s AND epoch > %s "
            "ORDER BY epoch, event_epoch, version"
        )
        return [LateRow(*row) for row in self._all(sql, since)]

    def fates(self, heads: Iterable[int]) -> dict[int, FateRow]:
        sql = (
            "SELECT version, key, fate, reason, attempt, epoch FROM memorepair.fate "
            "WHERE scope = %s AND version = ANY(%s::bigint[])"
        )
        rows = self._all(sql, list(map(int, heads)))
        return {row[0]: FateRow(row[0], row[1], row[2], row[3].decode(), row[4], row[5]) for row in rows}

    _ATTEMPT = (
        "SELECT attempt, state, token, event_id, plan_digest, plan_epoch, owner, heartbeat, reason "
        "FROM memorepair.attempt WHERE scope = %s"
    )

    def attempt(self, attempt: int) -> AttemptRow | None:
        row = self._one(f"{self._ATTEMPT} AND attempt = %s", attempt)
        return None if row is None else AttemptRow(*_with_reason(row))

    def attempts(self) -> list[AttemptRow]:
        return [AttemptRow(*_with_reason(row)) for row in self._all(f"{self._ATTEMPT} ORDER BY attempt")]

    def stages(self, attempt: int | None) -> list[StageRow]:
        sql = (
            'SELECT attempt, "row", codec, body, head, head_parents, state, reason FROM memorepair.stage '
            "WHERE scope = %s AND attempt = coalesce(%s::bigint, attempt) ORDER BY attempt, version"
        )
        with typed("read"):
            return [
                StageRow(attempt, msgspec.msgpack.decode(version, type=VersionRow), *_with_reason(columns))
                for attempt, version, *columns in self._all(sql, attempt)
            ]

    def uses(self, keys: Iterable[str]) -> dict[str, UseRow]:
        names = list(keys)
        sql = "SELECT key, reads, gaps FROM memorepair.use WHERE scope = %s AND key = ANY(%s::text[])"
        known = {row[0]: UseRow(*row) for row in self._all(sql, names)}
        return {name: known.get(name) or UseRow(name, 0, 0) for name in names}

    def head_costs(self, unit: str) -> tuple[int, int]:
        sql = (
            "SELECT sum(v.cost), count(*) FROM (SELECT * FROM memorepair.head WHERE scope = %s) AS h "
            f"JOIN {_ITS_VERSION} ON v.unit = %s AND v.cost IS NOT NULL"
        )
        row = self._one(sql, unit)
        return (0, 0) if row is None else (int(row[0] or 0), row[1])

    def similar(self, version: int) -> list[tuple[int, int]]:
        sql = "SELECT target, score FROM memorepair.similar WHERE scope = %s AND source = %s ORDER BY target"
        return [(row[0], row[1]) for row in self._all(sql, version)]


def _with_reason(columns: Sequence[Any]) -> list[Any]:
    """Columns whose last one is a reason, as text."""
    return [*columns[:-1], columns[-1].decode()]


def _event_row(row: tuple[Any, ...]) -> EventRow:
    with typed("read"):
        roots, restored = (msgspec.json.decode(row[at], type=list[Root]) for at in (4, 10))
    columns: list[Any] = [*row[:4], roots, *row[5:7], row[7].decode(), *row[8:10], restored, *row[11:]]
    return EventRow(*columns)


def _columns(rows: Iterable[msgspec.Struct]) -> list[list[Any]]:
    """Rows as one list a column, for `unnest`."""
    return [list(column) for column in zip(*map(astuple, rows), strict=True)]


_VERSION, _CONTENT = f"scope, {_VERSION_COLUMNS}", "scope, version, state, codec, body"
_SET_STATE = "UPDATE memorepair.scope SET next_version = %s, event_epoch = %s, late_epoch = %s WHERE id = %s"
_INSERT_VERSION = (
    f"INSERT INTO memorepair.version({_VERSION}) "
    "VALUES(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"
)
_INSERT_CONTENT = f"INSERT INTO memorepair.content({_CONTENT}) VALUES(%s,%s,%s,%s,%s)"
_UPSERT_HEADS = (  # one statement for one head or for a hundred thousand
    "INSERT INTO memorepair.head(scope, key, head, latest, floor) "
    "SELECT %s, * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) ON CONFLICT(scope, key) "
    "DO UPDATE SET head = excluded.head, latest = excluded.latest, floor = excluded.floor"
)
_INSERT_LEDGER = (
    "INSERT INTO memorepair.ledger(scope, epoch, kind, inserted, crowned, dethroned, reparented, expiring, event_id, "
    "recorded_at, mark) VALUES(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"
)
# What most writes are, a put or a derive, as one statement of the same parts.
_PUT_ONE = (
    f"WITH state AS ({_SET_STATE}), version AS ({_INSERT_VERSION}), content AS ({_INSERT_CONTENT}), "
    f"head AS ({_UPSERT_HEADS}) {_INSERT_LEDGER}"
)


class PostgresTransaction(PostgresSnapshot):
    """A snapshot behind the gate of its scope. `has_landed` looks for a commit whose answer was lost."""

    _MOST_CONTENTS = 1
    has_landed: Callable[[int, int, bytes], bool]

    def _begin(self, wait_ms: int) -> Cursor:
        self._db.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        self._run(
            "SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true)",
            *(str(max(wait_ms, 1)), str(int(IDLE_SECONDS * 1000))),
        )
        # The gate. A later statement sees what whoever held it before has committed; this one may not have.
        return self._run(
            f"UPDATE memorepair.scope SET epoch = epoch + 1 WHERE id = %s RETURNING epoch - 1, {_STATE}", self._scope
        )

    def commit(self, batch: Batch) -> None:
        mark = secrets.token_bytes(16)
        try:
            with typed("write"):
                self._write(batch, mark)
        except StoreUnreachableError:
            # The connection may have gone after the server heard COMMIT: only the ledger knows.
            if not self.has_landed(self._scope, self.epoch + 1, mark):
                raise

    def mark(self, epoch: int) -> bytes | None:
        """Return the mark of the transaction that made `epoch`."""
        row = self._one("SELECT mark FROM memorepair.ledger WHERE scope = %s AND epoch = %s", epoch)
        return None if row is None else bytes(row[0])

    def _write(self, batch: Batch, mark: bytes) -> None:
        assert batch.ledger is not None
        scope, epoch, run = self._scope, self.epoch + 1, self._db.execute
        event_epoch = epoch if batch.events else self._event_epoch
        late_epoch = epoch if batch.late else self._late_epoch
        state = (batch.next_version, event_epoch, late_epoch, scope)
        versions = [(scope, *astuple(row)) for row in batch.versions]
        contents = [(scope, *astuple(row)) for row in batch.contents]
        heads = [(scope, *columns)] if (columns := _columns(batch.heads.values())) else []
        ledger = (scope, *astuple(batch.ledger), mark)
        if len(versions) >= BULK_ROWS:
            self._copy(f"COPY memorepair.version({_VERSION}) FROM STDIN", versions)
            self._copy(f"COPY memorepair.content({_CONTENT}) FROM STDIN", contents)
            versions = contents = []
        with self._db.pipeline():
            if len(versions) == len(contents) == len(heads) == 1:
                run(_PUT_ONE, (*state, *versions[0], *contents[0], *heads[0], *ledger))
            else:
                run(_SET_STATE, state)
                self._many(_INSERT_VERSION, versions)
                self._many(_INSERT_CONTENT, contents)
                self._many(_UPSERT_HEADS, heads)
                run(_INSERT_LEDGER, ledger)
            self._write_graph(batch)
            self._write_repair(batch)
            run("COMMIT")

    def _copy(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._db.cursor() as cursor, cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(row)

    def _many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            self._db.execute(sql, row)

    def _write_graph(self, batch: Batch) -> None:
        scope, epoch = self._scope, self.epoch + 1
        self._many(
            "UPDATE memorepair.version SET parents = %s, num_required = %s WHERE scope = %s AND version = %s",
            ((parents, num_required, scope, version) for version, parents, num_required in batch.reparented),
        )
        for event in batch.events:
            columns = astuple(event)
            roots, restored = (msgspec.json.encode(items).decode() for items in (event.roots, event.restored))
            self._db.execute(
                "INSERT INTO memorepair.event(scope, event_id, kind, epoch, digest, roots, closure, num_withdrawn, "
                "reason, soft, undoes, restored, abandoned, recorded_at) "
                "VALUES(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s::bigint[],%s)",
                (
                    *(scope, *columns[:4], roots, *columns[5:7], event.reason.encode(), event.soft),
                    *(event.undoes, restored, event.abandoned, event.recorded_at),
                ),
            )
        self._many(
            "INSERT INTO memorepair.late(scope, event_epoch, version, epoch) VALUES(%s,%s,%s,%s) "
            "ON CONFLICT DO NOTHING",
            ((scope, *astuple(row)) for row in batch.late),
        )
        self._many(
            "UPDATE memorepair.event SET abandoned = abandoned || %s::bigint WHERE scope = %s AND event_id = %s",
            ((epoch, scope, event_id) for event_id in batch.abandoned),
        )
        self._many(
            "INSERT INTO memorepair.similar(scope, source, target, score) VALUES(%s,%s,%s,%s) "
            "ON CONFLICT(scope, source, target) DO UPDATE SET score = excluded.score",
            ((scope, *edge) for edge in batch.similar),
        )

    def _write_repair(self, batch: Batch) -> None:
        scope = self._scope
        self._many(
            "INSERT INTO memorepair.fate(scope, version, key, fate, reason, attempt, epoch) "
            "VALUES(%s,%s,%s,%s,%s,%s,%s) ON CONFLICT(scope, version) DO UPDATE SET fate = excluded.fate, "
            "reason = excluded.reason, attempt = excluded.attempt, epoch = excluded.epoch",
            (
                (scope, row.version, row.key, row.fate, row.reason.encode(), row.attempt, row.epoch)
                for row in batch.fates
            ),
        )
        self._many(
            "INSERT INTO memorepair.attempt(scope, attempt, state, token, event_id, plan_digest, plan_epoch, owner, "
            "heartbeat, reason) VALUES(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s) ON CONFLICT(scope, attempt) DO UPDATE "
            "SET state = excluded.state, token = excluded.token, owner = excluded.owner, "
            "heartbeat = excluded.heartbeat, reason = excluded.reason",
            ((scope, *astuple(row)[:-1], row.reason.encode()) for row in batch.attempts),
        )
        self._many(
            'INSERT INTO memorepair.stage(scope, attempt, version, "row", codec, body, head, head_parents, state, '
            "reason) VALUES(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s) "
            "ON CONFLICT(scope, attempt, version) DO UPDATE SET state = excluded.state, reason = excluded.reason",
            (
                (
                    scope,
                    stage.attempt,
                    stage.row.version,
                    msgspec.msgpack.encode(stage.row),
                    *(stage.codec, stage.body, stage.head, stage.head_parents, stage.state, stage.reason.encode()),
                )
                for stage in batch.stages
            ),
        )
        self._many(
            "DELETE FROM memorepair.stage WHERE scope = %s AND attempt = %s AND version = %s",
            ((scope, attempt, version) for attempt, version in batch.unstaged),
        )
        if batch.uses:
            self._db.execute(
                "INSERT INTO memorepair.use AS known(scope, key, reads, gaps) "
                "SELECT %s, * FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) ON CONFLICT(scope, key) "
                "DO UPDATE SET reads = known.reads + excluded.reads, gaps = known.gaps + excluded.gaps",
                (scope, *_columns(batch.uses)),
            )
