"""The plan: which withdrawn artifacts to rebuild, how, in which order, and why not the others.

Contract: `plan` reads one committed state and returns a frozen Plan; it changes nothing. At a cost weight the selection
is exact and its certificate was verified. Within a budget it is a certified point of the frontier and a fill that no
certificate covers, with a certified bound. A plan names the heads it saw, so a later publish can be fenced.
`frontier` reads the same and returns what every cost weight would choose, certified as a whole.
Source: MemoRepair phases 2 and 3; docs/SEMANTICS.md section 4, invariant I14.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING

import msgspec

from memorepair.amounts import MICRO, Cost, brief, parse_cost, parse_cost_weight, shown
from memorepair.candidates import Candidate, find_candidates, graph_of
from memorepair.errors import InvalidRequestError, MixedUnitsError
from memorepair.events import Event
from memorepair.keys import checked_name, escaped
from memorepair.rules import Rules
from memorepair.schedule import Priced, ScheduleFunction, cost_base, price
from memorepair.selection import MAX_PACKAGE, NEVER, Problem, Selection, select_at, select_within, solve_frontier

if TYPE_CHECKING:
    from memorepair.scope import View
    from memorepair.store import Store


class PlanItem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One candidate. `decision`: selected, fill (added to use up a budget), not worth it, removed or blocked.

    Amounts are integers of micro-units: 1_000_000 is 1. `recorded_cost` is in the plan's unit, a missing one counts as
    the mean. `cost` is the schedule's, rounded; within a budget it is the recorded one. `needs`: the required parents
    among the candidates, and optional ones where nothing else is left to rebuild from; `waits_for`: these and all other
    parents among the candidates. `blocked_by`: required parents that cannot be repaired.
    """

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
    """
    A choice over the candidates of one event, or of all; made by `memorepair.plan`.

    `certificate` covers the items that are "selected" and the bound; what a budget is filled up with (`fill`) is not
    certified. Amounts that are text are exact fractions of whole units, amounts that are integers are micro-units.
    """

    event_id: str | None
    store: str
    scope: str
    epoch: int
    schedule: str
    cost_weight: str | None  # lambda, in the schedule's costs; None with a budget
    mean_cost: str | None  # what the schedule divides recorded costs by; None when it does not
    unit: str  # of recorded costs; "" when none is recorded
    budget: str | None
    # With a budget: the least value per recorded unit that gives the certified choice; "infinite" for what is free.
    budget_weight: str | None
    items: tuple[PlanItem, ...]
    order: tuple[str, ...]
    objective: str  # sum of value - lambda x cost over the certified choice; with a budget, of budget_weight x cost
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
    def value(self) -> int:
        """Value of what is selected, in micro-units."""
        return sum(item.value for item in self.items if item.is_selected)

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
        num_selected, num_fill = len(self.selected), len(self.fill)
        counts = f"{num_selected} of {len(self.items)} candidates selected"
        cost = f", cost {self.planned_cost} of {self.repair_all_cost} for all" if self.unit else ""
        how, covers = f"at cost weight {self.cost_weight}", ""
        if self.bound is not None:
            how, counts = f"within {self.budget}", f"{counts}, {num_fill} filled in"
            bound = shown(ceil(Fraction(self.bound) * MICRO))
            cost += f", value {shown(self.value)} (no selection within the budget exceeds {bound})"
            covers = f" for the frontier point ({num_selected - num_fill} selected) and the bound"
        lines = [f"plan {how}: {counts}{cost}; certificate {self.certificate}{covers}"]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        # What no certificate covers comes first, so that no cut hides it.
        for item in sorted(self.items, key=lambda item: item.decision != "fill")[:50]:
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
    Choose what is worth repairing; changes nothing. Exact at a cost weight, not always within a budget.

    `event`: the event whose cascade to repair, by value or id; None plans every held key. `cost_weight`: lambda,
    exact (int, Fraction, Decimal, or text such as "0.3"); None takes the schedule's own. `budget`: instead of a cost
    weight, an upper limit such as "5000 tokens" in the unit of the recorded costs. The plan is then a point of
    the frontier within it, certified, and a greedy fill; it may miss the best selection within the budget, and `bound`
    says by how much at most. `schedule`: "normalised", or a function from a Candidate to (value, cost), each a number
    >= 0, rounded to micro-units; docs/SEMANTICS.md has an example. `keys`: only these and their required parents.
    Raises InvalidRequestError, UnknownKeyError, InvalidAmountError, MixedUnitsError, WeightOverflowError, PlanError.
    Source: MemoRepair Theorem 1.
    """
    if cost_weight is not None and budget is not None:
        raise InvalidRequestError("cost_weight and budget are two ways to ask; expected one of them, got both")
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
        raise InvalidRequestError(f"rules: expected Rules, got {type(rules).__name__}")
    with store._reading() as view:
        candidates = find_candidates(view, event_id, keys, rules)
        base = cost_base(view, candidates)
    # The schedule is user code: it runs when the read is over.
    return _Question(view, event_id, candidates, price(candidates, base, schedule))


def _decide(question: _Question, cost_weight: Fraction | None, budget: Cost | None) -> Plan:
    view, candidates, priced = question.view, question.candidates, question.priced
    if budget is None:
        cost_weight = priced.cost_weight if cost_weight is None else cost_weight
        problem, costs = question.problem(priced.costs), priced.for_people()
        selection = select_at(problem, cost_weight * priced.scale)
    else:
        _check_budget(budget, priced, candidates)
        # A budget is in the recorded unit, so the recorded costs are what counts.
        problem, costs = question.problem(priced.recorded), priced.recorded
        selection = select_within(problem, budget.micro)
    idle = _why_idle(problem, selection, budget)
    items = tuple(
        _item(candidate, node, priced, costs[node], selection, idle) for node, candidate in enumerate(candidates)
    )
    index = {candidate.key: node for node, candidate in enumerate(candidates)}
    waits = graph_of([[index[key] for key in candidate.waits_for] for candidate in candidates])
    point, mean = selection.cost_weight, priced.mean
    weighed = 0 if point is None else point * problem.cost(selection.certified)
    certified = problem.value(selection.certified) - Fraction(weighed)
    return Plan(
        event_id=question.event_id,
        store=view.scope.backend.uuid,
        scope=view.scope.name,
        epoch=view.epoch,
        schedule=priced.schedule,
        cost_weight=None if budget is not None else str(cost_weight),
        mean_cost=None if mean is None else str(mean / MICRO),
        unit=priced.unit,
        budget=None if budget is None else str(budget),
        budget_weight=None if budget is None else "infinite" if point is None else str(point),
        items=items,
        order=tuple(candidates[int(node)].key for node in waits.order()),
        objective=str(certified / MICRO),
        bound=None if selection.bound is None else str(selection.bound / MICRO),
        certificate="verified",
        warnings=_warnings(items, budget),
    )


def _check_budget(budget: Cost, priced: Priced, candidates: list[Candidate]) -> None:
    if candidates and not priced.unit:
        raise InvalidRequestError(
            "budget: expected candidates with recorded costs, got none; pass cost= to derive(), or give a cost weight"
        )
    if candidates and budget.unit != priced.unit:
        raise MixedUnitsError(f"budget: expected {priced.unit!r}, the unit of the recorded costs, got {budget.unit!r}")


def _why_idle(problem: Problem, selection: Selection, budget: Cost | None) -> Callable[[int], str]:
    """Return what tells of a node that could be rebuilt why it was not taken."""
    if budget is None:
        return lambda node: "its value is at most cost_weight x cost, with the required parents it lacks"
    left = budget.micro - problem.cost(selection.taken)
    beyond = f"more than the {Cost(left, budget.unit)} that are left of the budget"

    def why(node: int) -> str:
        if not problem.values[node]:
            return "it is worth nothing, and nothing selected needs it"
        if problem.costs[node] > left:
            return f"it costs {Cost(problem.costs[node], budget.unit)}, {beyond}"
        package, is_whole = _package(problem, selection.taken, node)
        cost = problem.cost(package)
        if cost <= left:
            return "it lacks more required parents than a fill brings along"
        whole = f"{'' if is_whole else 'at least '}{Cost(cost, budget.unit)}"
        return f"with the required parents it lacks it costs {whole}, {beyond}"

    return why


def _package(problem: Problem, taken: frozenset[int], node: int) -> tuple[frozenset[int], bool]:
    """A node with the required parents it lacks; cut at MAX_PACKAGE, so that deep chains stay cheap to explain."""
    package, queue = {node}, [node]
    while queue:
        for parent in problem.needs[queue.pop()]:
            if parent not in taken and parent not in package:
                if len(package) == MAX_PACKAGE:
                    return frozenset(package), False
                package.add(parent)
                queue.append(parent)
    return frozenset(package), True


def _item(
    candidate: Candidate, node: int, priced: Priced, cost: int, selection: Selection, idle: Callable[[int], str]
) -> PlanItem:
    if node in selection.certified:
        decision, reason = "selected", ""
    elif node in selection.taken:
        decision, reason = "fill", "fits in what the frontier point leaves of the budget"
    elif candidate.is_executable:
        decision, reason = "not worth it", idle(node)
    else:
        decision, reason = ("removed" if candidate.mode == "remove" else "blocked"), candidate.reason
    operator = candidate.operator
    return PlanItem(
        key=candidate.key,
        head=candidate.row.version,
        kind=candidate.row.kind,
        mode=candidate.mode,
        operator=f"{operator.name}@{operator.version}" if operator else candidate.row.operator,
        value=priced.values[node],
        cost=cost,
        recorded_cost=priced.recorded[node],
        decision=decision,
        reason=reason,
        needs=candidate.needs,
        waits_for=candidate.waits_for,
        blocked_by=candidate.blocked_by,
        events=tuple(event.event_id for event in candidate.events),
    )


def _warnings(items: tuple[PlanItem, ...], budget: Cost | None) -> tuple[str, ...]:
    executable = [item for item in items if item.is_executable]
    chosen = [item for item in executable if item.is_selected]
    if executable and not chosen:
        if budget is not None:
            return ("nothing is selected: the budget pays for nothing that is worth anything",)
        return ("nothing is selected: are values and costs in sensible units?",)
    if len(executable) > 1 and len(chosen) == len(executable):
        saves = "the cost weight saves nothing here" if budget is None else "the budget pays for all of it"
        return (f"everything that can be repaired is selected: {saves}",)
    return ()


# -- the whole trade-off -----------------------------------------------------------------------------------------------


class TradeOffPoint(msgspec.Struct, frozen=True, gc=False):
    """
    One choice. Amounts are integers of micro-units, 1_000_000 is 1: `cost` is the schedule's, the sum over keys of the
    rounded ones; `recorded_cost` is in the trade-off's `unit`.

    `cost_weight`, exact, is the smallest that gives this choice; larger ones give it too, up to and without that of the
    point before. It is None in `repair_all`, which no cost weight need give. `selected` counts keys.
    """

    cost_weight: Fraction | None
    selected: int
    value: int
    cost: int
    recorded_cost: int


class TradeOff(msgspec.Struct, frozen=True, kw_only=True):
    """
    Every choice that a plan could make, from what is free to what is worth anything; made by `memorepair.frontier`.

    `points[0]` holds what is free, and each point holds the one before it; `points[-1]` is the choice at cost weight 0.
    """

    event_id: str | None
    scope: str
    epoch: int
    schedule: str
    cost_weight: Fraction  # the schedule's own: what `plan` takes when none is given
    unit: str  # of recorded costs; "" when none is recorded
    points: tuple[TradeOffPoint, ...]
    repair_all: TradeOffPoint  # everything that can be rebuilt
    keys: tuple[str, ...]  # the candidates
    enters: tuple[int | None, ...]  # by key, the first point that selects it; None for never
    certificate: str

    def at(self, cost_weight: int | str | Fraction) -> int:
        """Return the index of the point that a cost weight gives. Raises InvalidAmountError."""
        weight = parse_cost_weight(cost_weight)
        return next(index for index, point in enumerate(self.points) if (point.cost_weight or 0) <= weight)

    def selected(self, point: int) -> tuple[str, ...]:
        """Keys that `points[point]` selects, sorted. Raises InvalidRequestError for another index."""
        if not _is_int(point) or not 0 <= point < len(self.points):
            raise InvalidRequestError(
                f"point: expected an int from 0 to {len(self.points) - 1}, got {brief(point)}; see .points"
            )
        return tuple(
            key for key, enters in zip(self.keys, self.enters, strict=True) if enters is not None and enters <= point
        )

    def table(self, max_points: int = 20) -> str:
        """
        The trade-off for people: at most `max_points` points (2 or more), evenly spread by number of points, and with
        them, marked, the one at the schedule's own cost weight. Raises InvalidRequestError for another `max_points`.
        """
        if not _is_int(max_points) or max_points < 2:
            raise InvalidRequestError(f"max_points: expected an int of 2 or more, got {brief(max_points)}")
        whole, last, rows = self.repair_all, len(self.points) - 1, min(max_points, len(self.points))
        own = self.at(self.cost_weight)
        costs = [point.recorded_cost if self.unit else point.cost for point in self.points]
        whole_cost = whole.recorded_cost if self.unit else whole.cost
        counts = f"{whole.selected} of {len(self.keys)} candidates can be rebuilt"
        amounts = f"value {shown(whole.value)}, cost {shown(whole_cost)} {self.unit}".rstrip()
        lines = [f"frontier by {escaped(self.schedule)}: {counts}, {amounts}; certificate {self.certificate}"]
        lines.append(f"  * is the choice at {self.cost_weight}, the schedule's own cost weight")
        if rows <= last:
            lines.append(f"  {rows} of {last + 1} points, evenly spread by number of points")
        cells = [("cost weight", "selected", "value", "of all", f"cost {self.unit}".rstrip(), "of all")]
        indices = sorted({own, *(step * last // max(rows - 1, 1) for step in range(rows))})
        for index in indices:
            point, cost = self.points[index], costs[index]
            shares = _share(point.value, whole.value), _share(cost, whole_cost)
            weight = _weight_for(self.points, index)
            cells.append((weight, str(point.selected), shown(point.value), shares[0], shown(cost), shares[1]))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        marks = ["  ", *("* " if index == own else "  " for index in indices)]
        rows_of_text = ("  ".join(map(str.rjust, row, widths)) for row in cells)
        return "\n".join(lines + [mark + row for mark, row in zip(marks, rows_of_text, strict=True)])

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

    Arguments as for `plan`; a plan at a point's cost weight selects what the point selects. `print` shows a table,
    `points` has every choice, `selected(i)` the keys of one. One exact solve for all points, certified as a whole.
    Raises what `plan` raises. Source: Gallo, Grigoriadis and Tarjan 1989.
    """
    question = _ask(store, event, rules, keys, schedule)
    priced, candidates = question.priced, question.candidates
    solved = solve_frontier(question.problem(priced.costs))
    enters = tuple(None if piece == NEVER else piece for piece in solved.piece.tolist())
    costs, recorded = (_by_point(enters, column, len(solved)) for column in (priced.for_people(), priced.recorded))
    weights = [*(at / priced.scale for at in solved.breakpoints), Fraction(0)]
    columns = zip(weights, solved.sizes.tolist(), solved.values.tolist(), costs, recorded, strict=True)
    able = [node for node, candidate in enumerate(candidates) if candidate.is_executable]
    whole = (sum(column[node] for node in able) for column in (priced.values, priced.for_people(), priced.recorded))
    return TradeOff(
        event_id=question.event_id,
        scope=question.view.scope.name,
        epoch=question.view.epoch,
        schedule=priced.schedule,
        cost_weight=priced.cost_weight,
        unit=priced.unit,
        points=tuple(TradeOffPoint(*row) for row in columns),
        repair_all=TradeOffPoint(None, len(able), *whole),
        keys=tuple(candidate.key for candidate in candidates),
        enters=enters,
        certificate="verified",
    )


def _by_point(enters: tuple[int | None, ...], amounts: tuple[int, ...], num_points: int) -> list[int]:
    """The sum of what each point selects."""
    added = [0] * num_points
    for index, amount in zip(enters, amounts, strict=True):
        if index is not None:
            added[index] += amount
    return list(accumulate(added))


def _is_int(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


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
