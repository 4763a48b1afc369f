"""Filtering ids by a mask of 10^6 among 10^7, in bulk and a hundred at a time, beside what numpy offers.

numpy gets its ids as int64, which it indexes with fastest, and its table of flags is built beforehand, as our mask is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pairs import clocked, measured, paired

from memorepair._core import Mask

SIZE = 10**7
SET = 10**6
CALLS = 1000


class Setting:
    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        withdrawn = rng.choice(SIZE, SET, replace=False)
        self.ids = rng.integers(0, SIZE, SIZE, dtype=np.uint32)
        self.indices = self.ids.astype(np.int64)
        self.mask = Mask.from_ids(withdrawn.astype(np.uint32), SIZE)
        self.alive = np.ones(SIZE, dtype=bool)
        self.alive[withdrawn] = False
        self.withdrawn = withdrawn


@pytest.fixture(scope="module")
def setting() -> Setting:
    return Setting()


def test_filter_in_bulk(benchmark: Any, setting: Setting) -> None:
    ids, alive, mask = setting.indices, setting.alive, setting.mask
    kept = mask.filter(setting.ids)
    peers: dict[str, Callable[[], np.ndarray]] = {
        "numpy, table of flags": lambda: ids[alive[ids]],
        "numpy, table of flags, take and compress": lambda: ids.compress(alive.take(ids)),
        "numpy isin": lambda: ids[~np.isin(ids, setting.withdrawn)],
    }
    for name, peer in peers.items():
        assert np.array_equal(peer(), kept), name
    paired(
        benchmark,
        lambda: mask.filter(setting.ids),
        {name: clocked(peer) for name, peer in peers.items()},
        what="filter of 10^7 ids by a mask with 10^6 set",
        at_most={"numpy, table of flags": 0.25, "numpy, table of flags, take and compress": 0.25},
    )


def test_filter_of_a_hundred(benchmark: Any, setting: Setting) -> None:
    few, indices = setting.ids[:100].copy(), setting.indices[:100].copy()
    alive, mask = setting.alive, setting.mask
    assert np.array_equal(mask.filter(few), indices[alive[indices]])

    def ours() -> None:
        for _ in range(CALLS):
            mask.filter(few)

    def numpys() -> None:
        for _ in range(CALLS):
            indices[alive[indices]]

    paired(
        benchmark,
        ours,
        {"numpy, table of flags": clocked(numpys)},
        what="filter of 100 ids by a mask with 10^6 set",
        rounds=21,
        per=CALLS,
    )


def test_time_of_a_call(benchmark: Any, setting: Setting) -> None:
    few = setting.ids[:100].copy()

    def ours() -> None:
        for _ in range(CALLS):
            setting.mask.filter(few)

    benchmark.pedantic(ours, rounds=21, iterations=1, warmup_rounds=1)
    microseconds = benchmark.stats.stats.median / CALLS * 1e6
    measured(benchmark, "filter of 100 ids, one call from Python", microseconds, "us", at_most=2)
