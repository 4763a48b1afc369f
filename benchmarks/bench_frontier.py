"""Every lambda at once: all breakpoints, beside 100 lambdas by pymineflow and beside pseudoflow's parametric solver.

Building from numpy arrays is included. The optimum at the 100 lambdas is asserted to be the same, exactly where the
peer is exact. What cannot be executed is left out beforehand, so that all get the same arrays.
`slow`: 10^6 nodes, and pseudoflow, which needs many seconds at 10^4 and more than a minute at 10^5.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from closure_peers import OURS
from families import FAMILIES, MINES, mine, possible, problem_of
from frontier_peers import BISECTION, PARAMETRIC, PEERS
from pairs import Answers, raced
from workers import Worker

from memorepair._core import ProvenanceGraph

PROGRAM = Path(__file__).with_name("frontier_peers.py")
NUM_LAMBDAS = 100
DENOMINATOR = 10**4
LAMBDAS = {"pit": (0.02, 1.0)}  # from nearly all to nothing; of every other family:
USUAL = (0.05, 4.0)


class Case(NamedTuple):
    what: str
    family: str
    size: int


CASES = [Case(f"{family} 10^{power}", family, 10**power) for power in (4, 5, 6) for family in FAMILIES]
CASES += [Case(f"mine {name}", name, 0) for name in MINES]
DEFAULT = {"prov3 10^5", "pit 10^5", "mine sim2d76"}


def is_slow(case: Case) -> bool:
    return case.size != 10**4 and case.what not in DEFAULT


def parameters() -> list[Any]:
    return [pytest.param(case, marks=[pytest.mark.slow] * is_slow(case), id=case.what) for case in CASES]


def race(benchmark: Any, case: Case, peer: str, file: Path, check: Callable[[Answers], None], budget: float) -> None:
    if not hasattr(ProvenanceGraph, "frontier"):
        pytest.skip("this build has no frontier")
    if not PEERS[peer].is_installed:
        pytest.skip(f"{PEERS[peer].distribution} is not installed: pip install '.[peers]'")
    found = mine(case.family) if case.family in MINES else problem_of(case.family, case.size)
    if found is None:
        pytest.skip(f"mine {case.family}: set MEMOREPAIR_SHARED or put `shared` beside the checkout")
    problem = possible(found)
    numerators = np.rint(DENOMINATOR * np.geomspace(*LAMBDAS.get(case.family, USUAL), NUM_LAMBDAS)).astype(np.int64)
    np.savez(
        file,
        sources=problem.sources,
        targets=problem.targets,
        values=problem.values,
        costs=problem.costs,
        numerators=numerators,
        denominator=DENOMINATOR,
    )
    about = {
        "section": "frontier",
        "what": case.what,
        "nodes": problem.num_nodes,
        "edges": len(problem.sources),
        "at_most": 1.0 if peer == BISECTION else 0.01,
    }
    with ExitStack() as running:
        workers = {name: running.enter_context(Worker(PROGRAM, name, file)) for name in (OURS, peer)}
        told = raced(benchmark, workers, own=OURS, check=check, budget=budget, about=about)
    benchmark.extra_info["breakpoints"] = told[OURS]["breakpoints"]


@pytest.mark.parametrize("case", parameters())
def test_frontier(benchmark: Any, case: Case, tmp_path: Path) -> None:
    def check(told: Answers) -> None:
        assert all(answer["optima"] == told[OURS]["optima"] for answer in told.values())

    race(benchmark, case, BISECTION, tmp_path / "problem.npz", check, budget=10.0 if is_slow(case) else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.size == 10**4], ids=lambda case: case.what)
def test_parametric(benchmark: Any, case: Case, tmp_path: Path) -> None:
    def check(told: Answers) -> None:
        for answer in told.values():  # pseudoflow computes in doubles
            assert answer["optima"] == pytest.approx(told[OURS]["optima"], rel=1e-9)
            assert answer["breakpoints"] <= told[OURS]["breakpoints"] + 1

    race(benchmark, case, PARAMETRIC, tmp_path / "problem.npz", check, budget=10.0)
