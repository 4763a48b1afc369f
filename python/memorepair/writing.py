"""The rules of every ordinary write: put, derive, add_parent, relate.

Contract: functions over a Writer, called behind the gate; they either fill its batch or raise and leave it unchanged.
Rules: a version is immutable; a derived write names the versions it read, each visible or superseded in the writing
transaction, else StaleDependencyError or born withdrawn, as asked; equal writes are one version.
Source: docs/SEMANTICS.md sections 1 and 3, invariants I3, I4 and I7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, SupportsIndex

import msgspec
import numpy as np

from memorepair.amounts import MICRO, Cost, parse_cost, to_micro
from memorepair.artifact import COMPLETENESS, checked_kind
from memorepair.barrier import refuse_mask
from memorepair.clock import checked_instant
from memorepair.content import Body, encode
from memorepair.errors import InvalidRequestError, StaleBaseError, StaleDependencyError, UnknownKeyError
from memorepair.keys import checked_labels, checked_name, checked_title
from memorepair.protocol import MAX_VERSION, ContentRow, Head, LateRow, VersionRow, pack_ids
from memorepair.scope import View, Writer


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A checked write: everything about a version but its id."""

    key: str
    kind: str
    body: Body
    form: str | None = None
    namespace: str = ""
    title: str | None = None
    labels: str = "{}"
    operator: str | None = None
    operator_version: str | None = None
    cost: Cost | None = None
    weight: int = MICRO
    expires_at: int | None = None
    completeness: str = "complete"
    required: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    base: int | None = None
    facts: str | None = None


def propose(
    key: str,
    content: Any,
    *,
    kind: str,
    form: str | None = None,
    namespace: str = "",
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    operator: str | None = None,
    cost: str | Cost | None = None,
    weight: object = 1,
    expires_at: datetime | None = None,
    completeness: str = "complete",
    required: Iterable[SupportsIndex] = (),
    optional: Iterable[SupportsIndex] = (),
    base: SupportsIndex | None = None,
) -> Proposal:
    """Check every argument of a write; raises before the gate is taken."""
    checked_kind(kind, form)
    if completeness not in COMPLETENESS:
        raise InvalidRequestError(f"completeness: expected one of {', '.join(COMPLETENESS)}, got {completeness!r}")
    name, _, version = checked_name(operator, "operator").partition("@") if operator is not None else (None, "", "")
    if operator is not None and completeness == "complete" and not version:
        completeness = "partial"  # unversioned code is an input that nobody can name
    needed = sorted(set(version_ids(required, "parents")))
    spare = sorted(set(version_ids(optional, "optional")) - set(needed))
    return Proposal(
        key=checked_name(key),
        kind=kind,
        body=encode(content),
        form=form,
        namespace=checked_name(namespace, "namespace") if namespace else "",
        title=checked_title(title),
        labels=msgspec.json.encode(checked_labels(labels)).decode() if labels else "{}",
        operator=name,
        operator_version=version or None,
        cost=parse_cost(cost),
        weight=MICRO if type(weight) is int and weight == 1 else to_micro(weight, "weight"),
        expires_at=checked_instant(expires_at),
        completeness=completeness,
        required=tuple(needed),
        optional=tuple(spare),
        base=None if base is None else version_ids([base], "base")[0],
    )


def version_ids(versions: Iterable[SupportsIndex], what: str) -> list[int]:
    """Return version ids; Artifacts stand for their version. Keys are refused: a write names what it read."""
    if isinstance(versions, (str, bytes)) or not hasattr(versions, "__iter__"):
        raise InvalidRequestError(f"{what}: expected a list of versions or Artifacts, got {versions!r}")
    ids = []
    for version in versions:
        if type(version) is int and 1 <= version < 2**32:  # as a batch hands them out
            ids.append(version)
            continue
        if isinstance(version, bool) or not hasattr(version, "__index__"):
            hint = "; a write names the version it read, pass store.get(key)" if isinstance(version, str) else ""
            raise InvalidRequestError(f"{what}: expected a version or an Artifact, got {version!r:.80}{hint}")
        number = version.__index__()
        if not 1 <= number < 2**32:
            raise StaleDependencyError(f"{what}: version {number} does not exist in this scope")
        ids.append(number)
    return ids


def check_base(writer: Writer, proposal: Proposal) -> None:
    """Refuse a write that did not see the present head."""
    if proposal.base is None:
        return
    head = writer.head(proposal.key)
    now = head.head if head else 0
    if proposal.base != now or not writer.is_visible(now):
        state = "has no version" if not now else f"has version {now}, {writer.state(writer.row(now))}"
        raise StaleBaseError(
            f"{proposal.key!r}: base={proposal.base} is not its visible head; it {state}. Read it again"
        )


def insert(writer: Writer, proposal: Proposal, origin: str, *, crown: bool = True) -> VersionRow:
    """Add one version to the batch and make it the head of its key (or, with crown=False, only its latest)."""
    head = writer.head(proposal.key)
    cost = proposal.cost
    row = VersionRow(
        version=writer.allocate(),
        key=proposal.key,
        kind=proposal.kind,
        digest=proposal.body.digest,
        epoch=writer.new_epoch,
        origin=origin,
        form=proposal.form,
        namespace=proposal.namespace,
        title=proposal.title,
        labels=proposal.labels,
        operator=proposal.operator,
        operator_version=proposal.operator_version,
        cost=cost.micro if cost else None,
        unit=cost.unit if cost else None,
        weight=proposal.weight,
        expires_at=proposal.expires_at,
        completeness=proposal.completeness,
        parents=pack_ids(proposal.required + proposal.optional),
        num_required=len(proposal.required),
        previous=head.latest if head else 0,
        facts=proposal.facts,
    )
    writer.batch.versions.append(row)
    writer.batch.contents.append(ContentRow(row.version, proposal.body.state, proposal.body.codec, proposal.body.body))
    writer.remember(row)
    if crown:
        writer.crown(row.key, row.version)
    else:
        writer.chain(row.key, row.version)
    return row


def put(writer: Writer, proposal: Proposal, *, supersede: bool) -> VersionRow | None:
    """
    Put a record; return the version that stands, or None when this is a correction.

    Equal content, kind, form, labels and title over a visible key is the same version; equal content and kind with
    other labels or title supersedes it, keeps its provenance, and withdraws nothing; other content is a `correct`,
    which is an event, unless `supersede` says that the old content was true in its time.
    """
    check_base(writer, proposal)
    head = writer.head(proposal.key)
    if head is None or not writer.is_visible(head.head):
        return insert(writer, proposal, "put")
    old = writer.row(head.head)
    same_content = old.digest == proposal.body.digest and old.kind == proposal.kind and old.form == proposal.form
    if same_content and _marks(old) == _marks(proposal):
        return old
    if same_content:
        # The content came from the old parents, whatever it is called now: without them it would outlive its source.
        made = {name: getattr(old, name) for name in ("operator", "operator_version", "completeness", "facts")}
        cost = None if old.cost is None else Cost(old.cost, old.unit or "")
        parents = {"required": tuple(old.required), "optional": tuple(old.optional)}
        return insert(writer, msgspec.structs.replace(proposal, **made, **parents, cost=cost), "put")
    return insert(writer, proposal, "put") if supersede else None


def _marks(of: VersionRow | Proposal) -> tuple[object, ...]:
    return (of.labels, of.title, of.namespace, of.weight, of.expires_at)


def derive(writer: Writer, proposal: Proposal, *, stale: str) -> VersionRow:
    """
    Add a derived version; it supersedes the key's visible version.

    A parent that is withdrawn or expired raises StaleDependencyError, or, with stale="withdraw", the version is born
    withdrawn: kept, invisible, joined to every event that holds the parent.
    """
    check_base(writer, proposal)
    proposal = _with_interfaces_required(writer, proposal)
    gone = [version for version in proposal.required + proposal.optional if not writer.is_parent(version)]
    head = writer.head(proposal.key)
    is_visible = head is not None and writer.is_visible(head.head)
    if gone:
        if stale == "reject":
            raise StaleDependencyError(_why_stale(writer, proposal.key, gone))
        if any(version not in writer.barrier.withdrawn and version not in writer.fresh for version in gone):
            raise StaleDependencyError(
                f"{_why_stale(writer, proposal.key, gone)}; only withdrawn parents can be joined late"
            )
        row = insert(writer, proposal, "late", crown=not is_visible)
        join_late(writer, [row.version], gone)
        return row
    if head is not None and is_visible:
        old = writer.row(head.head)
        edges = (old.parents, old.num_required) == (
            pack_ids(proposal.required + proposal.optional),
            len(proposal.required),
        )
        same = (old.kind, old.form, old.digest) == (proposal.kind, proposal.form, proposal.body.digest)
        maker = (old.operator, old.operator_version, old.completeness) == (
            proposal.operator,
            proposal.operator_version,
            proposal.completeness,
        )
        if edges and same and maker and _marks(old) == _marks(proposal):
            return old
    return insert(writer, proposal, "derive")


def _with_interfaces_required(writer: Writer, proposal: Proposal) -> Proposal:
    writer.look_up_forms(proposal.required + proposal.optional)
    moved = [version for version in proposal.optional if writer.is_interface(version)]
    for version in proposal.required:
        writer.is_interface(version)  # also tells an unknown parent
    if not moved:
        return proposal
    return msgspec.structs.replace(
        proposal,
        required=tuple(sorted({*proposal.required, *moved})),
        optional=tuple(version for version in proposal.optional if version not in moved),
    )


def _why_stale(writer: Writer, key: str, gone: list[int]) -> str:
    row = writer.row(gone[0])
    state = writer.state(row)
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    return (
        f"{key!r}: parent {row.key!r} version {row.version} is {state}{more}; expected visible or superseded parents. "
        "Read the parents again and derive anew, or pass stale='withdraw' to keep the result for the next repair"
    )


def join_late(writer: Writer, versions: Iterable[int], parents: Iterable[int]) -> None:
    """Add `versions` to every event whose W holds one of `parents`, unless they are in it."""
    wanted = set(parents)
    closures = {event.epoch: closure for event, closure in writer.closures()}
    holders = [epoch for epoch, closure in closures.items() if any(parent in closure for parent in wanted)]
    # A parent born late in this very batch brings its own events.
    holders += [row.event_epoch for row in writer.batch.late if row.version in wanted]
    for version in versions:
        epochs = [epoch for epoch in sorted(set(holders)) if version not in closures[epoch]]
        writer.batch.late.extend(LateRow(epoch, version, writer.new_epoch) for epoch in epochs)


def add_parent(writer: Writer, child: int, parent: int, *, required: bool) -> None:
    """Record an edge that was not known at birth; a withdrawn parent withdraws the child's cascade."""
    if parent >= child:
        raise InvalidRequestError(
            f"add_parent: parent {parent} is not older than child {child}; edges run from older to younger"
        )
    child_row, parent_row = (writer.snapshot.version(version) for version in (child, parent))
    for version, row in ((child, child_row), (parent, parent_row)):
        if row is None:
            raise UnknownKeyError(f"add_parent: version {version} does not exist in this scope")
    assert child_row is not None
    assert parent_row is not None
    is_required = required or parent_row.form == "interface"
    changed = [row.version for row in _copies(writer, child_row, parent) if _reparent(writer, row, parent, is_required)]
    if changed and parent in writer.barrier.withdrawn:
        join_late(writer, [int(version) for version in writer.cascade(changed).ids()], [parent])


def _copies(writer: Writer, child: VersionRow, parent: int) -> list[VersionRow]:
    """The child, and the versions of its key that stand and say the same: what one rests on, they rest on."""
    head = writer.head(child.key)
    live = walk_live(writer, head) if head is not None else ()
    same = [row for row in live if says_the_same(row, child) and row.version > parent and row.version != child.version]
    return [child, *same]


def _reparent(writer: Writer, row: VersionRow, parent: int, required: bool) -> bool:
    """Add an edge to the batch; False when it is there already."""
    needed, spare = set(row.required), set(row.optional)
    if parent in needed or (parent in spare and not required):
        return False
    if required:
        needed.add(parent)
        spare.discard(parent)
    else:
        spare.add(parent)
    writer.batch.reparented.append((row.version, pack_ids([*sorted(needed), *sorted(spare)]), len(needed)))
    return True


def walk_live(view: View, head: Head) -> Iterator[VersionRow]:
    """Yield the versions of one key that are not withdrawn, newest first."""
    latest = head.latest
    while latest >= max(head.floor, 1):
        row = view.row(latest)
        if latest not in view.barrier.withdrawn:
            yield row
        latest = row.previous


def says_the_same(row: VersionRow, other: VersionRow) -> bool:
    """Equal content, kind and form."""
    return (row.digest, row.kind, row.form) == (other.digest, other.kind, other.form)


def relate(writer: Writer, source: int, target: int, score: object) -> None:
    """Store a semantic edge."""
    for version in (source, target):
        if writer.snapshot.version(version) is None:
            raise UnknownKeyError(f"relate: version {version} does not exist in this scope")
    writer.batch.similar.append((source, target, to_micro(score, "score")))


def as_version_array(versions: Iterable[SupportsIndex]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return version ids as int64, whatever integers they came as."""
    if isinstance(versions, np.ndarray):
        refuse_mask(versions)
        if versions.dtype.kind not in "iu" or versions.ndim != 1:
            raise InvalidRequestError(f"versions: expected a list of integers, got {versions.ndim}-D {versions.dtype}")
        # Past int64 no version can be; -1 is none either.
        return np.where(versions > MAX_VERSION, -1, versions).astype(np.int64)
    if isinstance(versions, (str, bytes)) or not hasattr(versions, "__iter__"):
        raise InvalidRequestError(f"versions: expected a list of versions, got {type(versions).__name__}")
    numbers = []
    for position, version in enumerate(versions):
        if isinstance(version, bool) or not hasattr(version, "__index__"):
            raise InvalidRequestError(
                f"versions: item {position} is a {type(version).__name__}, expected a version; "
                "for hits of your own pass filter(hits, version=lambda hit: ...)"
            )
        number = version.__index__()
        numbers.append(number if 0 <= number <= MAX_VERSION else -1)
    return np.array(numbers, dtype=np.int64)
