"""The PostgreSQL backend: one database, through psycopg; every store of a server may have its own.

Contract: as in protocol.py; durable when `commit` returns, as far as the server's synchronous_commit goes ("off" is
refused). Scopes never wait for each other. A lost connection is a typed error, and the next call has a new one; a
commit whose answer was lost is looked up in the ledger, behind the gate.
How: a reader or writer takes a connection that no one uses, or makes one. The ROLLBACK that ends a read is sent and
not waited for: whoever takes the connection next reads its answer. Nothing outlives a transaction in a session (no
session lock, no setting, no statement prepared through a pooler), so a pooler may stand between.
Invariants: no password leaves this module, neither in a message nor in a repr; a server that has gone back to an
earlier state than what was read from it is refused.
Source: docs/SEMANTICS.md section 6; the format is postgres.sql.
"""

from __future__ import annotations

import os
import select
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus

from memorepair.errors import (
    ClosedStoreError,
    DamagedStoreError,
    InvalidRequestError,
    MissingStoreError,
    NewerSchemaError,
    StoreBusyError,
    StoreError,
    StoreUnreachableError,
    UnknownOutcomeError,
)
from memorepair.location import checked_url, shown_location
from memorepair.postgres_rows import (
    NOTHING_RECENT,
    Connection,
    PostgresSnapshot,
    PostgresTransaction,
    typed,
)
from memorepair.protocol import lost_scope

SCHEMA_VERSION = 1
CREATION_LOCK = 0x6D656D72  # "memr"; held until the end of the transaction that makes the tables
MAX_IDLE = 8
# A peer that is gone is noticed within a minute or two; what the URL says goes before.
CONNECTION_DEFAULTS = {
    "fallback_application_name": "memorepair",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}

Answer = TypeVar("Answer")
Session = TypeVar("Session", bound=PostgresSnapshot)


class PostgresBackend:
    """
    Rows in schema `memorepair` of one PostgreSQL database (15 or newer).

    `url`: postgresql://user:password@host:port/database?options, as libpq reads it (PGPASSWORD and ~/.pgpass too).
    `create` makes the tables when there are none.
    """

    def __init__(self, url: str, *, timeout_seconds: float = 5.0, create: bool = True) -> None:
        try:
            parts = conninfo_to_dict(checked_url(url))
        except psycopg.Error:
            raise InvalidRequestError("open: libpq cannot read the URL; see its manual, 'Connection URIs'") from None
        patience = max(2, int(timeout_seconds))
        self._parts: dict[str, Any] = {**CONNECTION_DEFAULTS, "connect_timeout": patience, **parts}
        self.location = shown_location(url)
        self.is_closed = False
        self._timeout_seconds = timeout_seconds
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._gates: dict[int, threading.Lock] = {}
        self._seen: dict[int, int] = {}  # scope -> the newest epoch that was read here
        self._identity: dict[str, str] = {}
        with typed(f"open {self.location}"):
            connection = self._connect()
            try:
                self._identity = self._initialise(connection, create)
                self.uuid, self.incarnation = self._identity["uuid"], int(self._identity["incarnation"])
            except (KeyError, ValueError):
                connection.close()
                raise DamagedStoreError(f"open {self.location}: its identity is gone; restore a backup") from None
            except BaseException:
                connection.close()
                raise
        self._idle.append(connection)

    def __repr__(self) -> str:
        return f"<memorepair.PostgresBackend {self.location}>"

    # -- opening ---------------------------------------------------------------------------------------------------

    def _connect(self) -> Connection:
        with typed(f"open {self.location}"):
            connection: Connection = psycopg.connect(**self._parts | {"client_encoding": "utf8"}, autocommit=True)
        try:
            with typed(f"open {self.location}"):
                self._check_server(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_server(self, connection: Connection) -> None:
        """Refuse a server on which the promises would not hold."""
        seen = dict(self._seen)  # taken first: what is committed later may only be newer
        row = connection.execute(
            "SELECT current_setting('server_encoding'), current_setting('synchronous_commit'), pg_backend_pid()"
        ).fetchone()
        assert row is not None
        for name, got, is_fine in (
            ("server_encoding", row[0], row[0] == "UTF8"),
            ("synchronous_commit", row[1], row[1] != "off"),
        ):
            if not is_fine:
                raise StoreError(f"open {self.location}: {name} is {got}; expected UTF8 text and durable commits")
        if row[2] != connection.info.backend_pid:
            connection.prepare_threshold = None  # a pooler: the next statement may meet another session
        if self._identity:
            rows = connection.execute(
                "SELECT id, epoch FROM memorepair.scope WHERE id = ANY(%s)", ([*seen],)
            ).fetchall()
            epochs: dict[int, int] = dict(rows)
            is_behind = any(epochs.get(scope, -1) < epoch for scope, epoch in seen.items())
            if is_behind or _read_identity(connection) != self._identity:
                raise StoreError(
                    f"{self.location}: the server is behind what was read from it (a fail-over, a restore, a replica); "
                    "nothing was changed, close the store and open it again"
                )

    def _initialise(self, connection: Connection, create: bool) -> dict[str, str]:
        found = _read_identity(connection)
        if not found:
            if not create:
                raise MissingStoreError(
                    f"open {self.location}: there is no store in the database; make it, or check the URL"
                )
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (CREATION_LOCK,))
                found = _read_identity(connection) or self._create(connection)
        schema = found.get("schema", "")
        if not schema.isdigit() or int(schema) < SCHEMA_VERSION:
            raise DamagedStoreError(f"open {self.location}: schema {schema!r} was never released; restore a backup")
        if int(schema) > SCHEMA_VERSION:
            raise NewerSchemaError(
                f"open {self.location}: schema {schema}; this release reads up to {SCHEMA_VERSION}, upgrade memorepair"
            )
        return found

    def _create(self, connection: Connection) -> dict[str, str]:
        # An administrator may have made the empty schema for a role that may not make one.
        if not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'memorepair'").fetchall():
            connection.execute("CREATE SCHEMA memorepair")
        connection.execute(resources.files("memorepair").joinpath("postgres.sql").read_bytes())
        identity = {"schema": str(SCHEMA_VERSION), "uuid": uuid.uuid4().hex, "incarnation": "1"}
        for row in identity.items():
            connection.execute("INSERT INTO memorepair.meta(name, value) VALUES(%s, %s)", row)
        return identity

    # -- the protocol ----------------------------------------------------------------------------------------------

    def scope_id(self, name: str) -> int:
        def find(connection: Connection) -> int:
            for _ in range(2):
                row = connection.execute("SELECT id FROM memorepair.scope WHERE name = %s", (name,)).fetchone()
                if row is not None:
                    return int(row[0])
                connection.execute(
                    "INSERT INTO memorepair.scope(name, epoch, next_version, event_epoch, late_epoch) "
                    "VALUES(%s, 0, 1, 0, 0) ON CONFLICT(name) DO NOTHING",
                    (name,),
                )
            raise DamagedStoreError(f"scope {name!r}: its row cannot be made; restore a backup")

        return self._ask("scope", find)

    def scopes(self) -> list[str]:
        sql = "SELECT name FROM memorepair.scope ORDER BY name"
        return self._ask("scopes", lambda connection: [row[0] for row in connection.execute(sql)])

    def epoch(self, scope: int) -> int:
        sql = "SELECT epoch FROM memorepair.scope WHERE id = %s"
        row = self._ask("read", lambda connection: connection.execute(sql, (scope,)).fetchone())
        if row is None:
            raise lost_scope(scope)
        return int(row[0])

    @contextmanager
    def snapshot(self, scope: int, keys: Sequence[str] = ()) -> Iterator[PostgresSnapshot]:
        with self._session(PostgresSnapshot, scope, keys) as snapshot:
            yield snapshot

    @contextmanager
    def transaction(self, scope: int, keys: Sequence[str] = ()) -> Iterator[PostgresTransaction]:
        self.check_open()
        with self._lock:
            gate = self._gates.setdefault(scope, threading.Lock())
        # Threads of this process queue here, so that one connection a scope waits at the server.
        if not gate.acquire(timeout=self._timeout_seconds):
            raise StoreBusyError("write: another thread holds the scope; nothing was changed, try again")
        try:
            with self._session(PostgresTransaction, scope, keys) as transaction:
                transaction.has_landed = self._has_landed
                yield transaction
        finally:
            gate.release()

    def integrity(self) -> list[str]:
        sql = (
            "SELECT name FROM memorepair.scope AS s WHERE "
            "event_epoch <> coalesce((SELECT max(epoch) FROM memorepair.event AS e WHERE e.scope = s.id), 0) OR "
            "late_epoch <> coalesce((SELECT max(epoch) FROM memorepair.late AS l WHERE l.scope = s.id), 0)"
        )
        rows = self._ask("fsck", lambda connection: connection.execute(sql).fetchall())
        return [f"scope {name!r}: its row does not name its last event or late derivation" for (name,) in rows]

    def close(self) -> None:
        """Close every connection; one that is in use closes when its call ends."""
        if os.getpid() != self._pid:
            self.is_closed = True  # the connections are the parent's
            return
        with self._lock:
            self.is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # -- plumbing --------------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise ClosedStoreError when closed, or when this process only inherited the store by fork."""
        if self.is_closed:
            raise ClosedStoreError(f"{self.location}: the store was closed; open it again")
        if os.getpid() != self._pid:
            raise ClosedStoreError(f"{self.location}: opened before a fork; open the store again in this process")

    @contextmanager
    def _session(self, kind: type[Session], scope: int, keys: Sequence[str] = ()) -> Iterator[Session]:
        since, wait_ms = self._seen.get(scope, NOTHING_RECENT), int(self._timeout_seconds * 1000)
        connection, session = self._start("begin", lambda connection: kind(connection, scope, since, wait_ms, keys))
        self._seen[scope] = session.epoch
        try:
            yield session
        finally:
            session.is_over = True
            self._give_back(connection)

    def _ask(self, what: str, work: Callable[[Connection], Answer]) -> Answer:
        connection, answer = self._start(what, work)
        self._give_back(connection)
        return answer

    def _start(self, what: str, work: Callable[[Connection], Answer]) -> tuple[Connection, Answer]:
        """
        Return a connection and what `work` made of it.

        An idle connection may have died since: then nothing was begun, and another one is taken.
        """
        while True:
            self.check_open()
            idle = self._take_idle()
            connection = idle or self._connect()
            try:
                with typed(what):
                    return connection, work(connection)
            except StoreUnreachableError:
                connection.close()
                if idle is None:
                    raise
            except BaseException:
                self._give_back(connection)
                raise

    def _take_idle(self) -> Connection | None:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or self._has_settled(connection):
                return connection
            connection.close()

    def _has_settled(self, connection: Connection) -> bool:
        """Read the answer to the ROLLBACK that ended the connection's last read."""
        raw = connection.pgconn
        try:
            while raw.is_busy():
                if not select.select([raw.socket], [], [], max(self._timeout_seconds, 1.0))[0]:
                    return False
                raw.consume_input()
            while (result := raw.get_result()) is not None:
                if result.status != ExecStatus.COMMAND_OK:
                    return False
        except psycopg.Error:
            return False
        return connection.info.transaction_status == TransactionStatus.IDLE

    def _give_back(self, connection: Connection) -> None:
        """End what is open in a connection and keep it for the next caller."""
        raw, status = connection.pgconn, connection.info.transaction_status
        with suppress(psycopg.Error):
            if raw.pipeline_status == PipelineStatus.OFF and status != TransactionStatus.ACTIVE:
                if status != TransactionStatus.IDLE:
                    raw.send_query(b"ROLLBACK")
                    raw.flush()
                with self._lock:
                    if not self.is_closed and len(self._idle) < MAX_IDLE:
                        self._idle.append(connection)
                        return
        connection.close()

    def _has_landed(self, scope: int, epoch: int, mark: bytes) -> bool:
        """Whether a commit whose answer was lost stands; asked behind the gate, so that its session has ended."""
        try:
            with self._session(PostgresTransaction, scope) as transaction:
                return transaction.mark(epoch) == mark
        except StoreError as error:
            raise UnknownOutcomeError(
                f"commit: {error}; ask again with the same event id to learn what happened"
            ) from error


def _read_identity(connection: Connection) -> dict[str, str]:
    """What `meta` says; empty when there is no such table."""
    # Not to_regclass: it answers from a cache that another session's CREATE TABLE may not have reached yet.
    sql = "SELECT FROM pg_tables WHERE schemaname = 'memorepair' AND tablename = 'meta'"
    if not connection.execute(sql).fetchall():
        return {}
    rows: list[tuple[Any, ...]] = connection.execute("SELECT name, value FROM memorepair.meta").fetchall()
    return dict(rows)
