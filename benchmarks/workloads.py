"""Stores to measure on, and the bare SQLite connection that stands beside them.

Peers use apsw as memorepair does: the same SQLite, WAL, synchronous=FULL, a fresh file beside the store's. Unlike
memorepair's they carry no page checksums, so their files are a little faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
from instances import provenance

import memorepair

BATCH = 10_000
Write = tuple[str, str, list[int]]  # key, text, parents as positions in order of birth


def connect(path: Path) -> apsw.Connection:
    """Open a plain SQLite file, as durable as a store."""
    connection = apsw.Connection(str(path))
    assert connection.pragma("journal_mode", "wal") == "wal"
    connection.pragma("synchronous", 2)
    return connection


def three_parents(count: int, num_records: int, seed: int = 0) -> Iterator[Write]:
    """Derived artifacts with three older parents each; the first `num_records` positions are records."""
    rng = np.random.default_rng(seed)
    oldest = np.arange(num_records, num_records + count)
    picks = (rng.random((count, 3)) * oldest[:, None]).astype(np.int64)
    for number, parents in enumerate(picks.tolist()):
        yield f"summary/{number}", f"what was understood at step {number}", parents


def put_records(store: memorepair.Store, count: int) -> list[int]:
    """Put records doc/0, doc/1, ...; return their versions."""
    with store.batch() as batch:
        return [batch.put(f"doc/{number}", f"source {number}") for number in range(count)]


def derive_all(store: memorepair.Store, writes: list[Write], versions: list[int]) -> None:
    """Derive in batches, appending each new version to `versions`, which holds the records' already."""
    for start in range(0, len(writes), BATCH):
        with store.batch() as batch:
            for key, text, parents in writes[start : start + BATCH]:
                version = batch.derive(
                    key,
                    text,
                    kind="summary",
                    parents=[versions[position] for position in parents],
                    operator="summarise@1",
                    cost="12 tokens",
                )
                versions.append(version)


def grow_cascade(store: memorepair.Store, name: str, size: int) -> list[int]:
    """
    Put a record called `name` and derive from it until its cascade holds `size` versions; return them.

    Shaped like `provenance`; what would have no parent is made from the record.
    """
    _, sources, targets = provenance(size)
    first = np.searchsorted(targets, np.arange(size + 1))
    with store.batch() as batch:
        versions = [batch.put(name, "the old policy")]
    for start in range(1, size, BATCH):
        with store.batch() as batch:
            for node in range(start, min(start + BATCH, size)):
                parents = sorted({*sources[first[node] : first[node + 1]].tolist()}) or [0]
                version = batch.derive(
                    f"{name}/{node}",
                    f"made at step {node}",
                    kind="summary",
                    parents=[versions[parent] for parent in parents],
                    operator="summarise@1",
                    cost=f"{1 + node % 97} tokens",
                    weight=1 + node % 7,
                )
                versions.append(version)
    return versions
