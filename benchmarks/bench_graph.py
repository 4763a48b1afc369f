"""Building the graph and reaching a cascade, 10^6 nodes and about 3x10^6 edges, beside plain C++ and scipy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instances import FAMILIES, Instance
from pairs import Peer, clocked, paired
from plain_bfs import PlainBfs, write_edges
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from memorepair._core import ProvenanceGraph

NUM_NODES = 10**6


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def instance(request: pytest.FixtureRequest) -> Instance:
    return FAMILIES[request.param](NUM_NODES)


@pytest.fixture(scope="module")
def graph(instance: Instance) -> ProvenanceGraph:
    return ProvenanceGraph.from_edges(*instance)


@pytest.fixture(scope="module")
def plain(instance: Instance, plain_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainBfs]:
    with PlainBfs(plain_program, write_edges(tmp_path_factory.mktemp("instance") / "edges", *instance)) as process:
        yield process


def family(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["instance"])


def sparse(instance: Instance) -> csr_matrix:
    """scipy's graph, from the same arrays."""
    ones = np.ones(len(instance.sources), dtype=np.int8)
    shape = (instance.num_nodes, instance.num_nodes)
    return csr_matrix((ones, (instance.sources, instance.targets)), shape=shape)


def roots_of(instance: Instance, graph: ProvenanceGraph, how: str) -> np.ndarray:
    """`one`: an old node with a large cascade; `many`: one in a hundred nodes; `small`: a late node, 4 to 100 nodes."""
    if how == "many":
        return np.arange(0, instance.num_nodes, 100, dtype=np.uint32)
    if how == "one":
        old = np.unique(instance.sources)[:50]
        return max(([np.array([node], dtype=np.uint32)] for node in old), key=lambda r: graph.reach(r[0]).count())[0]
    for node in np.unique(instance.sources)[::-997]:
        root = np.array([node], dtype=np.uint32)
        if 4 <= graph.reach(root).count() <= 100:
            return root
    raise AssertionError("no small cascade")


def test_build(
    benchmark: Any, request: pytest.FixtureRequest, instance: Instance, graph: ProvenanceGraph, plain: PlainBfs
) -> None:
    edges = np.unique(instance.sources.astype(np.int64) * instance.num_nodes + instance.targets)
    assert graph.num_edges == len(edges)
    assert np.array_equal(graph.reach(np.arange(9, dtype=np.uint32)).ids(), reached_by_scipy(instance, range(9)))
    paired(
        benchmark,
        lambda: ProvenanceGraph.from_edges(*instance),
        {
            "plain C++, both directions": plain.build("both"),
            "plain C++, one direction": plain.build("one"),
            "scipy csr and csc, both directions": clocked(lambda: sparse(instance).tocsc()),
        },
        what=f"graph build, {family(request)} 10^6: both directions, sorted, deduplicated",
        at_most={"plain C++, both directions": 1.5, "scipy csr and csc, both directions": 1.0},
    )


def reached_by_scipy(instance: Instance, roots: Any) -> np.ndarray:
    matrix = sparse(instance)
    each = [breadth_first_order(matrix, root, return_predecessors=False) for root in roots]
    return np.unique(np.concatenate(each))


@pytest.mark.parametrize("how", ["one", "many", "small"])
def test_reach(
    benchmark: Any,
    request: pytest.FixtureRequest,
    instance: Instance,
    graph: ProvenanceGraph,
    plain: PlainBfs,
    how: str,
) -> None:
    roots = roots_of(instance, graph, how)
    times = 1000 if how == "small" else 1  # at once, so that a microsecond can be told
    command = plain.reach(roots, times)
    answer = graph.reach(roots)
    assert plain.ask(command)[1:] == (answer.count(), int(answer.ids().sum(dtype=np.int64)))
    peers: dict[str, Peer] = {"plain C++ BFS": lambda: plain.ask(command)[0]}
    at_most = {"plain C++ BFS": 1.5}
    if how != "many":  # scipy takes one root
        matrix = sparse(instance)
        order = breadth_first_order(matrix, int(roots[0]), return_predecessors=False)
        assert np.array_equal(np.sort(order), answer.ids())
        once = clocked(lambda: breadth_first_order(matrix, int(roots[0]), return_predecessors=False))
        peers["scipy breadth_first_order"] = lambda: times * once()
        at_most["scipy breadth_first_order"] = 1.0

    def ours() -> None:
        for _ in range(times):
            graph.reach(roots)

    paired(
        benchmark,
        ours,
        peers,
        what=f"reach, {family(request)} 10^6, {how} root{'s' * (how == 'many')}: {answer.count():,} nodes",
        rounds=21,
        at_most=at_most,
        per=times,
    )


def test_build_and_reach(
    benchmark: Any, request: pytest.FixtureRequest, instance: Instance, graph: ProvenanceGraph
) -> None:
    roots = roots_of(instance, graph, "one")

    def ours() -> Any:
        return ProvenanceGraph.from_edges(*instance).reach(roots)

    def scipys() -> Any:
        return breadth_first_order(sparse(instance), int(roots[0]), return_predecessors=False)

    assert np.array_equal(ours().ids(), np.sort(scipys()))
    paired(
        benchmark,
        ours,
        {"scipy build + breadth_first_order": clocked(scipys)},
        what=f"graph build + reach from numpy arrays, {family(request)} 10^6",
        at_most={"scipy build + breadth_first_order": 1.0},
    )
