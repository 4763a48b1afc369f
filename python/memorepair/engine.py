"""The engine: run a plan's operators in order into staging, validate, publish.

Contract: `repair` returns a Report that says what became of every candidate. It may be stopped at any instant: what
is not published stays withdrawn and can be planned again. Operators run outside every transaction.
Journal: every result is staged, durably, before its validators see it; an attempt that ends for any reason drops what
it staged. Nothing is taken up again from the stage yet.
Order: an operator starts when each selected predecessor has its verdict; batches are published as they are ready,
or all at the end.
Source: MemoRepair phase 4; docs/SEMANTICS.md section 4, invariants I5 and I6.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from memorepair.candidates import Inputs, trace_inputs
from memorepair.content import decode
from memorepair.errors import InvalidRequestError, MemorepairError, OperatorError, PlanError, StoreError
from memorepair.execution import Made, fresh, judge, run_operator
from memorepair.planner import Plan, PlanItem, checked_store
from memorepair.protocol import AttemptRow, FateRow, StageRow, VersionRow, pack_ids
from memorepair.publish import owns, publish
from memorepair.report import Outcome, Report
from memorepair.rules import Job, Operator, Rules
from memorepair.scope import View, Writer

if TYPE_CHECKING:
    from memorepair.store import Store

Progress = Callable[[str, str], None]  # key, what happened to it


def repair(
    store: Store,
    plan: Plan,
    rules: Rules,
    *,
    publish: str = "ready",
    on_progress: Progress | None = None,
) -> Report:
    """
    Rebuild what a plan selected, validate it, and publish what passes.

    `publish`: "ready" publishes what is validated as its required parents are, "at_end" all in one transaction.
    `on_progress(key, state)` is called in this thread. Raises PlanError when the plan belongs to another store or
    scope or is not certified; a failing operator or validator raises nothing and is told by the report.
    """
    if publish not in ("ready", "at_end"):
        raise InvalidRequestError(f"publish: expected 'ready' or 'at_end', got {publish!r}")
    checked_store(store)
    if not isinstance(plan, Plan):
        raise InvalidRequestError(f"plan: expected a Plan from mr.plan(), got {type(plan).__name__}")
    if not isinstance(rules, Rules):
        raise InvalidRequestError(f"rules: expected Rules, got {type(rules).__name__}")
    if plan.certificate != "verified":
        raise PlanError("repair: the plan's certificate is not verified; make it with memorepair.plan")
    with store._reading() as view:
        if (plan.store, plan.scope) != (view.scope.backend.uuid, view.scope.name):
            raise PlanError(f"repair: the plan was made for scope {plan.scope!r} of another store; plan this one")
        if plan.epoch > view.epoch:
            raise PlanError("repair: the plan is newer than the store, which may be a restored backup; plan again")
    return _Run(store, plan, rules, publish == "at_end", on_progress or (lambda key, state: None)).report()


class _Overtaken(MemorepairError):
    """The world moved on before an operator was called."""


@dataclass
class _Run:
    """One attempt at one plan."""

    store: Store
    plan: Plan
    rules: Rules
    is_at_end: bool
    on_progress: Progress
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    staged: dict[str, StageRow] = field(default_factory=dict)  # validated, waiting for publication
    attempt: AttemptRow = field(init=False)
    ids: dict[str, int] = field(default_factory=dict)
    read_old: set[str] = field(default_factory=set)
    seen: dict[str, bytes] = field(default_factory=dict)  # the head's parents as each job was given them
    items: dict[str, PlanItem] = field(init=False)

    def report(self) -> Report:
        self.items = {item.key: item for item in self.plan.items}
        for item in self.plan.items:
            if not item.is_selected:
                self._settle(item, item.decision, item.reason)
        selected = self.plan.selected
        if selected:
            self._begin(selected)
            try:
                self._run()
            except BaseException as error:
                # Whatever it was, the attempt is over: what was staged is dropped, everything rests withdrawn.
                with suppress(MemorepairError), self.store._writing("attempt") as writer:
                    self._close(writer, "failed", f"{type(error).__name__} ended it")
                raise
        self._finish(bool(selected))
        return Report.of(self.plan, self.outcomes, self.rules.coverage())

    def _run(self) -> None:
        for level in _levels(self.plan):
            for key in level:
                self._rebuild(self.items[key])
            if not self.is_at_end:
                self._publish()
        self._publish()

    # -- the journal -----------------------------------------------------------------------------------------------

    def _begin(self, selected: tuple[str, ...]) -> None:
        with self.store._writing("attempt") as writer:
            self.attempt = AttemptRow(
                attempt=writer.new_epoch,
                state="staging",
                token=writer.new_epoch,
                event_id=self.plan.event_id,
                plan_digest=self.plan.digest,
                plan_epoch=self.plan.epoch,
                owner=f"{socket.gethostname()}:{os.getpid()}",
            )
            writer.batch.attempts.append(self.attempt)
            # Ids rise in execution order, so that edges run from older to younger.
            self.ids = {key: writer.allocate() for key in selected}

    def _stage(self, item: PlanItem, row: VersionRow, made: Made) -> StageRow:
        number, body = self.attempt.attempt, made.body
        stage = StageRow(number, row, body.codec, body.body, item.head, self.seen[item.key], "staged")
        with self.store._writing("stage") as writer:
            if not owns(writer, self.attempt):
                raise OperatorError("another engine took this attempt over; its result is refused")
            writer.batch.stages.append(stage)
        return stage

    def _publish(self) -> None:
        if not self.staged:
            return
        with self.store._writing("publish", [*self.staged]) as writer:
            refused = publish(writer, self.attempt, self.staged.values())
        for key, stage in self.staged.items():
            if key in refused:
                self._settle(self.items[key], "stalled", refused[key])
            else:
                self._settle(self.items[key], "published", "", stage.row)
        self.staged = {}

    def _finish(self, has_attempt: bool) -> None:
        number = self.attempt.attempt if has_attempt else 0
        with self.store._writing("fates", [item.key for item in self.plan.items]) as writer:
            known = writer.snapshot.fates(item.head for item in self.plan.items)
            for item in self.plan.items:
                outcome = self.outcomes[item.key]
                head = writer.head(item.key)
                # A stalled key is decided by nobody yet; a key with a newer head is no longer ours to judge.
                if outcome.fate in ("published", "stalled") or head is None or head.head != item.head:
                    continue
                fate = FateRow(item.head, item.key, outcome.fate, outcome.reason, number, writer.new_epoch)
                old = known.get(item.head)
                if old is None or (old.fate, old.reason, old.attempt) != (fate.fate, fate.reason, number):
                    writer.batch.fates.append(fate)
            if has_attempt:
                chosen = {self.outcomes[key].fate for key in self.plan.selected}
                state = "stalled" if "stalled" in chosen else "published" if chosen == {"published"} else "failed"
                self._close(writer, state, "")

    def _close(self, writer: Writer, state: str, reason: str) -> None:
        if owns(writer, self.attempt):
            for stage in writer.snapshot.stages(self.attempt.attempt):
                writer.batch.unstaged.append((stage.attempt, stage.row.version))
            writer.batch.attempts.append(msgspec.structs.replace(self.attempt, state=state, reason=reason))

    def _settle(self, item: PlanItem, fate: str, reason: str, row: VersionRow | None = None) -> None:
        told = self.outcomes.get(item.key) or Outcome(
            key=item.key,
            kind=item.kind,
            fate=fate,
            reason=reason,
            mode=item.mode,
            is_fill=item.decision == "fill",
        )
        version = None if row is None else row.version
        self.outcomes[item.key] = msgspec.structs.replace(told, fate=fate, reason=reason, version=version)
        self.on_progress(item.key, fate)

    def _note(self, item: PlanItem, **facts: Any) -> None:
        """Keep what the run of an operator was like."""
        self.outcomes[item.key] = msgspec.structs.replace(self.outcomes[item.key], **facts)

    # -- one artifact ----------------------------------------------------------------------------------------------

    def _rebuild(self, item: PlanItem) -> None:
        operator = self.rules.operators.get((item.operator or "").partition("@")[0])
        if operator is None:
            self._settle(item, "failed", f"operator {item.operator!r} is not registered in these rules")
            return
        try:
            job, row = self._job(item, operator)
            while max(job.versions.values(), default=0) > job.version:
                # An input was replaced since: take a younger id, so that the edge still runs from older to younger.
                self.ids[item.key] = self._younger_id()
                job, row = self._job(item, operator)
        except _Overtaken as overtaken:
            self._settle(item, "stalled", str(overtaken))
            return
        except StoreError:
            raise  # the store's trouble is nobody's fate
        except MemorepairError as error:
            self._settle(item, "blocked", str(error))
            return
        self._settle(item, "running", "")
        self._note(item, was_executed=True, absent=job.absent)
        try:
            made = run_operator(operator, fresh(job))
            has_read_old = item.key in self.read_old
            self._note(item, cost=made.cost, has_read_old=has_read_old)
            row = _made_row(row, operator, made, job, has_read_old)
            if has_read_old:
                row = self._with_old_parents(row, item)
            stage = self._stage(item, row, made)
        except OperatorError as error:
            self._settle(item, "failed", str(error))
            return
        self._settle(item, "validating", "")
        reason = judge(self.rules.validators_for(item.kind), job, made)
        if reason is None:
            self.staged[item.key] = msgspec.structs.replace(stage, state="validated")
        else:
            self._settle(item, "failed", reason)

    def _with_old_parents(self, row: VersionRow, item: PlanItem) -> VersionRow:
        """What was made from the withdrawn content rests on all that the content rested on and that still stands."""
        with self.store._reading() as view:
            old = view.row(item.head)
            known = {*row.required, *row.optional}
            more = {p for p in (*old.required, *old.optional) if p not in view.barrier.withdrawn and p < row.version}
        optional = sorted({*row.optional, *(more - known)})
        return msgspec.structs.replace(row, parents=pack_ids([*row.required, *optional]))

    def _job(self, item: PlanItem, operator: Operator) -> tuple[Job, VersionRow]:
        """Gather the present inputs of a key; raises when a required one, or the last one, is missing."""
        with self.store._reading() as view:
            head = view.head(item.key)
            if head is None or head.head != item.head:
                # Looked at before the operator is paid; the fence looks again when it publishes.
                raise _Overtaken("the key has a newer head than the plan saw; plan again")
            old = view.row(item.head)
            self.seen[item.key] = old.parents
            inputs = trace_inputs(view, old)
            found, absent = self._inputs(view, inputs)
            missing = [key for key in inputs.required if key not in found]
            if missing:
                raise OperatorError(f"required parent {missing[0]!r} is not there: {self._why_missing(missing[0])}")
            if inputs.own:
                own = view.row(inputs.own)
                found[item.key] = (own, view.content(own))
            if not found and not inputs.is_empty:
                raise OperatorError("none of its inputs is left")
            events = [entry.row for entry in view.events if entry.row.event_id in item.events]
            interface = {key: content for key, (row, content) in found.items() if row.form == "interface"}
            job = Job(
                key=item.key,
                version=self.ids[item.key],
                kind=old.kind,
                form=old.form,
                mode=item.mode,
                title=old.title,
                labels=msgspec.json.decode(old.labels),
                inputs={key: content for key, (_, content) in found.items() if key not in interface},
                interface=interface,
                versions={key: row.version for key, (row, _) in found.items()},
                absent=absent,
                roots=tuple(sorted({root.key for event in events for root in event.roots})),
                events=item.events,
                read_old=self._reader_of_old(item, operator),
            )
        needed = {*inputs.required, *([item.key] if inputs.is_own_required else [])}
        required = sorted(version for key, version in job.versions.items() if key in needed)
        optional = sorted(version for key, version in job.versions.items() if key not in needed)
        row = msgspec.structs.replace(
            old,
            version=job.version,
            parents=pack_ids(required + optional),
            num_required=len(required),
            origin="publish",
        )
        return job, row

    def _inputs(self, view: View, inputs: Inputs) -> tuple[dict[str, tuple[VersionRow, Any]], tuple[str, ...]]:
        found: dict[str, tuple[VersionRow, Any]] = {}
        absent = []
        for key in (*inputs.required, *inputs.optional):
            stage = self.staged.get(key)
            row = stage.row if stage is not None else view.visible_head(key)
            if row is None:
                absent.append(key)
            elif stage is not None:
                found[key] = (row, decode(stage.codec, stage.body, row.digest))
            else:
                found[key] = (row, view.content(row))
        return found, tuple(key for key in absent if key not in inputs.required)

    def _younger_id(self) -> int:
        with self.store._writing("allocate") as writer:
            if not owns(writer, self.attempt):
                raise _Overtaken("another engine took this attempt over")
            writer.batch.attempts.append(self.attempt)
            return writer.allocate()

    def _why_missing(self, key: str) -> str:
        outcome = self.outcomes.get(key)
        return f"{outcome.fate}, {outcome.reason}" if outcome else "it has no visible version"

    def _reader_of_old(self, item: PlanItem, operator: Operator) -> Callable[[], Any]:
        def read_old() -> Any:
            with self.store._reading() as view:
                # Every event that ever withdrew it counts, given up or not, and also one that came after the plan.
                kinds = {event.kind for event, closure in view.closures() if item.head in closure}
                forbidden = sorted(kinds & {"delete", "suspect"})
                if forbidden and not operator.reads_old:
                    raise OperatorError(
                        f"old content of {item.key!r}: refused after {forbidden[0]}; register with reads_old=True"
                    )
                self.read_old.add(item.key)
                return view.content(view.row(item.head))

        return read_old


def _made_row(row: VersionRow, operator: Operator, made: Made, job: Job, has_read_old: bool) -> VersionRow:
    """The successor's row: as its predecessor, with what was made, by whom, and what was absent."""
    if made.cost is not None and row.unit is not None and made.cost.unit != row.unit:
        raise OperatorError(
            f"operator {operator.name}: cost {made.cost} of {row.key!r}: expected the recorded unit {row.unit!r}; "
            "costs of one plan share a unit"
        )
    facts = made.facts
    if job.absent:
        kept = msgspec.json.decode(facts) if facts else {}
        facts = msgspec.json.encode({**kept, "absent": list(job.absent)}).decode()
    return msgspec.structs.replace(
        row,
        digest=made.body.digest,
        operator=operator.name,
        operator_version=operator.version,
        # What it took from withdrawn content has no edge.
        completeness="partial" if has_read_old else row.completeness,
        cost=made.cost.micro if made.cost else row.cost,
        unit=made.cost.unit if made.cost else row.unit,
        facts=facts,
    )


def _levels(plan: Plan) -> list[list[str]]:
    """Selected keys in layers; each waits only for keys of earlier layers."""
    depth: dict[str, int] = {}
    levels: list[list[str]] = []
    waits = {item.key: item.waits_for for item in plan.items}
    for key in plan.selected:
        depth[key] = 1 + max((depth[parent] for parent in waits[key] if parent in depth), default=-1)
        if depth[key] == len(levels):
            levels.append([])
        levels[depth[key]].append(key)
    return levels
