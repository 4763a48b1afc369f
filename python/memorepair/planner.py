"""The plan: which withdrawn artifacts to rebuild, how, in which order, and why not the others.

Contract: `plan` reads one committed state and returns a frozen Plan; it changes nothing. At a cost weight the selection
is exact and its certificate was verified. Within a budget it is a certified point of the frontier and a fill that no
certificate covers, with a certified bound. A plan names the heads it saw, so a later publish can be fenced.
`frontier` reads the same and returns what every cost weight would choose, certified as a whole.
Source: MemoRepair phases 2 and 3; docs/SEMANTICS.md section 4, invariant I14.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, SupportsIndex

import msgspec

from memorepair.amounts import MICRO, Cost, brief, parse_cost, parse_cost_weight, share, shown
from memorepair.candidates import Candidate, find_candidates, graph_of
from memorepair.errors import InvalidRequestError, MixedUnitsError
from memorepair.events import Event
from memorepair.keys import checked_keys, checked_name, escaped, not_among
from memorepair.rules import Rules
from memorepair.schedule import Priced, ScheduleFunction, cost_base, price
from memorepair.selection import MAX_PACKAGE, NEVER, Problem, Selection, select_at, select_within, solve_frontier
from memorepair.store import Store

if TYPE_CHECKING:
    from memorepair.scope import View


class PlanItem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One candidate. `decision`: selected, fill (added to use up a budget), not worth it, left out (of a plan within a
    budget), removed or blocked.

    Amounts are integers of micro-units: 1_000_000 is 1. `recorded_cost` is in the plan's unit; without
    `has_recorded_cost` there is none, and the mean stands for it. `cost` is the schedule's, rounded; within a budget it
    is the recorded one. `needs`: the required parents
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
    has_recorded_cost: bool
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
        return self.decision in ("selected", "fill", "not worth it", "left out")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """
    A choice over the candidates of one event, or of all; made by `memorepair.plan`. Iterating gives the items.

    `certificate` covers the items that are "selected" and the bound; what a budget is filled up with (`fill`) is not
    certified. Amounts that are text are exact fractions of whole units, amounts that are integers are micro-units.
    `cost_weight`: lambda, in the schedule's costs; None with a budget. `mean_cost`: what the schedule divides recorded
    costs by; None when it does not. `unit`: of recorded costs; "" when none is recorded.
    `budget_weight`: with a budget, the least value per recorded unit that gives the certified choice; "infinite" for
    what is free.
    `objective`: the sum of value - lambda x cost over the certified choice; with a budget, of value - budget_weight x
    cost, and the value alone of what is free. `bound`: with a budget, no selection within it is worth more.
    `order`: every candidate's key, each after those it waits for. `items` are sorted by key.
    """

    event_id: str | None
    store: str
    scope: str
    epoch: int
    schedule: str
    cost_weight: str | None
    mean_cost: str | None
    unit: str
    budget: str | None
    budget_weight: str | None
    items: tuple[PlanItem, ...]
    order: tuple[str, ...]
    objective: str
    bound: str | None
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
        raise not_among(key, len(self.items), "plan")

    def __iter__(self) -> Iterator[PlanItem]:
        return iter(self.items)

    def __contains__(self, what: object) -> bool:
        """Whether a key, or an item, is among the candidates."""
        return any(what in (item.key, item) for item in self.items)

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
            numbers = f"value {shown(item.value)} cost {self._told_cost(item)}"
            why = f" ({escaped(item.reason)})" if item.reason else ""
            lines.append(f"  {item.decision:12} {item.mode:9} {escaped(item.key)}  {numbers}{why}")
        if len(self.items) > 50:
            lines.append(f"  ... and {len(self.items) - 50} more")
        return "\n".join(lines)

    def _told_cost(self, item: PlanItem) -> str:
        """An item's cost for people: with its unit where it is the recorded one, with ~ where a mean stands for it."""
        rests_on_records = self.budget is not None or self.mean_cost is not None
        mark = "~" if rests_on_records and not item.has_recorded_cost else ""
        return f"{mark}{shown(item.cost)}" + (f" {self.unit}" if self.budget is not None else "")


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
    >= 0, rounded to micro-units. It may read the candidate's `key`, `mode`, `needs`, `row.cost` (micro-units or None),
    `row.unit`, `row.kind`, `row.weight` and `use.reads`; docs/SEMANTICS.md has an example. `keys`: several keys; only
    these and their required parents.
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
    warnings: tuple[str, ...]  # what a choice over these should know

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
    checked_store(store)
    if not (event is None or isinstance(event, (Event, str))):
        raise InvalidRequestError(f"event: expected an Event or its id, or None for all, got {brief(event)}")
    event_id = event.event_id if isinstance(event, Event) else None if event is None else checked_name(event, "event")
    names = None if keys is None else checked_keys(keys)
    if not isinstance(rules, Rules):
        raise InvalidRequestError(f"rules: expected Rules, got {type(rules).__name__}")
    with store._reading() as view:
        candidates = find_candidates(view, event_id, names, rules)
        base = cost_base(view, candidates)
    # The schedule is user code: it runs when the read is over.
    priced = price(candidates, base, schedule)
    if candidates:
        return _Question(view, event_id, candidates, priced, _unrecorded(candidates, priced))
    what = "nothing" if event_id is None and names is None else "nothing of what was asked for"
    return _Question(view, event_id, candidates, priced, (f"{what} is held",))


def checked_store(store: object) -> None:
    """Raise InvalidRequestError unless `store` is a Store."""
    if not isinstance(store, Store):
        kind = type(store).__name__
        hint = "; pass the store itself, in asyncio.to_thread" if kind == "AsyncStore" else ""
        raise InvalidRequestError(f"store: expected a Store from mr.open(), got {kind}{hint}")


def _unrecorded(candidates: list[Candidate], priced: Priced) -> tuple[str, ...]:
    """The warning that a mean stands for costs that nobody recorded; where none is recorded, none is claimed."""
    able = [node for node, candidate in enumerate(candidates) if candidate.is_executable]
    missing = [node for node in able if candidates[node].row.cost is None]
    if not missing or not priced.unit:
        return ()
    have = "has" if len(missing) == 1 else "have"
    mean = Cost(priced.recorded[missing[0]], priced.unit)
    return (
        f"{len(missing)} of {len(able)} candidates that can be rebuilt {have} no recorded cost; "
        f"counted as the mean, {mean}",
    )


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
    unrecorded = frozenset(node for node, candidate in enumerate(candidates) if candidate.row.cost is None)
    idle = _why_idle(problem, selection, budget, unrecorded)
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
        warnings=question.warnings + _warnings(items, budget),
    )


def _check_budget(budget: Cost, priced: Priced, candidates: list[Candidate]) -> None:
    if candidates and not priced.unit:
        raise InvalidRequestError(
            "budget: expected candidates with recorded costs, got none; pass cost= to derive(), or give a cost weight"
        )
    if candidates and budget.unit != priced.unit:
        raise MixedUnitsError(f"budget: expected {priced.unit!r}, the unit of the recorded costs, got {budget.unit!r}")


def _why_idle(
    problem: Problem, selection: Selection, budget: Cost | None, unrecorded: frozenset[int]
) -> Callable[[int], tuple[str, str]]:
    """Return what tells of a node that could be rebuilt that it was not taken, and why."""
    if budget is None:
        why_not = "its value is at most cost_weight x cost, with the required parents it lacks"
        return lambda node: ("not worth it", why_not)
    left = budget.micro - problem.cost(selection.taken)
    beyond = f"more than the {Cost(left, budget.unit)} that are left of the budget"

    def why(node: int) -> tuple[str, str]:
        if not problem.values[node]:
            return "not worth it", "it is worth nothing, and nothing selected needs it"
        cost = Cost(problem.costs[node], budget.unit)
        if cost.micro > left:
            costs = f"is taken to cost {cost} (mean; none recorded)" if node in unrecorded else f"costs {cost}"
            return "left out", f"it {costs}, {beyond}"
        package, is_whole = _package(problem, selection.taken, node)
        cost = Cost(problem.cost(package), budget.unit)
        if cost.micro <= left:
            too_many = "it lacks more required parents than a fill brings along"
            return "left out", "the fill, which is greedy, ended before it" if is_whole else too_many
        whole = f"{'' if is_whole else 'at least '}{cost}"
        costs = f"is taken to cost {whole} (mean where none recorded)" if package & unrecorded else f"costs {whole}"
        return "left out", f"with the required parents it lacks it {costs}, {beyond}"

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
    candidate: Candidate,
    node: int,
    priced: Priced,
    cost: int,
    selection: Selection,
    idle: Callable[[int], tuple[str, str]],
) -> PlanItem:
    if node in selection.certified:
        decision, reason = "selected", ""
    elif node in selection.taken:
        decision, reason = "fill", "fits in what the frontier point leaves of the budget"
    elif candidate.is_executable:
        decision, reason = idle(node)
    else:
        decision, reason = ("removed" if candidate.mode == "remove" else "blocked"), candidate.reason
    made_by = candidate.operator
    return PlanItem(
        key=candidate.key,
        head=candidate.row.version,
        kind=candidate.row.kind,
        mode=candidate.mode,
        operator=f"{made_by.name}@{made_by.version}" if made_by else candidate.row.operator,
        value=priced.values[node],
        cost=cost,
        recorded_cost=priced.recorded[node],
        has_recorded_cost=candidate.row.cost is not None,
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
    `cost_weight` is the schedule's own: what `plan` takes when none is given. `unit`: of recorded costs; "" when none
    is recorded. `repair_all`: everything that can be rebuilt. `keys`: the candidates, sorted. `enters`: for each of
    `keys`, the index of the first point that selects it; None for never.
    """

    event_id: str | None
    scope: str
    epoch: int
    schedule: str
    cost_weight: Fraction
    unit: str
    points: tuple[TradeOffPoint, ...]
    repair_all: TradeOffPoint
    keys: tuple[str, ...]
    enters: tuple[int | None, ...]
    certificate: str
    warnings: tuple[str, ...]

    def at(self, cost_weight: int | str | Fraction) -> int:
        """Return the index of the point that a cost weight gives. Raises InvalidAmountError."""
        weight = parse_cost_weight(cost_weight)
        return next(index for index, point in enumerate(self.points) if (point.cost_weight or 0) <= weight)

    def selected(self, point: SupportsIndex) -> tuple[str, ...]:
        """Keys that `points[point]` selects, sorted. Raises InvalidRequestError for another index."""
        index = _whole_number(point)
        if index is None or not 0 <= index < len(self.points):
            raise InvalidRequestError(
                f"point: expected an int from 0 to {len(self.points) - 1}, got {brief(point)}; see .points"
            )
        return tuple(
            key for key, enters in zip(self.keys, self.enters, strict=True) if enters is not None and enters <= index
        )

    def table(self, max_points: SupportsIndex = 20) -> str:
        """
        The trade-off for people: at most `max_points` points (2 or more), evenly spread by number of points, and with
        them, marked, the one at the schedule's own cost weight. Raises InvalidRequestError for another `max_points`.
        """
        most = _whole_number(max_points)
        if most is None or most < 2:
            raise InvalidRequestError(f"max_points: expected an int of 2 or more, got {brief(max_points)}")
        whole, last, rows = self.repair_all, len(self.points) - 1, min(most, len(self.points))
        own = self.at(self.cost_weight)
        costs = [point.recorded_cost if self.unit else point.cost for point in self.points]
        whole_cost = whole.recorded_cost if self.unit else whole.cost
        counts = f"{whole.selected} of {len(self.keys)} candidates can be rebuilt"
        amounts = f"value {shown(whole.value)}, cost {shown(whole_cost)} {self.unit}".rstrip()
        lines = [f"frontier by {escaped(self.schedule)}: {counts}, {amounts}; certificate {self.certificate}"]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        lines.append(f"  * is the choice at {self.cost_weight}, the schedule's own cost weight")
        if rows <= last:
            lines.append(f"  {rows} of {last + 1} points, evenly spread by number of points")
        cells = [("cost weight", "selected", "value", "of all", f"cost {self.unit}".rstrip(), "of all")]
        indices = sorted({own, *(step * last // max(rows - 1, 1) for step in range(rows))})
        for index in indices:
            point, cost = self.points[index], costs[index]
            shares = share(point.value, whole.value), share(cost, whole_cost)
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
        warnings=question.warnings,
    )


def _by_point(enters: tuple[int | None, ...], amounts: tuple[int, ...], num_points: int) -> list[int]:
    """The sum of what each point selects."""
    added = [0] * num_points
    for index, amount in zip(enters, amounts, strict=True):
        if index is not None:
            added[index] += amount
    return list(accumulate(added))


def _whole_number(number: SupportsIndex) -> int | None:
    """Any kind of integer, numpy's too, as an int; None for what is none, and for a bool."""
    try:
        return None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        return None


def _weight_for(points: tuple[TradeOffPoint, ...], index: int) -> str:
    """A short decimal that gives the point as a cost weight: its own, rounded up; as a fraction if need be."""
    lowest = points[index].cost_weight or Fraction(0)
    for digits in (6, 9, 12, 15, 18):
        context = Context(prec=digits, rounding=ROUND_CEILING)
        short = context.divide(Decimal(lowest.numerator), Decimal(lowest.denominator))
        if not index or Fraction(short) < (points[index - 1].cost_weight or 0):
            return f"{short.normalize():f}"
    return str(lowest)
