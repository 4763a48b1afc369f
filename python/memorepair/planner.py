"""The plan: which withdrawn artifacts to rebuild, how, in which order, and why not the others.

Contract: `plan` reads one committed state and returns a frozen Plan whose selection is exact at its cost weight and
whose certificate was verified; it changes nothing. A plan names the heads it saw, so a later publish can be fenced.
`frontier` reads the same and returns what every cost weight would choose, certified as a whole.
Source: MemoRepair phases 2 and 3; docs/SEMANTICS.md section 4, invariant I14.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from memorepair.amounts import MICRO, Cost, parse_cost, parse_cost_weight, shown
from memorepair.candidates import Candidate, find_candidates, graph_of
from memorepair.errors import InvalidRequestError, MixedUnitsError
from memorepair.events import Event
from memorepair.keys import checked_name, escaped
from memorepair.rules import Rules
from memorepair.schedule import Priced, ScheduleFunction, cost_base, price
from memorepair.selection import NEVER, Problem, Selection, select_at, select_within, solve_frontier

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
    limit = parse_cost(budget, "budget")
    weight = None if cost_weight is None else parse_cost_weight(cost_weight)
    return _decide(_ask(store, event, rules, keys, schedule), weight, limit)


class _Question(msgspec.Struct, frozen=True):
    """What a plan decides on: the state that was read, and its candidates with their prices."""

    view: View
    event_id: str | None
    candidates: list[Candidate]
    priced: Priced

    def problem(self, costs: tuple[int, ...]) -> Problem:
        """The same as numbers: node k is the k-th candidate, in the order of keys."""
        index = {candidate.key: node for node, candidate in enumerate(self.candidates)}
        needs = tuple(tuple(index[key] for key in candidate.needs) for candidate in self.candidates)
        executable = tuple(candidate.is_executable for candidate in self.candidates)
        return Problem(self.priced.values, costs, executable, needs)


def _ask(
    store: Store,
    event: Event | str | None,
    rules: Rules,
    keys: Iterable[str] | None,
    schedule: str | ScheduleFunction,
) -> _Question:
    event_id = event.event_id if isinstance(event, Event) else None if event is None else checked_name(event, "event")
    if not isinstance(rules, Rules):
        raise InvalidRequestError(f"plan: rules: expected Rules, got {type(rules).__name__}")
    with store._reading() as view:
        candidates = find_candidates(view, event_id, keys, rules)
        base = cost_base(view, candidates)
    # The schedule is user code: it runs when the read is over.
    return _Question(view, event_id, candidates, price(candidates, base, schedule))


def _decide(question: _Question, cost_weight: Fraction | None, budget: Cost | None) -> Plan:
    view, candidates, priced = question.view, question.candidates, question.priced
    if budget is None:
        problem = question.problem(priced.costs)
        selection = select_at(problem, priced.cost_weight if cost_weight is None else cost_weight)
    else:
        _check_budget(budget, priced, candidates)
        # A budget is in the recorded unit, so the recorded costs are what counts.
        priced = msgspec.structs.replace(priced, costs=priced.recorded)
        problem = question.problem(priced.costs)
        selection = select_within(problem, budget.micro)
    idle = (
        "its value is below cost_weight x cost, with what it needs" if budget is None else "the budget is better spent"
    )
    items = tuple(_item(candidate, node, priced, selection, idle) for node, candidate in enumerate(candidates))
    index = {candidate.key: node for node, candidate in enumerate(candidates)}
    waits = graph_of([[index[key] for key in candidate.waits_for] for candidate in candidates])
    weighed = 0 if selection.cost_weight is None else selection.cost_weight * problem.cost(selection.certified)
    certified = problem.value(selection.certified) - Fraction(weighed)
    return Plan(
        event_id=question.event_id,
        store=view.scope.backend.uuid,
        scope=view.scope.name,
        epoch=view.epoch,
        schedule=priced.schedule,
        cost_weight="infinite" if selection.cost_weight is None else str(selection.cost_weight),
        unit=priced.unit,
        budget=None if budget is None else str(budget),
        items=items,
        order=tuple(candidates[int(node)].key for node in waits.order()),
        objective=str(certified / MICRO),
        bound=None if selection.bound is None else str(selection.bound / MICRO),
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


# -- the whole trade-off -----------------------------------------------------------------------------------------------


class TradeOffPoint(msgspec.Struct, frozen=True, gc=False):
    """
    One choice; amounts are micro-units, `cost` the schedule's and `recorded_cost` the recorded one.

    `cost_weight` is the smallest that gives this choice, up to that of the point before; None where none does.
    """

    cost_weight: Fraction | None
    selected: int
    value: int
    cost: int
    recorded_cost: int


class TradeOff(msgspec.Struct, frozen=True, kw_only=True):
    """Every choice that a plan could make, from what is free to what is worth anything; made by `frontier`."""

    event_id: str | None
    scope: str
    epoch: int
    schedule: str
    unit: str  # of recorded costs; "" when none is recorded
    points: tuple[TradeOffPoint, ...]  # each holds the one before it
    repair_all: TradeOffPoint  # everything that can be rebuilt
    keys: tuple[str, ...]  # the candidates
    enters: tuple[int | None, ...]  # by key, the first point that selects it; None for never
    certificate: str

    def selected(self, point: int) -> tuple[str, ...]:
        """Keys that a point selects, sorted."""
        return tuple(
            key for key, enters in zip(self.keys, self.enters, strict=True) if enters is not None and enters <= point
        )

    def table(self, max_points: int = 20) -> str:
        """The trade-off for people: at most `max_points` (2 or more) points, evenly spread."""
        whole, last, rows = self.repair_all, len(self.points) - 1, min(max_points, len(self.points))
        costs = [point.recorded_cost if self.unit else point.cost for point in self.points]
        whole_cost = whole.recorded_cost if self.unit else whole.cost
        counts = f"{whole.selected} of {len(self.keys)} candidates can be rebuilt"
        amounts = f"value {shown(whole.value)}, cost {shown(whole_cost)} {self.unit}".rstrip()
        lines = [f"frontier by {escaped(self.schedule)}: {counts}, {amounts}; certificate {self.certificate}"]
        if rows <= last:
            lines.append(f"  {rows} of {last + 1} points, evenly spread")
        cells = [("cost weight", "selected", "value", "of all", f"cost {self.unit}".rstrip(), "of all")]
        for index in (step * last // max(rows - 1, 1) for step in range(rows)):
            point, cost = self.points[index], costs[index]
            shares = _share(point.value, whole.value), _share(cost, whole_cost)
            weight = _weight_for(self.points, index)
            cells.append((weight, str(point.selected), shown(point.value), shares[0], shown(cost), shares[1]))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(lines + ["  " + "  ".join(map(str.rjust, row, widths)) for row in cells])

    def __str__(self) -> str:
        return self.table()


def frontier(
    store: Store,
    event: Event | str | None,
    rules: Rules,
    *,
    schedule: str | ScheduleFunction = "normalised",
    keys: Iterable[str] | None = None,
) -> TradeOff:
    """
    Return what every cost weight would choose, to plot value against cost or to pick a cost weight. Changes nothing.

    Arguments as for `plan`; a plan at a point's cost weight selects what the point selects. One exact solve for all
    points, certified as a whole. Raises what `plan` raises. Source: Gallo, Grigoriadis and Tarjan 1989.
    """
    question = _ask(store, event, rules, keys, schedule)
    priced, candidates = question.priced, question.candidates
    solved = solve_frontier(question.problem(priced.costs))
    enters = tuple(None if piece == NEVER else piece for piece in solved.piece.tolist())
    recorded = [0] * len(solved)
    for index, cost in zip(enters, priced.recorded, strict=True):
        if index is not None:
            recorded[index] += cost
    arrays = (array.tolist() for array in (solved.sizes, solved.values, solved.costs))
    columns = zip([*solved.breakpoints, Fraction(0)], *arrays, accumulate(recorded), strict=True)
    able = [node for node, candidate in enumerate(candidates) if candidate.is_executable]
    whole = (sum(column[node] for node in able) for column in (priced.values, priced.costs, priced.recorded))
    return TradeOff(
        event_id=question.event_id,
        scope=question.view.scope.name,
        epoch=question.view.epoch,
        schedule=priced.schedule,
        unit=priced.unit,
        points=tuple(TradeOffPoint(*row) for row in columns),
        repair_all=TradeOffPoint(None, len(able), *whole),
        keys=tuple(candidate.key for candidate in candidates),
        enters=enters,
        certificate="verified",
    )


def _share(part: int, whole: int) -> str:
    return f"{float(Fraction(part, whole)):.2f}" if whole else "-"


def _weight_for(points: tuple[TradeOffPoint, ...], index: int) -> str:
    """A short decimal that gives the point as a cost weight: its own, rounded up; as a fraction if need be."""
    lowest = points[index].cost_weight or Fraction(0)
    for digits in (6, 9, 12, 15, 18):
        context = Context(prec=digits, rounding=ROUND_CEILING)
        short = context.divide(Decimal(lowest.numerator), Decimal(lowest.denominator))
        if not index or Fraction(short) < (points[index - 1].cost_weight or 0):
            return f"{short.normalize():f}"
    return str(lowest)
