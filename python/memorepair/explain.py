"""Why an artifact is visible, withdrawn, rebuilt or left alone.

Contract: everything said here is read from committed rows; the path is a shortest one from a root of the event.
Source: docs/SEMANTICS.md section 7.
"""

from __future__ import annotations

import msgspec

from memorepair.barrier import Mask
from memorepair.errors import UnknownKeyError
from memorepair.holds import find_holds
from memorepair.keys import escaped
from memorepair.protocol import EventRow
from memorepair.scope import View


class Cause(msgspec.Struct, frozen=True):
    """One event that withdrew the version, and how it reached it: keys from a root to the version."""

    event_id: str
    kind: str
    epoch: int
    reason: str
    path: tuple[str, ...]
    is_holding: bool


class Explanation(msgspec.Struct, frozen=True):
    """The story of one version."""

    key: str
    version: int
    kind: str
    state: str
    origin: str
    epoch: int
    completeness: str
    parents: tuple[str, ...]  # "key@version (state)"
    children: int
    causes: tuple[Cause, ...]
    fate: str | None
    fate_reason: str | None
    successor: int | None  # the key's head, when that is another version

    def __str__(self) -> str:
        born = f"{self.kind}, {self.origin} at epoch {self.epoch}"
        lines = [f"{escaped(self.key)} version {self.version} ({born}) is {self.state}"]
        if self.completeness != "complete":
            lines.append(f"  its provenance is {self.completeness}: not every input is recorded")
        lines += [f"  derived from {escaped(parent)}" for parent in self.parents]
        for cause in self.causes:
            reason = f" ({escaped(cause.reason)})" if cause.reason else ""
            lines.append(f"  withdrawn by {cause.kind} {escaped(cause.event_id)} at epoch {cause.epoch}{reason}")
            lines.append(f"    path: {' -> '.join(map(escaped, cause.path))}")
        if self.fate is not None:
            lines.append(f"  last repair: {self.fate}" + (f", {escaped(self.fate_reason)}" if self.fate_reason else ""))
        if self.successor is not None:
            lines.append(f"  the key's head is version {self.successor} now")
        return "\n".join(lines)


def explain(view: View, what: str | int) -> Explanation:
    """Return the story of a key's head or of a version. Raises UnknownKeyError."""
    if isinstance(what, str):
        head = view.head(what)
        version = head.head if head else 0
    else:
        version = what
    row = view.snapshot.version(version) if 0 < version < 2**32 else None
    if row is None:
        raise UnknownKeyError(
            f"explain: {what!r} is unknown in scope {view.scope.name!r}; see 'memorepair ls' for keys"
        )
    head = view.head(row.key)
    assert head is not None
    holding = {event.epoch for event in find_holds(view).by_version.get(version, ())}
    fate = view.snapshot.fates([version]).get(version)
    parents = view.snapshot.versions([*row.required, *row.optional]).values()
    children = len(view.scope.graph_at(view.snapshot).children(version))
    return Explanation(
        key=row.key,
        version=version,
        kind=row.kind,
        state=view.state(row),
        origin=row.origin,
        epoch=row.epoch,
        completeness=row.completeness,
        parents=tuple(f"{parent.key}@{parent.version} ({view.state(parent)})" for parent in parents),
        children=children,
        causes=tuple(
            Cause(
                event.event_id,
                event.kind,
                event.epoch,
                event.reason,
                _path(view, event, closure, version),
                event.epoch in holding,
            )
            for event, closure in view.closures()
            if version in closure
        ),
        fate=fate.fate if fate else None,
        fate_reason=fate.reason if fate else None,
        successor=head.head if head.head != version else None,
    )


def _path(view: View, event: EventRow, closure: Mask, version: int) -> tuple[str, ...]:
    roots = {root for item in event.roots for root in item.versions} | {
        root.replacement for root in event.roots if event.kind == "undo" and root.replacement
    }
    path = view.scope.graph_at(view.snapshot).shortest_path(version, roots.__contains__, closure)
    rows = view.snapshot.versions(path)
    return tuple(rows[step].key for step in path)
