"""Ingest of derived versions with three parents each, beside bare apsw inserting the very same rows."""

from __future__ import annotations

import itertools
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
from pairs import paired
from workloads import BATCH, connect, derive_all, put_records, three_parents

import memorepair

COUNT = 10**5
NUM_RECORDS = 1000
ROUNDS = 5
TABLES = ("version", "content", "head", "ledger")


def rows_of(path: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table of a store, in the order of their keys, but for what a clock made."""
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        rows = list(connection.execute(f"SELECT * FROM {table}"))
    return [row[:-1] for row in rows] if table == "ledger" else rows


def test_ingest(benchmark: Any, tmp_path: Path) -> None:
    writes = list(three_parents(COUNT, NUM_RECORDS))
    fresh = (tmp_path / f"{number}.db" for number in itertools.count())
    opened: list[memorepair.Store] = []

    def prepare() -> tuple[memorepair.Store, list[int]]:
        if opened:
            opened.pop().close()
        store = memorepair.open(next(fresh))
        opened.append(store)
        return store, put_records(store, NUM_RECORDS)

    def ours(store: memorepair.Store, versions: list[int]) -> None:
        derive_all(store, writes, versions)

    path = tmp_path / "0.db"  # the first that `fresh` hands out
    store, versions = prepare()
    ours(store, versions)
    opened.pop().close()
    assert len(set(versions)) == NUM_RECORDS + COUNT
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        rows = {table: list(connection.execute(f"SELECT * FROM {table}")) for table in TABLES}
    # The rows of each batch: the records were epoch 1, each batch one epoch more.
    heads = {row[2]: row for row in rows["head"]}
    batches = [
        {
            "version": rows["version"][start : start + BATCH],
            "content": rows["content"][start : start + BATCH],
            "head": [heads[row[0] & 0xFFFFFFFF] for row in rows["version"][start : start + BATCH]],
            "ledger": [rows["ledger"][1 + number]],
        }
        for number, start in enumerate(range(NUM_RECORDS, NUM_RECORDS + COUNT, BATCH))
    ]
    plains = []

    def peer() -> float:
        plain_path = next(fresh)
        plains.append(plain_path)
        plain = connect(plain_path)
        plain.execute(files("memorepair").joinpath("schema.sql").read_text())
        start = time.perf_counter()
        for batch in batches:
            plain.execute("BEGIN IMMEDIATE")
            for table, some in batch.items():
                places = ",".join("?" * len(some[0]))
                plain.executemany(f"INSERT INTO {table} VALUES({places})", some)
            plain.execute("COMMIT")
        seconds = time.perf_counter() - start
        plain.close()
        return seconds

    peer()
    for table in TABLES:
        first = {"version": NUM_RECORDS, "content": NUM_RECORDS, "ledger": 1}
        expected = rows[table][first.get(table, 0) :]
        if table == "head":
            expected = [row for row in expected if row[2] > NUM_RECORDS]
        elif table == "ledger":
            expected = [row[:-1] for row in expected]
        assert rows_of(plains[0], table) == expected

    paired(
        benchmark,
        ours,
        {"bare apsw, the same rows": peer},
        what=f"ingest, 3 parents each, batches of {BATCH:,}: time of one version",
        rounds=ROUNDS,
        prepare=prepare,
        per=COUNT,
    )
    opened.pop().close()
    benchmark.extra_info.update(rate=1 / benchmark.extra_info["seconds"], at_least=50_000)


def test_put_one_by_one(benchmark: Any, tmp_path: Path) -> None:
    """A durable put each: what one fsync costs, beside one durable insert into a plain file."""
    numbers = itertools.count()
    plain = connect(tmp_path / "plain.db")
    plain.execute("CREATE TABLE version(id INTEGER PRIMARY KEY, key TEXT NOT NULL, body BLOB NOT NULL)")

    def peer() -> float:
        number = next(numbers)
        start = time.perf_counter()
        plain.execute("INSERT INTO version(key, body) VALUES(?, ?)", (f"note/{number}", b"text"))
        return time.perf_counter() - start

    with memorepair.open(tmp_path / "agent.db") as store:

        def ours() -> None:
            number = next(numbers)
            assert store.put(f"note/{number}", "text").key == f"note/{number}"

        paired(
            benchmark,
            ours,
            {"bare apsw, one INSERT": peer},
            what="one durable put()",
            rounds=200,
            warmup_rounds=10,
        )
        assert len(store.find(prefix="note/")) == plain.execute("SELECT count(*) FROM version").get == 210
    plain.close()
