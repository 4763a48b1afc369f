"""`_core.ProvenanceGraph` (all but closure) against plain Python."""

from __future__ import annotations

import contextlib
import mmap
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import reference_kernels as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from memorepair._core import Mask, ProvenanceGraph
from memorepair.errors import CapacityError, InvalidGraphError, MemorepairError, NodeRangeError


def ids(values: object) -> np.ndarray:
    return np.array(values, dtype=np.uint32)


def build(num_nodes: int, edges: list[tuple[int, int]]) -> ProvenanceGraph:
    return ProvenanceGraph.from_edges(num_nodes, ids([s for s, _ in edges]), ids([t for _, t in edges]))


@st.composite
def growths(draw: st.DrawFn) -> list[tuple[int, list[tuple[int, int]]]]:
    """Steps of (new nodes, edges), with cycles, self edges and duplicates."""
    steps, num_nodes = [], 0
    for _ in range(draw(st.integers(1, 4))):
        added = draw(st.integers(0, 5))
        num_nodes += added
        node = st.integers(0, max(num_nodes - 1, 0))
        steps.append((added, draw(st.lists(st.tuples(node, node), max_size=12)) if num_nodes else []))
    return steps


@settings(deadline=None, max_examples=300)
@given(growths(), st.data())
def test_growing_equals_building_equals_plain_python(
    steps: list[tuple[int, list[tuple[int, int]]]], data: st.DataObject
) -> None:
    grown = ProvenanceGraph.from_edges(0, ids([]), ids([]))
    everything = []
    for added, edges in steps:
        assert grown.append(added, ids([s for s, _ in edges]), ids([t for _, t in edges])) is None
        everything += edges
    num_nodes = sum(added for added, _ in steps)
    edges = reference.clean(everything)
    roots = data.draw(st.lists(st.integers(0, num_nodes - 1), max_size=3)) if num_nodes else []
    order, groups = reference.order_and_groups(num_nodes, edges)
    for graph in (grown, build(num_nodes, everything), build(num_nodes, sorted(edges, reverse=True))):
        assert (graph.num_nodes, graph.num_edges) == (num_nodes, len(edges))
        for node in range(num_nodes):
            assert graph.parents(node).tolist() == sorted(s for s, t in edges if t == node)
            assert graph.children(node).tolist() == sorted(t for s, t in edges if s == node)
        assert graph.reach(ids(roots)).ids().tolist() == sorted(reference.reach(edges, roots))
        assert graph.ancestors(ids(roots)).ids().tolist() == sorted(reference.reach(reference.reverse(edges), roots))
        assert graph.order().tolist() == order
        assert graph.groups().tolist() == groups


def test_large_growth_across_many_compactions() -> None:
    rng = np.random.default_rng(3)
    grown = ProvenanceGraph.from_edges(1, ids([]), ids([]))
    parts, num_nodes = [], 1
    for step in range(1500):
        added = int(rng.integers(1, 20))
        num_nodes += added
        targets = rng.integers(num_nodes - added, num_nodes, 3 * added)
        sources = (rng.random(3 * added) ** 3 * targets).astype(np.uint32)
        targets = targets.astype(np.uint32)
        grown.append(added, sources, targets)
        parts.append((sources, targets))
        if step % 500 == 499:
            s, t = (np.concatenate(column) for column in zip(*parts, strict=True))
            built = ProvenanceGraph.from_edges(num_nodes, s, t)
            assert grown.num_edges == built.num_edges == len(reference.clean(zip(s.tolist(), t.tolist(), strict=True)))
            assert np.array_equal(grown.order(), built.order())
            for root in rng.integers(0, num_nodes, 40).astype(np.uint32):
                assert grown.reach(ids([root])) == built.reach(ids([root]))
                assert grown.ancestors(ids([root])) == built.ancestors(ids([root]))


def test_append_costs_what_is_appended() -> None:
    """A million single appends take seconds, not hours; and a hub does not make them quadratic."""
    num = 100_000
    graph = build(2, [(0, 1)])
    source, one = ids([0]), np.empty(1, dtype=np.uint32)
    for node in range(2, num):
        one[0] = node
        graph.append(1, source, one)
    assert graph.num_edges == num - 1
    assert graph.reach(ids([0])).count() == num
    assert graph.children(0).tolist() == list(range(1, num))


def test_chain_ring_and_star_of_a_million() -> None:
    n = 1_000_000
    v = np.arange(n - 1, dtype=np.uint32)
    chain = ProvenanceGraph.from_edges(n, v + np.uint32(1), v)
    assert chain.reach(ids([n - 1])).count() == n
    assert chain.ancestors(ids([0])).count() == n
    assert chain.reach(ids([600])).count() == 601
    assert np.array_equal(chain.order(), np.arange(n)[::-1])
    chain.append(0, ids([0]), ids([n - 1]))
    assert not chain.groups().any()
    star = ProvenanceGraph.from_edges(n, np.zeros(n - 1, dtype=np.uint32), v + np.uint32(1))
    assert star.reach(ids([0])).count() == n
    assert star.ancestors(ids([n - 1])).ids().tolist() == [0, n - 1]


def test_reaches_of_every_size_leave_nothing_behind() -> None:
    """The graph keeps the memory of a search for the next one, in both directions, and grows under it."""
    rng = np.random.default_rng(7)
    num = 300_000
    low, high = np.sort(rng.integers(0, num, (2, num)), axis=0).astype(np.uint32)
    graph = ProvenanceGraph.from_edges(num, low, high)
    edges = list(zip(low.tolist(), high.tolist(), strict=True))
    children: dict[int, list[int]] = {}
    parents: dict[int, list[int]] = {}
    for s, t in edges:
        children.setdefault(s, []).append(t)
        parents.setdefault(t, []).append(s)

    def walk(lists: dict[int, list[int]], roots: list[int]) -> list[int]:
        seen, todo = set(roots), list(set(roots))
        while todo:
            new = [v for v in lists.get(todo.pop(), []) if v not in seen]
            seen.update(new)
            todo += set(new)
        return sorted(seen)

    for step in range(30):
        roots = rng.integers(0, num, int(3 ** rng.integers(0, 9))).tolist()
        assert graph.reach(ids(roots)).ids().tolist() == walk(children, roots)
        assert graph.ancestors(ids(roots)).ids().tolist() == walk(parents, roots)
        if step % 3 == 0:
            with pytest.raises(NodeRangeError):
                graph.reach(ids([*roots, num]))
        if step % 10 == 9:
            graph.append(1, ids([0, num]), ids([num, 5]))
            children.setdefault(0, []).append(num)
            children.setdefault(num, []).append(5)
            parents.setdefault(num, []).append(0)
            parents.setdefault(5, []).append(num)
            num += 1
    assert graph.reach(ids([])).count() == 0


@settings(deadline=None, max_examples=150)
@given(growths(), st.data())
def test_a_snapshot_is_the_reference_and_survives_no_damage(
    steps: list[tuple[int, list[tuple[int, int]]]], data: st.DataObject
) -> None:
    grown = ProvenanceGraph.from_edges(0, ids([]), ids([]))
    everything = []
    for added, edges in steps:
        grown.append(added, ids([s for s, _ in edges]), ids([t for _, t in edges]))
        everything += edges
    num_nodes = sum(added for added, _ in steps)
    stored = grown.to_bytes()
    assert stored == reference.snapshot(num_nodes, everything) == build(num_nodes, everything).to_bytes()
    loaded = ProvenanceGraph.from_bytes(stored)
    loaded.validate()
    grown.validate()
    assert (loaded.num_nodes, loaded.num_edges, loaded.to_bytes()) == (num_nodes, grown.num_edges, stored)
    assert np.array_equal(loaded.order(), grown.order())
    for node in range(num_nodes):
        assert np.array_equal(loaded.parents(node), grown.parents(node))
        assert loaded.reach(ids([node])) == grown.reach(ids([node]))
        assert loaded.ancestors(ids([node])) == grown.ancestors(ids([node]))
    for graph in (loaded, grown):  # a loaded graph grows as any other
        graph.append(1, ids([0]), ids([num_nodes]))
    assert loaded.to_bytes() == grown.to_bytes()
    flipped = bytearray(stored)
    bit = data.draw(st.integers(0, 8 * len(stored) - 1))
    flipped[bit // 8] ^= 1 << bit % 8
    cut = stored[: data.draw(st.integers(0, len(stored) - 1))]
    for damaged in (flipped, cut, stored + b"\0", stored + bytes(8)):
        with pytest.raises(InvalidGraphError, match=r"graph snapshot: expected .*got"):
            ProvenanceGraph.from_bytes(damaged)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=120))
def test_any_bytes_are_refused_or_read_as_a_graph(data: bytes) -> None:
    for candidate in (data, bytes([1] + [0] * 7) + data):
        with contextlib.suppress(InvalidGraphError):
            assert ProvenanceGraph.from_bytes(candidate).to_bytes() == candidate


def test_a_snapshot_names_its_version_and_asks_for_no_more_memory_than_it_holds() -> None:
    stored = build(3, [(0, 1), (0, 2)]).to_bytes()
    with pytest.raises(InvalidGraphError, match="expected format version 1, got 2"):
        ProvenanceGraph.from_bytes(b"\2" + stored[1:])
    for num_nodes, num_edges in ((2**32 - 1, 2**61), (2**61, 2**61), (2**64 - 1, 1), (2**63, 2**63)):
        header = stored[:8] + num_nodes.to_bytes(8, "little") + num_edges.to_bytes(8, "little")
        with pytest.raises(InvalidGraphError, match="8 for each of"):
            ProvenanceGraph.from_bytes(header + stored[24:])


def test_what_the_checksum_cannot_see_validate_tells() -> None:
    """Bytes whose checksum is right, but whose directions disagree: read, safe to ask, and refused by validate()."""
    honest, other = (build(3, edges) for edges in ([(0, 1), (0, 2)], [(0, 1), (1, 2)]))
    assert len(honest.to_bytes()) == len(other.to_bytes())
    honest.validate()
    swapped = reference.seal(
        honest.to_bytes()[:64] + other.to_bytes()[64:96] + honest.to_bytes()[96:104] + other.to_bytes()[104:]
    )
    graph = ProvenanceGraph.from_bytes(swapped)
    assert graph.order().size == 3
    with pytest.raises(InvalidGraphError, match=r"expected parents and children to hold the same edges"):
        graph.validate()


def test_a_snapshot_loads_from_any_contiguous_buffer(tmp_path: Path) -> None:
    graph = build(1000, [(i, i + 1) for i in range(999)])
    stored = graph.to_bytes()
    path = tmp_path / "graph"
    path.write_bytes(stored)
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        array = np.frombuffer(stored, dtype=np.uint8)
        shifted = memoryview(b"x" + stored)[1:]  # nothing is aligned
        for data in (bytearray(stored), memoryview(stored), array, shifted, mapped):
            assert ProvenanceGraph.from_bytes(data).to_bytes() == stored
    strided = np.repeat(array, 2)[::2]
    for wrong in (strided, stored.decode("latin-1"), 5, None, [1, 2]):
        with pytest.raises(TypeError, match="data: expected bytes or another contiguous buffer, got"):
            ProvenanceGraph.from_bytes(wrong)  # type: ignore[arg-type]
    changing = bytearray(stored)
    loaded = ProvenanceGraph.from_bytes(changing)
    changing[:] = bytes(len(changing))
    loaded.validate()
    changing.append(0)  # the buffer has been given back
    assert loaded.reach(ids([0])).count() == 1000


def test_a_loaded_graph_keeps_its_bytes_until_it_has_grown_out_of_them() -> None:
    stored = build(1000, [(i, i + 1) for i in range(999)]).to_bytes()
    expected = bytes(bytearray(stored))
    before = sys.getrefcount(stored)
    graph = ProvenanceGraph.from_bytes(stored)
    assert sys.getrefcount(stored) == before + 1
    graph.append(10_000, ids([999]), ids([1000]))
    assert sys.getrefcount(stored) == before
    assert graph.reach(ids([0])).count() == 1001
    with pytest.raises(InvalidGraphError):
        ProvenanceGraph.from_bytes(stored[:-1])
    graph = ProvenanceGraph.from_bytes(stored)
    del stored
    assert graph.to_bytes() == expected
    assert graph.reach(ids([0])).count() == 1000


def test_refusals_change_nothing() -> None:
    graph = build(3, [(0, 1)])
    cases = [
        (NodeRangeError, lambda: build(3, [(0, 3)])),
        (NodeRangeError, lambda: graph.append(1, ids([4]), ids([0]))),
        (NodeRangeError, lambda: graph.reach(ids([3]))),
        (NodeRangeError, lambda: graph.parents(3)),
        (NodeRangeError, lambda: graph.children(-1)),
        (NodeRangeError, lambda: graph.children(10**30)),
        (InvalidGraphError, lambda: graph.append(1, ids([0, 1]), ids([0]))),
        (InvalidGraphError, lambda: graph.append(-1, ids([]), ids([]))),
        (InvalidGraphError, lambda: ProvenanceGraph.from_edges(-5, ids([]), ids([]))),
        (CapacityError, lambda: ProvenanceGraph.from_edges(2**32, ids([]), ids([]))),
        (CapacityError, lambda: graph.append(2**32 - 3, ids([]), ids([]))),
        (CapacityError, lambda: graph.append(10**30, ids([]), ids([]))),
    ]
    for error, call in cases:
        with pytest.raises(error, match=r"expected .*got"):
            call()
    with pytest.raises(TypeError, match=r"sources: expected .*uint32, got 1-D int64"):
        graph.append(1, np.array([1]), ids([0]))
    assert (graph.num_nodes, graph.num_edges) == (3, 1)
    assert repr(graph) == "ProvenanceGraph(num_nodes=3, num_edges=1)"


def test_arrays_are_read_only() -> None:
    graph = build(3, [(0, 1), (1, 2)])
    for array in (graph.parents(1), graph.children(1), graph.order(), graph.groups()):
        assert array.dtype == np.uint32
        assert not array.flags.writeable


def test_readers_and_a_writer_share_a_graph() -> None:
    graph = build(1000, [(i, i + 1) for i in range(999)])
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            before = graph.num_nodes
            count = graph.reach(ids([0])).count()
            after = graph.num_nodes
            if not before <= count <= after or len(graph.order()) < before:
                wrong.append((before, count, after))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for node in range(1000, 4000):
        graph.append(1, ids([node - 1]), ids([node]))
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert graph.reach(ids([0])).count() == 4000


def test_no_object_is_ever_handed_out_with_nothing_inside() -> None:
    from memorepair import _core

    for kind in (_core.Closure, _core.Certificate, _core.ProvenanceGraph):
        with pytest.raises(TypeError, match="made by the library only"):
            kind.__new__(kind)
        with pytest.raises(TypeError):
            kind()
    bare = _core.Mask.__new__(_core.Mask)
    assert (bare.size, bare.count(), bare | bare) == (0, 0, _core.Mask(0))


def test_messages_name_what_came() -> None:
    graph = ProvenanceGraph.from_edges(3, ids([]), ids([]))
    frontier = graph.frontier(np.ones(3, dtype=np.int64), np.ones(3, dtype=np.int64))
    huge = 2**70
    for call in (
        lambda: graph.parents(huge),
        lambda: graph.append(huge, ids([]), ids([])),
        lambda: frontier.for_budget(-huge),
        lambda: frontier.point(huge),
    ):
        with pytest.raises(MemorepairError, match=str(huge)):
            call()
    for call in (
        lambda: graph.reach([1, 2]),  # type: ignore[arg-type]
        lambda: graph.reach(np.ma.masked_array(ids([1, 2]), [True, False])),
    ):
        with pytest.raises(TypeError, match=r"roots: expected a numpy array.*got"):
            call()
    mask = Mask(3)
    for call in (
        lambda: graph.closure(np.ones(3, dtype=np.int64), executable=np.ones(3, dtype=bool)),  # type: ignore[arg-type]
        lambda: graph.frontier(np.ones(3, dtype=np.int64), np.ones(3, dtype=np.int64), within=[1]),  # type: ignore[arg-type]
        lambda: Mask.from_bytes("x"),  # type: ignore[arg-type]
        lambda: mask.test(np.array([1])),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=r"^\w+: expected .*, got "):
            call()
    with pytest.raises(TypeError, match=r"list$"):  # made an array of ids, 1.5 would be 1
        graph.reach([1.5])  # type: ignore[arg-type]
