"""Maximum closure, building from numpy arrays included, beside every solver that pip installs; equal optima asserted.

Each solver runs in a process of its own with a time-out. `slow`: 10^6 nodes, where some of them take minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from closure_peers import OURS, PEERS
from families import COST_WEIGHTS, FAMILIES, MINES, Problem, cascade, mine, problem_of, weights
from pairs import Answers, raced
from workers import Worker

PROGRAM = Path(__file__).with_name("closure_peers.py")
LARGEST = {"igraph": 2 * 10**5}  # nodes; it needs 40 to 90 s at 10^6
MANY = 10**4  # nodes from which on the targets hold


class Case(NamedTuple):
    what: str
    family: str
    size: int
    cost_weight: Fraction = Fraction(1)
    share: float | None = None  # of the roots, when only their cascade is chosen from

    @property
    def is_slow(self) -> bool:
        return self.size >= 10**6 or (self.size >= 10**5 and self.cost_weight in (1, Fraction(3, 10)))

    def problem(self) -> Problem:
        if self.family in MINES:
            found = mine(self.family)
            if found is None:
                pytest.skip(f"mine {self.family}: set MEMOREPAIR_SHARED or put `shared` beside the checkout")
            return found
        whole = problem_of(self.family, self.size)
        return whole if self.share is None else cascade(whole, self.share)


def cases() -> Iterator[Case]:
    for power in (4, 5, 6):
        for family in FAMILIES:
            for price in COST_WEIGHTS[family]:
                yield Case(f"{family} 10^{power}, lambda {float(price):g}", family, 10**power, price)
    for power in (5, 6):
        for family in ("prov3", "prov10", "rand3"):
            price = COST_WEIGHTS[family][1]
            what = f"cascade in {family} 10^{power}, lambda {float(price):g}"
            yield Case(what, family, 10**power, price, share=0.01)
    yield Case("mine sim2d76", "sim2d76", 3_000)
    yield Case("mine bauxitemed", "bauxitemed", 374_400)


def parameters() -> list[Any]:
    return [pytest.param(case, marks=[pytest.mark.slow] * case.is_slow, id=case.what) for case in cases()]


@pytest.mark.parametrize("case", parameters())
def test_closure(benchmark: Any, case: Case, tmp_path: Path) -> None:
    problem = case.problem()
    priced = weights(problem, case.cost_weight)
    asked = [name for name, peer in PEERS.items() if peer.is_installed]
    asked = [name for name in asked if problem.num_nodes <= LARGEST.get(name, problem.num_nodes)]
    if asked == [OURS]:
        pytest.skip("no other solver is installed: pip install '.[peers]'")
    file = tmp_path / "problem.npz"
    np.savez(file, sources=problem.sources, targets=problem.targets, weights=priced, executable=problem.executable)
    about = {
        "section": "closure",
        "what": case.what,
        "nodes": problem.num_nodes,
        "edges": len(problem.sources),
        "judged": problem.num_nodes >= MANY,
    }

    def check(told: Answers) -> None:
        ours = told[OURS]
        for name, answer in told.items():
            assert answer["closed"], name
            assert answer["objective"] == ours["objective"], name
            assert answer["count"] >= ours["count"], name  # ours is the smallest optimum
        if case.family in MINES:
            assert ours["objective"] == MINES[case.family].optimum

    with ExitStack() as running:
        workers = {name: running.enter_context(Worker(PROGRAM, name, file)) for name in asked}
        raced(benchmark, workers, own=OURS, check=check, budget=10.0 if case.is_slow else 1.0, about=about)
