"""The report of a repair: every candidate's fate and reason, counts, and costs against repairing everything.

Contract: a frozen value; prints well in a terminal and converts to JSON. Costs are micro-units of `unit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec

from memorepair.amounts import shown
from memorepair.keys import escaped

if TYPE_CHECKING:
    from memorepair.planner import Plan

SHOWN_ROWS = 50


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """
    What became of one candidate. `fate`: published, failed, blocked, removed, not worth it, or stalled (an event or
    another engine came between; plan again).
    """

    key: str
    kind: str
    fate: str
    reason: str
    mode: str
    version: int | None = None
    cost: int | None = None
    unit: str = ""
    was_executed: bool = False
    absent: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair did. `report["key"].fate` tells one artifact's story."""

    event_id: str | None
    cost_weight: str
    certificate: str
    outcomes: dict[str, Outcome]
    selected: int
    executed: int
    counts: dict[str, int]
    unit: str
    planned_cost: int
    spent_cost: int
    repair_all_cost: int
    validators: dict[str, tuple[str, ...]]

    @staticmethod
    def of(plan: Plan, outcomes: Mapping[str, Outcome], coverage: Mapping[str, tuple[str, ...]]) -> Report:
        """Sum up a plan and its outcomes."""
        recorded = {item.key: item.recorded_cost for item in plan.items}
        executed = [outcome for outcome in outcomes.values() if outcome.was_executed]
        units = {outcome.unit for outcome in executed if outcome.cost is not None and outcome.unit} | {plan.unit}
        if len(units - {""}) > 1:
            # Paid in another unit than planned: the sum would mean nothing, so the recorded costs stand for it.
            executed = [msgspec.structs.replace(outcome, cost=None) for outcome in executed]
        spent = sum(outcome.cost if outcome.cost is not None else recorded[outcome.key] for outcome in executed)
        return Report(
            event_id=plan.event_id,
            cost_weight=plan.cost_weight,
            certificate=plan.certificate,
            outcomes={item.key: outcomes[item.key] for item in plan.items},
            selected=len(plan.selected),
            executed=len(executed),
            counts=dict(sorted(Counter(outcome.fate for outcome in outcomes.values()).items())),
            unit=plan.unit,
            planned_cost=plan.planned_cost.micro,
            spent_cost=spent,
            repair_all_cost=plan.repair_all_cost.micro,
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
        return float(Fraction(self.planned_cost, self.repair_all_cost)) if self.repair_all_cost else None

    @property
    def unchecked_kinds(self) -> tuple[str, ...]:
        """Kinds that were published without any validator looking."""
        kinds = {outcome.kind for outcome in self.outcomes.values() if outcome.fate == "published"}
        return tuple(kind for kind, names in self.validators.items() if kind in kinds and not names)

    def __getitem__(self, key: str) -> Outcome:
        return self.outcomes[key]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON types, summary first."""
        summary = {"candidates": self.candidates, "published": self.published, "cost_ratio": self.cost_ratio}
        rest: dict[str, Any] = msgspec.to_builtins(self)
        return summary | rest

    def __str__(self) -> str:
        ratio = "" if self.cost_ratio is None else f", cost {self.cost_ratio:.2f} of repairing all"
        lines = [
            f"repair: {self.published} published of {self.selected} selected of {self.candidates} candidates{ratio}; "
            f"certificate {self.certificate}",
            "  " + ", ".join(f"{fate} {count}" for fate, count in self.counts.items()),
        ]
        if self.spent_cost and self.unit:
            lines.append(
                f"  spent {shown(self.spent_cost)} {self.unit} of {shown(self.repair_all_cost)} {self.unit} for all"
            )
        lines += [f"  no validator watches kind {kind}" for kind in self.unchecked_kinds]
        for outcome in list(self.outcomes.values())[:SHOWN_ROWS]:
            why = f" ({escaped(outcome.reason)})" if outcome.reason else ""
            lines.append(f"  {outcome.fate:12} {escaped(outcome.key)}{why}")
        if self.candidates > SHOWN_ROWS:
            lines.append(f"  ... and {self.candidates - SHOWN_ROWS} more")
        return "\n".join(lines)
