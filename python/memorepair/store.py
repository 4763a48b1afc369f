"""The store: what an agent reads, writes, and declares stale.

Contract: a Store is one scope of one backend. Every read is answered from one committed state in which what it
returns is visible; every event is durable when its call returns. Safe to use from any thread; a context manager.
The rules live in writing.py (put, derive), events.py (delete, correct, ...) and barrier.py (what is visible); this
file is their front door.
Source: docs/SEMANTICS.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from memorepair import clock as clocks
from memorepair import reading, writing
from memorepair.amounts import Cost
from memorepair.artifact import Artifact, Gap, VersionInfo
from memorepair.errors import (
    CascadeTooLargeError,
    InvalidRequestError,
    MissingExtraError,
    MissingStoreError,
    StoreError,
)
from memorepair.events import Event, Request, abandon, default_undo_id, preview, raise_event
from memorepair.impact import DEFAULT_MAX_CASCADE, NO_GUARD, Guard, Impact, checked_max_cascade
from memorepair.keys import checked_name
from memorepair.location import is_postgres
from memorepair.protocol import Backend
from memorepair.scope import Scope, View, Writer
from memorepair.selector import Selector
from memorepair.sqlite import SqliteBackend

if TYPE_CHECKING:
    from memorepair.aio import AsyncStore
    from memorepair.explain import Explanation
    from memorepair.fsck import Finding
    from memorepair.status import Status

Hit = TypeVar("Hit")
Roots = str | SupportsIndex | Selector | Iterable[str | SupportsIndex]
Versions = Iterable[SupportsIndex] | npt.NDArray[np.integer]


def open_store(
    location: str | os.PathLike[str] | Backend,
    scope: str = "default",
    *,
    create: bool = True,
    max_cascade: float | int | None = DEFAULT_MAX_CASCADE,
    count_reads: bool = True,
    timeout_seconds: float = 5.0,
    clock: Callable[[], int] = clocks.wall_micros,
) -> Store:
    """
    Open one scope of a store. This is `memorepair.open`.

    `location`: a path, ":memory:" (SQLite in memory), "postgresql://user@host/database", or a backend. `scope`: tenant,
    agent or project; edges never cross scopes. `create`: make the store and the scope when they are absent.
    `max_cascade`: the share (float) or count (int) of visible artifacts that one event may withdraw unconfirmed; None
    turns the guard off. `count_reads`: keep advisory counts of reads and gap hits for schedules. `timeout_seconds`: how
    long a write waits for another process. `clock`: microseconds since 1970 UTC, for expiry.
    Raises MissingStoreError, DamagedStoreError, NewerSchemaError, StoreReadOnlyError, StoreBusyError,
    StoreUnreachableError, MissingExtraError, InvalidKeyError.
    """
    name, limit = checked_name(scope, "scope"), checked_max_cascade(max_cascade)
    if not isinstance(location, (str, os.PathLike)):
        if not hasattr(location, "transaction"):
            raise InvalidRequestError(f"open: expected a path, ':memory:' or a backend, got {type(location).__name__}")
        return _scope_store(location, name, clock, create, limit, count_reads, owns_backend=False)
    if (
        isinstance(timeout_seconds, bool)
        or not isinstance(timeout_seconds, (int, float))
        or not 0 <= timeout_seconds <= 1e6
    ):
        raise InvalidRequestError(f"open: timeout_seconds: expected 0 to 1e6, got {timeout_seconds!r}")
    path = os.fspath(location)
    backend = (_open_postgres if is_postgres(path) else _open_sqlite)(path, timeout_seconds, create)
    try:
        return _scope_store(backend, name, clock, create, limit, count_reads, owns_backend=True)
    except BaseException:
        backend.close()
        raise


def _open_sqlite(path: str, timeout_seconds: float, create: bool) -> Backend:
    if not isinstance(path, str) or "\0" in path or not path.isprintable():
        raise InvalidRequestError(f"open: expected a path of printable characters, got {path!r}")
    if not create and not os.path.exists(path):
        raise MissingStoreError(f"open: store {path!r} does not exist; make it, or check the path")
    return SqliteBackend(path, timeout_seconds=timeout_seconds, create=create)


def _open_postgres(url: str, timeout_seconds: float, create: bool) -> Backend:
    try:
        from memorepair.postgres import PostgresBackend
    except ImportError as error:
        raise MissingExtraError(
            f"open: PostgreSQL needs psycopg ({error}); run: pip install 'memorepair[postgres]'"
        ) from error
    return PostgresBackend(url, timeout_seconds=timeout_seconds, create=create)


def _scope_store(
    backend: Backend,
    name: str,
    clock: Callable[[], int],
    create: bool,
    max_cascade: float | int | None,
    count_reads: bool,
    owns_backend: bool,
) -> Store:
    if not create and name not in backend.scopes():
        known = ", ".join(map(repr, backend.scopes())) or "none"
        raise MissingStoreError(f"open: scope {name!r} does not exist in this store; it has {known}")
    return Store(Scope(backend, name, clock), max_cascade, count_reads, owns_backend)


class Store:
    """One scope of an open store. Made by `memorepair.open`."""

    def __init__(self, scope: Scope, max_cascade: float | int | None, count_reads: bool, owns_backend: bool) -> None:
        self._scope, self._max_cascade, self._count_reads = scope, max_cascade, count_reads
        self._owns_backend = owns_backend

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<memorepair.Store scope={self._scope.name!r}>"

    @property
    def scope(self) -> str:
        """The name of the scope."""
        return self._scope.name

    @property
    def aio(self) -> AsyncStore:
        """The same store for async code: every call runs in a thread."""
        from memorepair.aio import AsyncStore

        return AsyncStore(self)

    def close(self) -> None:
        """Write the read counts, and close what `open` opened; a backend that was passed in stays open."""
        if self._scope.uses and not self._scope.backend.is_closed:
            # Advisory: a store that cannot be written now still has to close.
            with suppress(StoreError), self._scope.write("count") as writer:
                writer.batch.uses.extend(self._scope.take_uses(len(self._scope.uses)))
        if self._owns_backend:
            self._scope.backend.close()

    # -- writes ----------------------------------------------------------------------------------------------------

    def put(
        self,
        key: str,
        content: Any,
        *,
        kind: str = "record",
        form: str | None = None,
        namespace: str = "",
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        weight: object = 1,
        expires_at: datetime | None = None,
        supersede: bool = False,
        base: SupportsIndex | None = None,
        confirm: str | None = None,
    ) -> Artifact:
        """
        Put a root of provenance: something the agent was told or read outside the store.

        Over a visible key, equal content, kind, labels and title are the same version; other labels or title make a
        superseding version and withdraw nothing; other content is a `correct`, whose cascade is withdrawn before the
        call returns, unless `supersede=True` says the old content was true in its time. `base` refuses the write
        unless it names the visible head. `content`: str, bytes, JSON, or External.
        Raises InvalidKeyError, InvalidContentError, StaleBaseError, CascadeTooLargeError.
        """
        proposal = writing.propose(
            key,
            content,
            kind=kind,
            form=form,
            namespace=namespace,
            title=title,
            labels=labels,
            weight=weight,
            expires_at=expires_at,
            base=base,
        )
        request = Request("correct", replacements=(proposal,), reason="put over a visible key")
        guard = self._guard(confirm)
        with self._refusing(request, guard), self._scope.write("put", [key]) as writer:
            row = writing.put(writer, proposal, supersede=supersede)
            if row is None:
                writer.kind = "correct"
                raise_event(writer, request, None, guard)
                row = writer.batch.versions[-1]
            return reading.written(writer, row, content)

    def derive(
        self,
        key: str,
        content: Any,
        *,
        kind: str,
        parents: Iterable[SupportsIndex] = (),
        optional: Iterable[SupportsIndex] = (),
        form: str | None = None,
        operator: str | None = None,
        cost: str | Cost | None = None,
        namespace: str = "",
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        weight: object = 1,
        expires_at: datetime | None = None,
        completeness: str = "complete",
        stale: str = "reject",
        base: SupportsIndex | None = None,
    ) -> Artifact:
        """
        Record something made from other artifacts; it supersedes the key's visible version.

        `parents` and `optional` name the versions that were read (Artifacts or ints); a rebuild needs every parent
        and may do without optional ones as long as one input remains. `operator`: "name@version"; without a version
        the artifact is `partial`. `cost`: what it took, such as "250 tokens". `completeness`: complete = every input
        is listed, partial, or opaque. `stale`: "reject" raises StaleDependencyError when a parent is withdrawn by
        now; "withdraw" keeps the result invisible for the next repair.
        Raises also InvalidKeyError, InvalidContentError, InvalidAmountError, StaleBaseError.
        """
        proposal = writing.propose(
            key,
            content,
            kind=kind,
            form=form,
            namespace=namespace,
            title=title,
            labels=labels,
            operator=operator,
            cost=cost,
            weight=weight,
            expires_at=expires_at,
            completeness=completeness,
            required=parents,
            optional=optional,
            base=base,
        )
        _check_stale(stale)
        with self._scope.write("derive", [key]) as writer:
            return reading.written(writer, writing.derive(writer, proposal, stale=stale), content)

    @contextmanager
    def batch(self, keys: Iterable[str] = ()) -> Iterator[BatchWriter]:
        """
        Group many puts and derives into one transaction, one epoch: all or nothing.

        `keys`: those it will write, as far as they are known; on PostgreSQL they are then looked up at once.

        Yields an object with `put` and `derive`, which take the same arguments and return version ids, usable as
        parents at once. A put that would be a correction is refused inside a batch.
        """
        with self._scope.write("batch", [checked_name(key) for key in keys]) as writer:
            batch = BatchWriter(writer)
            try:
                yield batch
            finally:
                batch.is_over = True

    def add_parent(self, child: SupportsIndex, parent: SupportsIndex, *, optional: bool = False) -> None:
        """Record an influence that was not known at birth; a withdrawn parent withdraws the child's cascade."""
        (child_version,), (parent_version,) = (
            writing.version_ids([child], "child"),
            writing.version_ids([parent], "parent"),
        )
        with self._scope.write("add_parent") as writer:
            writing.add_parent(writer, child_version, parent_version, required=not optional)

    def relate(self, source: SupportsIndex, target: SupportsIndex, score: object = 1) -> None:
        """Store a semantic edge (similarity). It serves retrieval and never propagates an event."""
        with self._scope.write("relate") as writer:
            source_version, target_version = writing.version_ids([source, target], "relate")
            writing.relate(writer, source_version, target_version, score)

    # -- reads -----------------------------------------------------------------------------------------------------

    def get(self, key: str) -> Artifact:
        """
        Return the visible artifact of `key`.

        Raises UnknownKeyError, WithdrawnError, ExpiredError or ErasedError, each with `.gap`: the events, the reason,
        what the last repair decided and which parents are left.
        """
        answer = self.get_many([key])[0]
        if isinstance(answer, Gap):
            raise reading.refusal(answer)
        return answer

    def get_many(self, keys: Iterable[str]) -> list[Artifact | Gap]:
        """Return an Artifact or a Gap per key, in order, all from one committed state."""
        names = [checked_name(key) for key in keys]
        with self._scope.read(names) as view:
            answers = [reading.read(view, name) for name in names]
        if self._count_reads:
            for answer in answers:
                is_gap = isinstance(answer, Gap)
                if not is_gap or answer.state != "unknown":
                    self._scope.count(answer.key, int(not is_gap), int(is_gap))
        return answers

    def visible(self, versions: Versions) -> npt.NDArray[np.bool_]:
        """Return one bool per version; False for unknown, staged, superseded, expired and withdrawn ones."""
        ids = writing.as_version_array(versions)
        return self._scope.barrier_now().visible(ids, self._scope.clock())

    def filter(self, hits: Iterable[Hit], version: Callable[[Hit], SupportsIndex] | None = None) -> list[Hit]:
        """Return the hits of your own index that may be served, in order; `version` tells a hit's version."""
        kept = list(hits)
        numbers = [version(hit) for hit in kept] if version is not None else kept
        answer = self.visible(numbers)  # type: ignore[arg-type]
        return [hit for hit, is_visible in zip(kept, answer, strict=True) if is_visible]

    def find(
        self,
        *,
        kind: str | None = None,
        labels: Mapping[str, str] | None = None,
        prefix: str = "",
        namespace: str | None = None,
        limit: int | None = None,
    ) -> list[VersionInfo]:
        """Return visible artifacts by kind, labels, key prefix and namespace, in key order, without content."""
        selector = Selector(labels=tuple(sorted((labels or {}).items())), kind=kind, prefix=prefix, namespace=namespace)
        with self._scope.read() as view:
            return reading.find(view, selector, limit)

    def history(self, key: str) -> list[VersionInfo]:
        """Return every version of `key`, newest first, without content. Raises UnknownKeyError."""
        with self._scope.read([checked_name(key)]) as view:
            return reading.history(view, key)

    def similar(self, version: SupportsIndex) -> list[tuple[int, float]]:
        """Return the visible targets of semantic edges from `version`, with their scores."""
        (source,) = writing.version_ids([version], "version")
        with self._scope.read() as view:
            edges = view.snapshot.similar(source)
            return [
                (target, score / 1e6) for target, score in edges if view.barrier.is_visible(target, view.now_micros)
            ]

    # -- events ----------------------------------------------------------------------------------------------------

    def delete(
        self, roots: Roots, *, event_id: str | None = None, reason: str = "", confirm: str | None = None
    ) -> Event:
        """
        Withdraw artifacts and everything derived from them, for good. Durable when it returns.

        `roots`: a key, a version, "key@version", several of them, or `where(...)`. `event_id`: the same id and request
        give the same reply, at any later time, from any process. `confirm`: see `impact`.
        Raises UnknownKeyError, EventConflictError, CascadeTooLargeError; then nothing was changed.
        """
        return self._raise("delete", _root_items(roots), event_id, reason, self._guard(confirm))

    def suspect(self, roots: Roots, *, event_id: str | None = None, reason: str = "") -> Event:
        """Withdraw artifacts in doubt and everything derived from them; the roots may be rebuilt too. Never guarded."""
        return self._raise("suspect", _root_items(roots), event_id, reason, NO_GUARD)

    def correct(
        self,
        key: str | Mapping[str, Any],
        content: Any = None,
        *,
        event_id: str | None = None,
        reason: str = "",
        confirm: str | None = None,
    ) -> Event:
        """
        Replace a source and withdraw everything derived from the old content, in one transaction.

        `correct(key, content)` or `correct({key: content, ...})`. Kind, form, title, labels and namespace stay.
        Content equal to what is visible withdraws nothing (`event.is_unchanged`).
        Raises UnknownKeyError, WithdrawnError (deleted), EventConflictError, CascadeTooLargeError.
        """
        return self._replace("correct", key, content, event_id, reason, self._guard(confirm))

    def migrate(
        self,
        key: str | Mapping[str, Any],
        content: Any = None,
        *,
        event_id: str | None = None,
        reason: str = "",
        confirm: str | None = None,
    ) -> Event:
        """Replace an interface (tool schema, model, prompt, embedding identity) and withdraw what was made with it."""
        return self._replace("migrate", key, content, event_id, reason, self._guard(confirm))

    def undo(self, event_id: str, *, undo_id: str | None = None, reason: str = "", confirm: str | None = None) -> Event:
        """
        Take an event back: old content returns as new versions wherever no other event forbids it.

        `event.restored` and `event.left` name the keys that came back and those that stay withdrawn.
        """
        request = Request("undo", undoes=checked_name(event_id, "event_id"), reason=reason)
        with self._scope.write("undo") as writer:
            return raise_event(writer, request, undo_id or default_undo_id(event_id), self._guard(confirm))

    def abandon(self, event_id: str) -> Event:
        """Give up repairing an event: its keys stay withdrawn and leave every plan."""
        with self._scope.write("abandon") as writer:
            return abandon(writer, checked_name(event_id, "event_id"))

    def impact(self, roots: Roots | Mapping[str, Any], kind: str | None = None) -> Impact:
        """
        Return what an event would withdraw, changing nothing.

        `roots` as for delete (kind "delete" or "suspect"), or {key: new content} as for correct and migrate.
        `impact.confirm` lets the same event pass the guard.
        """
        if isinstance(roots, Mapping):
            if kind not in (None, "correct", "migrate"):
                raise InvalidRequestError(f"impact: new content goes with correct or migrate, got kind {kind!r}")
            with self._scope.read() as view:
                request = Request(kind or "correct", replacements=reading.replacements(view, roots, kind or "correct"))
                return preview(view, request, self._guard(None))
        if kind not in (None, "delete", "suspect"):
            raise InvalidRequestError(f"impact: {kind} needs the new content; pass {{key: content}}")
        with self._scope.read() as view:
            return preview(view, Request(kind or "delete", roots=_root_items(roots)), self._guard(None))

    # -- accounts --------------------------------------------------------------------------------------------------

    def events(self) -> list[Event]:
        """Return every event, oldest first."""
        from memorepair.events import reply

        with self._scope.read() as view:
            return [reply(view, entry.row) for entry in view.events]

    def explain(self, what: str | SupportsIndex) -> Explanation:
        """Say why a key or version is visible or withdrawn: events, shortest path from a root, last decision."""
        from memorepair.explain import explain

        named = checked_name(what) if isinstance(what, str) else writing.version_ids([what], "explain")[0]
        with self._scope.read() as view:
            return explain(view, named)

    def status(self) -> Status:
        """Return counts: visible, withdrawn, held, open events, provenance coverage."""
        from memorepair.status import status

        with self._scope.read() as view:
            return status(view)

    def fsck(self) -> list[Finding]:
        """Check the store against its own rules; an empty list means sound. Changes nothing."""
        from memorepair.fsck import fsck

        return fsck(self._scope)

    @contextmanager
    def _reading(self, keys: Sequence[str] = ()) -> Iterator[View]:
        """Yield the newest committed state, for the planner, the engine and reports."""
        with self._scope.read(keys) as view:
            yield view

    @contextmanager
    def _writing(self, kind: str, keys: Sequence[str] = ()) -> Iterator[Writer]:
        """Yield a transaction behind the gate, for the engine."""
        with self._scope.write(kind, keys) as writer:
            yield writer

    # -- plumbing --------------------------------------------------------------------------------------------------

    def _guard(self, confirm: str | None) -> Guard:
        return Guard(self._max_cascade, confirm)

    def _raise(
        self, kind: str, roots: tuple[str | int | Selector, ...], event_id: str | None, reason: str, guard: Guard
    ) -> Event:
        request, keys = Request(kind, roots=roots, reason=reason), [root for root in roots if isinstance(root, str)]
        with self._refusing(request, guard), self._scope.write(kind, keys) as writer:
            return raise_event(writer, request, event_id, guard)

    def _replace(
        self, kind: str, key: str | Mapping[str, Any], content: Any, event_id: str | None, reason: str, guard: Guard
    ) -> Event:
        contents = dict(key) if isinstance(key, Mapping) else {key: content}
        keys = [*map(checked_name, contents)]
        with self._scope.read(keys) as view:
            request = Request(kind, replacements=reading.replacements(view, contents, kind), reason=reason)
        with self._refusing(request, guard), self._scope.write(kind, keys) as writer:
            # Looked up again behind the gate: what stays as it was is the head's, as it is then.
            request = Request(kind, replacements=reading.replacements(writer, contents, kind), reason=reason)
            return raise_event(writer, request, event_id, guard)

    @contextmanager
    def _refusing(self, request: Request, guard: Guard) -> Iterator[None]:
        """Give a refusal by the guard its impact, drawn up after the gate is free again."""
        try:
            yield
        except CascadeTooLargeError as error:
            with self._scope.read() as view:
                error.impact = preview(view, request, guard)
            raise


class BatchWriter:
    """Puts and derives of one transaction; see `Store.batch`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.is_over = False

    def _open(self) -> Writer:
        if self.is_over:
            raise InvalidRequestError("batch: its block has ended, so nothing would be written; open another one")
        return self._writer

    def put(self, key: str, content: Any, *, kind: str = "record", supersede: bool = False, **fields: Any) -> int:
        """As `Store.put`; returns the version id."""
        row = writing.put(self._open(), writing.propose(key, content, kind=kind, **fields), supersede=supersede)
        if row is None:
            raise InvalidRequestError(
                f"batch: {key!r} is visible with other content, so this put is a correction; "
                "call store.correct() outside the batch or pass supersede=True"
            )
        return row.version

    def derive(
        self,
        key: str,
        content: Any,
        *,
        kind: str,
        parents: Iterable[SupportsIndex] = (),
        stale: str = "reject",
        **fields: Any,
    ) -> int:
        """As `Store.derive`; returns the version id."""
        _check_stale(stale)
        proposal = writing.propose(key, content, kind=kind, required=parents, **fields)
        return writing.derive(self._open(), proposal, stale=stale).version


def _check_stale(stale: str) -> None:
    if stale not in ("reject", "withdraw"):
        raise InvalidRequestError(f"stale: expected 'reject' or 'withdraw', got {stale!r}")


def _root_items(roots: Roots) -> tuple[str | int | Selector, ...]:
    if isinstance(roots, Selector):
        return (roots,)
    if isinstance(roots, str) or hasattr(roots, "__index__"):
        roots = [roots]  # type: ignore[list-item]
    if not isinstance(roots, Iterable):
        raise InvalidRequestError(f"roots: expected keys, versions or where(...), got {type(roots).__name__}")
    items = {checked_name(root) if isinstance(root, str) else writing.version_ids([root], "roots")[0] for root in roots}
    if not items:
        raise InvalidRequestError("roots: expected at least one key or version, got none")
    return tuple(sorted(items, key=lambda item: (isinstance(item, int), item)))
