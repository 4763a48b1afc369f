"""Withdrawing a cascade of 10^5 versions, durably, beside marking the same rows with one recursive SQL query."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np
import pytest
from pairs import clocked, paired
from workloads import connect, grow_cascade

import memorepair

SIZE = 10**5
ROUNDS = 5
SCHEMA = """
CREATE TABLE version(id INTEGER PRIMARY KEY, key TEXT NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0);
CREATE TABLE edge(parent INTEGER NOT NULL, child INTEGER NOT NULL, PRIMARY KEY(parent, child)) WITHOUT ROWID;
"""
MARK = """
UPDATE version SET withdrawn = 1 WHERE id IN (
  WITH RECURSIVE cascade(id) AS (VALUES(?) UNION SELECT edge.child FROM cascade JOIN edge ON edge.parent = cascade.id)
  SELECT id FROM cascade)
"""
COLD_PEER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.pragma("journal_mode", "wal")
connection.pragma("synchronous", 2)
connection.execute("BEGIN IMMEDIATE")
connection.execute(sys.argv[2], (int(sys.argv[3]),))
connection.execute("COMMIT")
"""


class Pair(NamedTuple):
    """A store with disjoint cascades named policy/0, policy/1, ..., and the same edges in a plain file."""

    store: Path
    plain: Path
    cascades: list[list[int]]


def build(folder: Path, count: int) -> Pair:
    pair = Pair(folder / "agent.db", folder / "plain.db", [])
    with memorepair.open(pair.store) as store:
        for number in range(count):
            pair.cascades.append(grow_cascade(store, f"policy/{number}", SIZE))
    with apsw.Connection(str(pair.store), flags=apsw.SQLITE_OPEN_READONLY) as source:
        rows = list(source.execute("SELECT id & 4294967295, key, parents FROM version"))
    plain = connect(pair.plain)
    with plain:
        plain.execute(SCHEMA)
        plain.executemany("INSERT INTO version(id, key) VALUES(?, ?)", (row[:2] for row in rows))
        plain.executemany(
            "INSERT INTO edge(parent, child) VALUES(?, ?)",
            ((parent, child) for child, _, blob in rows for parent in np.frombuffer(blob, dtype="<u4").tolist()),
        )
    plain.pragma("wal_checkpoint", "truncate")
    plain.close()
    return pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return build(tmp_path_factory.mktemp("barrier"), ROUNDS + 1)


def test_correct_with_graph_loaded(benchmark: Any, pair: Pair) -> None:
    plain = connect(pair.plain)
    events: list[memorepair.Event] = []
    left = iter(range(ROUNDS + 1))
    marked = []
    with memorepair.open(pair.store, max_cascade=None) as store:
        store.impact("policy/0")  # loads the graph

        def ours(number: int) -> None:
            events.append(store.correct(f"policy/{number}", "the new policy"))

        def peer() -> None:
            plain.execute("BEGIN IMMEDIATE")
            plain.execute(MARK, (pair.cascades[len(marked)][0],))
            marked.append(plain.changes())
            plain.execute("COMMIT")

        paired(
            benchmark,
            ours,
            {"recursive SQL, one UPDATE": clocked(peer)},
            what=f"correct() on a file, cascade of {SIZE:,}, graph loaded, until durable",
            rounds=ROUNDS,
            at_most={"recursive SQL, one UPDATE": 0.1},
            prepare=lambda: (next(left),),
        )
        assert marked == [event.cascade for event in events] == [SIZE] * (ROUNDS + 1)
        for versions in pair.cascades:
            assert not store.visible(versions).any()
        withdrawn = {row[0] for row in plain.execute("SELECT id FROM version WHERE withdrawn")}
        assert withdrawn == {version for versions in pair.cascades for version in versions}
    plain.close()


def test_correct_from_a_cold_start(benchmark: Any, tmp_path: Path) -> None:
    command = shutil.which("memorepair", path=sysconfig.get_path("scripts"))
    if command is None:
        pytest.skip("the command memorepair is not installed")
    pair = build(tmp_path, 1)
    copies = iter(range(ROUNDS + 1))
    answers = []

    def copy(path: Path, number: int) -> Path:
        return Path(shutil.copyfile(path, path.with_suffix(f".{number}.db")))

    def prepare() -> tuple[Path]:
        return (copy(pair.store, next(copies)),)

    def ours(path: Path) -> None:
        done = subprocess.run(
            [command, "correct", "policy/0", "the new policy", "--max-cascade", "none", "--json",
             "--store", str(path)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        answers.append(json.loads(done.stdout)["cascade"])

    marks = [copy(pair.plain, number) for number in range(ROUNDS + 1)]
    unused = iter(marks)

    def peer() -> None:
        root = str(pair.cascades[0][0])
        subprocess.run([sys.executable, "-c", COLD_PEER, str(next(unused)), MARK, root], check=True)

    paired(
        benchmark,
        ours,
        {"fresh process, apsw, recursive SQL": clocked(peer)},
        what=f"`memorepair correct`, fresh process, store of {SIZE:,}, cascade of all",
        rounds=ROUNDS,
        prepare=prepare,
    )
    assert answers == [SIZE] * (ROUNDS + 1)
    for path in marks:
        plain = connect(path)
        assert plain.execute("SELECT count(*) FROM version WHERE withdrawn").get == SIZE
        plain.close()
