"""Latency of reads on a file of 10^5 artifacts, beside the same lookup in bare apsw on a plain file.

The peer keeps content in one indexed table and a bit `withdrawn`; it checks no digest, knows no expiry and builds no
object. What a read costs above that is what a read promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw
import numpy as np
import pytest
from pairs import clocked, paired
from workloads import connect, derive_all, put_records, three_parents

import memorepair

COUNT = 10**5
NUM_RECORDS = 1000
REPEATS = 200
SCHEMA = """
CREATE TABLE artifact(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL, withdrawn INTEGER NOT NULL);
"""
ONE = "SELECT body FROM artifact WHERE key = ? AND NOT withdrawn"
ALIVE = "SELECT id FROM artifact WHERE NOT withdrawn AND id IN ({})"


class Stores(NamedTuple):
    store: memorepair.Store
    plain: apsw.Connection
    versions: list[int]
    keys: list[str]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    folder = tmp_path_factory.mktemp("read")
    writes = list(three_parents(COUNT, NUM_RECORDS))
    plain = connect(folder / "plain.db")
    plain.execute(SCHEMA)
    with memorepair.open(folder / "agent.db", max_cascade=None) as store:
        versions = put_records(store, NUM_RECORDS)
        derive_all(store, writes, versions)
        store.delete("doc/999")
        bodies = [(f"doc/{number}", f"source {number}") for number in range(NUM_RECORDS)]
        bodies += [(key, text) for key, text, _ in writes]
        gone = (~store.visible(versions)).tolist()
        with plain:
            plain.executemany(
                "INSERT INTO artifact VALUES(?, ?, ?, ?)",
                ((version, *body, bit) for version, body, bit in zip(versions, bodies, gone, strict=True)),
            )
        alive = [key for (key, _), bit in zip(bodies, gone, strict=True) if not bit]
        assert 100 < len(alive) < len(versions)  # some are withdrawn, some are not
        rng = np.random.default_rng(1)
        yield Stores(store, plain, rng.permutation(versions).tolist(), rng.permutation(alive).tolist())
    plain.close()


def windows(items: list[Any], width: int) -> list[list[Any]]:
    """REPEATS lists of `width` items."""
    return [[items[(start * width + offset) % len(items)] for offset in range(width)] for start in range(REPEATS)]


def alive_in(plain: apsw.Connection, ids: list[int]) -> set[int]:
    return {row[0] for row in plain.execute(ALIVE.format(",".join("?" * len(ids))), ids)}


def test_get(benchmark: Any, stores: Stores) -> None:
    keys = stores.keys[:REPEATS]

    def ours() -> list[Any]:
        return [stores.store.get(key).content for key in keys]

    def peer() -> list[Any]:
        return [stores.plain.execute(ONE, (key,)).get for key in keys]

    assert ours() == peer()
    paired(benchmark, ours, {"bare apsw": clocked(peer)}, what="get(key)", per=REPEATS)


@pytest.mark.parametrize("width", [10, 100])
def test_get_many(benchmark: Any, stores: Stores, width: int) -> None:
    groups = windows(stores.keys, width)

    def ours() -> list[list[Any]]:
        return [[found.content for found in stores.store.get_many(keys)] for keys in groups]

    def peer() -> list[list[Any]]:
        return [[stores.plain.execute(ONE, (key,)).get for key in keys] for keys in groups]

    assert ours() == peer()
    paired(benchmark, ours, {"bare apsw": clocked(peer)}, what=f"get_many of {width}", rounds=5, per=REPEATS)


def test_visible(benchmark: Any, stores: Stores) -> None:
    groups = windows(stores.versions, 50)

    def ours() -> list[list[bool]]:
        return [stores.store.visible(ids).tolist() for ids in groups]

    def peer() -> list[list[bool]]:
        alive = [alive_in(stores.plain, ids) for ids in groups]
        return [[version in some for version in ids] for ids, some in zip(groups, alive, strict=True)]

    assert ours() == peer()
    paired(benchmark, ours, {"bare apsw, one IN query": clocked(peer)}, what="visible(50 versions)", per=REPEATS)


def test_filter(benchmark: Any, stores: Stores) -> None:
    hits = [[{"version": version, "score": 0.5} for version in ids] for ids in windows(stores.versions, 100)]

    def ours() -> list[Any]:
        return [stores.store.filter(some, version=lambda hit: hit["version"]) for some in hits]

    def peer() -> list[Any]:
        answer = []
        for some in hits:
            alive = alive_in(stores.plain, [hit["version"] for hit in some])
            answer.append([hit for hit in some if hit["version"] in alive])
        return answer

    assert ours() == peer()
    paired(benchmark, ours, {"bare apsw, one IN query": clocked(peer)}, what="filter(100 hits)", per=REPEATS)
