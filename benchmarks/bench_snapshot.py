"""10^7 edges: the peak memory of building the graph from arrays, and loading a snapshot of it instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instances import Instance, random_dag
from pairs import clocked, measured, paired
from workers import Worker

from memorepair._core import ProvenanceGraph

NUM_EDGES = 10**7
PROGRAM = Path(__file__).with_name("snapshot_worker.py")


@pytest.fixture(scope="module")
def instance() -> Instance:
    return random_dag(NUM_EDGES // 3 + 1)


def test_memory_of_building(benchmark: Any, instance: Instance, tmp_path: Path) -> None:
    file = tmp_path / "edges.npz"
    np.savez(file, num_nodes=instance.num_nodes, sources=instance.sources, targets=instance.targets)
    with Worker(PROGRAM, "build", file) as worker:
        told = benchmark.pedantic(worker.ask, rounds=1, iterations=1)
    each = told["bytes"] / told["edges"]
    measured(benchmark, "building a graph of 10^7 edges: peak memory", each, "bytes an edge", at_most=100)


@pytest.mark.skipif(not hasattr(ProvenanceGraph, "to_bytes"), reason="this build has no snapshots")
def test_load(benchmark: Any, instance: Instance) -> None:
    graph = ProvenanceGraph.from_edges(*instance)
    data = graph.to_bytes()
    loaded = ProvenanceGraph.from_bytes(data)
    assert (loaded.num_nodes, loaded.num_edges) == (graph.num_nodes, graph.num_edges)
    roots = np.arange(0, instance.num_nodes, 1000, dtype=np.uint32)
    assert loaded.reach(roots) == graph.reach(roots)
    assert loaded.ancestors(roots) == graph.ancestors(roots)
    del graph, loaded
    paired(
        benchmark,
        lambda: ProvenanceGraph.from_bytes(data),
        {"building it": clocked(lambda: ProvenanceGraph.from_edges(*instance))},
        what=f"snapshot of 10^7 edges ({len(data) / 2**20:.0f} MiB in memory), from_bytes",
        rounds=5,
        at_most={"building it": 0.05},
    )
