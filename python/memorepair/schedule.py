"""Schedules: what a candidate is worth and what repairing it costs.

Contract: a schedule gives every candidate an exact value and cost, and a cost weight (lambda) of its own. Costs in
different units never meet: MixedUnitsError.
`normalised` (the paper's operating point): value = weight x (1 + recorded reads); cost = recorded derivation cost over
the mean recorded cost of derived heads, missing = the mean; cost weight 3/10. Where nothing is recorded each costs 1.
Invariant: the division by the mean is never rounded. It is left to the cost weight, so that one candidate that is very
dear does not make the others cost nothing.
Source: MemoRepair, the operating point of its experiments.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

import msgspec

from memorepair.amounts import MICRO, to_micro
from memorepair.candidates import Candidate
from memorepair.errors import InvalidRequestError, MixedUnitsError
from memorepair.scope import View

ScheduleFunction = Callable[[Candidate], tuple[object, object]]


class Priced(msgspec.Struct, frozen=True):
    """Values and costs of a plan's candidates, in micro-units, in the order of the candidates."""

    schedule: str
    values: tuple[int, ...]
    costs: tuple[int, ...]  # times `scale`: what the schedule says, exactly
    recorded: tuple[int, ...]  # recorded costs in micro-units of `unit`; a missing one counts as the mean
    unit: str  # "" when no cost is recorded
    cost_weight: Fraction  # the schedule's own
    mean: Fraction | None = None  # in micro-units: what recorded costs are divided by, None when they are not

    @property
    def scale(self) -> Fraction:
        """What the schedule's cost weight, times this, is for `costs`."""
        return Fraction(1) if self.mean is None else MICRO / self.mean

    def for_people(self) -> tuple[int, ...]:
        """The schedule's costs in micro-units, rounded half up; a cost above 0 stays above 0."""
        if self.mean is None:
            return self.costs
        above, below = self.scale.numerator, self.scale.denominator
        return tuple(max((2 * cost * above + below) // (2 * below), min(cost, 1)) for cost in self.costs)


class CostBase(msgspec.Struct, frozen=True):
    """The unit of the candidates' recorded costs ("" = none), and the mean of derived heads in it, in micro-units."""

    unit: str
    mean: Fraction


def cost_base(view: View, candidates: list[Candidate]) -> CostBase:
    """Read what costs are measured against."""
    unit = _unit(candidates)
    return CostBase(unit, _mean_cost(view, unit))


def price(candidates: list[Candidate], base: CostBase, schedule: str | ScheduleFunction) -> Priced:
    """Price the candidates by a schedule's name or by a function `candidate -> (value, cost)`."""
    unit, mean = base.unit, base.mean
    # Rounded up: a missing cost is never nothing while others have one, nor below 1 after the division.
    recorded = tuple(c.row.cost if c.row.cost is not None else ceil(mean) for c in candidates)
    if schedule == "normalised":
        values = tuple(c.row.weight * (1 + c.use.reads) for c in candidates)
        costs = recorded if mean else (MICRO,) * len(candidates)
        return Priced("normalised", values, costs, recorded, unit, Fraction(3, 10), mean or None)
    if not callable(schedule):
        raise InvalidRequestError(f"schedule: expected 'normalised' or a function, got {schedule!r}")
    pairs = [_pair(schedule, candidate) for candidate in candidates]
    return Priced(
        getattr(schedule, "__name__", "function"),
        tuple(value for value, _ in pairs),
        tuple(cost for _, cost in pairs),
        recorded,
        unit,
        Fraction(1),
    )


def _pair(schedule: ScheduleFunction, candidate: Candidate) -> tuple[int, int]:
    try:
        pair = schedule(candidate)
    except Exception as error:
        error.add_note(f"schedule, at key {candidate.key!r}")
        raise
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InvalidRequestError(f"schedule: expected (value, cost) for {candidate.key!r}, got {pair!r:.80}")
    return to_micro(pair[0], f"value of {candidate.key!r}"), to_micro(pair[1], f"cost of {candidate.key!r}")


def _unit(candidates: list[Candidate]) -> str:
    units = sorted({c.row.unit or "" for c in candidates if c.row.cost is not None})
    if len(units) > 1:
        raise MixedUnitsError(
            f"costs: expected one unit, got {', '.join(map(repr, units))}. "
            "Plan the keys of one unit at a time, or pass a schedule function that converts"
        )
    return units[0] if units else ""


def _mean_cost(view: View, unit: str) -> Fraction:
    """The mean recorded cost of derived heads in `unit`, in micro-units; 0 when there is none."""
    total, count = view.snapshot.head_costs(unit) if unit else (0, 0)
    return Fraction(total, count) if count else Fraction(0)
