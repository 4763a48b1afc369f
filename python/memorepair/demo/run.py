"""Poison, correct, repair, and measure what can still be read at every step.

Contract: `run` is deterministic but for its timings: the same package gives the same figures. It needs no network, no
model and no seed. A leak is counted by reading: every key is asked for by `get`, every listing by `find`, and what
comes back counts when it holds an injected marker or differs from a clean re-execution; the cascade is never asked.
Source: MemoRepair, phases 1 to 4 and its leak figure.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from memorepair.artifact import Artifact, Gap
from memorepair.clock import monotonic_seconds
from memorepair.demo.trace import COSTS, VALUES, Memory, remember, rules_of
from memorepair.engine import repair
from memorepair.errors import InvalidRequestError
from memorepair.events import Event
from memorepair.location import is_postgres
from memorepair.planner import plan
from memorepair.report import Report
from memorepair.sqlite import SqliteBackend
from memorepair.store import Store, open_store
from memorepair.validators import text_of

COST_WEIGHT = "3/10"
STORY = "summary/workspace/user_task_0"
LIMITS = (
    "The ground-truth arguments of AgentDojo are constants of the benchmark, except one Slack channel name: the attack "
    "changes what tools return here, not what an agent then does.",
    "Summaries and skills are written by small deterministic functions, not by a model.",
    "Influence edges are derived from values that flowed, and were checked by planting each attack alone; "
    "they are not gold.",
)

Progress = Callable[[str], None]


class Leak(msgspec.Struct, frozen=True):
    """What could be read: how many artifacts, how many of them are stale, how many hold an injected marker."""

    readable: int
    stale: int
    marked: int


class Story(msgspec.Struct, frozen=True):
    """One artifact from stale to repaired."""

    key: str
    question: str
    marker: str
    before: str
    withdrawn: str
    path: tuple[str, ...]
    after: str


class DemoReport(msgspec.Struct, frozen=True, kw_only=True):
    """
    What the demo did. Leaks count readable artifacts that are stale; `truly_stale` is how many there were at first.

    `precision`: the share of withdrawn artifacts whose content really differs in a clean re-execution.
    `equal_to_clean`: visible artifacts after the repair whose content equals it; all of `visible` must.
    """

    tasks: int
    memory: dict[str, int]
    roots: int
    cascade: int
    truly_stale: int
    leak_before: int
    leak_source_only: int
    leak_withdrawn: int
    leak_after: int
    marked_before: int
    precision: float
    candidates: int
    selected: int
    published: int
    failed: int
    not_worth_it: int
    cost_weight: str
    cost_ratio: float
    cost: float
    unit: str
    certificate: str
    repair_all_published: int
    repair_all_cost: float
    repair_all_leak: int
    visible: int
    equal_to_clean: int
    fsck_findings: int
    validators: dict[str, tuple[str, ...]]
    costs: str
    values: str
    limits: tuple[str, ...]
    story: Story
    seconds: dict[str, float]

    @property
    def problems(self) -> tuple[str, ...]:
        """What did not come out as promised; empty when the demo holds."""
        checks = {
            f"{self.leak_withdrawn} stale artifacts readable behind the barrier": self.leak_withdrawn,
            f"{self.leak_after} stale artifacts readable after the repair": self.leak_after,
            f"{self.repair_all_leak} stale artifacts readable after repairing all": self.repair_all_leak,
            f"{self.visible - self.equal_to_clean} visible artifacts differ from a clean run": self.visible
            - self.equal_to_clean,
            f"{self.failed} rebuilds failed": self.failed,
            f"fsck found {self.fsck_findings} problems": self.fsck_findings,
            f"the plan's certificate is {self.certificate}": self.certificate != "verified",
        }
        return tuple(text for text, is_wrong in checks.items() if is_wrong)


def run(
    path: str | os.PathLike[str] | None = None,
    *,
    scope: str = "default",
    on_progress: Progress = lambda text: None,
) -> DemoReport:
    """
    Run the demo; `path` keeps the repaired store in a new file, otherwise it lives in memory.

    Raises InvalidRequestError when the file exists.
    """
    if is_postgres(path):
        raise InvalidRequestError("demo: expected the path of a new file, got the URL of a server; leave it out")
    if path is not None and os.path.lexists(path):
        raise InvalidRequestError(f"demo: {os.fspath(path)!r} exists; name a file that does not, or leave it out")
    return _Demo(path, scope, on_progress).report()


class _Demo:
    """The stores and figures of one run."""

    def __init__(self, path: str | os.PathLike[str] | None, scope: str, on_progress: Progress) -> None:
        self.path, self.scope, self.on_progress = path, scope, on_progress
        self.memory = Memory.shipped()
        self.rules = rules_of(self.memory)
        self.seconds: dict[str, float] = {}
        self.clean: dict[str, Any] = {}
        self.digests: dict[str, str] = {}
        self.corrections = {key: self.memory.source(key, "clean") for key in self.memory.poisoned}

    def report(self) -> DemoReport:
        started = monotonic_seconds()
        with self._store(None, "clean") as (_, reader):
            artifacts = _read(reader, self.memory.keys)
            self.clean = {key: artifact.content for key, artifact in artifacts.items()}
            self.digests = {key: artifact.digest for key, artifact in artifacts.items()}
        source_only = self._source_only()
        repair_all, repair_all_leak = self._repair_all()
        figures = self._main()
        self.seconds["total"] = monotonic_seconds() - started
        return DemoReport(
            tasks=len(self.memory.tasks),
            leak_source_only=source_only.stale,
            repair_all_published=repair_all.published,
            repair_all_cost=repair_all.planned_cost.micro / 1e6,
            repair_all_leak=repair_all_leak.stale,
            validators={kind: names for kind, names in self.rules.coverage().items() if kind != "record"},
            costs=COSTS,
            values=VALUES,
            limits=LIMITS,
            seconds={name: round(value, 4) for name, value in self.seconds.items()},
            **figures,
        )

    def _main(self) -> dict[str, Any]:
        """The injected memory: leak, event, plan, repair, leak again, comparison with the clean run."""
        with self._store(self.path, "injected") as (store, reader):
            before = self._leak(reader)
            stale = {key: artifact.content for key, artifact in _read(reader, self.memory.keys).items()}
            kinds = Counter(info.kind for info in reader.find())
            event = self._correct(store)
            gaps = [answer.key for answer in reader.get_many(self.memory.keys) if isinstance(answer, Gap)]
            gone = [*self.memory.poisoned, *gaps]  # a corrected source is visible again, its old version is gone
            withdrawn = self._leak(reader)
            gap = reader.get_many([STORY])[0]
            path = reader.explain(STORY).causes[0].path
            self.on_progress("planning and repairing")
            report = self._repair(store, event, COST_WEIGHT)
            after = self._leak(reader)
            repaired = _read(reader, self.memory.keys)
            findings = len(store.fsck())
        changed = {key for key in gone if stale[key] != self.clean[key]}
        return {
            "memory": dict(sorted(kinds.items())),
            "roots": len(event.roots),
            "cascade": event.withdrawn,
            "truly_stale": sum(stale[key] != self.clean[key] for key in stale),
            "leak_before": before.stale,
            "marked_before": before.marked,
            "leak_withdrawn": withdrawn.stale,
            "leak_after": after.stale,
            "precision": round(len(changed) / len(gone), 4),
            "candidates": report.candidates,
            "selected": report.selected,
            "published": report.published,
            "failed": sum(report.counts.get(fate, 0) for fate in ("failed", "blocked", "stalled", "removed")),
            "not_worth_it": report.counts.get("not worth it", 0),
            "cost_weight": report.cost_weight,
            "cost_ratio": round(report.cost_ratio or 0.0, 4),
            "cost": report.planned_cost.micro / 1e6,
            "unit": report.unit,
            "certificate": report.certificate,
            "visible": len(repaired),
            "equal_to_clean": sum(artifact.content == self.clean[key] for key, artifact in repaired.items()),
            "fsck_findings": findings,
            "story": self._story(stale[STORY], gap, path, repaired[STORY].content),
        }

    def _source_only(self) -> Leak:
        """What most stores do: the source row is replaced and nothing else is touched."""
        self.on_progress("replacing only the sources in a second copy")
        with self._store(None, "injected") as (store, reader):
            sources = _read(reader, self.corrections)
            with store.batch() as batch:
                for artifact in sources.values():
                    fields: dict[str, Any] = {"title": artifact.title, "labels": artifact.labels}
                    batch.put(artifact.key, self.corrections[artifact.key], supersede=True, **fields)
            return self._leak(reader)

    def _repair_all(self) -> tuple[Report, Leak]:
        """The same event in a third copy, everything rebuilt: the cost that the plan is compared with."""
        self.on_progress("repairing everything in a third copy")
        with self._store(None, "injected") as (store, reader):
            event = self._correct(store)
            return self._repair(store, event, "0"), self._leak(reader)

    def _correct(self, store: Store) -> Event:
        confirm = store.impact(self.corrections).confirm
        with self._timed("barrier"):
            return store.correct(
                self.corrections, event_id="demo/injected-sources", reason="injected text found", confirm=confirm
            )

    def _repair(self, store: Store, event: Event, cost_weight: str) -> Report:
        with self._timed("plan"):
            chosen = plan(store, event, self.rules, cost_weight=cost_weight)
        with self._timed("repair"):
            return repair(store, chosen, self.rules)

    def _leak(self, reader: Store) -> Leak:
        readable = _read(reader, self.memory.keys)
        listed = {info.key for info in reader.find() if info.digest != self.digests[info.key]}
        stale = {key for key, artifact in readable.items() if artifact.content != self.clean[key]}
        marked = {key for key, artifact in readable.items() if self._is_marked(artifact.content)}
        return Leak(len(readable), len(stale | marked | listed), len(marked))

    def _is_marked(self, content: Any) -> bool:
        text = text_of(content)
        return any(marker in text for marker in self.memory.markers.values())

    def _story(self, before: str, gap: Artifact | Gap, path: tuple[str, ...], after: str) -> Story:
        assert isinstance(gap, Gap)
        marker = next(marker for marker in self.memory.markers.values() if marker in before)
        question = self.memory.tasks[STORY]["prompt"]
        return Story(STORY, question, marker, before, gap.reason, path, after)

    @contextmanager
    def _store(self, path: str | os.PathLike[str] | None, world: str) -> Iterator[tuple[Store, Store]]:
        """A filled store, and a second handle whose reads are measurements and count for nothing."""
        self.on_progress(f"filling a store with the memory of the {world} world")
        backend = SqliteBackend(":memory:" if path is None else path)
        with closing(backend), open_store(backend, self.scope) as store:
            with self._timed("build"):
                remember(store, self.memory, world)
            yield store, open_store(backend, self.scope, count_reads=False)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = monotonic_seconds()
        yield
        self.seconds[name] = monotonic_seconds() - started  # of the last store: the one that the report is about


def _read(reader: Store, keys: Iterable[str]) -> dict[str, Artifact]:
    answers = reader.get_many(keys)
    return {answer.key: answer for answer in answers if isinstance(answer, Artifact)}
