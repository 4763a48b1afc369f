"""The SQLite backend: one file, through apsw, which carries a current SQLite.

Contract: as in protocol.py; durable when `commit` returns (WAL, synchronous=FULL). Every other way of opening the file
stays outside this module: in one process only SQLite may open it, since a plain open and close drops its locks.
Invariants: no statement replaces a row; every setting is read back; after any error the connection is asked whether
a transaction is still open; a damaged, foreign or newer file is refused before anything is read from it.
Source: semantics.md section 6; FORMAT in `SCHEMA` below.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np

from memorepair.errors import (
    CapacityError,
    ClosedStoreError,
    DamagedStoreError,
    InvalidRequestError,
    NewerSchemaError,
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
)

APPLICATION_ID = 0x6D656D72  # "memr"
SCHEMA_VERSION = 1

# `id` packs (scope << 32) | version, so that one integer key keeps a scope's versions together and in order.
SCHEMA = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE scope(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL,
  next_version INTEGER NOT NULL) STRICT;
CREATE TABLE version(id INTEGER PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, digest BLOB NOT NULL,
  epoch INTEGER NOT NULL, origin TEXT NOT NULL, form TEXT, namespace TEXT NOT NULL, title TEXT, labels TEXT NOT NULL,
  operator TEXT, operator_version TEXT, cost INTEGER, unit TEXT, weight INTEGER NOT NULL, expires_at INTEGER,
  completeness TEXT NOT NULL, parents BLOB NOT NULL, num_required INTEGER NOT NULL, previous INTEGER NOT NULL,
  facts TEXT) STRICT;
CREATE INDEX version_expiring ON version(id, expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE content(id INTEGER PRIMARY KEY, state TEXT NOT NULL, codec TEXT NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE head(scope INTEGER NOT NULL, key TEXT NOT NULL, head INTEGER NOT NULL, latest INTEGER NOT NULL,
  PRIMARY KEY(scope, key)) STRICT, WITHOUT ROWID;
CREATE TABLE event(scope INTEGER NOT NULL, event_id TEXT NOT NULL, kind TEXT NOT NULL, epoch INTEGER NOT NULL,
  digest BLOB NOT NULL, roots TEXT NOT NULL, closure BLOB NOT NULL, num_withdrawn INTEGER NOT NULL, reason TEXT NOT NULL,
  soft INTEGER NOT NULL, undoes TEXT, restored TEXT NOT NULL, abandoned INTEGER NOT NULL, recorded_at INTEGER NOT NULL,
  PRIMARY KEY(scope, event_id)) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_by_epoch ON event(scope, epoch);
CREATE TABLE late(scope INTEGER NOT NULL, event_epoch INTEGER NOT NULL, version INTEGER NOT NULL, epoch INTEGER NOT NULL,
  PRIMARY KEY(scope, epoch, event_epoch, version)) STRICT, WITHOUT ROWID;
CREATE TABLE similar(scope INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL, score INTEGER NOT NULL,
  PRIMARY KEY(scope, source, target)) STRICT, WITHOUT ROWID;
CREATE TABLE ledger(scope INTEGER NOT NULL, epoch INTEGER NOT NULL, kind TEXT NOT NULL, inserted BLOB NOT NULL,
  crowned BLOB NOT NULL, dethroned BLOB NOT NULL, reparented BLOB NOT NULL, expiring BLOB NOT NULL, event_id TEXT,
  recorded_at INTEGER NOT NULL, PRIMARY KEY(scope, epoch)) STRICT, WITHOUT ROWID;
CREATE TABLE fate(scope INTEGER NOT NULL, version INTEGER NOT NULL, key TEXT NOT NULL, fate TEXT NOT NULL,
  reason TEXT NOT NULL, attempt INTEGER NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY(scope, version)) STRICT, WITHOUT ROWID;
CREATE TABLE attempt(scope INTEGER NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL, token INTEGER NOT NULL,
  event_id TEXT, plan_digest TEXT NOT NULL, plan_epoch INTEGER NOT NULL, owner TEXT NOT NULL, heartbeat INTEGER NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY(scope, attempt)) STRICT, WITHOUT ROWID;
CREATE TABLE stage(scope INTEGER NOT NULL, attempt INTEGER NOT NULL, version INTEGER NOT NULL, row BLOB NOT NULL,
  codec TEXT NOT NULL, body BLOB NOT NULL, head INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY(scope, attempt, version)) STRICT;
CREATE TABLE use(scope INTEGER NOT NULL, key TEXT NOT NULL, reads INTEGER NOT NULL, gaps INTEGER NOT NULL,
  PRIMARY KEY(scope, key)) STRICT, WITHOUT ROWID;
"""

_VERSION_COLUMNS = (
    "key, kind, digest, epoch, origin, form, namespace, title, labels, operator, operator_version, cost, unit, weight, "
    "expires_at, completeness, parents, num_required, previous, facts"
)
_SELECT_VERSION = f"SELECT id & 4294967295, {_VERSION_COLUMNS} FROM version"
_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "glusterfs"})


@contextmanager
def _typed(what: str) -> Iterator[None]:
    """Turn apsw's errors into ours; nothing was changed unless the error says so."""
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusyError(
            f"{what}: another process holds the store; nothing was changed, try again ({error})"
        ) from error
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError) as error:
        raise DamagedStoreError(
            f"{what}: the file is damaged or is no database ({error}); keep it, run 'memorepair fsck', restore a backup"
        ) from error
    except apsw.FullError as error:
        raise StoreFullError(f"{what}: the disk or the store is full; nothing was changed ({error})") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise StoreReadOnlyError(f"{what}: the store cannot be written; nothing was changed ({error})") from error
    except apsw.CantOpenError as error:
        raise StoreReadOnlyError(f"{what}: cannot open the file; check the path and its rights ({error})") from error
    except (apsw.ConnectionClosedError, apsw.CursorClosedError) as error:
        raise ClosedStoreError(f"{what}: the store was closed; open it again") from error
    except apsw.Error as error:
        raise StoreError(f"{what}: {error}") from error


class SqliteSnapshot:
    """One scope inside one read transaction."""

    def __init__(self, connection: apsw.Connection, scope: int) -> None:
        self._db, self._scope, self._base = connection, scope, scope << 32
        row = connection.execute("SELECT epoch, next_version FROM scope WHERE id = ?", (scope,)).fetchone()
        if row is None:
            raise DamagedStoreError(f"scope {scope}: its row is gone; run 'memorepair fsck' and restore a backup")
        self.epoch: int = row[0]
        self.next_version: int = row[1]

    def _all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with _typed("read"):
            return list(self._db.execute(sql, (self._scope, *values)))

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        with _typed("read"):
            row: tuple[Any, ...] | None = self._db.execute(sql, values).fetchone()
            return row

    def head(self, key: str) -> Head | None:
        row = self._one("SELECT key, head, latest FROM head WHERE scope = ? AND key = ?", self._scope, key)
        return None if row is None else Head(*row)

    def heads(self, prefix: str = "") -> Iterator[tuple[Head, VersionRow]]:
        # A prefix is a range of keys: no pattern language, so no character of a key is special.
        with _typed("read"):
            rows = self._db.execute(
                f"SELECT h.head, h.latest, v.id & 4294967295, {_VERSION_COLUMNS.replace('key,', 'v.key,', 1)} "
                "FROM head AS h JOIN version AS v ON v.id = (h.scope << 32) + h.head "
                "WHERE h.scope = ? AND h.key >= ? ORDER BY h.key",
                (self._scope, prefix),
            )
            for head, latest, *columns in rows:
                row = VersionRow(columns[0], *columns[1:])
                if not row.key.startswith(prefix):
                    return
                yield Head(row.key, head, latest), row

    def head_versions(self) -> Ids:
        rows = self._all("SELECT head FROM head WHERE scope = ?")
        return np.sort(np.fromiter((row[0] for row in rows), dtype=np.uint32, count=len(rows)))

    def version(self, version: int) -> VersionRow | None:
        row = self._one(f"{_SELECT_VERSION} WHERE id = ?", self._base + version)
        return None if row is None else VersionRow(*row)

    def versions(self, ids: Iterable[int]) -> dict[int, VersionRow]:
        rows = ((version, self.version(version)) for version in ids)
        return {version: row for version, row in rows if row is not None}

    def all_versions(self) -> Iterator[VersionRow]:
        with _typed("read"):
            rows = self._db.execute(
                f"{_SELECT_VERSION} WHERE id BETWEEN ? AND ? ORDER BY id", (self._base, self._base + 2**32 - 1)
            )
            for row in rows:
                yield VersionRow(*row)

    def expiring(self) -> list[tuple[int, int]]:
        with _typed("read"):
            return list(
                self._db.execute(
                    "SELECT id & 4294967295, expires_at FROM version WHERE expires_at IS NOT NULL AND id BETWEEN ? AND ?",
                    (self._base, self._base + 2**32 - 1),
                )
            )

    def parents(self, ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]:
        with _typed("read"):
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
        "SELECT event_id, kind, epoch, digest, roots, closure, num_withdrawn, reason, soft, undoes, restored, abandoned, "
        "recorded_at FROM event WHERE scope = ?"
    )

    def event(self, event_id: str) -> EventRow | None:
        rows = self._all(f"{self._EVENT} AND event_id = ?", event_id)
        return _event_row(rows[0]) if rows else None

    def events(self, since: int = 0) -> list[EventRow]:
        return [_event_row(row) for row in self._all(f"{self._EVENT} AND epoch > ? ORDER BY epoch", since)]

    def late(self, since: int = 0) -> list[LateRow]:
        sql = "SELECT event_epoch, version, epoch FROM late WHERE scope = ? AND epoch > ? ORDER BY epoch, event_epoch, version"
        return [LateRow(*row) for row in self._all(sql, since)]

    def fates(self) -> dict[int, FateRow]:
        rows = self._all("SELECT version, key, fate, reason, attempt, epoch FROM fate WHERE scope = ?")
        return {row[0]: FateRow(*row) for row in rows}

    def attempts(self) -> list[AttemptRow]:
        sql = (
            "SELECT attempt, state, token, event_id, plan_digest, plan_epoch, owner, heartbeat, reason "
            "FROM attempt WHERE scope = ? ORDER BY attempt"
        )
        return [AttemptRow(*row) for row in self._all(sql)]

    def stages(self, attempt: int) -> list[StageRow]:
        sql = "SELECT attempt, row, codec, body, head, state, reason FROM stage WHERE scope = ? AND attempt = ? ORDER BY version"
        return [
            StageRow(row[0], msgspec.msgpack.decode(row[1], type=VersionRow), *row[2:])
            for row in self._all(sql, attempt)
        ]

    def use(self, key: str) -> UseRow:
        row = self._one("SELECT key, reads, gaps FROM use WHERE scope = ? AND key = ?", self._scope, key)
        return UseRow(key, 0, 0) if row is None else UseRow(*row)

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
    columns: list[Any] = [*row[:4], roots, *row[5:8], bool(row[8]), row[9], restored, *row[11:]]
    return EventRow(*columns)


class SqliteTransaction(SqliteSnapshot):
    """A snapshot inside BEGIN IMMEDIATE: the gate of every scope in the file."""

    def commit(self, batch: Batch) -> None:
        with _typed("write"):
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
            "INSERT INTO head(scope, key, head, latest) VALUES(?,?,?,?) "
            "ON CONFLICT(scope, key) DO UPDATE SET head = excluded.head, latest = excluded.latest",
            ((scope, head.key, head.head, head.latest) for head in batch.heads.values()),
        )
        many(
            "UPDATE version SET parents = ?, num_required = ? WHERE id = ?",
            ((parents, num_required, base + version) for version, parents, num_required in batch.reparented),
        )
        for event in batch.events:
            columns = msgspec.structs.astuple(event)
            roots, restored = (msgspec.json.encode(rows).decode() for rows in (event.roots, event.restored))
            self._db.execute(
                "INSERT INTO event(scope, event_id, kind, epoch, digest, roots, closure, num_withdrawn, reason, soft, undoes, "
                "restored, abandoned, recorded_at) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (scope, *columns[:4], roots, *columns[5:8], int(event.soft), event.undoes, restored, *columns[11:]),
            )
        many(
            "INSERT INTO late(scope, event_epoch, version, epoch) VALUES(?,?,?,?) ON CONFLICT DO NOTHING",
            ((scope, row.event_epoch, row.version, row.epoch) for row in batch.late),
        )
        many(
            "UPDATE event SET abandoned = ? WHERE scope = ? AND event_id = ?",
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
            "INSERT INTO ledger(scope, epoch, kind, inserted, crowned, dethroned, reparented, expiring, event_id, recorded_at) "
            "VALUES(?,?,?,?,?,?,?,?,?,?)",
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
            "INSERT INTO attempt(scope, attempt, state, token, event_id, plan_digest, plan_epoch, owner, heartbeat, reason) "
            "VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(scope, attempt) DO UPDATE SET state = excluded.state, "
            "token = excluded.token, owner = excluded.owner, heartbeat = excluded.heartbeat, reason = excluded.reason",
            ((scope, *msgspec.structs.astuple(row)) for row in batch.attempts),
        )
        many(
            "INSERT INTO stage(scope, attempt, version, row, codec, body, head, state, reason) VALUES(?,?,?,?,?,?,?,?,?) "
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


class SqliteBackend:
    """Rows in one SQLite file, or in memory shared by the connections of this object."""

    def __init__(self, path: str | os.PathLike[str], *, timeout_seconds: float = 5.0, vfs: str | None = None) -> None:
        self.path = os.fspath(path)
        self._timeout_ms = int(timeout_seconds * 1000)
        self._vfs = vfs
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._gate = threading.RLock()
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self.is_closed = False
        self._in_memory = self.path == ":memory:"
        self._target = f"file:/memorepair-{uuid.uuid4().hex}?vfs=memdb" if self._in_memory else self.path
        if not self._in_memory:
            _refuse_network(self.path)
        with _typed(f"open {self.path}"):
            self._writer = self._connect()
            self._initialise()
            meta = dict(self._writer.execute("SELECT name, value FROM meta"))
        try:
            self.uuid, self.incarnation = meta["uuid"], int(meta["incarnation"])
        except (KeyError, ValueError):
            raise DamagedStoreError(f"open {self.path}: its identity is gone; restore a backup") from None

    # -- opening ---------------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI * self._in_memory
        connection = apsw.Connection(self._target, flags=flags, vfs=self._vfs)
        connection.set_busy_timeout(self._timeout_ms)
        self._check_identity(connection)
        mode = "memory" if self._in_memory else "wal"
        settings = {"journal_mode": mode, "synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "mmap_size": 0}
        for name, wanted in settings.items():
            if self._in_memory and name in ("journal_mode", "mmap_size"):
                continue
            connection.pragma(name, wanted)
            got = connection.pragma(name)
            if got is not None and got != wanted:
                raise StoreError(f"open {self.path}: {name}: expected {wanted}, got {got}; is the file system sound?")
        with self._lock:
            self._connections.append(connection)
        return connection

    def _check_identity(self, connection: apsw.Connection) -> None:
        application = connection.pragma("application_id")
        version = connection.pragma("user_version")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        if application == APPLICATION_ID:
            if version > SCHEMA_VERSION:
                raise NewerSchemaError(
                    f"open {self.path}: schema {version}; this release reads up to {SCHEMA_VERSION}, upgrade memorepair"
                )
        elif tables or application:
            raise DamagedStoreError(
                f"open {self.path}: a database of another program; expected a memorepair store, pick another path"
            )

    def _initialise(self) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            if self._writer.pragma("application_id") != APPLICATION_ID:
                self._writer.execute(SCHEMA)
                self._writer.execute(
                    "INSERT INTO meta(name, value) VALUES('uuid', ?), ('incarnation', '1')", (uuid.uuid4().hex,)
                )
                self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._writer.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._writer.execute("COMMIT")
        except BaseException:
            self._roll_back(self._writer)
            raise

    # -- the protocol ----------------------------------------------------------------------------------------------

    def scope_id(self, name: str) -> int:
        def find(connection: apsw.Connection) -> int | None:
            row = connection.execute("SELECT id FROM scope WHERE name = ?", (name,)).fetchone()
            return None if row is None else int(row[0])

        with _typed("scope"):
            found = find(self._reader())
            if found is not None:
                return found
            with self._gate, self._immediate():
                self._writer.execute(
                    "INSERT INTO scope(name, epoch, next_version) VALUES(?, 0, 1) ON CONFLICT(name) DO NOTHING", (name,)
                )
                self._writer.execute("COMMIT")
            found = find(self._writer)
            assert found is not None
            if found >= 2**31:
                raise CapacityError(f"scope {name!r}: expected fewer than 2**31 scopes in one file; open another file")
            return found

    def scopes(self) -> list[str]:
        with _typed("scopes"):
            return [row[0] for row in self._reader().execute("SELECT name FROM scope ORDER BY name")]

    @contextmanager
    def snapshot(self, scope: int) -> Iterator[SqliteSnapshot]:
        connection = self._reader()
        with _typed("read"):
            connection.execute("BEGIN")
        try:
            with _typed("read"):
                snapshot = SqliteSnapshot(connection, scope)
            yield snapshot
        finally:
            self._roll_back(connection)

    @contextmanager
    def transaction(self, scope: int) -> Iterator[SqliteTransaction]:
        self._check_open()
        with self._gate, self._immediate():
            with _typed("write"):
                transaction = SqliteTransaction(self._writer, scope)
            yield transaction

    def integrity(self) -> list[str]:
        with _typed("fsck"):
            rows = [row[0] for row in self._reader().execute("PRAGMA integrity_check")]
        return [] if rows == ["ok"] else rows

    def close(self) -> None:
        with self._lock:
            self.is_closed = True
            connections, self._connections = self._connections, []
        if os.getpid() == self._pid:
            for connection in reversed(connections):
                with suppress(apsw.Error):
                    connection.close()

    # -- plumbing --------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.is_closed:
            raise ClosedStoreError(f"{self.path}: the store was closed; open it again")
        if os.getpid() != self._pid:
            raise ClosedStoreError(f"{self.path}: opened before a fork; open the store again in this process")

    def _reader(self) -> apsw.Connection:
        self._check_open()
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            with _typed(f"open {self.path}"):
                connection = self._local.connection = self._connect()
        return connection

    @contextmanager
    def _immediate(self) -> Iterator[None]:
        with _typed("write"):
            self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._roll_back(self._writer)

    @staticmethod
    def _roll_back(connection: apsw.Connection) -> None:
        # Some errors (a full disk, for one) have already rolled back: ask, never assume.
        with suppress(apsw.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _refuse_network(path: str, mounts: str = "/proc/self/mounts") -> None:
    """Refuse a file on a network file system, where SQLite's locks cannot be trusted."""
    try:
        lines = Path(mounts).read_text(errors="replace").splitlines()
    except OSError:
        return  # no such list on this system: nothing to go by
    real = os.path.realpath(path)
    best = ("", "")
    for line in lines:
        fields = line.split(" ")
        if len(fields) >= 3:
            mount = fields[1].replace("\\040", " ")
            if (real + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best[0]):
                best = (mount, fields[2])
    if best[1] in _NETWORK_FILE_SYSTEMS:
        raise InvalidRequestError(
            f"open {path}: {best[1]} at {best[0]} is a network file system; put the store on a local disk"
        )
