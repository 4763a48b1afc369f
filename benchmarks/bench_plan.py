"""Planning a cascade end to end, and the exact selection alone beside a linear program, whose optimum must agree."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from pairs import clocked, paired
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from workloads import grow_cascade

import memorepair
from memorepair._core import Mask, ProvenanceGraph

LARGEST_PROGRAM = 10**4  # the linear program takes minutes above
WEIGHT = Fraction(4)


def rules() -> memorepair.Rules:
    answer = memorepair.Rules()
    answer.operator("summarise", version="1")(lambda job: memorepair.Draft("again"))
    return answer


class Case(NamedTuple):
    store: memorepair.Store
    event: memorepair.Event
    plan: memorepair.Plan


@pytest.fixture(scope="module", params=[10**3, 10**4, pytest.param(10**5, marks=pytest.mark.slow)])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("plan") / "agent.db"
    with memorepair.open(path, max_cascade=None) as store:
        grow_cascade(store, "policy", request.param + 1)
        event = store.correct("policy", "the new policy")
        plan = memorepair.plan(store, event, rules(), cost_weight=WEIGHT)
        assert len(plan.items) == request.param
        yield Case(store, event, plan)


class Selection(NamedTuple):
    """The problem that a plan solved: edges from what is needed to what needs it, and integer weights."""

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    chosen: np.ndarray


def selection_of(plan: memorepair.Plan) -> Selection:
    index = {item.key: node for node, item in enumerate(plan.items)}
    edges = [(index[key], node) for node, item in enumerate(plan.items) for key in item.needs]
    sources, targets = (np.array(side, dtype=np.uint32) for side in zip(*edges, strict=True))
    numerator, denominator = WEIGHT.as_integer_ratio()
    assert all(item.is_executable for item in plan.items)
    weights = [denominator * item.value - numerator * item.cost for item in plan.items]
    chosen = [node for node, item in enumerate(plan.items) if item.is_selected]
    return Selection(sources, targets, np.array(weights, dtype=np.int64), np.array(chosen, dtype=np.uint32))


def closure_of(problem: Selection) -> Mask:
    graph = ProvenanceGraph.from_edges(len(problem.weights), problem.sources, problem.targets)
    return graph.closure(problem.weights).selected


def program_of(problem: Selection) -> float:
    """The optimum by HiGHS: choosing a node asks for its parents; the matrix is totally unimodular."""
    count = len(problem.sources)
    rows, ones = np.arange(count), np.ones(count)
    shape = (count, len(problem.weights))
    needs = csr_matrix((ones, (rows, problem.targets)), shape=shape)
    needs -= csr_matrix((ones, (rows, problem.sources)), shape=shape)
    answer = linprog(-problem.weights / 1e6, A_ub=needs, b_ub=np.zeros(count), bounds=(0, 1), method="highs")
    assert answer.status == 0
    return float(-answer.fun)


def test_plan(benchmark: Any, case: Case) -> None:
    count = len(case.plan.items)

    def ours() -> None:
        assert memorepair.plan(case.store, case.event, rules(), cost_weight=WEIGHT).digest == case.plan.digest

    problem = selection_of(case.plan)
    assert 0 < len(problem.chosen) < count
    assert np.array_equal(closure_of(problem).ids(), problem.chosen)
    what = f"plan() end to end, {count:,} held keys, {len(problem.chosen):,} selected"
    paired(benchmark, ours, {}, what=what, rounds=5 if count < 10**5 else 3)
    benchmark.extra_info["each"] = count


def test_selection(benchmark: Any, case: Case) -> None:
    problem = selection_of(case.plan)
    count = len(problem.weights)
    selected = closure_of(problem)
    peers = {}
    if count <= LARGEST_PROGRAM:
        optimum = int(problem.weights[selected.ids()].sum()) / 1e6
        assert program_of(problem) == pytest.approx(optimum, rel=1e-9)
        peers["scipy linprog (HiGHS)"] = clocked(lambda: program_of(problem))
    paired(
        benchmark,
        lambda: closure_of(problem),
        peers,
        what=f"exact selection alone, {count:,} nodes, {len(problem.sources):,} edges: build + closure",
        rounds=5,
        at_most={"scipy linprog (HiGHS)": 1.0},
    )
