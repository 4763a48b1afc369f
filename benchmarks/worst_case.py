"""A search for problems that hurt the closure kernel: `python benchmarks/worst_case.py [--seeds N] [--json PATH]`.

Every shape with every kind of weights once, then the worst pairs again with other seeds; 10^4 to 10^5 nodes and at most
a million arcs each. Printed are the worst, by time per arc against the median of all and by time against the best peer.
A problem is named by shape, weights and seed, and comes again by that name: `--only SHAPE/WEIGHTS/SEED`.
An edge runs from what is needed to what needs it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from closure_peers import OURS, PEERS
from workers import Refusal, Worker

Ints = npt.NDArray[np.int64]
Rng = np.random.Generator
Edges = tuple[Ints, Ints]  # needed, needing

PROGRAM = Path(__file__).with_name("closure_peers.py")
MOST_ARCS = 10**6
SIZES = (10**4, 3 * 10**4, 10**5)
SCREEN = (OURS, "pymineflow")  # asked of every problem; the others only of the worst
PATIENCE = 60.0


# --- shapes: number of nodes wanted -> edges --------------------------------------------------------------------------


def ladder(size: int, rng: Rng) -> Edges:
    """Two rails, rungs that alternate in direction."""
    half = size // 2
    rail = np.arange(half - 1)
    rung = np.arange(half)
    left, right = 2 * rung, 2 * rung + 1
    flip = rung % 2 == 1
    return _join(
        (2 * rail, 2 * rail + 2),
        (2 * rail + 1, 2 * rail + 3),
        (np.where(flip, right, left), np.where(flip, left, right)),
    )


def star(size: int, rng: Rng) -> Edges:
    """A hub that half of the rest needs and that needs the other half, which are joined crosswise."""
    half = (size - 1) // 2
    low, high = np.arange(half), np.arange(half + 1, 2 * half + 1)
    hub = np.full(half, half)
    return _join((low, hub), (hub, high), (low, np.roll(high, int(rng.integers(half)))))


def layers(size: int, rng: Rng) -> Edges:
    """Dense layers: each node needs many of the layer below."""
    depth, fan = int(rng.choice([2, 3, 8, 30])), int(rng.choice([4, 16, 64]))
    width = size // depth
    fan = max(1, min(fan, MOST_ARCS // size))
    needing = np.repeat(np.arange(width, width * depth), fan)
    return (needing // width - 1) * width + rng.integers(0, width, len(needing)), needing


def tails(size: int, rng: Rng) -> Edges:
    """Many long chains that end in one shared tail."""
    length = int(rng.choice([10, 100, 1000]))
    shared = size // 4
    node = np.arange(1, size)
    below = np.where((node >= shared) & ((node - shared) % length == 0), rng.integers(0, shared, size - 1), node - 1)
    return below, node


def deep_grid(size: int, rng: Rng) -> Edges:
    """A pit much deeper than wide."""
    width = int(rng.choice([4, 20, 100]))
    block = np.arange(width, size)
    column = block % width
    return _join(
        *((block[inside] - width + step, block[inside]) for step in (-1, 0, 1)
          for inside in [(column + step >= 0) & (column + step < width)])
    )  # fmt: skip


def random_dag(size: int, rng: Rng) -> Edges:
    density = float(rng.choice([1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0]))
    one, other = rng.integers(0, size, (2, min(MOST_ARCS, int(density * size))))
    return _upward(one, other)


def window(size: int, rng: Rng) -> Edges:
    """Each node needs some of the last few."""
    back, fan = int(rng.choice([5, 50, 1000])), int(rng.choice([2, 3, 8]))
    needing = np.repeat(np.arange(1, size), fan)
    return np.maximum(0, needing - 1 - rng.integers(0, back, len(needing))), needing


def periodic(size: int, rng: Rng) -> Edges:
    """Each node needs those a few fixed steps before it."""
    steps = rng.choice(np.arange(1, int(rng.choice([4, 12, 200]))), int(rng.integers(2, 4)), replace=False)
    return _join(*((np.arange(size - step), np.arange(step, size)) for step in steps))


def line(size: int, rng: Rng) -> Edges:
    """One chain, and at its end a node that needs one more."""
    node = np.arange(size - 3)
    return np.r_[node, size - 3, size - 2], np.r_[node + 1, size - 1, size - 1]


def hubs(size: int, rng: Rng) -> Edges:
    """A few nodes that each need hundreds and are needed by hundreds."""
    wide = int(rng.choice([100, 1000]))
    hub = np.arange(wide, size - wide, 2 * wide + 1)[:, None]
    each, away, late = np.repeat(hub, wide), np.arange(1, wide + 1), hub[1:]
    return _join(
        ((hub - away).ravel(), each),
        (each, (hub + away).ravel()),
        ((late - 1 - rng.integers(0, 3 * wide, late.shape)).ravel(), late.ravel()),
    )


def matching(size: int, rng: Rng) -> Edges:
    """Two sides and a few random arcs a node: with unit weights, nearly perfect matchings."""
    half, fan = size // 2, int(rng.choice([2, 3, 4, 6]))
    needing = np.repeat(np.arange(half, 2 * half), fan)
    return rng.integers(0, half, len(needing)), needing


def frames(size: int, rng: Rng) -> Edges:
    """Square grids one behind the other, joined by random permutations, as in the RMF generator."""
    side = int(rng.choice([4, 10, 40]))
    area = side * side
    depth = max(2, size // area)
    front = np.arange(area * (depth - 1)).reshape(depth - 1, area)
    onward = np.stack([rng.permutation(area) for _ in range(depth - 1)]) + area * np.arange(1, depth)[:, None]
    cell = np.arange(area * depth)
    right, down = cell[cell % side < side - 1], cell[(cell % area) < area - side]
    return _join((front.ravel(), onward.ravel()), (right, right + 1), (down, down + side))


def butterfly(size: int, rng: Rng) -> Edges:
    """The graph of a fast Fourier transform."""
    bits = next(bits for bits in range(1, 30) if (bits + 1) * 2**bits >= size) - 1
    row = np.arange(2**bits)
    stage = np.arange(bits)[:, None]
    below, above = row + stage * 2**bits, row + (stage + 1) * 2**bits
    return _join(
        (below.ravel(), above.ravel()), (below.ravel(), ((row ^ (1 << stage)) + (stage + 1) * 2**bits).ravel())
    )


def tournaments(size: int, rng: Rng) -> Edges:
    """Groups in which each needs all before it, linked in a row."""
    group = min(200, MOST_ARCS // size * 2)
    low, high = np.triu_indices(group, 1)
    first = np.arange(0, size - group, group)[:, None]
    return _join(((first + low).ravel(), (first + high).ravel()), (first.ravel(), first.ravel() + group))


def tree(size: int, rng: Rng) -> Edges:
    """A random tree, and as many again of its nodes need one more of their elders."""
    node = np.arange(1, size)
    late = rng.integers(1, size, size // 4)
    return _join(
        ((rng.random(size - 1) * node).astype(np.int64), node), ((rng.random(len(late)) * late).astype(np.int64), late)
    )


def comb(size: int, rng: Rng) -> Edges:
    """A spine, and teeth at each of its nodes that end at random places of it."""
    spine, length = size // 5, 4
    base = np.arange(spine)
    tooth = spine + length * base
    within = (tooth[:, None] + np.arange(length - 1)).ravel()
    return _join(
        (base[:-1], base[1:]), (base, tooth), (within, within + 1), (rng.integers(0, spine, spine), tooth + length - 1)
    )


def cycles(size: int, rng: Rng) -> Edges:
    """Random arcs both ways, so that some nodes need one another."""
    one, other = rng.integers(0, size, (2, int(size * float(rng.choice([0.8, 1.1, 1.5])))))
    return one, other


def diamonds(size: int, rng: Rng) -> Edges:
    """A row of diamonds: every way through doubles the number of paths."""
    fan = int(rng.choice([2, 8]))
    step = fan + 1
    joint = np.arange(0, size - step, step)
    side = (joint[:, None] + np.arange(1, step)).ravel()
    return _join((np.repeat(joint, fan), side), (side, np.repeat(joint + step, fan)))


def memory(size: int, rng: Rng) -> Edges:
    """Popular and recent parents, many of them."""
    fan = int(rng.choice([2, 5, 10]))
    needing = np.repeat(np.arange(1, size), fan)
    draw = rng.random(len(needing))
    recent = np.minimum(needing, 1 + (20 * (np.maximum(draw, 1e-9) ** -0.8 - 1)).astype(np.int64))
    return np.where(rng.random(len(needing)) < 0.5, (needing * draw**3).astype(np.int64), needing - recent), needing


SHAPES: dict[str, Callable[[int, Rng], Edges]] = {
    shape.__name__: shape
    for shape in (
        ladder, star, layers, tails, deep_grid, random_dag, window, periodic, line, hubs, matching, frames, butterfly,
        tournaments, tree, comb, cycles, diamonds, memory,
    )
}  # fmt: skip


# --- weights: number of nodes, edges -> amounts -----------------------------------------------------------------------


def heavy(size: int, edges: Edges, rng: Rng) -> Ints:
    """Signs at random, Pareto tails, balanced in sum."""
    return _balanced(rng, np.where(rng.random(size) < 0.5, 1, -1) * (1000 * (1 + rng.pareto(1.1, size))))


def even(size: int, edges: Edges, rng: Rng) -> Ints:
    return _balanced(rng, rng.integers(-(10**6), 10**6 + 1, size).astype(np.float64))


def units(size: int, edges: Edges, rng: Rng) -> Ints:
    """One, none or minus one: ties everywhere."""
    return rng.choice([-1, -1, 0, 1, 1], size)


def ends(size: int, edges: Edges, rng: Rng) -> Ints:
    """Gains only where nothing else needs the node, costs only where it needs nothing: long ways between."""
    amounts = rng.integers(1, 1000, size)
    is_needed = np.bincount(edges[0], minlength=size) > 0
    needs = np.bincount(edges[1], minlength=size) > 0
    return _balanced(rng, np.where(needs & ~is_needed, amounts, 0) - np.where(is_needed & ~needs, amounts, 0.0))


def rare(size: int, edges: Edges, rng: Rng) -> Ints:
    """A few large gains against many small costs."""
    few = rng.random(size) < 0.002
    return _balanced(rng, np.where(few, rng.integers(10**5, 10**7, size), -rng.integers(1, 1000, size)).astype(float))


def slopes(size: int, edges: Edges, rng: Rng) -> Ints:
    """The further along the dearer, gains and costs in turn: what there is to gain has a long way to go."""
    node = np.arange(size)
    gains = node % int(rng.integers(2, 5)) == 1
    return np.where(gains, node + 1, -(size - node))


def one_against_all(size: int, edges: Edges, rng: Rng) -> Ints:
    """Each costs one; those that nobody needs pay for all but a few."""
    last = np.bincount(edges[0], minlength=size) == 0
    return np.where(last, (size - int(last.sum()) - 3) // max(1, int(last.sum())), -1)


def near_ties(size: int, edges: Edges, rng: Rng) -> Ints:
    """Each gain is within one of what the costs next to it come to."""
    costs = np.where(rng.random(size) < 0.5, rng.integers(1, 10**6, size), 0)
    shared = costs / np.maximum(1, np.bincount(edges[0], minlength=size))
    due = np.bincount(edges[1], weights=shared[edges[0]], minlength=size)
    return np.where(costs > 0, -costs, np.rint(due).astype(np.int64) + rng.integers(-1, 2, size))


WEIGHTS: dict[str, Callable[[int, Edges, Rng], Ints]] = {
    weights.__name__: weights for weights in (heavy, even, units, ends, rare, slopes, one_against_all, near_ties)
}


def _balanced(rng: Rng, amounts: npt.NDArray[np.float64]) -> Ints:
    """Scale the costs so that they come to about what there is to gain: neither all nor nothing is best."""
    gain, cost = amounts[amounts > 0].sum(), -amounts[amounts < 0].sum()
    factor = float(rng.choice([0.5, 1.0, 2.0])) * gain / max(cost, 1.0)
    return np.rint(np.where(amounts < 0, amounts * factor, amounts)).astype(np.int64)


def _join(*parts: Edges) -> Edges:
    needed, needing = zip(*parts, strict=True)
    return np.concatenate(needed), np.concatenate(needing)


def _upward(one: Ints, other: Ints) -> Edges:
    apart = one != other
    return np.minimum(one, other)[apart], np.maximum(one, other)[apart]


# --- the search -------------------------------------------------------------------------------------------------------


class Name(NamedTuple):
    shape: str
    weights: str
    seed: int

    def __str__(self) -> str:
        return f"{self.shape}/{self.weights}/{self.seed}"


class Outcome(NamedTuple):
    name: Name
    nodes: int
    arcs: int
    seconds: dict[str, float]  # PATIENCE where there was no answer

    @property
    def per_arc(self) -> float:
        return self.seconds[OURS] / (self.nodes + self.arcs)

    @property
    def against_best(self) -> float:
        return self.seconds[OURS] / min(seconds for name, seconds in self.seconds.items() if name != OURS)


def problem(name: Name) -> tuple[int, Edges, Ints]:
    rng = np.random.default_rng([list(SHAPES).index(name.shape), list(WEIGHTS).index(name.weights), name.seed])
    edges = SHAPES[name.shape](int(rng.choice(SIZES)), rng)
    size = int(max(side.max() for side in edges)) + 1
    amounts = WEIGHTS[name.weights](size, edges, rng)
    if rng.random() < 0.3:  # numbers that say nothing about the order
        shuffle = rng.permutation(size)
        renamed = np.empty_like(amounts)
        renamed[shuffle] = amounts
        return size, (shuffle[edges[0]], shuffle[edges[1]]), renamed
    return size, edges, amounts


def measure(name: Name, peers: tuple[str, ...]) -> Outcome:
    """The better of two runs each, the optimum asserted to be the same."""
    size, (needed, needing), amounts = problem(name)
    seconds, optima = {}, set()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        file = Path(folder) / "problem.npz"
        np.savez(
            file,
            sources=needed.astype(np.uint32),
            targets=needing.astype(np.uint32),
            weights=amounts,
            executable=np.ones(size, dtype=bool),
        )
        for peer in peers:
            worker = running.enter_context(Worker(PROGRAM, peer, file, patience=PATIENCE))
            try:
                runs = [worker.ask()]
                runs += [worker.ask()] if runs[0]["seconds"] < PATIENCE / 10 else []
            except Refusal:
                seconds[peer] = PATIENCE
                continue
            seconds[peer] = min(run["seconds"] for run in runs)
            optima.add((runs[0]["objective"], runs[0]["closed"]))
    assert len(optima) <= 1, f"{name}: {optima}"
    assert all(closed for _, closed in optima), name
    return Outcome(name, size, len(needed), seconds)


def search(seeds: int, kept: int = 6, report: Callable[[str], None] = lambda _: None) -> tuple[float, list[Outcome]]:
    """The median time per arc, and the worst problems, each of them measured beside every peer installed."""
    screen = tuple(name for name in SCREEN if PEERS[name].is_installed)
    everyone = tuple(name for name, peer in PEERS.items() if peer.is_installed and name not in ("igraph", "scipy"))

    def screened(name: Name) -> Outcome:
        outcome = measure(name, screen)
        report(described(outcome))
        return outcome

    found = [screened(Name(shape, weights, 0)) for shape in SHAPES for weights in WEIGHTS]
    median = statistics.median(one.per_arc for one in found)
    for one in worst_of(found, 2 * kept):
        found += [screened(one.name._replace(seed=seed)) for seed in range(1, seeds)]
    return median, [measure(one.name, everyone) for one in worst_of(found, kept)]


def worst_of(found: list[Outcome], count: int) -> list[Outcome]:
    """`count` by time per arc and as many by time against the best peer."""
    by_arc = sorted(found, key=lambda one: one.per_arc, reverse=True)[:count]
    by_peer = sorted(found, key=lambda one: one.against_best, reverse=True)[:count]
    return list({one.name: one for one in by_arc + by_peer}.values())


def described(one: Outcome) -> str:
    times = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in one.seconds.items())
    return f"{one.name}: {one.nodes:,} nodes, {one.arcs:,} arcs, {1e9 * one.per_arc:.0f} ns an arc; {times}"


def rows(median: float, worst: list[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "problem": str(one.name),
            "nodes": one.nodes,
            "arcs": one.arcs,
            "seconds": one.seconds,
            "ns_an_arc": 1e9 * one.per_arc,
            "of_median": one.per_arc / median,
            "of_best_peer": one.against_best,
        }
        for one in worst
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Search for problems that hurt the closure kernel.")
    parser.add_argument("--seeds", type=int, default=4, help="seeds for each of the worst pairs (default 4)")
    parser.add_argument("--only", help="one problem, SHAPE/WEIGHTS/SEED")
    parser.add_argument("--json", type=Path, help="also write the worst as JSON")
    arguments = parser.parse_args()
    if arguments.only:
        shape, weights, seed = arguments.only.split("/")
        print(described(measure(Name(shape, weights, int(seed)), tuple(n for n, p in PEERS.items() if p.is_installed))))
        return
    median, worst = search(arguments.seeds, report=lambda text: print(text, file=sys.stderr, flush=True))
    print(f"median: {1e9 * median:.0f} ns an arc")
    for one in worst:
        print(f"{one.per_arc / median:.1f} of the median, {one.against_best:.2f} of the best peer: {described(one)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows(median, worst), indent=1) + "\n")


if __name__ == "__main__":
    main()
