"""The barrier: which versions may be served, as three bitsets over version ids.

Contract: a `Barrier` is one immutable value as of one epoch; `follow` returns the value at a later snapshot.
Invariants: `withdrawn` only ever grows, because versions only go forward; visible = head, not withdrawn, not expired.
How: `withdrawn` is the OR of every event's closure and of the late rows; nothing is marked row by row, so a
million-artifact withdrawal is one row and one epoch.
Source: docs/SEMANTICS.md section 2; MemoRepair phase 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from memorepair._core import Mask as Mask
from memorepair.errors import InvalidRequestError
from memorepair.protocol import Ids, LedgerRow, Snapshot


def as_ids(versions: Iterable[int] | npt.NDArray[np.integer]) -> Ids:
    """Return version ids as a uint32 array. Raises InvalidRequestError for a masked array."""
    if isinstance(versions, np.ndarray):
        refuse_mask(versions)
        return np.ascontiguousarray(versions, dtype=np.uint32)
    return np.fromiter(versions, dtype=np.uint32)


def refuse_mask(versions: npt.NDArray[np.integer]) -> None:
    """Raise InvalidRequestError for a masked array: a conversion would drop its mask without a word."""
    if isinstance(versions, np.ma.MaskedArray):
        raise InvalidRequestError(
            "versions: expected an array without a mask, got a MaskedArray; pass versions.compressed()"
        )


def mask_of(versions: Iterable[int] | npt.NDArray[np.integer], size: int) -> Mask:
    """Return the set of `versions`, each below `size`."""
    return Mask.from_ids(as_ids(versions), size)


def unpack_expiring(blob: bytes) -> dict[int, int]:
    """Pairs of version and microseconds, as the ledger keeps them."""
    pairs = np.frombuffer(blob, dtype="<i8").reshape(-1, 2)
    return {int(version): int(micros) for version, micros in pairs}


def pack_expiring(pairs: Iterable[tuple[int, int]]) -> bytes:
    """The inverse of `unpack_expiring`."""
    return np.array([*pairs], dtype="<i8").tobytes()


@dataclass(frozen=True)
class Barrier:
    """What may be served at `epoch`. Masks hold version ids; safe to share between threads."""

    epoch: int = 0
    size: int = 1
    heads: Mask = field(default_factory=lambda: Mask(1))
    withdrawn: Mask = field(default_factory=lambda: Mask(1))
    outdated: Mask = field(default_factory=lambda: Mask(1))
    expiry: dict[int, int] = field(default_factory=dict)

    def follow(self, snapshot: Snapshot) -> Barrier:
        """Return the barrier as of `snapshot`, which is at or after this one."""
        if snapshot.epoch == self.epoch:
            return self
        size = snapshot.next_version
        heads: Mask
        expiry: dict[int, int]
        if self.epoch == 0:
            heads, expiry = mask_of(snapshot.head_versions(), size), dict(snapshot.expiring())
        else:
            heads, expiry = self._follow_heads(snapshot.changes(self.epoch), size)
        withdrawn, outdated = self.withdrawn.resized(size), self.outdated.resized(size)
        soft = set()
        for event in snapshot.events(self.epoch):
            if event.soft:
                soft.add(event.epoch)
                outdated = outdated | Mask.from_bytes(event.closure)
            else:
                withdrawn = withdrawn | Mask.from_bytes(event.closure)
        late = [row.version for row in snapshot.late(self.epoch) if row.event_epoch not in soft]
        if late:
            withdrawn = withdrawn | mask_of(late, size)
        return Barrier(snapshot.epoch, size, heads, withdrawn, outdated, expiry)

    def _follow_heads(self, changes: list[LedgerRow], size: int) -> tuple[Mask, dict[int, int]]:
        crowned = np.frombuffer(b"".join(row.crowned for row in changes), dtype="<u4")
        dethroned = np.frombuffer(b"".join(row.dethroned for row in changes), dtype="<u4")
        heads = self.heads
        if crowned.size or heads.size != size:
            heads = (heads | mask_of(crowned, size)) - mask_of(dethroned, size)
        # Shared by every later barrier: an expiry never changes, and nobody asks for a version past its own size.
        self.expiry.update(unpack_expiring(b"".join(row.expiring for row in changes)))
        return heads, self.expiry

    def is_expired(self, version: int, now_micros: int) -> bool:
        """Whether the version's time is over."""
        return bool(self.expiry) and self.expiry.get(version, now_micros + 1) <= now_micros

    def is_visible(self, version: int, now_micros: int) -> bool:
        """Whether `version` may be served."""
        return (
            0 <= version < self.size
            and version in self.heads
            and version not in self.withdrawn
            and not self.is_expired(version, now_micros)
        )

    def is_parent(self, version: int, now_micros: int) -> bool:
        """Whether `version`, known to exist, may be named by a new derivation: visible or superseded."""
        return version not in self.withdrawn and not (self.expiry and self.is_expired(version, now_micros))

    def visible_heads(self) -> Mask:
        """Heads that are not withdrawn (expiry left aside)."""
        return self.heads - self.withdrawn

    def visible(self, versions: npt.NDArray[np.integer], now_micros: int) -> npt.NDArray[np.bool_]:
        """Return one bool per id; False for unknown, staged, superseded, expired and withdrawn ones."""
        known = (versions >= 0) & (versions < self.size)
        ids = as_ids(versions if known.all() else np.where(known, versions, 0))
        answer: npt.NDArray[np.bool_] = self.heads.test(ids) & ~self.withdrawn.test(ids) & known
        if self.expiry:
            for position in np.flatnonzero(answer):
                answer[position] = not self.is_expired(int(ids[position]), now_micros)
        return answer
