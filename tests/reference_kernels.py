"""The kernels of `memorepair._core` in plain Python: the specification that the tests compare with.

Contract: slow and obvious. Nothing here imports `_core`; graphs are sets of pairs (source, target), masks are sets.
An edge source -> target means "source influences target", so the target requires the source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

Edges = Iterable[tuple[int, int]]


def clean(edges: Edges) -> set[tuple[int, int]]:
    """Return the edges without duplicates and self edges."""
    return {(source, target) for source, target in edges if source != target}


def reach(edges: Edges, roots: Iterable[int]) -> set[int]:
    """Return all that the roots influence, roots included."""
    children = defaultdict(list)
    for source, target in edges:
        children[source].append(target)
    seen = set(roots)
    todo = list(seen)
    while todo:
        for child in children[todo.pop()]:
            if child not in seen:
                seen.add(child)
                todo.append(child)
    return seen


def reverse(edges: Edges) -> list[tuple[int, int]]:
    """Return the edges turned round."""
    return [(target, source) for source, target in edges]


def order_and_groups(num_nodes: int, edges: Edges) -> tuple[list[int], list[int]]:
    """Return the canonical order and the group of each node: again and again the first node whose group is ready."""
    edges = clean(edges)
    below = [reach(edges, [node]) for node in range(num_nodes)]
    group = [{u for u in below[v] if v in below[u]} for v in range(num_nodes)]
    order: list[int] = []
    label = [-1] * num_nodes
    next_label = 0
    while len(order) < num_nodes:
        for node in range(num_nodes):
            inputs = {s for s, t in edges if t in group[node]} - group[node]
            if label[node] < 0 and all(label[s] >= 0 for s in inputs):
                for member in sorted(group[node]):
                    label[member] = next_label
                    order.append(member)
                next_label += 1
                break
    return order, label


def seal(data: bytes) -> bytes:
    """Return a graph snapshot with the right checksum: sums, and sums of sums, of four lanes over blocks of 4096."""
    num_nodes, num_edges = (int.from_bytes(data[at : at + 8], "little") for at in (8, 16))
    ends = accumulate([32, 8 * (num_nodes + 1), 8 * (num_nodes + 1), 8 * num_edges])
    sections = [data[:24], *(data[first:end] for first, end in pairwise(ends))]
    total = 0

    def fold(word: int) -> None:
        nonlocal total
        product = (total ^ word) * 0x9E3779B97F4A7C15 % 2**64
        total = (product << 29 | product >> 35) % 2**64

    for section in sections:
        for first in range(0, len(section), 4096):
            block = section[first : first + 4096]
            block += bytes(-len(block) % 32)
            words = [int.from_bytes(block[at : at + 8], "little") for at in range(0, len(block), 8)]
            for lane in range(4):
                sums = list(accumulate(words[lane::4]))
                fold(sums[-1] % 2**64)
                fold(sum(sums) % 2**64)
    return data[:24] + (total ^ total >> 29).to_bytes(8, "little") + data[32:]


def snapshot(num_nodes: int, edges: Edges) -> bytes:
    """Return the bytes that a graph is stored as: header, where the lists begin and end, and the lists."""
    edges = sorted(clean(edges))
    sides = [[[a for a, b in pairs if b == node] for node in range(num_nodes)] for pairs in (edges, reverse(edges))]
    offsets = [offset for side in sides for offset in accumulate(map(len, side), initial=0)]
    heads = [node for side in sides for one in side for node in one]
    header = bytes([1, 0, 0, 0, 0, 0, 0, 0]) + num_nodes.to_bytes(8, "little") + len(edges).to_bytes(8, "little")
    body = b"".join(number.to_bytes(8, "little") for number in offsets)
    return seal(header + bytes(8) + body + b"".join(number.to_bytes(4, "little") for number in heads))


def eligible(num_nodes: int, edges: Edges, executable: set[int] | None, within: set[int] | None) -> set[int]:
    """Return the nodes that may be selected: inside, executable, and so is all they depend on inside."""
    inside = set(range(num_nodes)) if within is None else within
    blocked = set() if executable is None else inside - executable
    inner = [(s, t) for s, t in edges if s in inside and t in inside]
    return inside - reach(inner, blocked)


def is_closed(edges: Edges, selected: set[int], within: set[int] | None) -> bool:
    """Whether each selected node has its parents inside `within` selected."""
    return all(s in selected for s, t in edges if t in selected and (within is None or s in within))


def best_closure(
    num_nodes: int,
    edges: Edges,
    weights: Sequence[int],
    executable: set[int] | None = None,
    within: set[int] | None = None,
) -> tuple[int, set[int]]:
    """Return value and members of the smallest best closure, by trying every subset (as bits of an integer)."""
    allowed = eligible(num_nodes, edges, executable, within)
    inside = set(range(num_nodes)) if within is None else within
    nodes = sorted(allowed)
    bit = {node: 1 << i for i, node in enumerate(nodes)}
    needs = [sum({bit[s] for s, t in edges if t == node and s in inside and s != node}) for node in nodes]
    best_value, best_set = 0, 0
    for chosen in range(1 << len(nodes)):
        value, closed = 0, True
        for i, node in enumerate(nodes):
            if chosen >> i & 1:
                if needs[i] & ~chosen:
                    closed = False
                    break
                value += weights[node]
        if closed and (value, -chosen.bit_count()) > (best_value, -best_set.bit_count()):
            best_value, best_set = value, chosen
    return best_value, {node for node in nodes if best_set & bit[node]}


def certificate_holds(
    num_nodes: int,
    edges: Edges,
    weights: Sequence[int],
    executable: set[int] | None,
    within: set[int] | None,
    selected: set[int],
    objective: int,
    flow: Sequence[tuple[int, int, int]],
    absorbed: Sequence[int],
) -> bool:
    """Whether the flow proves `selected` the smallest best closure. `flow` lists (source, target, amount).

    Flow runs from target to source, from what is worth something to what it requires. Weak duality bounds every
    closure by the positive sum less what is absorbed; what holds excess, requires or feeds it lies in every optimum.
    """
    edges = clean(edges)
    allowed = eligible(num_nodes, edges, executable, within)
    if not selected <= allowed or not is_closed(edges, selected, within) or len(absorbed) != num_nodes:
        return False
    excess = [max(w, 0) if v in allowed else 0 for v, w in enumerate(weights)]
    for node, amount in enumerate(absorbed):
        if not 0 <= amount <= (max(-weights[node], 0) if node in allowed else 0):
            return False
        excess[node] -= amount
    for source, target, amount in flow:
        if amount <= 0 or (source, target) not in edges or not {source, target} <= allowed:
            return False
        excess[source] += amount
        excess[target] -= amount
    if any(left < 0 for left in excess):
        return False
    bound = sum(max(weights[v], 0) - absorbed[v] for v in allowed)
    if not objective == bound == sum(weights[v] for v in selected):
        return False
    residual = [(t, s) for s, t in edges if s in allowed and t in allowed] + [(s, t) for s, t, _ in flow]
    return reach(residual, {v for v in allowed if excess[v] > 0}) == selected
