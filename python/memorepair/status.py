"""The state of a scope in numbers.

Contract: counts from one committed state. Coverage is part of it, because a claim of zero stale content holds for
covered provenance only.
Source: docs/SEMANTICS.md invariant I12.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from memorepair.holds import find_holds
from memorepair.scope import View


class EventStatus(msgspec.Struct, frozen=True):
    """One event: open while a held key has no fate (a late one reopens it), settled after that, or abandoned."""

    event_id: str
    kind: str
    epoch: int
    state: str
    held: int
    undecided: int


class Status(msgspec.Struct, frozen=True):
    """
    Counts of one scope. `visible` + `expired` + `held` + `withdrawn` = `keys`: a held key may be repaired, a withdrawn
    one was deleted or given up. `complete`, `partial`, `opaque` and `without_parents` count visible artifacts;
    `without_parents` counts derived ones that name no input, `thin` those rebuilt while an optional parent was absent.
    """

    scope: str
    epoch: int
    token: str
    keys: int
    versions: int
    visible: int
    expired: int
    held: int
    withdrawn: int
    complete: int
    partial: int
    opaque: int
    without_parents: int
    thin: int
    attempts: dict[str, int]
    fates: dict[str, int]
    events: tuple[EventStatus, ...]

    @property
    def open_events(self) -> int:
        """Events with held keys that no repair has decided."""
        return sum(event.state == "open" for event in self.events)


def status(view: View) -> Status:
    """Count one scope."""
    holds = find_holds(view)
    fates = view.snapshot.fates(holds.by_version)
    states: Counter[str] = Counter()
    for head, row in view.snapshot.heads():
        if head.head in holds.by_version:
            states["held"] += 1
            continue
        state = view.state(row)
        states[state] += 1
        if state == "visible":
            states[row.completeness] += 1
            states["without_parents"] += row.kind != "record" and not row.parents
            states["thin"] += row.facts is not None and bool(msgspec.json.decode(row.facts).get("absent"))
    events = []
    for event in (entry.row for entry in view.events):
        held = holds.of(event)
        undecided = sum(version not in fates for version in held)
        state = "open" if undecided else "abandoned" if event.abandoned else "settled"  # late comers reopen
        events.append(EventStatus(event.event_id, event.kind, event.epoch, state, len(held), undecided))
    return Status(
        scope=view.scope.name,
        epoch=view.epoch,
        token=view.token,
        keys=sum(states[state] for state in ("visible", "expired", "held", "withdrawn")),
        versions=view.snapshot.num_versions(),
        visible=states["visible"],
        expired=states["expired"],
        held=states["held"],
        withdrawn=states["withdrawn"],
        complete=states["complete"],
        partial=states["partial"],
        opaque=states["opaque"],
        without_parents=states["without_parents"],
        thin=states["thin"],
        attempts=dict(Counter(row.state for row in view.snapshot.attempts())),
        fates=dict(Counter(fates[version].fate for version in holds.by_version if version in fates)),
        events=tuple(events),
    )
