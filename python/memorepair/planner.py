"""The plan: which withdrawn artifacts to rebuild, how, in which order, and why not the others.

Contract: `plan` reads one committed state and returns a frozen Plan whose selection is exact at its cost weight and
whose certificate was verified; it changes nothing. A plan names the heads it saw, so a later publish can be fenced.
Source: MemoRepair phases 2 and 3; docs/SEMANTICS.md section 4, invariant I14.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from memorepair.amounts import Cost, parse_cost, parse_cost_weight, shown
from memorepair.candidates import Candidate, find_candidates, graph_of
from memorepair.errors import InvalidRequestError, MixedUnitsError
from memorepair.events import Event
from memorepair.keys import checked_name, escaped
from memorepair.rules import Rules
from memorepair.schedule import Priced, ScheduleFunction, cost_base, price
from memorepair.selection import Problem, Selection, select_at, select_within

if TYPE_CHECKING:
    from memorepair.scope import View
    from memorepair.store import Store


class PlanItem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One candidate; amounts are micro-units. `decision`: selected, fill, not worth it, removed or blocked."""

    key: str
    head: int
    kind: str
    mode: str
    operator: str | None
    value: int
    cost: int
    recorded_cost: int
    decision: str
    reason: str
    needs: tuple[str, ...]
    waits_for: tuple[str, ...]
    blocked_by: tuple[str, ...]
    events: tuple[str, ...]

    @property
    def is_selected(self) -> bool:
        """Whether the repair will rebuild it."""
        return self.decision in ("selected", "fill")

    @property
    def is_executable(self) -> bool:
        """Whether it could be rebuilt at all."""
        return self.decision in ("selected", "fill", "not worth it")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A certified choice over the candidates of one event, or of all; made by `memorepair.plan`."""

    event_id: str | None
    store: str
    scope: str
    epoch: int
    schedule: str
    cost_weight: str  # lambda as a fraction; "infinite" when a budget leaves room for free ones only
    unit: str
    budget: str | None
    items: tuple[PlanItem, ...]
    order: tuple[str, ...]
    objective: str  # sum of value - lambda x cost over the certified choice, as a fraction of the schedule's units
    bound: str | None  # with a budget: no selection within it is worth more
    certificate: str
    warnings: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Names this plan."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:32]

    @property
    def selected(self) -> tuple[str, ...]:
        """Keys to rebuild, in execution order."""
        chosen = {item.key for item in self.items if item.is_selected}
        return tuple(key for key in self.order if key in chosen)

    @property
    def fill(self) -> tuple[str, ...]:
        """Keys added to use up a budget, beside the certified choice."""
        return tuple(item.key for item in self.items if item.decision == "fill")

    @property
    def planned_cost(self) -> Cost:
        """Recorded cost of what is selected."""
        return Cost(sum(item.recorded_cost for item in self.items if item.is_selected), self.unit)

    @property
    def repair_all_cost(self) -> Cost:
        """Recorded cost of rebuilding everything that can be rebuilt."""
        return Cost(sum(item.recorded_cost for item in self.items if item.is_executable), self.unit)

    def __getitem__(self, key: str) -> PlanItem:
        for item in self.items:
            if item.key == key:
                return item
        raise KeyError(key)

    def __str__(self) -> str:
        counts = f"{len(self.selected)} of {len(self.items)} candidates selected"
        cost = f", cost {self.planned_cost} of {self.repair_all_cost} for all" if self.unit else ""
        how = f"at cost weight {self.cost_weight}" if self.budget is None else f"within {self.budget}"
        if self.bound is not None:
            value = shown(sum(item.value for item in self.items if item.is_selected))
            cost += f", value {value} (no selection within the budget exceeds {float(Fraction(self.bound)):.6g})"
        lines = [f"plan {how}: {counts}{cost}; certificate {self.certificate}"]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        for item in self.items[:50]:
            numbers = f"value {shown(item.value)} cost {shown(item.cost)}"
            why = f" ({escaped(item.reason)})" if item.reason else ""
            lines.append(f"  {item.decision:12} {item.mode:9} {escaped(item.key)}  {numbers}{why}")
        if len(self.items) > 50:
            lines.append(f"  ... and {len(self.items) - 50} more")
        return "\n".join(lines)


def plan(
    store: Store,
    event: Event | str | None,
    rules: Rules,
    *,
    cost_weight: int | str | Fraction | None = None,
    budget: str | Cost | None = None,
    schedule: str | ScheduleFunction = "normalised",
    keys: Iterable[str] | None = None,
) -> Plan:
    """
    Choose what is worth repairing. Exact; changes nothing.

    `event`: the event whose cascade to repair, by value or id; None plans every held key. `cost_weight`: lambda,
    exact (int, Fraction, Decimal, or text such as "0.3"); None takes the schedule's own. `budget`: instead of a cost
    weight, an upper limit such as "5000 tokens" in the unit of the recorded costs. `schedule`: "normalised", or a
    function from a Candidate to (value, cost). `keys`: only these and what they require.
    Raises UnknownKeyError, InvalidAmountError, MixedUnitsError, WeightOverflowError, PlanError.
    Source: MemoRepair Theorem 1.
    """
    if cost_weight is not None and budget is not None:
        raise InvalidRequestError("plan: cost_weight and budget are two ways to ask; expected one of them, got both")
    event_id = event.event_id if isinstance(event, Event) else None if event is None else checked_name(event, "event")
    limit = parse_cost(budget, "budget")
    weight = None if cost_weight is None else parse_cost_weight(cost_weight)
    if not isinstance(rules, Rules):
        raise InvalidRequestError(f"plan: rules: expected Rules, got {type(rules).__name__}")
    with store._reading() as view:
        candidates = find_candidates(view, event_id, keys, rules)
        base = cost_base(view, candidates)
    # The schedule is user code: it runs when the read is over.
    return _decide(view, event_id, candidates, price(candidates, base, schedule), weight, limit)


def _decide(
    view: View,
    event_id: str | None,
    candidates: list[Candidate],
    priced: Priced,
    cost_weight: Fraction | None,
    budget: Cost | None,
) -> Plan:
    index = {candidate.key: node for node, candidate in enumerate(candidates)}
    needs = tuple(tuple(index[key] for key in candidate.needs) for candidate in candidates)
    executable = tuple(candidate.is_executable for candidate in candidates)
    if budget is None:
        problem = Problem(priced.values, priced.costs, executable, needs)
        selection = select_at(problem, priced.cost_weight if cost_weight is None else cost_weight)
    else:
        _check_budget(budget, priced, candidates)
        # A budget is in the recorded unit, so the recorded costs are what counts.
        priced = msgspec.structs.replace(priced, costs=priced.recorded)
        problem = Problem(priced.values, priced.costs, executable, needs)
        selection = select_within(problem, budget.micro)
    idle = (
        "its value is below cost_weight x cost, with what it needs" if budget is None else "the budget is better spent"
    )
    items = tuple(_item(candidate, node, priced, selection, idle) for node, candidate in enumerate(candidates))
    waits = graph_of([[index[key] for key in candidate.waits_for] for candidate in candidates])
    weighed = 0 if selection.cost_weight is None else selection.cost_weight * problem.cost(selection.certified)
    certified = problem.value(selection.certified) - Fraction(weighed)
    return Plan(
        event_id=event_id,
        store=view.scope.backend.uuid,
        scope=view.scope.name,
        epoch=view.epoch,
        schedule=priced.schedule,
        cost_weight="infinite" if selection.cost_weight is None else str(selection.cost_weight),
        unit=priced.unit,
        budget=None if budget is None else str(budget),
        items=items,
        order=tuple(candidates[int(node)].key for node in waits.order()),
        objective=str(certified / 1_000_000),
        bound=None if selection.bound is None else str(selection.bound / 1_000_000),
        certificate="verified",
        warnings=_warnings(items),
    )


def _check_budget(budget: Cost, priced: Priced, candidates: list[Candidate]) -> None:
    if candidates and not priced.unit:
        raise InvalidRequestError(
            "plan: a budget needs recorded costs, and no candidate has one; pass cost= to derive()"
        )
    if candidates and budget.unit != priced.unit:
        raise MixedUnitsError(
            f"plan: the budget is in {budget.unit!r}, costs are recorded in {priced.unit!r}; expected one unit"
        )


def _item(candidate: Candidate, node: int, priced: Priced, selection: Selection, idle: str) -> PlanItem:
    decision, reason = "not worth it", idle
    if node in selection.taken:
        is_certified = node in selection.certified
        decision, reason = ("selected", "") if is_certified else ("fill", "fits in what is left of the budget")
    elif not candidate.is_executable:
        decision, reason = ("removed" if candidate.mode == "remove" else "blocked"), candidate.reason
    operator = candidate.operator
    return PlanItem(
        key=candidate.key,
        head=candidate.row.version,
        kind=candidate.row.kind,
        mode=candidate.mode,
        operator=f"{operator.name}@{operator.version}" if operator else candidate.row.operator,
        value=priced.values[node],
        cost=priced.costs[node],
        recorded_cost=priced.recorded[node],
        decision=decision,
        reason=reason,
        needs=candidate.needs,
        waits_for=candidate.waits_for,
        blocked_by=candidate.blocked_by,
        events=tuple(event.event_id for event in candidate.events),
    )


def _warnings(items: tuple[PlanItem, ...]) -> tuple[str, ...]:
    executable = [item for item in items if item.is_executable]
    chosen = [item for item in executable if item.is_selected]
    if executable and not chosen:
        return ("nothing is selected: are values and costs in sensible units?",)
    if len(executable) > 1 and len(chosen) == len(executable):
        return ("everything that can be repaired is selected: the cost weight saves nothing here",)
    return ()
