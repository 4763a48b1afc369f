"""The stores that most tests run on: the in-memory reference, SQLite in memory, a SQLite file, and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest

import memorepair as mr

BACKENDS = ("reference", "sqlite-memory", "sqlite-file", "postgres")
DURABLE = ("sqlite-file", "postgres")


def location(backend: str, folder: Path) -> object:
    """Return what `mr.open` takes for one of BACKENDS."""
    if backend == "postgres":
        return postgres_server.database()
    return {"reference": mr.MemoryBackend(), "sqlite-memory": ":memory:"}.get(backend, folder / "agent.db")


@pytest.fixture(autouse=True)
def _recycled_databases() -> Iterator[None]:
    yield
    postgres_server.recycle()


@pytest.fixture(params=DURABLE)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """Where a store outlives its handles: a path or a URL."""
    return location(request.param, tmp_path)


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[mr.Store]:
    with mr.open(location(request.param, tmp_path)) as opened:
        yield opened
        assert opened.fsck() == []


def echo_rules(version: str = "2") -> mr.Rules:
    """Rules with one operator `echo` that joins its inputs' contents."""
    rules = mr.Rules()

    @rules.operator("echo", version=version)
    def echo(job: mr.Job) -> mr.Draft:
        return mr.Draft(" | ".join(str(job.inputs[key]) for key in sorted(job.inputs)), cost="10 tokens")

    return rules


def chain(store: mr.Store) -> dict[str, mr.Artifact]:
    """Put p, derive a from p, b from a, and c from a and b; everything required."""
    p = store.put("p", "source")
    a = store.derive("a", "from p", kind="cache", parents=[p], operator="echo@1", cost="10 tokens")
    b = store.derive("b", "from a", kind="summary", parents=[a], operator="echo@1", cost="10 tokens")
    c = store.derive("c", "from a and b", kind="summary", parents=[a, b], operator="echo@1", cost="10 tokens")
    return {"p": p, "a": a, "b": b, "c": c}
