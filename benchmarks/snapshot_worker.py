"""Building a graph of many edges from arrays in a process of its own, for its peak memory: `... build FILE`."""

from __future__ import annotations

from typing import Any

from workers import Arrays, Peer, serve

from memorepair._core import ProvenanceGraph


def build(arrays: Arrays) -> ProvenanceGraph:
    return ProvenanceGraph.from_edges(int(arrays["num_nodes"]), arrays["sources"], arrays["targets"])


def facts(_: Arrays, graph: ProvenanceGraph) -> dict[str, Any]:
    return {"edges": graph.num_edges}


if __name__ == "__main__":
    serve({"build": Peer("memorepair", "memorepair._core", build)}, dict, facts)
