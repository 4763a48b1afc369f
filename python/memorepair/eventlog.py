"""The events of one scope in memory: each with its closure unpacked, followed by epoch.

Contract: `follow` reads what was committed since; `until` answers as of an epoch, so a reader of an older snapshot sees
no newer event, late row or abandonment.
Invariants: events only join at the end; a closure never changes, what joins later stands in `late`.
Thread safety: none; its scope guards it.
Source: docs/SEMANTICS.md section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from memorepair.barrier import Mask, mask_of
from memorepair.errors import DamagedStoreError
from memorepair.protocol import EventRow, Snapshot


@dataclass(frozen=True)
class Entry:
    """One event, its closure as recorded, and what joined it: epoch -> versions. Frozen: readers share it."""

    row: EventRow
    closure: Mask
    late: Mapping[int, list[int]] = field(default_factory=dict)

    def until(self, epoch: int) -> Entry:
        """Return the entry as it was at `epoch`."""
        abandoned = [at for at in self.row.abandoned if at <= epoch]
        late = {at: versions for at, versions in self.late.items() if at <= epoch}
        return Entry(replace(self.row, abandoned=abandoned), self.closure, late)

    def whole(self, size: int) -> Mask:
        """Return W(event), late versions included."""
        late = [version for versions in self.late.values() for version in versions]
        return self.closure | mask_of(late, size) if late else self.closure


class EventLog:
    """Every event up to an epoch, in epoch order."""

    def __init__(self) -> None:
        self.epoch = 0
        self._entries: dict[int, Entry] = {}

    def follow(self, snapshot: Snapshot) -> None:
        """Take in what was committed since."""
        if snapshot.epoch <= self.epoch:
            return
        for row in snapshot.events(self.epoch):
            self._entries[row.epoch] = Entry(row, Mask.from_bytes(row.closure))
        joined: dict[int, dict[int, list[int]]] = {}
        for late in snapshot.late(self.epoch):
            joined.setdefault(late.event_epoch, {}).setdefault(late.epoch, []).append(late.version)
        for event_epoch, versions in joined.items():
            entry = self._entry(event_epoch)
            self._entries[event_epoch] = Entry(entry.row, entry.closure, {**entry.late, **versions})
        if self.epoch:
            self._follow_abandoned(snapshot)
        self.epoch = snapshot.epoch

    def _follow_abandoned(self, snapshot: Snapshot) -> None:
        for change in snapshot.changes(self.epoch):
            row = snapshot.event(change.event_id) if change.kind == "abandon" and change.event_id else None
            if row is not None:
                entry = self._entry(row.epoch)
                self._entries[row.epoch] = Entry(row, entry.closure, entry.late)

    def _entry(self, epoch: int) -> Entry:
        if epoch not in self._entries:
            raise DamagedStoreError(f"event at epoch {epoch}: its row is gone; run 'memorepair fsck', restore a backup")
        return self._entries[epoch]

    def until(self, epoch: int) -> list[Entry]:
        """Return every entry as of `epoch`, oldest first."""
        if epoch >= self.epoch:
            return list(self._entries.values())
        return [entry.until(epoch) for at, entry in self._entries.items() if at <= epoch]
