"""Holds: which keys an event keeps withdrawn, derived from the events and never stored.

Contract: event e HOLDS key k when k's head was visible or held just before e and is in W(e), or became head by a late
row of e, and k is not a root that e deletes or replaces. A hold ends by a newer visible version of k, by delete of k,
or by abandon.
Invariants: a held key's head is withdrawn; every candidate of a plan is held; a settled event may still hold keys.
Source: docs/SEMANTICS.md section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from memorepair.barrier import Mask, mask_of
from memorepair.protocol import EventRow
from memorepair.scope import View


@dataclass(frozen=True)
class Holds:
    """Held heads by event. `masks` is keyed by the event's epoch and holds versions of heads."""

    events: Mapping[int, EventRow]
    masks: Mapping[int, Mask]

    @cached_property
    def by_version(self) -> dict[int, list[EventRow]]:
        """The events that hold each held head, oldest first."""
        answer: dict[int, list[EventRow]] = {}
        for epoch, mask in self.masks.items():
            for version in mask.ids():
                answer.setdefault(int(version), []).append(self.events[epoch])
        return answer

    def of(self, event: EventRow) -> list[int]:
        """Heads that `event` holds, in version order."""
        mask = self.masks.get(event.epoch)
        return [] if mask is None else [int(version) for version in mask.ids()]


def find_holds(view: View) -> Holds:
    """Derive every hold at the view's epoch."""
    none = mask_of((), view.barrier.size)
    alive = view.barrier.heads & view.barrier.withdrawn  # withdrawn heads whose holds have not ended
    events: dict[int, EventRow] = {}
    masks: dict[int, Mask] = {}
    # Each step at its own place in the order: an abandoned event gives up what it holds by then, for ever; what joins
    # it late after that is held anew.
    timeline: list[tuple[int, EventRow, Mask | None]] = []
    for entry in view.events:
        if not entry.row.soft:
            timeline.append((entry.row.epoch, entry.row, entry.closure))
            timeline += [(epoch, entry.row, mask_of(late, view.barrier.size)) for epoch, late in entry.late.items()]
            timeline += [(epoch, entry.row, None) for epoch in entry.row.abandoned]
    for epoch, event, taken in sorted(timeline, key=lambda step: step[0]):
        if taken is None:
            given_up = masks.pop(event.epoch, none)
            for mask in masks.values():
                given_up = given_up - mask
            alive = alive - given_up
            continue
        if event.kind == "delete" and epoch == event.epoch:
            roots = [version for root in event.roots for version in root.versions]
            alive = alive - mask_of(roots, view.barrier.size)
        hit = taken & alive
        if hit:
            events[event.epoch] = event
            masks[event.epoch] = masks.get(event.epoch, none) | hit
    return Holds(events, {epoch: held for epoch in sorted(masks) if (held := masks[epoch] & alive)})
