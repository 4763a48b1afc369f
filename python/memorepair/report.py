"""The report of a repair: every candidate's fate and reason, counts, and costs against repairing everything.

Contract: a frozen value; prints well in a terminal and converts to JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec

from memorepair.amounts import Cost, share
from memorepair.keys import escaped, not_among

if TYPE_CHECKING:
    from memorepair.planner import Plan

SHOWN_ROWS = 50


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """
    What became of one candidate. `fate`: published, failed, blocked, removed, not worth it, left out (of a plan within
    a budget), or stalled (an event or another engine came between; plan again).
    """

    key: str
    kind: str
    fate: str
    reason: str
    mode: str
    version: int | None = None
    cost: Cost | None = None  # what the operator said it took
    was_executed: bool = False  # its operator was called, whatever came of it
    is_fill: bool = False  # selected to use up a budget, beside the certified choice
    absent: tuple[str, ...] = ()
    has_read_old: bool = False  # the operator was given the withdrawn content


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair did. `report["key"].fate` tells one artifact's story; iterating gives the outcomes, by key."""

    event_id: str | None
    cost_weight: str | None  # None with a budget
    budget: str | None
    certificate: str
    outcomes: dict[str, Outcome]
    selected: int
    filled: int  # of these, how many only use up the budget; the certificate does not cover them
    executed: int
    counts: dict[str, int]
    unit: str
    planned_cost: Cost
    repair_all_cost: Cost
    spent: tuple[Cost, ...]  # by unit, failed runs included; where an operator named no cost, the recorded one
    validators: dict[str, tuple[str, ...]]

    @staticmethod
    def of(plan: Plan, outcomes: Mapping[str, Outcome], coverage: Mapping[str, tuple[str, ...]]) -> Report:
        """Sum up a plan and its outcomes."""
        recorded = {item.key: item.recorded_cost for item in plan.items}
        executed = [outcome for outcome in outcomes.values() if outcome.was_executed]
        spent: Counter[str] = Counter()
        for outcome in executed:
            cost = outcome.cost or Cost(recorded[outcome.key], plan.unit)
            spent[cost.unit] += cost.micro
        return Report(
            event_id=plan.event_id,
            cost_weight=plan.cost_weight,
            budget=plan.budget,
            certificate=plan.certificate,
            outcomes={item.key: outcomes[item.key] for item in plan.items},
            selected=len(plan.selected),
            filled=len(plan.fill),
            executed=len(executed),
            counts=dict(sorted(Counter(outcome.fate for outcome in outcomes.values()).items())),
            unit=plan.unit,
            planned_cost=plan.planned_cost,
            repair_all_cost=plan.repair_all_cost,
            spent=tuple(Cost(micro, unit) for unit, micro in sorted(spent.items()) if micro),
            validators=dict(coverage),
        )

    @property
    def candidates(self) -> int:
        """How many withdrawn keys were considered."""
        return len(self.outcomes)

    @property
    def published(self) -> int:
        """How many successors became visible."""
        return self.counts.get("published", 0)

    @property
    def cost_ratio(self) -> float | None:
        """Recorded cost of what was selected over that of repairing everything; None when nothing has a cost."""
        whole = self.repair_all_cost.micro
        return float(Fraction(self.planned_cost.micro, whole)) if whole else None

    @property
    def unchecked_kinds(self) -> tuple[str, ...]:
        """Kinds that were published without any validator looking."""
        kinds = {outcome.kind for outcome in self.outcomes.values() if outcome.fate == "published"}
        return tuple(kind for kind, names in self.validators.items() if kind in kinds and not names)

    def __getitem__(self, key: str) -> Outcome:
        if key not in self.outcomes:
            raise not_among(key, len(self.outcomes), "report")
        return self.outcomes[key]

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes.values())

    def __contains__(self, what: object) -> bool:
        """Whether a key, or an outcome, is among the candidates."""
        return any(what in (key, outcome) for key, outcome in self.outcomes.items())

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON types, summary first."""
        summary = {"candidates": self.candidates, "published": self.published, "cost_ratio": self.cost_ratio}
        rest: dict[str, Any] = msgspec.to_builtins(self)
        costs = {
            "planned_cost": str(self.planned_cost),
            "repair_all_cost": str(self.repair_all_cost),
            "spent": [str(cost) for cost in self.spent],
        }
        return summary | rest | costs

    def __str__(self) -> str:
        whole = self.repair_all_cost.micro
        ratio = f", planned cost {share(self.planned_cost.micro, whole)} of all" if whole else ""
        filled, covers = "", ""
        if self.budget is not None:
            filled = f", {self.filled} filled in"
            covers = f" for the frontier point ({self.selected - self.filled} selected)"
        lines = [
            f"repair: {self.published} published of {self.selected} selected of {self.candidates} candidates{filled}"
            f"{ratio}; certificate {self.certificate}{covers}",
            "  " + ", ".join(f"{fate} {count}" for fate, count in self.counts.items()),
        ]
        if self.spent and self.unit:
            spent = " and ".join(map(str, self.spent))
            lines.append(f"  spent {spent}; {self.planned_cost} planned, {self.repair_all_cost} for all")
        lines += [f"  no validator watches kind {kind}" for kind in self.unchecked_kinds]
        # What no certificate covers comes first, so that no cut hides it.
        for outcome in sorted(self.outcomes.values(), key=lambda outcome: not outcome.is_fill)[:SHOWN_ROWS]:
            why = ", ".join(
                (["filled in"] if outcome.is_fill else []) + ([escaped(outcome.reason)] if outcome.reason else [])
            )
            why = f" ({why})" if why else ""
            lines.append(f"  {outcome.fate:12} {escaped(outcome.key)}{why}")
        if self.candidates > SHOWN_ROWS:
            lines.append(f"  ... and {self.candidates - SHOWN_ROWS} more")
        return "\n".join(lines)
