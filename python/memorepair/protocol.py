"""The store protocol: rows, snapshots, and one batch of writes per transaction.

Purpose: a backend moves rows and knows no rule; the rules of the store are written once, above it.
Contract of a backend: writers of one scope are serial; a snapshot sees exactly one epoch; a batch is applied whole
or not at all, and is durable before `commit` returns; epoch order is commit order.
Invariants: version rows are never altered but for `reparent`; nothing here deletes a version, an edge or an event.
Source: docs/SEMANTICS.md sections 1, 3 and 6; the batch is LevelDB's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from memorepair.errors import DamagedStoreError

Ids = npt.NDArray[np.uint32]
MAX_VERSION = 2**32 - 2


def pack_ids(ids: Iterable[int]) -> bytes:
    """Version ids as little-endian uint32."""
    numbers = tuple(ids)
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpack_ids(blob: bytes) -> list[int]:
    """The inverse of `pack_ids`."""
    if len(blob) % 4:
        raise DamagedStoreError(f"packed ids: expected a multiple of 4 bytes, got {len(blob)}; restore a backup")
    return list(struct.unpack(f"<{len(blob) // 4}I", blob))


def lost_scope(scope: int) -> DamagedStoreError:
    """The error for a scope that was there when the store was opened."""
    return DamagedStoreError(f"scope {scope}: its row is gone; run 'memorepair fsck' and restore a backup")


class VersionRow(msgspec.Struct, frozen=True, gc=False):
    """One immutable version of a key. Integers are micro-units or microseconds; `parents` is required then optional."""

    version: int
    key: str
    kind: str
    digest: bytes
    epoch: int
    origin: str  # put | derive | late | publish | restore | adopt
    form: str | None = None
    namespace: str = ""
    title: str | None = None
    labels: str = "{}"
    operator: str | None = None
    operator_version: str | None = None
    cost: int | None = None
    unit: str | None = None
    weight: int = 1_000_000
    expires_at: int | None = None
    completeness: str = "complete"
    parents: bytes = b""
    num_required: int = 0
    previous: int = 0  # the key's latest version before this one, 0 = none
    facts: str | None = None

    @property
    def required(self) -> list[int]:
        """Versions that a rebuild cannot do without."""
        return unpack_ids(self.parents[: 4 * self.num_required])

    @property
    def optional(self) -> list[int]:
        """Versions that a rebuild may do without, as long as one input remains."""
        return unpack_ids(self.parents[4 * self.num_required :])


class ContentRow(msgspec.Struct, frozen=True, gc=False):
    """The content of one version, kept apart from its row so that it can be pruned without touching history."""

    version: int
    state: str  # inline | external | pruned | erased
    codec: str
    body: bytes


class Head(msgspec.Struct, frozen=True, gc=False):
    """What a key names: its head, and the latest version in its history; those below `floor` are all withdrawn."""

    key: str
    head: int
    latest: int
    floor: int = 0


class Root(msgspec.Struct, frozen=True):
    """One root of an event: the key, the versions withdrawn with it, and its replacement (0 = none)."""

    key: str
    versions: list[int]
    replacement: int = 0


class EventRow(msgspec.Struct, frozen=True):
    """One event with its resolved closure W(e) as a serialised mask."""

    event_id: str
    kind: str  # delete | correct | migrate | suspect | undo
    epoch: int
    digest: bytes
    roots: list[Root]
    closure: bytes
    num_withdrawn: int
    reason: str = ""
    soft: bool = False
    undoes: str | None = None
    restored: list[Root] = []
    abandoned: list[int] = []  # the epochs at which what it held by then was given up
    recorded_at: int = 0


class LateRow(msgspec.Struct, frozen=True):
    """A version that joined W(event) after the event."""

    event_epoch: int
    version: int
    epoch: int


class FateRow(msgspec.Struct, frozen=True):
    """What became of a held head in its last repair."""

    version: int
    key: str
    fate: str
    reason: str
    attempt: int
    epoch: int


class AttemptRow(msgspec.Struct, frozen=True):
    """One run of the engine. A publish carries `token`; the store refuses one that is no longer current."""

    attempt: int
    state: str  # planned | staging | staged | validated | published | failed | stalled
    token: int
    event_id: str | None
    plan_digest: str
    plan_epoch: int
    owner: str
    heartbeat: int = 0
    reason: str = ""


class StageRow(msgspec.Struct, frozen=True):
    """A rebuilt successor, outside the graph until the fence lets it pass."""

    attempt: int
    row: VersionRow
    codec: str
    body: bytes
    head: int  # the head the plan saw
    head_parents: bytes  # its parents, as the operator was given them
    state: str  # staged | validated | failed
    reason: str = ""


class UseRow(msgspec.Struct, frozen=True, gc=False):
    """Advisory counts for one key."""

    key: str
    reads: int
    gaps: int


class LedgerRow(msgspec.Struct, frozen=True):
    """What one transaction changed, so that every process can follow: packed version ids."""

    epoch: int
    kind: str
    inserted: bytes = b""
    crowned: bytes = b""
    dethroned: bytes = b""
    reparented: bytes = b""
    expiring: bytes = b""
    event_id: str | None = None
    recorded_at: int = 0


@dataclass
class Batch:
    """Everything one transaction writes. Applied whole, in this order."""

    next_version: int
    versions: list[VersionRow] = field(default_factory=list)
    contents: list[ContentRow] = field(default_factory=list)
    heads: dict[str, Head] = field(default_factory=dict)
    reparented: list[tuple[int, bytes, int]] = field(default_factory=list)  # version, parents, num_required
    events: list[EventRow] = field(default_factory=list)
    late: list[LateRow] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    similar: list[tuple[int, int, int]] = field(default_factory=list)  # semantic edge: source, target, micro-score
    fates: list[FateRow] = field(default_factory=list)
    attempts: list[AttemptRow] = field(default_factory=list)
    stages: list[StageRow] = field(default_factory=list)
    unstaged: list[tuple[int, int]] = field(default_factory=list)  # attempt, version
    uses: list[UseRow] = field(default_factory=list)
    ledger: LedgerRow | None = None


class Snapshot(Protocol):
    """One scope as it was at `epoch`."""

    epoch: int
    next_version: int

    def head(self, key: str) -> Head | None: ...
    def heads(self, prefix: str = "") -> Iterator[tuple[Head, VersionRow]]: ...
    def head_versions(self) -> Ids: ...
    def version(self, version: int) -> VersionRow | None: ...
    def versions(self, ids: Iterable[int]) -> dict[int, VersionRow]: ...
    def num_versions(self) -> int: ...
    def all_versions(self) -> Iterator[VersionRow]: ...
    def expiring(self) -> list[tuple[int, int]]: ...
    def parents(self, ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]: ...
    def content(self, version: int) -> ContentRow | None: ...
    def changes(self, since: int) -> list[LedgerRow]: ...
    def event(self, event_id: str) -> EventRow | None: ...
    def events(self, since: int = 0) -> list[EventRow]: ...
    def late(self, since: int = 0) -> list[LateRow]: ...
    def fates(self, heads: Iterable[int]) -> dict[int, FateRow]: ...
    def attempt(self, attempt: int) -> AttemptRow | None: ...
    def attempts(self) -> list[AttemptRow]: ...
    def stages(self, attempt: int | None) -> list[StageRow]: ...
    def uses(self, keys: Iterable[str]) -> dict[str, UseRow]: ...
    def head_costs(self, unit: str) -> tuple[int, int]: ...
    def similar(self, version: int) -> list[tuple[int, int]]: ...


class Transaction(Snapshot, Protocol):
    """A snapshot taken behind the scope's gate. Reads see the state before; `commit` writes one batch at epoch + 1."""

    def commit(self, batch: Batch) -> None: ...


class Backend(Protocol):
    """
    Where rows live. Safe to use from any thread.

    `keys`: whose heads will be asked for; a backend that is far away may bring them along.
    """

    uuid: str
    incarnation: int
    is_closed: bool

    def check_open(self) -> None: ...
    def scope_id(self, name: str) -> int: ...
    def scopes(self) -> list[str]: ...
    def epoch(self, scope: int) -> int:
        """The newest committed epoch of a scope, in one statement."""

    def snapshot(self, scope: int, keys: Sequence[str] = ()) -> AbstractContextManager[Snapshot]: ...
    def transaction(self, scope: int, keys: Sequence[str] = ()) -> AbstractContextManager[Transaction]: ...
    def integrity(self) -> list[str]: ...
    def close(self) -> None: ...
