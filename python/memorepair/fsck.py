"""fsck: check a store against its own rules.

Contract: read-only; every finding names its rows; an empty list means that nothing was found.
Checks: the database's own integrity; I2 (no visible version has a withdrawn or unknown parent); one head a key, and
the chain of history; parents older than children; every closure covered by the barrier and closed under edges; every
withdrawn head held or explained; the resident graph against the parents blobs; the ledger's conservation; staged rows
without a living attempt; content against digests.
Source: docs/SEMANTICS.md section 7.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from memorepair.barrier import Barrier, mask_of
from memorepair.content import digest_of
from memorepair.errors import MemorepairError
from memorepair.holds import find_holds
from memorepair.keys import escaped
from memorepair.protocol import VersionRow, unpack_ids
from memorepair.scope import Scope, View


class Finding(msgspec.Struct, frozen=True):
    """One broken rule: which check, which row, what is wrong."""

    check: str
    row: str
    problem: str

    def __str__(self) -> str:
        return escaped(f"{self.check}: {self.row}: {self.problem}")


def fsck(scope: Scope) -> list[Finding]:
    """Return every finding in one scope."""
    findings = [Finding("database", "file", line) for line in scope.backend.integrity()]
    try:
        with scope.read() as view:
            rows = {row.version: row for row in view.snapshot.all_versions()}
            for check in (_versions, _visible, _heads, _closures, _graph, _ledger, _stages, _contents):
                # A row that breaks one check must not hide what the others find.
                try:
                    findings.extend(check(view, rows))
                except MemorepairError as error:
                    findings.append(Finding(check.__name__[1:], "store", str(error)))
    except MemorepairError as error:
        findings.append(Finding("read", "store", str(error)))
    return findings


def _name(row: VersionRow) -> str:
    return f"{row.key!r} version {row.version}"


def _versions(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    for row in rows.values():
        if len(row.parents) % 4 or 4 * row.num_required > len(row.parents):
            yield Finding("parents", _name(row), f"{len(row.parents)} bytes for {row.num_required} required parents")
            continue
        for parent in (*row.required, *row.optional):
            if parent >= row.version:
                yield Finding("parents", _name(row), f"parent {parent} is not older")
            if parent not in rows:
                yield Finding("parents", _name(row), f"parent {parent} does not exist")
        if row.version >= view.snapshot.next_version:
            yield Finding("versions", _name(row), f"its id is not below the next id {view.snapshot.next_version}")
        if row.previous and (row.previous not in rows or rows[row.previous].key != row.key):
            yield Finding("history", _name(row), f"its previous version {row.previous} is not one of the key")


def _visible(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    for version in map(int, view.barrier.visible_heads().ids()):
        row = rows.get(version)
        if row is None:
            yield Finding("heads", f"version {version}", "a head without a row")
            continue
        for parent in (*row.required, *row.optional):
            if parent in view.barrier.withdrawn:
                yield Finding("closed", _name(row), f"visible, but its parent {parent} is withdrawn")


def _heads(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    holds = find_holds(view).by_version
    reached: set[int] = set()
    closures = [closure for _, closure in view.closures()]
    for head, row in view.snapshot.heads():
        if row.key != head.key:
            yield Finding("heads", repr(head.key), f"its head {head.head} belongs to {row.key!r}")
        version = head.latest
        while version and version in rows and version not in reached:
            reached.add(version)
            version = rows[version].previous
        if head.head not in reached:
            yield Finding("history", repr(head.key), f"its head {head.head} is not in its history")
        if head.head in view.barrier.withdrawn and head.head not in holds and not any(head.head in c for c in closures):
            yield Finding("holds", _name(row), "withdrawn without an event")
    for version in sorted(set(rows) - reached):
        yield Finding("history", _name(rows[version]), "no key's history reaches it")


def _closures(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    for event, closure in view.closures():
        barrier = view.barrier.outdated if event.soft else view.barrier.withdrawn
        if closure - barrier:
            yield Finding("barrier", event.event_id, f"{(closure - barrier).count()} of its versions are not withdrawn")
        escaped = view.cascade([int(v) for v in closure.ids() if int(v) in rows]) - closure
        if escaped:
            yield Finding(
                "closure",
                event.event_id,
                f"versions {[int(v) for v in escaped.ids()[:5]]} derive from it and are not in it",
            )
    fresh = Barrier().follow(view.snapshot)
    if (fresh.withdrawn, fresh.heads, fresh.outdated) != (
        view.barrier.withdrawn,
        view.barrier.heads,
        view.barrier.outdated,
    ):
        yield Finding("barrier", "memory", "the barrier in memory differs from the rows; reopen the store")


def _graph(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    graph = view.scope.graph_at(view.snapshot)
    for row in rows.values():
        recorded = sorted({*row.required, *row.optional})
        resident = [int(parent) for parent in graph.parents(row.version)]
        # The graph may have grown an edge since the snapshot; it may never lack one.
        if not set(recorded) <= set(resident) or (graph.epoch == view.epoch and recorded != resident):
            yield Finding("graph", _name(row), f"parents recorded {recorded}, in memory {resident}")


def _ledger(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    changes = view.snapshot.changes(0)
    if [change.epoch for change in changes] != list(range(1, view.epoch + 1)):
        yield Finding("ledger", "epochs", f"expected 1 to {view.epoch} without a gap, got {len(changes)} rows")
    inserted = unpack_ids(b"".join(change.inserted for change in changes))
    if sorted(inserted) != sorted(rows):
        odd = sorted(set(inserted) ^ set(rows))[:5]
        yield Finding("ledger", "versions", f"the ledger and the version rows differ, for example at {odd}")
    size = view.barrier.size
    crowned = mask_of(unpack_ids(b"".join(change.crowned for change in changes)), size)
    dethroned = mask_of(unpack_ids(b"".join(change.dethroned for change in changes)), size)
    if crowned - dethroned != view.barrier.heads:
        yield Finding("ledger", "heads", "the ledger's heads differ from the head rows")


def _stages(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    states = {attempt.attempt: attempt.state for attempt in view.snapshot.attempts()}
    for stage in view.snapshot.stages(None):
        state = states.get(stage.attempt, "unknown")
        if state != "staging":
            yield Finding("stages", _name(stage.row), f"staged by attempt {stage.attempt}, which is {state}")
        if stage.row.version in rows:
            yield Finding("stages", _name(stage.row), "staged and published at once")


def _contents(view: View, rows: dict[int, VersionRow]) -> Iterator[Finding]:
    for row in rows.values():
        stored = view.snapshot.content(row.version)
        if stored is None:
            yield Finding("content", _name(row), "its content row is gone")
        elif stored.state == "inline" and digest_of(stored.codec, stored.body) != row.digest:
            yield Finding("content", _name(row), "content and digest differ")
