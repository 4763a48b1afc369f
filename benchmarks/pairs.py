"""Timing two ways of doing one thing, side by side.

Contract: `paired` times ours and every peer alternately in one run and leaves in `benchmark.extra_info` what table.py
prints: per peer the median of the per-round ratios ours / peer, so that a slow moment of the machine hits both sides.
Whoever calls it has asserted before that both sides give the same answer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Peer = Callable[[], float]  # does the work once and returns the seconds it took


def clocked(work: Callable[[], object]) -> Peer:
    """Return `work` as a peer that is timed from outside."""

    def run() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return run


def paired(
    benchmark: Any,
    ours: Callable[..., object],
    peers: Mapping[str, Peer],
    *,
    what: str,
    rounds: int = 7,
    warmup_rounds: int = 1,
    at_most: Mapping[str, float] | None = None,
    prepare: Callable[[], tuple[Any, ...]] = tuple,
    per: int = 1,
) -> None:
    """
    Time `ours(*prepare())` and each peer `rounds` times in turn.

    `at_most`: the wanted ratio ours / peer by peer; a miss is reported, never an error: the machine may be busy.
    `per`: how many things one round does, so that the table can show the time of one.
    """
    seconds: dict[str, list[float]] = {name: [] for name in peers}

    def before() -> tuple[tuple[Any, ...], dict[str, Any]]:
        for name, peer in peers.items():
            seconds[name].append(peer())
        return prepare(), {}

    benchmark.pedantic(ours, setup=before, rounds=rounds, iterations=1, warmup_rounds=warmup_rounds)
    own = benchmark.stats.stats.data
    beside = []
    for name, times in seconds.items():
        times = times[-rounds:]
        ratio = statistics.median(mine / other for mine, other in zip(own, times, strict=True))
        beside.append({"peer": name, "seconds": statistics.median(times) / per, "ratio": ratio,
                       "at_most": (at_most or {}).get(name)})  # fmt: skip
    benchmark.extra_info.update(what=what, seconds=statistics.median(own) / per, beside=beside)


def measured(benchmark: Any, what: str, value: float, unit: str, *, at_most: float | None) -> None:
    """Report a figure that has no peer, and its wanted limit, if there is one."""
    benchmark.extra_info.update(what=what, value=value, unit=unit, at_most=at_most)
