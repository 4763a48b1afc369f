"""Events: what makes a cascade stale, and the barrier that withdraws it.

Contract: `raise_event` is one transaction: resolve the roots, close them over every edge, guard, withdraw, replace.
When it returns, the whole cascade is durably withdrawn; when it raises, nothing has changed.
Invariants: an event id names one request for ever (I4); W(e) is stored as resolved version ids, never as a predicate;
undo restores by new versions and never lifts a withdrawal.
Source: MemoRepair phase 1; docs/SEMANTICS.md sections 1 (rule 4), 3 and 4.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from memorepair.barrier import Mask, mask_of
from memorepair.errors import (
    CascadeTooLargeError,
    EventConflictError,
    InvalidRequestError,
    UnknownKeyError,
    WithdrawnError,
)
from memorepair.holds import find_holds
from memorepair.impact import Guard, Impact, confirmation, impact_of
from memorepair.keys import MAX_NAME_BYTES, checked_name, checked_reason
from memorepair.protocol import ContentRow, EventRow, Root, VersionRow, pack_ids
from memorepair.scope import View, Writer
from memorepair.selector import Selector
from memorepair.writing import Proposal, insert, says_the_same, walk_live


class Event(msgspec.Struct, frozen=True):
    """
    An acknowledged event. Whatever it withdrew is durably withdrawn.

    `withdrawn` counts visible versions that it newly withdrew, `cascade` all versions of its closure, both with roots.
    `restored` and `left` are keys, filled by undo.
    """

    event_id: str
    kind: str
    epoch: int
    roots: tuple[str, ...]
    withdrawn: int
    cascade: int
    reason: str = ""
    restored: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    token: str = ""

    @property
    def is_unchanged(self) -> bool:
        """Whether the event found nothing to withdraw."""
        return self.cascade == 0


class Request(msgspec.Struct, frozen=True):
    """An event as it was asked for; its digest binds the event id to it."""

    kind: str
    roots: tuple[Any, ...] = ()  # keys, version ids, or one Selector
    replacements: tuple[Proposal, ...] = ()
    undoes: str | None = None
    reason: str = ""

    def digest(self) -> bytes:
        """Return sha256 over kind, roots and payload."""
        # Key and content only: kind, title and labels are the head's, so the same call made later may meet others.
        replaced = [(p.key, p.body.digest.hex()) for p in self.replacements]
        roots = [root if isinstance(root, (str, int)) else msgspec.to_builtins(root) for root in self.roots]
        canonical = msgspec.json.encode([self.kind, roots, replaced, self.undoes], order="deterministic")
        return hashlib.sha256(canonical).digest()


def raise_event(writer: Writer, request: Request, event_id: str | None, guard: Guard) -> Event:
    """Withdraw a cascade and put its replacements; the same id and request give the same reply."""
    name = checked_name(event_id, "event_id") if event_id is not None else f"evt-{uuid.uuid4().hex}"
    checked_reason(request.reason)
    digest = request.digest()
    known = writer.snapshot.event(name)
    if known is not None:
        if known.digest != digest:
            raise EventConflictError(
                f"event {name!r}: known since epoch {known.epoch} as a {known.kind} of "
                f"{', '.join(repr(root.key) for root in known.roots[:3]) or 'nothing'}; this is another one. "
                "Nothing was changed; use a new event id"
            )
        return reply(writer, known)
    if request.undoes is not None:
        row = _undo(writer, request, name, digest, guard)
    else:
        row = _withdraw(writer, request, name, digest, guard)
    writer.batch.events.append(row)
    writer.event_id = name
    return reply(writer, row)


def preview(view: View, request: Request, guard: Guard) -> Impact:
    """Return what `raise_event` would withdraw, changing nothing."""
    roots = resolve_roots(view, request)
    return impact_of(view, request.kind, request.digest(), _flat(roots), guard)


def reply(view: View, row: EventRow) -> Event:
    """An event row as its reply."""
    return Event(
        event_id=row.event_id,
        kind=row.kind,
        epoch=row.epoch,
        roots=tuple(root.key for root in row.roots),
        withdrawn=row.num_withdrawn,
        cascade=Mask.from_bytes(row.closure).count(),
        reason=row.reason,
        restored=tuple(root.key for root in row.restored if root.replacement),
        left=tuple(root.key for root in row.restored if not root.replacement),
        token=view.scope.token_at(row.epoch),
    )


# -- withdraw ----------------------------------------------------------------------------------------------------------


def _withdraw(writer: Writer, request: Request, name: str, digest: bytes, guard: Guard) -> EventRow:
    roots = resolve_roots(writer, request)
    closure, count = _close(writer, request.kind, digest, _flat(roots), guard)
    _raise_floors(writer, roots, closure)
    replaced = {}
    for proposal in _changed(request, roots):
        replaced[proposal.key] = insert(writer, _with_old_parents(writer, proposal, closure), "put").version
    return EventRow(
        event_id=name,
        kind=request.kind,
        epoch=writer.new_epoch,
        digest=digest,
        roots=[replace(root, replacement=replaced.get(root.key, 0)) for root in roots],
        closure=closure.to_bytes(),
        num_withdrawn=count,
        reason=request.reason,
        recorded_at=writer.now_micros,
    )


def _raise_floors(writer: Writer, roots: Iterable[Root], closure: Mask) -> None:
    for root in roots:
        head = writer.head(root.key)
        if head is not None and root.versions and all(row.version in closure for row in walk_live(writer, head)):
            writer.raise_floor(root.key)


def _with_old_parents(writer: Writer, proposal: Proposal, closure: Mask) -> Proposal:
    """
    A correction of something derived keeps the edges that still stand, and is partial.

    Nobody said what the new content rests on; without the edges it would outlive the sources of the old one.
    """
    head = writer.head(proposal.key)
    assert head is not None
    old = writer.row(head.head)
    if not old.parents and old.operator is None:
        return proposal
    standing = {
        name: tuple(parent for parent in parents if parent not in closure and parent not in writer.barrier.withdrawn)
        for name, parents in (("required", old.required), ("optional", old.optional))
    }
    return replace(proposal, completeness="partial", **standing)


def _flat(roots: Iterable[Root]) -> list[int]:
    return sorted({version for root in roots for version in root.versions})


def _changed(request: Request, roots: list[Root]) -> list[Proposal]:
    touched = {root.key for root in roots if root.versions}
    return [proposal for proposal in request.replacements if proposal.key in touched]


def _close(writer: Writer, kind: str, digest: bytes, roots: list[int], guard: Guard) -> tuple[Mask, int]:
    closure = writer.cascade(roots) if roots else mask_of((), writer.barrier.size)
    count = (closure & writer.barrier.visible_heads()).count()
    if guard.forbids(digest, count, writer.barrier):
        confirm = confirmation(digest, count)
        raise CascadeTooLargeError(
            f"{kind}: {count} visible artifacts would be withdrawn, more than "
            f"max_cascade={guard.limit(writer.barrier)}; nothing was changed. Look at impact(...), then pass "
            f"confirm={confirm!r}, raise max_cascade, or use suspect(), which never waits",
        )
    return closure, count


def resolve_roots(view: View, request: Request) -> list[Root]:
    """Return the roots of an event with the versions that it withdraws, in key order."""
    if request.kind in ("correct", "migrate"):
        return [_replaced_root(view, proposal, request.kind) for proposal in sorted(request.replacements, key=_key)]
    roots: dict[str, set[int]] = {}
    for item in _expanded(view, request.roots):
        if isinstance(item, int):
            row = view.snapshot.version(item)
            if row is None:
                raise UnknownKeyError(f"{request.kind}: version {item} does not exist in scope {view.scope.name!r}")
            roots.setdefault(row.key, set()).update(_with_copies(view, row))
        else:
            key, versions = _key_root(view, item, request.kind)
            roots.setdefault(key, set()).update(versions)
    return [Root(key, sorted(versions)) for key, versions in sorted(roots.items())]


def _key(proposal: Proposal) -> str:
    return proposal.key


def _expanded(view: View, items: Iterable[Any]) -> Iterable[str | int]:
    for item in items:
        if isinstance(item, Selector):
            yield from item.keys(view)
        else:
            yield item


def _key_root(view: View, name: str, kind: str) -> tuple[str, list[int]]:
    """All versions of a key not yet withdrawn, and its head; or the one version that `key@version` names."""
    head = view.head(name)
    if head is not None and _named_version(view, name) is not None:
        raise InvalidRequestError(
            f"{kind}: {name!r} is a key and also names a version of another key; pass the version number instead"
        )
    if head is not None:
        return name, [*(row.version for row in walk_live(view, head)), head.head]
    row = _named_version(view, name)
    if row is None:
        raise unknown_key(view, kind, name)
    return row.key, _with_copies(view, row)


def _with_copies(view: View, row: VersionRow) -> list[int]:
    """A version, and those of its key that stand and say the same: one cannot be withdrawn and the other served."""
    head = view.head(row.key)
    live = walk_live(view, head) if head is not None else ()
    return sorted({row.version, *(other.version for other in live if says_the_same(other, row))})


def _named_version(view: View, name: str) -> VersionRow | None:
    """The version that `key@version` names, if it does."""
    key, at, version = name.rpartition("@")
    if not (at and version.isascii() and version.isdigit() and int(version) < 2**32):
        return None
    row = view.snapshot.version(int(version))
    return row if row is not None and row.key == key else None


def unknown_key(view: View, kind: str, key: str) -> UnknownKeyError:
    """The error of an event on a key that the scope does not have."""
    return UnknownKeyError(
        f"{kind}: key {key!r} is unknown in scope {view.scope.name!r}; nothing was changed. "
        "See 'memorepair ls' for keys, use put() for a new one"
    )


def walk_history(view: View, latest: int) -> Iterable[VersionRow]:
    """Yield the versions of one key, newest first."""
    while latest:
        row = view.row(latest)
        yield row
        latest = row.previous


def _replaced_root(view: View, proposal: Proposal, kind: str) -> Root:
    """The head of the key; without versions when the new content equals what is visible."""
    head = view.head(proposal.key)
    if head is None:
        raise unknown_key(view, kind, proposal.key)
    old = view.row(head.head)
    if kind == "migrate" and old.form != "interface":
        raise InvalidRequestError(
            f"migrate: {proposal.key!r} is a {old.kind} of form {old.form}; expected a record of form interface"
        )
    is_visible = view.barrier.is_visible(old.version, view.now_micros)
    if not is_visible and old.version in view.barrier.withdrawn and old.version not in find_holds(view).by_version:
        raise WithdrawnError(f"{kind}: {proposal.key!r} was deleted; nothing was changed. Use put() to start it anew")
    if is_visible and (old.digest, old.kind, old.form) == (proposal.body.digest, proposal.kind, proposal.form):
        return Root(proposal.key, [])
    # Earlier versions that say the same are corrected with it: what was made from them rests on the same content.
    same = [row.version for row in walk_live(view, head) if says_the_same(row, old)]
    return Root(proposal.key, [*sorted(set(same) - {old.version}), old.version])


# -- undo and abandon --------------------------------------------------------------------------------------------------


def _undo(writer: Writer, request: Request, name: str, digest: bytes, guard: Guard) -> EventRow:
    event = _undoable(writer, request.undoes or "")
    undone = {entry.row.undoes for entry in writer.events if entry.row.undoes}
    held = others = mask_of((), writer.barrier.size)
    for row, closure in writer.closures():
        if row.event_id == event.event_id:
            held = closure
        elif row.event_id not in undone:
            others = others | closure
    # Roots whose head is still the replacement are corrected back, unless something else withdrew the old version.
    back = [
        root for root in event.roots if root.replacement and _stands(writer, root) and root.versions[-1] not in others
    ]
    closure, count = _close(writer, "undo", digest, [root.replacement for root in back], guard)
    restored = _restore(writer, held, others | closure, {root.versions[-1]: root.versions for root in back})
    left = {
        row.key: Root(row.key, [row.version]) for row in _left_behind(writer, event, closure) if row.key not in restored
    }
    return EventRow(
        event_id=name,
        kind="undo",
        epoch=writer.new_epoch,
        digest=digest,
        roots=[Root(root.key, [root.replacement], restored.get(root.key, Root("", [])).replacement) for root in back],
        closure=closure.to_bytes(),
        num_withdrawn=count,
        reason=request.reason,
        undoes=event.event_id,
        restored=sorted([*restored.values(), *left.values()], key=lambda root: root.key),
        recorded_at=writer.now_micros,
    )


def _left_behind(writer: Writer, event: EventRow, closure: Mask) -> Iterator[VersionRow]:
    """What an undo withdraws itself, and roots whose replacement stays although it was asked to go."""
    for version in (closure & writer.barrier.visible_heads()).ids():
        yield writer.row(int(version))
    for root in event.roots:
        head = writer.head(root.key)
        if root.replacement and head is not None and head.head == root.replacement:
            yield writer.row(root.replacement)


def default_undo_id(event_id: str) -> str:
    """Name the undo of an event that was given no name of its own: one name per event."""
    name = f"undo:{event_id}"
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    return f"undo:sha256:{hashlib.sha256(event_id.encode()).hexdigest()}"


def _undoable(view: View, event_id: str) -> EventRow:
    event = view.snapshot.event(event_id)
    if event is None:
        raise UnknownKeyError(f"undo: event {event_id!r} is unknown in scope {view.scope.name!r}; nothing was changed")
    if event.undoes is not None:
        raise InvalidRequestError(f"undo: {event_id!r} is itself an undo; raise the first event again instead")
    for other in view.snapshot.events(event.epoch):
        if other.undoes == event_id:
            raise InvalidRequestError(
                f"undo: {event_id!r} was undone at epoch {other.epoch} by {other.event_id!r}; nothing was changed"
            )
    return event


def _stands(view: View, root: Root) -> bool:
    head = view.head(root.key)
    return head is not None and head.head == root.replacement and view.barrier.is_visible(head.head, view.now_micros)


def _restore(writer: Writer, held: Mask, others: Mask, back: Mapping[int, list[int]]) -> dict[str, Root]:
    """
    Give each key of the cascade a new version with its old content where nothing else forbids it.

    `back` maps the last version of a root to correct back to all its versions, which said the same.
    """
    successor: dict[int, int] = {}
    restored: dict[str, Root] = {}
    waiting = sorted({*map(int, (held & writer.barrier.heads).ids()), *back})
    gone = writer.barrier.withdrawn | others
    # In version order, and again while something came back: a root that was put anew with equal content stands for its
    # earlier versions too, which are older than what was made from them.
    while True:
        left = []
        for version in waiting:
            old = writer.row(version)
            parents = [parent for parent in (*old.required, *old.optional) if parent not in successor]
            if version in others or any(parent in gone or not writer.is_parent(parent) for parent in parents):
                left.append(version)
                continue
            new = restore(writer, old, successor)
            successor.update(dict.fromkeys(back.get(version, [version]), new.version))
            restored[old.key] = Root(old.key, [version], new.version)
        if len(left) == len(waiting):
            return restored | {row.key: Root(row.key, [row.version]) for row in map(writer.row, left)}
        waiting = left


def restore(writer: Writer, old: VersionRow, successor: Mapping[int, int]) -> VersionRow:
    """Add a new version with the content of `old`, its edges led to the successors."""
    stored = writer.snapshot.content(old.version)
    head = writer.head(old.key)
    assert stored is not None
    assert head is not None
    required = sorted({successor.get(parent, parent) for parent in old.required})
    optional = sorted({successor.get(parent, parent) for parent in old.optional} - set(required))
    row = replace(
        old,
        version=writer.allocate(),
        epoch=writer.new_epoch,
        origin="restore",
        parents=pack_ids([*required, *optional]),
        num_required=len(required),
        previous=head.latest,
    )
    writer.batch.versions.append(row)
    writer.batch.contents.append(ContentRow(row.version, stored.state, stored.codec, stored.body))
    writer.remember(row)
    writer.crown(row.key, row.version)
    return row


def abandon(writer: Writer, event_id: str) -> Event:
    """Give up what an event holds now: its keys stay withdrawn and leave every plan. Idempotent."""
    event = writer.snapshot.event(event_id)
    if event is None:
        raise UnknownKeyError(
            f"abandon: event {event_id!r} is unknown in scope {writer.scope.name!r}; nothing was changed"
        )
    if not event.abandoned or find_holds(writer).of(event):
        writer.batch.abandoned.append(event_id)
        writer.event_id = event_id
    return reply(writer, event)
