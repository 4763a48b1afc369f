"""Cascades in the families at 10^5 and 10^6 nodes, beside breadth-first search in plain C++ and a recursive SQL query.

`tiny`: one root that about ten nodes rest on; `one`: the root with the largest cascade of some; `many`: one root in a
hundred. The SQL query runs in memory on a table without row ids, which is how one would store edges in SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np
import pytest
from families import Ids, Problem, problem_of
from pairs import clocked, measured, paired
from plain_bfs import PlainBfs, write_edges

from memorepair._core import ProvenanceGraph

FAMILIES = ("prov3", "prov10", "chain", "rand3")
LARGE = 10**5  # nodes of a large cascade
QUERY = """
    WITH RECURSIVE cascade(node) AS (SELECT node FROM root UNION SELECT target FROM cascade JOIN edge ON source = node)
    SELECT node FROM cascade
"""


class Loaded(NamedTuple):
    name: str
    problem: Problem
    graph: ProvenanceGraph
    plain: PlainBfs


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((family, power), marks=[pytest.mark.slow] * (power == 6), id=f"{family}-10^{power}")
        for power in (5, 6)
        for family in FAMILIES
    ],
)
def loaded(
    request: pytest.FixtureRequest, plain_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loaded]:
    family, power = request.param
    problem = problem_of(family, 10**power)
    edges = tmp_path_factory.mktemp("reach") / "edges"
    write_edges(edges, problem.num_nodes, problem.sources, problem.targets)
    with PlainBfs(plain_program, edges) as plain:
        yield Loaded(f"{family} 10^{power}", problem, problem.graph(), plain)


def roots_of(loaded: Loaded, how: str) -> Ids:
    roots, graph = loaded.problem.roots, loaded.graph
    if how == "many":
        return np.sort(np.random.default_rng(1).choice(roots, max(1, len(roots) // 100), replace=False))
    if how == "one":
        return max((roots[at : at + 1] for at in range(min(50, len(roots)))), key=lambda one: graph.reach(one).count())
    # From the youngest nodes back: theirs are the small cascades.
    youngest = np.unique(loaded.problem.sources)[::-1]
    candidates = (youngest[at : at + 1] for at in range(len(youngest)))
    return next(root for root in candidates if 8 <= graph.reach(root).count() <= 12)


@pytest.mark.parametrize("how", ["tiny", "one", "many"])
def test_reach(benchmark: Any, loaded: Loaded, how: str) -> None:
    roots = roots_of(loaded, how)
    times = 1000 if how == "tiny" else 1
    command = loaded.plain.reach(roots, times)
    answer = loaded.graph.reach(roots)
    count = answer.count()
    assert loaded.plain.ask(command)[1:] == (count, int(answer.ids().sum(dtype=np.int64)))

    def ours() -> None:
        for _ in range(times):
            loaded.graph.reach(roots)

    paired(
        benchmark,
        ours,
        {"plain C++ BFS": lambda: loaded.plain.ask(command)[0]},
        what=f"reach, {loaded.name}, {how}: {count:,} nodes",
        rounds=21,
        at_most={"plain C++ BFS": round(1 / 1.5, 3) if count >= LARGE else 1.0},
        per=times,
    )


def test_tiny_cascade_from_python(benchmark: Any, loaded: Loaded) -> None:
    root = roots_of(loaded, "tiny")

    def ours() -> None:
        for _ in range(1000):
            loaded.graph.reach(root)

    benchmark.pedantic(ours, rounds=11, iterations=1, warmup_rounds=1)
    microseconds = benchmark.stats.stats.median * 1e3
    measured(benchmark, f"reach of about ten nodes from Python, {loaded.name}", microseconds, "us", at_most=20)


def test_recursive_query(benchmark: Any, loaded: Loaded) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE edge (source, target, PRIMARY KEY (source, target)) WITHOUT ROWID")
    connection.execute("CREATE TABLE root (node INTEGER PRIMARY KEY)")
    with connection:
        rows = zip(loaded.problem.sources.tolist(), loaded.problem.targets.tolist(), strict=True)
        connection.executemany("INSERT INTO edge VALUES (?, ?)", rows)
    roots = roots_of(loaded, "many")
    connection.executemany("INSERT INTO root VALUES (?)", ((root,) for root in roots.tolist()))

    def query() -> list[Any]:
        return connection.execute(QUERY).fetchall()

    answer = loaded.graph.reach(roots)
    assert sorted(node for (node,) in query()) == answer.ids().tolist()
    paired(
        benchmark,
        lambda: loaded.graph.reach(roots).ids(),
        {"recursive SQL": clocked(query)},
        what=f"reach, {loaded.name}, many, as ids: {answer.count():,} nodes",
        rounds=3,
        at_most={"recursive SQL": 0.02},
    )
