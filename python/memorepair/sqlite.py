"""The SQLite backend: one file, through apsw, which carries a current SQLite.

Contract: as in protocol.py; durable when `commit` returns (WAL, synchronous=FULL). Every other way of opening the file
stays outside this module: in one process only SQLite may open it, since a plain open and close drops its locks.
Every page carries a checksum (SQLite's own cksumvfs, which apsw's wheels bring): a flipped bit is an error, not an
answer.
Invariants: no statement replaces a row; every setting is read back; after any error the connection is asked whether
a transaction is still open; a damaged, foreign or newer file is refused before anything is read from it.
Source: docs/SEMANTICS.md section 6; the format is schema.sql.
"""

from __future__ import annotations

import ctypes
import os
import threading
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path

import apsw
import apsw.sqlite_extra

from memorepair.errors import (
    CapacityError,
    ClosedStoreError,
    DamagedStoreError,
    InvalidRequestError,
    MissingStoreError,
    NewerSchemaError,
    StoreBusyError,
    StoreError,
)
from memorepair.protocol import lost_scope
from memorepair.sqlite_rows import SqliteSnapshot, SqliteTransaction, typed

APPLICATION_ID = 0x6D656D72  # "memr"
SCHEMA_VERSION = 1

_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "glusterfs"})


_CHECKSUM_VFS = "cksmvfs"
_CHECKSUM_BYTES = 8
_loading = threading.Lock()


def checksum_vfs() -> str:
    """Return the name of the VFS that checks every page, loading it once. The process's default VFS stays as it was."""
    with _loading:
        if _CHECKSUM_VFS not in apsw.vfs_names():
            default = apsw.vfs_names()[0]
            try:
                loader = apsw.Connection("")
                apsw.sqlite_extra.load(loader, "cksumvfs")
                loader.close()
            except (ImportError, AttributeError, apsw.sqlite_extra.NotAvailable) as error:
                raise StoreError(
                    f"open: this build of apsw has no cksumvfs ({error}); run: pip install --force-reinstall apsw"
                ) from error
            apsw.set_default_vfs(default)
    return _CHECKSUM_VFS


class SqliteBackend:
    """
    Rows in one SQLite file, or in memory shared by the connections of this object.

    `create` makes a missing or empty file a store. `vfs` is for fault injection: a VFS that stands on `checksum_vfs()`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, timeout_seconds: float = 5.0, create: bool = True, vfs: str | None = None
    ) -> None:
        self.path = os.fspath(path)
        self._timeout_ms = int(timeout_seconds * 1000)
        self._vfs = vfs
        self._create = create
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._gate = threading.Lock()
        self._local = threading.local()
        self._connections: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()  # a thread's own ends with it
        self.is_closed = False
        self._in_memory = self.path == ":memory:"
        self._target = f"file:/memorepair-{uuid.uuid4().hex}?vfs=memdb" if self._in_memory else self.path
        if not self._in_memory:
            _refuse_network(self.path)
        with typed(f"open {self.path}"):
            self._writer = self._connect()
            self._initialise()
            meta = dict(self._writer.execute("SELECT name, value FROM meta"))
        try:
            self.uuid, self.incarnation = meta["uuid"], int(meta["incarnation"])
        except (KeyError, ValueError):
            raise DamagedStoreError(f"open {self.path}: its identity is gone; restore a backup") from None

    # -- opening ---------------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        flags = (
            apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE * self._create | apsw.SQLITE_OPEN_URI * self._in_memory
        )
        vfs = None if self._in_memory else self._vfs or checksum_vfs()
        connection = apsw.Connection(self._target, flags=flags, vfs=vfs)
        connection.set_busy_timeout(self._timeout_ms)
        if not self._in_memory:
            reserved = ctypes.c_int(_CHECKSUM_BYTES)  # room for a checksum on every page of a new file
            connection.file_control("main", apsw.SQLITE_FCNTL_RESERVE_BYTES, ctypes.addressof(reserved))
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
            self._connections.add(connection)
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
            if version < SCHEMA_VERSION:
                raise DamagedStoreError(f"open {self.path}: schema {version} was never released; restore a backup")
        elif not self._create and not tables and not application:
            raise MissingStoreError(
                f"open {self.path}: the file is empty, there is no store in it; make it, or check the path"
            )
        elif tables or application:
            raise DamagedStoreError(
                f"open {self.path}: a database of another program; expected a memorepair store, pick another path"
            )

    def _initialise(self) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            if self._writer.pragma("application_id") != APPLICATION_ID:
                self._writer.execute(resources.files("memorepair").joinpath("schema.sql").read_text())
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

        with typed("scope"):
            found = find(self._reader())
            if found is not None:
                return found
            with self._immediate():
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
        with typed("scopes"):
            return [row[0] for row in self._reader().execute("SELECT name FROM scope ORDER BY name")]

    def epoch(self, scope: int) -> int:
        connection = self._reader()
        with typed("read"):
            row = connection.execute("SELECT epoch FROM scope WHERE id = ?", (scope,)).fetchone()
        if row is None:
            raise lost_scope(scope)
        return int(row[0])

    @contextmanager
    def snapshot(self, scope: int, keys: Sequence[str] = ()) -> Iterator[SqliteSnapshot]:
        connection = self._reader()
        with typed("read"):
            connection.execute("BEGIN")
        try:
            with typed("read"):
                snapshot = SqliteSnapshot(connection, scope)
            yield snapshot
        finally:
            self._roll_back(connection)

    @contextmanager
    def transaction(self, scope: int, keys: Sequence[str] = ()) -> Iterator[SqliteTransaction]:
        self.check_open()
        with self._immediate():
            with typed("write"):
                transaction = SqliteTransaction(self._writer, scope)
            yield transaction

    def integrity(self) -> list[str]:
        with typed("fsck"):
            rows = [row[0] for row in self._reader().execute("PRAGMA integrity_check")]
        return [] if rows == ["ok"] else rows

    def close(self) -> None:
        with self._lock:
            self.is_closed = True
            connections, self._connections = list(self._connections), weakref.WeakSet()
        if os.getpid() == self._pid:
            for connection in connections:
                with suppress(apsw.Error):
                    connection.close()

    # -- plumbing --------------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise ClosedStoreError when closed, or when this process only inherited the store by fork."""
        if self.is_closed:
            raise ClosedStoreError(f"{self.path}: the store was closed; open it again")
        if os.getpid() != self._pid:
            raise ClosedStoreError(f"{self.path}: opened before a fork; open the store again in this process")

    def _reader(self) -> apsw.Connection:
        self.check_open()
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            with typed(f"open {self.path}"):
                connection = self._local.connection = self._connect()
        return connection

    @contextmanager
    def _immediate(self) -> Iterator[None]:
        if not self._gate.acquire(timeout=self._timeout_ms / 1000):
            raise StoreBusyError("write: another thread holds the store; nothing was changed, try again")
        try:
            with typed("write"):
                # In memory a reserved lock would shut readers out, and the gate already keeps other writers away.
                self._writer.execute("BEGIN" if self._in_memory else "BEGIN IMMEDIATE")
            yield
        finally:
            self._roll_back(self._writer)
            self._gate.release()

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
