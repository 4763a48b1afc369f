"""Selection problems to measure on: an influence graph, what each node is worth, what it costs, what may be chosen.

Contract: deterministic in (family, size, seed). Edges run from what is needed to what needs it, child by child with
sorted parents and without repeats; amounts are integers, millionths. `weights` puts both together at one lambda.

Families: `prov3` and `prov10` are agent memories of about 3 and 10 edges a node (records, caches of them, summaries of
summaries, skills); `chain` is eight long histories with cross references; `rand3` has no structure; `proj` chooses
projects that share tools; `pit` is an open pit. `mine` reads the public pits beside the checkout, and `cascade` cuts
out of any of them what some roots reach.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memorepair._core import ProvenanceGraph

Ids = npt.NDArray[np.uint32]
Amounts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SHARED = Path(os.environ.get("MEMOREPAIR_SHARED", Path(__file__).resolve().parents[2] / "shared"))
SEED = 20261130


class Problem(NamedTuple):
    sources: Ids
    targets: Ids
    values: Amounts
    costs: Amounts
    executable: Flags
    roots: Ids  # where a withdrawal may begin

    @property
    def num_nodes(self) -> int:
        return len(self.values)

    def graph(self) -> ProvenanceGraph:
        return ProvenanceGraph.from_edges(self.num_nodes, self.sources, self.targets)


def weights(problem: Problem, cost_weight: Fraction) -> Amounts:
    """value - cost_weight * cost, exact and then rounded down."""
    numerator, denominator = cost_weight.as_integer_ratio()
    answer: Amounts = (denominator * problem.values - numerator * problem.costs) // denominator
    return answer


@lru_cache(maxsize=2)
def problem_of(family: str, size: int) -> Problem:
    """The problem of a family with about `size` nodes (`pit` rounds it to its grid)."""
    rng = np.random.default_rng([SEED, sorted(FAMILIES).index(family), size])
    return FAMILIES[family](size, rng)


# --- agent memories ---------------------------------------------------------------------------------------------------


class Level(NamedTuple):
    """One kind of artifact: how common it is, how many parents it has, of which levels, and what it is worth."""

    share: float
    parents: tuple[int, int]
    made_from: Mapping[int, float]
    worth: float


def _levels(shares: tuple[float, ...], summary_parents: tuple[int, int]) -> tuple[Level, ...]:
    record, cache, first, second, third, skill = shares
    return (
        Level(record, (0, 0), {}, 0.2),
        Level(cache, (1, 3), {0: 1.0}, 0.5),
        Level(first, summary_parents, {0: 0.6, 1: 0.4}, 1.0),
        Level(second, summary_parents, {0: 0.3, 1: 0.2, 2: 0.5}, 1.0),
        Level(third, summary_parents, {1: 0.2, 2: 0.4, 3: 0.4}, 1.0),
        Level(skill, (2, 8), {1: 0.2, 2: 0.5, 3: 0.2, 4: 0.1}, 2.0),
    )


SPARSE = _levels((0.50, 0.20, 0.105, 0.03, 0.015, 0.15), (3, 20))
DENSE = _levels((0.10, 0.05, 0.46, 0.13, 0.06, 0.20), (8, 20))


def _older(rng: np.random.Generator, available: Positions) -> Positions:
    """Per draw a position below `available`: half of them popular (old ones, by a power law), half recent."""
    draw = rng.random(len(available))
    popular = (available * draw**3).astype(np.int64)
    steps_back = np.floor(50 * (np.maximum(draw, 1e-9) ** -0.8 - 1))
    recent = available - 1 - np.minimum(steps_back, available - 1).astype(np.int64)
    return np.where(rng.random(len(available)) < 0.5, popular, recent)


def _memory(size: int, rng: np.random.Generator, levels: tuple[Level, ...]) -> Problem:
    level = rng.choice(len(levels), size, p=[one.share for one in levels])
    level[: max(50, size // 200)] = 0
    born = [np.flatnonzero(level == number) for number in range(len(levels))]
    sources, targets = [], []
    for number, kind in enumerate(levels[1:], start=1):
        children = np.repeat(born[number], rng.integers(kind.parents[0], kind.parents[1] + 1, len(born[number])))
        origins, chances = list(kind.made_from), list(kind.made_from.values())
        origin = rng.choice(origins, len(children), p=chances)
        for wanted in origins:
            mine = children[origin == wanted]
            available = np.searchsorted(born[wanted], mine)
            early = available == 0  # nothing of that level yet: made from a record
            for pool, those in ((born[wanted], mine[~early]), (born[0], mine[early])):
                sources.append(pool[_older(rng, np.searchsorted(pool, those))])
                targets.append(those)
    worth = np.array([kind.worth for kind in levels])[level]
    edges = _distinct(size, np.concatenate(sources), np.concatenate(targets))
    return _priced(rng, edges, np.minimum(1.0, _values(rng, size) * worth), _costs(rng, size), born[0])


# --- the other families -----------------------------------------------------------------------------------------------


def _chain(size: int, rng: np.random.Generator, width: int = 8) -> Problem:
    """`width` histories side by side; a tenth of the steps is also used by the next history."""
    steps = np.arange(size - width)
    crossing = steps[rng.random(len(steps)) < 0.1]
    across = (crossing // width + 1) * width + (crossing + 1) % width
    across = np.minimum(across, size - 1)
    edges = _distinct(size, np.concatenate([steps, crossing]), np.concatenate([steps + width, across]))
    executable = np.ones(size, dtype=bool)
    executable[rng.integers(size // 2, size, 3)] = False
    return _problem(edges, _values(rng, size), _costs(rng, size), executable, np.arange(max(width, size // 100)))


def _rand3(size: int, rng: np.random.Generator) -> Problem:
    one, other = rng.integers(0, size, (2, 3 * size))
    apart = one != other
    edges = _distinct(size, np.minimum(one, other)[apart], np.maximum(one, other)[apart])
    return _priced(rng, edges, _values(rng, size), _costs(rng, size), np.arange(size // 2))


def _proj(size: int, rng: np.random.Generator) -> Problem:
    """Tools, which only cost, and projects of 3 to 10 tools, which are only worth something; some tools are popular."""
    tools = size // 2
    projects = np.repeat(np.arange(tools, size), rng.integers(3, 11, size - tools))
    needed = (tools * rng.random(len(projects)) ** 1.7).astype(np.int64)
    values, costs = _values(rng, size), _costs(rng, size, median=0.25)
    values[:tools] = 0
    costs[tools:] = 0
    edges = _distinct(size, needed, projects)
    return _problem(edges, values, costs, np.ones(size, dtype=bool), np.arange(tools))


def _pit(size: int, rng: np.random.Generator) -> Problem:
    """A block needs the five blocks above it; some bodies of ore, richer with depth; digging costs more with depth."""
    depth = max(8, round((size / 4) ** (1 / 3)))
    side = round((size / depth) ** 0.5)
    shape = (depth, side, side)
    sources, targets = _above(shape, [(0, 0, 1), (1, 0, 1), (-1, 0, 1), (0, 1, 1), (0, -1, 1)])
    level, row, column = np.indices(shape).reshape(3, -1)
    grade = np.zeros(len(level))
    for _ in range(40):
        x, y, z = rng.random() * side, rng.random() * side, (0.3 + 0.7 * rng.random()) * depth
        radius = (0.04 + 0.10 * rng.random()) * side
        squares = (column - x) ** 2 + (row - y) ** 2 + 2 * (level - z) ** 2
        grade = np.maximum(grade, np.exp(-squares / radius**2))
    deep = level / depth
    values = np.minimum(1.0, _values(rng, len(level), 0.25) * grade * (0.3 + deep))
    values[deep < 0.12] = 0
    costs = _costs(rng, len(level), median=0.12, sigma=0.3) * (1 + deep)
    edges = _distinct(len(level), sources, targets)
    return _problem(edges, values, costs, np.ones(len(level), dtype=bool), np.arange(side * side))


FAMILIES: dict[str, Callable[[int, np.random.Generator], Problem]] = {
    "prov3": lambda size, rng: _memory(size, rng, SPARSE),
    "prov10": lambda size, rng: _memory(size, rng, DENSE),
    "chain": _chain,
    "rand3": _rand3,
    "proj": _proj,
    "pit": _pit,
}
# A low price of cost, and one at which about half of the nodes cost more than they are worth, or half are chosen.
COST_WEIGHTS = {
    "prov3": (Fraction(3, 10), Fraction(6, 10)),
    "prov10": (Fraction(3, 10), Fraction(11, 10)),
    "chain": (Fraction(3, 10), Fraction(19, 20)),
    "rand3": (Fraction(3, 10), Fraction(21, 20)),
    "proj": (Fraction(3, 10), Fraction(4, 10)),
    "pit": (Fraction(3, 10), Fraction(5, 10)),
}


# --- public mines -----------------------------------------------------------------------------------------------------

Offset = tuple[int, int, int]  # x, y, z; z counts upwards


class Mine(NamedTuple):
    file: str
    shape: Offset
    above: tuple[Offset, ...]
    optimum: int  # published, of values - costs


_CROSS = ((-1, 0, 1), (0, -1, 1), (0, 0, 1), (0, 1, 1), (1, 0, 1))
_CORNERS = tuple((x, y, 3) for x in (-2, 2) for y in (-2, 2))
_KNIGHTS = tuple((x, y, 5) for a, b in ((4, 3), (3, 4)) for x in (-a, a) for y in (-b, b))
MINES = {
    "sim2d76": Mine("sim2d76.dat", (75, 1, 40), ((-1, 0, 1), (0, 0, 1), (1, 0, 1)), 295_932),
    "bauxitemed": Mine("bauxitemed.dat.gz", (120, 120, 26), _CROSS + _CORNERS + _KNIGHTS, 28_416_592),
}


def mine(name: str) -> Problem | None:
    """A published pit: what a block brings as its value, what it takes as its cost. None when the file is not there."""
    pit = MINES[name]
    path = SHARED / "data" / "mines" / pit.file
    if not path.exists():
        return None
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    amounts = np.array(text.split(), dtype=np.int64)
    width, length, height = pit.shape
    # The file counts from the bottom, _above() from the top.
    sources, targets = _above((height, length, width), pit.above)
    layer = width * length
    flip = (height - 1 - np.arange(height))[:, None] * layer + np.arange(layer)
    edges = _distinct(len(amounts), flip.ravel()[sources], flip.ravel()[targets])
    gains, losses = np.maximum(amounts, 0), np.maximum(-amounts, 0)
    return Problem(*edges, gains, losses, np.ones(len(amounts), dtype=bool), np.empty(0, dtype=np.uint32))


def _above(shape: tuple[int, int, int], offsets: Sequence[Offset]) -> tuple[Positions, Positions]:
    """Edges of a grid of levels (top first), rows and columns: each block needs those at its offsets, if inside."""
    _, length, width = shape
    level, row, column = np.indices(shape)
    sources, targets = [], []
    for x, y, z in offsets:
        inside = (level - z >= 0) & (row + y >= 0) & (row + y < length) & (column + x >= 0) & (column + x < width)
        block = np.flatnonzero(inside)
        sources.append(block - z * length * width + y * width + x)
        targets.append(block)
    return np.concatenate(sources), np.concatenate(targets)


# --- parts of problems ------------------------------------------------------------------------------------------------


def cascade(problem: Problem, share: float = 0.01, seed: int = 0) -> Problem:
    """What a random `share` of the roots reaches, as a problem of its own."""
    count = max(1, round(share * len(problem.roots)))
    roots = np.random.default_rng(seed).choice(problem.roots, count, replace=False)
    return part(problem, problem.graph().reach(roots).ids())


def possible(problem: Problem) -> Problem:
    """Without what cannot be executed and what depends on it."""
    never = problem.graph().reach(np.flatnonzero(~problem.executable).astype(np.uint32))
    return part(problem, np.setdiff1d(np.arange(problem.num_nodes, dtype=np.uint32), never.ids(), assume_unique=True))


def part(problem: Problem, nodes: Ids) -> Problem:
    """The problem on some nodes (sorted); edges that leave them are dropped."""
    place = np.full(problem.num_nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    sources, targets = place[problem.sources], place[problem.targets]
    inside = (sources >= 0) & (targets >= 0)
    roots = place[problem.roots]
    return Problem(
        _ids(sources[inside]),
        _ids(targets[inside]),
        problem.values[nodes],
        problem.costs[nodes],
        problem.executable[nodes],
        _ids(roots[roots >= 0]),
    )


def _ids(numbers: Positions) -> Ids:
    return numbers.astype(np.uint32)


def _distinct(size: int, sources: Positions, targets: Positions) -> tuple[Ids, Ids]:
    keys = np.unique(targets.astype(np.int64) * size + sources)
    return _ids(keys % size), _ids(keys // size)


def _values(rng: np.random.Generator, size: int, least: float = 0.05) -> Floats:
    """Heavy-tailed, at most one."""
    return np.minimum(1.0, least * (1 + rng.pareto(1.2, size)))


def _costs(rng: np.random.Generator, size: int, median: float = 0.1, sigma: float = 1.0) -> Floats:
    return rng.lognormal(np.log(median), sigma, size)


def _priced(
    rng: np.random.Generator, edges: tuple[Ids, Ids], values: Floats, costs: Floats, roots: Positions
) -> Problem:
    """One node in a hundred cannot be executed: nodes that at most one other was made from."""
    size = len(values)
    late = np.flatnonzero(np.bincount(edges[0], minlength=size) <= 1)
    executable = np.ones(size, dtype=bool)
    executable[rng.choice(late, size // 100, replace=False)] = False
    return _problem(edges, values, costs, executable, roots)


def _problem(edges: tuple[Ids, Ids], values: Floats, costs: Floats, executable: Flags, roots: Positions) -> Problem:
    worth, price = (np.rint(1e6 * side).astype(np.int64) for side in (values, costs))
    return Problem(*edges, worth, price, executable, _ids(roots))
