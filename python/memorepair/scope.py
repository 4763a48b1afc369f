"""One scope of an open store: its rows, its barrier and its graph, read and written at one epoch.

Contract: `read` yields a View whose snapshot and barrier are of the same epoch, at or after every commit that was
acknowledged before the call, in any process. `write` yields a View behind the scope's gate with a batch to fill;
leaving the block without an exception commits it, an empty batch changes nothing.
Invariants: memory follows the ledger only, so it never knows a transaction before its commit.
Thread safety: any thread; the lock guards memory and is never held while waiting for the gate.
Source: docs/SEMANTICS.md sections 1, 2 and 6, invariant I1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from memorepair.barrier import Barrier, Mask, pack_expiring
from memorepair.content import decode, digest_of
from memorepair.errors import CapacityError, DamagedStoreError, InvalidRequestError, StaleDependencyError
from memorepair.eventlog import Entry, EventLog
from memorepair.graph import VersionGraph
from memorepair.protocol import (
    MAX_VERSION,
    Backend,
    Batch,
    EventRow,
    Head,
    LedgerRow,
    Snapshot,
    Transaction,
    UseRow,
    VersionRow,
    pack_ids,
)

MAX_REMEMBERED = 2**20
MAX_USES_A_WRITE = 1000
MAX_OVERTAKEN = 1000  # readings in a row that others were ahead of: no accident any more


@dataclass
class View:
    """One scope at one epoch: rows from the snapshot, visibility from the barrier."""

    snapshot: Snapshot
    barrier: Barrier
    scope: Scope
    now_micros: int

    @property
    def epoch(self) -> int:
        return self.snapshot.epoch

    @property
    def token(self) -> str:
        """Names this state of this store; opaque to callers."""
        return self.scope.token_at(self.epoch)

    def head(self, key: str) -> Head | None:
        return self.snapshot.head(key)

    def row(self, version: int) -> VersionRow:
        """Return a version that must exist."""
        row = self.snapshot.version(version)
        if row is None:
            raise DamagedStoreError(f"version {version}: its row is gone; run 'memorepair fsck' and restore a backup")
        return row

    def visible_head(self, key: str) -> VersionRow | None:
        """Return the visible version of `key`, or None."""
        head = self.head(key)
        if head is None or not self.barrier.is_visible(head.head, self.now_micros):
            return None
        return self.row(head.head)

    def state(self, row: VersionRow) -> str:
        """Return visible, superseded, withdrawn or expired."""
        if row.version in self.barrier.withdrawn:
            return "withdrawn"
        if self.barrier.is_expired(row.version, self.now_micros):
            return "expired"
        return "visible" if row.version in self.barrier.heads else "superseded"

    def content(self, row: VersionRow) -> object:
        """Return the content of a version, checked against its digest; None when it is gone."""
        stored = self.snapshot.content(row.version)
        if stored is None:
            raise DamagedStoreError(f"{row.key!r} version {row.version}: its content row is gone; restore a backup")
        if stored.state in ("pruned", "erased"):
            return None
        if stored.state == "inline" and digest_of(stored.codec, stored.body) != row.digest:
            raise DamagedStoreError(f"{row.key!r} version {row.version}: content and digest differ; restore a backup")
        return decode(stored.codec, stored.body, row.digest)

    def cascade(self, roots: list[int]) -> Mask:
        """Return the closure of `roots` over every committed edge."""
        return self.scope.graph_at(self.snapshot).cascade(roots)

    @cached_property
    def events(self) -> list[Entry]:
        """Every event with its closure, oldest first."""
        return self.scope.events_at(self.snapshot)

    def closures(self) -> list[tuple[EventRow, Mask]]:
        """Return every event with its W, late rows included, in epoch order."""
        return [(entry.row, entry.whole(self.barrier.size)) for entry in self.events]


@dataclass
class Writer(View):
    """A View behind the gate, with the batch that the block leaves behind."""

    batch: Batch = field(default_factory=lambda: Batch(1))
    kind: str = "write"
    event_id: str | None = None
    dethroned: list[int] = field(default_factory=list)
    crowned: list[int] = field(default_factory=list)
    found: dict[str, Head | None] = field(default_factory=dict)  # heads as this batch sees them, each read once
    fresh: dict[int, VersionRow] = field(default_factory=dict)  # versions of this batch, so that it can read itself

    @property
    def new_epoch(self) -> int:
        """The epoch at which the batch will stand."""
        return self.snapshot.epoch + 1

    @property
    def token_after(self) -> str:
        """The token of the state that the batch makes."""
        return self.scope.token_at(self.new_epoch if self.batch.versions else self.epoch)

    def allocate(self) -> int:
        """Return a fresh version id, above every id that exists."""
        version = self.batch.next_version
        if version > MAX_VERSION:
            raise CapacityError(f"scope {self.scope.name!r}: version ids are used up (2**32); open another scope")
        self.batch.next_version += 1
        return version

    def head(self, key: str) -> Head | None:
        if key not in self.found:
            self.found[key] = self.snapshot.head(key)
        return self.found[key]

    def crown(self, key: str, version: int) -> None:
        """Make `version` the head of `key`."""
        old = self.head(key)
        if old is not None:
            self.dethroned.append(old.head)
        self.crowned.append(version)
        # An id allocated before an event may be published after it, below the floor: the floor gives way.
        floor = min(old.floor, version) if old is not None else 0
        self.found[key] = self.batch.heads[key] = Head(key, version, version, floor)

    def chain(self, key: str, version: int) -> None:
        """Add `version` to the history of `key` without making it the head."""
        old = self.head(key)
        assert old is not None
        self.found[key] = self.batch.heads[key] = Head(key, old.head, version, old.floor)

    def raise_floor(self, key: str) -> None:
        """Note that every version of `key` so far is withdrawn by this batch, so that nobody walks there again."""
        old = self.head(key)
        assert old is not None
        self.found[key] = self.batch.heads[key] = Head(key, old.head, old.latest, self.batch.next_version)

    def remember(self, row: VersionRow) -> None:
        """Let later writes of this batch see `row`."""
        self.fresh[row.version] = row

    def row(self, version: int) -> VersionRow:
        return self.fresh.get(version) or super().row(version)

    def is_late(self, version: int) -> bool:
        """Whether a version of this batch was born withdrawn."""
        return self.fresh[version].origin == "late"

    def is_visible(self, version: int) -> bool:
        """Whether `version`, a head, may be served once the batch stands."""
        if version in self.fresh:
            return not self.is_late(version)
        return self.barrier.is_visible(version, self.now_micros)

    def is_parent(self, version: int) -> bool:
        """Whether a derivation may name `version`: visible or superseded."""
        if version in self.fresh:
            return not self.is_late(version)
        return self.barrier.is_parent(version, self.now_micros)

    def look_up_forms(self, versions: Iterable[int]) -> None:
        """Learn at once which of `versions` are interfaces, so that `is_interface` need not ask for each."""
        unknown = [version for version in versions if version not in self.scope.forms and version not in self.fresh]
        if unknown:
            self.scope.remember_forms(self.snapshot.versions(unknown).values())

    def is_interface(self, version: int) -> bool:
        """Whether `version` is an interface; raises StaleDependencyError when there is no such version."""
        forms = self.scope.forms
        if version not in forms:
            row = self.fresh.get(version) or self.snapshot.version(version)
            if row is None:
                raise StaleDependencyError(
                    f"parent: version {version} does not exist in this scope; read the parents again"
                )
            if version in self.fresh:
                return row.form == "interface"  # not committed yet, so not remembered
            self.scope.remember_forms([row])
        return forms[version]

    def is_empty(self) -> bool:
        """Whether the batch holds nothing to commit."""
        batch = self.batch
        kept = (batch.versions, batch.reparented, batch.events, batch.late, batch.abandoned, batch.similar)
        return not any((*kept, batch.fates, batch.attempts, batch.stages, batch.unstaged, batch.uses, batch.heads))


class Scope:
    """The resident half of one scope."""

    def __init__(self, backend: Backend, name: str, clock: Callable[[], int]) -> None:
        self.backend, self.name, self.clock = backend, name, clock
        self.id = backend.scope_id(name)
        self._barrier = Barrier()
        self._graph = VersionGraph()
        self._lock = threading.RLock()
        self._writing = threading.local()
        self._log = EventLog()
        self.uses: dict[str, list[int]] = {}
        self.forms: dict[int, bool] = {}  # version -> is an interface; a version never changes, so neither does this

    def token_at(self, epoch: int) -> str:
        """Name the scope's state at `epoch`; opaque to callers."""
        return f"{self.backend.uuid}.{self.backend.incarnation}.{self.id}.{epoch}"

    @contextmanager
    def read(self, keys: Sequence[str] = ()) -> Iterator[View]:
        """Yield a View of the newest committed state; `keys` as for a backend."""
        self.backend.check_open()  # before the lock, which a fork may have left taken
        with ExitStack() as stack:
            for _ in range(MAX_OVERTAKEN):
                # Not under the lock: who has to wait for a snapshot must not keep others from ending theirs.
                snapshot = stack.enter_context(self.backend.snapshot(self.id, keys))
                with self._lock:
                    if snapshot.epoch >= self._barrier.epoch:
                        barrier = self._barrier = self._barrier.follow(snapshot)
                        break
                stack.close()  # meanwhile memory has followed a newer one: take that
            else:
                raise DamagedStoreError(
                    f"scope {self.name!r}: its rows are older than what was read from them; was a backup restored "
                    "under this process? Close the store and open it again"
                )
            yield View(snapshot, barrier, self, self.clock())

    def barrier_now(self) -> Barrier:
        """Return the barrier of the newest committed state: the one in memory, unless somebody has written since."""
        self.backend.check_open()
        barrier = self._barrier
        if self.backend.epoch(self.id) == barrier.epoch:
            return barrier
        with self.read() as view:
            return view.barrier

    @contextmanager
    def write(self, kind: str, keys: Sequence[str] = ()) -> Iterator[Writer]:
        """Yield a Writer; commit its batch unless the block raises or leaves it empty. `keys` as for a backend."""
        if getattr(self._writing, "is_open", False):
            raise InvalidRequestError(f"{kind}: a batch is open in this thread; write through it, or leave it first")
        with self.backend.transaction(self.id, keys) as transaction, self._marked():
            with self._lock:
                barrier = self._barrier = self._barrier.follow(transaction)
            writer = Writer(transaction, barrier, self, self.clock(), Batch(transaction.next_version), kind)
            yield writer
            if not writer.is_empty():
                self._commit(transaction, writer)

    @contextmanager
    def _marked(self) -> Iterator[None]:
        self._writing.is_open = True
        try:
            yield
        finally:
            self._writing.is_open = False

    def _commit(self, transaction: Transaction, writer: Writer) -> None:
        batch = writer.batch
        dropped = set(writer.dethroned)
        uses = self.take_uses()
        batch.uses.extend(uses)
        batch.ledger = LedgerRow(
            epoch=writer.new_epoch,
            kind=writer.kind,
            inserted=pack_ids(row.version for row in batch.versions),
            crowned=pack_ids(version for version in writer.crowned if version not in dropped),
            dethroned=pack_ids(writer.dethroned),
            reparented=pack_ids(version for version, _, _ in batch.reparented),
            expiring=pack_expiring(
                (row.version, row.expires_at) for row in batch.versions if row.expires_at is not None
            ),
            event_id=writer.event_id,
            recorded_at=writer.now_micros,
        )
        try:
            transaction.commit(batch)
        except BaseException:
            for use in uses:
                self.count(use.key, use.reads, use.gaps)
            raise
        self.remember_forms(batch.versions)

    def remember_forms(self, rows: Iterable[VersionRow]) -> None:
        """Remember which committed versions are interfaces."""
        if len(self.forms) >= MAX_REMEMBERED:
            self.forms.clear()
        self.forms.update((row.version, row.form == "interface") for row in rows)

    def graph_at(self, snapshot: Snapshot) -> VersionGraph:
        """Return the graph, at or after `snapshot`; it only grows, so it needs no lock to be read."""
        with self._lock:
            if self._graph.epoch < snapshot.epoch:
                self._graph.follow(snapshot)
            return self._graph

    def events_at(self, snapshot: Snapshot) -> list[Entry]:
        """Return every event as of `snapshot`."""
        with self._lock:
            self._log.follow(snapshot)
            return self._log.until(snapshot.epoch)

    def count(self, key: str, reads: int, gaps: int) -> None:
        """Count a read or a hit on a gap; advisory, written with the next write."""
        counts = self.uses.setdefault(key, [0, 0])
        counts[0] += reads
        counts[1] += gaps

    def take_uses(self, most: int = MAX_USES_A_WRITE) -> list[UseRow]:
        """Hand over the counts gathered so far."""
        if len(self.uses) <= most:
            uses, self.uses = self.uses, {}
        else:  # the rest waits, so that no write pays for a hundred thousand reads
            uses = {key: self.uses.pop(key) for key in list(self.uses)[:most]}
        return [UseRow(key, reads, gaps) for key, (reads, gaps) in uses.items()]
