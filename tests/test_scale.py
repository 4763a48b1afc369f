"""Long chains and wide fans: linear, without recursion, withdrawn by one row and one epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stores import echo_rules

import memorepair as mr

SIZES = [30_000, pytest.param(1_000_000, marks=pytest.mark.slow)]


def grown(path: Path, shape: str, size: int) -> mr.Store:
    """A store with one root and `size` derived versions, as a chain or a fan."""
    store = mr.open(path, max_cascade=None)
    with store.batch() as batch:
        root = last = batch.put("root", "x")
    for start in range(0, size, 50_000):
        with store.batch() as batch:
            for i in range(start, min(size, start + 50_000)):
                parent = last if shape == "chain" else root
                last = batch.derive(f"k/{i:07}", "x", kind="cache", parents=[parent], operator="echo@1")
    return store


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", ["chain", "fan"])
def test_a_cascade_of_any_shape_goes_at_once(tmp_path: Path, shape: str, size: int) -> None:
    with grown(tmp_path / "a.db", shape, size) as store:
        kept = store.put("kept", "x")
        event = store.correct("root", "y", event_id="e1")
        assert (event.withdrawn, event.cascade) == (size + 1, size + 1)
        everything = np.arange(1, size + 10)
        assert np.flatnonzero(store.visible(everything)).tolist() == [kept.version - 1, kept.version]
        path = store.explain(f"k/{size - 1:07}").causes[0].path
        assert len(path) == (size + 1 if shape == "chain" else 2)
        rules = echo_rules()
        plan = mr.plan(store, event, rules, cost_weight=2)
        assert (len(plan.items), plan.selected) == (size, ())
    with mr.open(tmp_path / "a.db") as again:
        assert not again.visible([1, size]).any()
        assert again.visible([kept])[0]
