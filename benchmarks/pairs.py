"""Timing two ways of doing one thing, side by side.

Contract: `paired` times ours and every peer alternately in one run and leaves in `benchmark.extra_info` what table.py
prints: per peer the median of the per-round ratios ours / peer, so that a slow moment of the machine hits both sides.
Whoever calls it has asserted before that both sides give the same answer. `raced` does the same with workers, each in
a process of its own, and is given the comparison, since the answers come from there.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from workers import Refusal, Worker

Peer = Callable[[], float]  # does the work once and returns the seconds it took
Answers = dict[str, dict[str, Any]]  # by worker, what it told


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


def raced(
    benchmark: Any,
    workers: Mapping[str, Worker],
    *,
    own: str,
    check: Callable[[Answers], None],
    budget: float,
    about: Mapping[str, Any],
    rounds: int = 5,
) -> Answers:
    """
    Ask `own` and every other worker once, `check` what they tell, then ask all in turn; return the first answers.

    A worker is asked again while it has taken less than `budget` seconds. One that refuses is reported, not an error.
    The first run counts for memory only, unless there is no other. Leaves in `benchmark.extra_info`: `about`, and per
    worker the median seconds, bytes and the ratio own / worker.
    """
    told: Answers = {}
    refused: dict[str, str] = {}
    runs: dict[str, list[tuple[int, float]]] = {name: [] for name in workers}
    number = -1

    def ask(name: str) -> None:
        spent = sum(seconds for _, seconds in runs[name])
        if name in refused or (number >= 0 and spent > budget):
            return
        try:
            answer = workers[name].ask()
        except Refusal as reason:
            refused[name] = str(reason)
            return
        first = told.setdefault(name, answer)
        assert {**answer, "seconds": 0} == {**first, "seconds": 0}, name
        runs[name].append((number, answer["seconds"]))

    def others() -> None:
        nonlocal number
        number += 1
        for name in workers:
            if name != own:
                ask(name)

    for name in workers:
        ask(name)
    assert own in told, refused[own]
    check(told)
    rounds = max(1, min(rounds, round(budget / told[own]["seconds"])))
    benchmark.pedantic(lambda: ask(own), setup=others, rounds=rounds, iterations=1)
    mine = dict(runs[own])
    race: dict[str, dict[str, Any]] = {name: {"refused": reason} for name, reason in refused.items()}
    for name in told.keys() - refused.keys():
        warm = [(at, seconds) for at, seconds in runs[name] if at >= 0] or runs[name]
        ratio = statistics.median(mine[at] / seconds for at, seconds in warm)
        median = statistics.median(seconds for _, seconds in warm)
        race[name] = {"seconds": median, "bytes": told[name]["bytes"], "ratio": ratio}
    benchmark.extra_info.update(about, own=own, race=race)
    return told
