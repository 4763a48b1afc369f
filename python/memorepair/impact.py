"""The dry run of an event, and the guard that asks for it.

Contract: an Impact lists every visible artifact that would be withdrawn, by key and title, each with the artifact it
is reached through; `path` gives the whole way from a root. Nothing is changed by looking.
The guard refuses an event that would newly withdraw more than `max_cascade`; `confirm` is the text an Impact prints:
it covers kind, roots and payload, and holds until the cascade has grown by a tenth.
Source: docs/SEMANTICS.md section 4.
"""

from __future__ import annotations

import msgspec

from memorepair.barrier import Barrier
from memorepair.errors import InvalidRequestError, UnknownKeyError
from memorepair.keys import escaped
from memorepair.protocol import VersionRow
from memorepair.scope import View

DEFAULT_MAX_CASCADE = 0.2
SMALLEST_LIMIT = 100


class Guard(msgspec.Struct, frozen=True):
    """`max_cascade`: a float is a share of what is visible (at least 100), an int is a count, None is no guard."""

    max_cascade: float | int | None = DEFAULT_MAX_CASCADE
    confirm: str | None = None

    def limit(self, barrier: Barrier) -> int | None:
        """Return how many visible artifacts an event may withdraw unconfirmed."""
        if isinstance(self.max_cascade, float):
            return max(SMALLEST_LIMIT, int(self.max_cascade * barrier.visible_heads().count()))
        return self.max_cascade

    def forbids(self, digest: bytes, count: int, barrier: Barrier) -> bool:
        """Whether an event that withdraws `count` must be refused."""
        if self.confirm is not None:
            if not isinstance(self.confirm, str) or len(self.confirm) > 64:
                raise InvalidRequestError("confirm: expected the text that impact() gives")
            shown, _, confirmed = self.confirm.partition(":")
            if (
                shown == digest.hex()[:16]
                and confirmed.isascii()
                and confirmed.isdigit()
                and 10 * count <= 11 * int(confirmed)
            ):
                return False
        limit = self.limit(barrier)
        return limit is not None and count > limit


NO_GUARD = Guard(None)


def confirmation(digest: bytes, count: int) -> str:
    """Return the text that lets an event of this digest pass while it withdraws about `count`."""
    return f"{digest.hex()[:16]}:{count}"


def checked_max_cascade(max_cascade: float | int | None) -> float | int | None:
    """Return a legal `max_cascade`."""
    if max_cascade is None:
        return None
    is_number = isinstance(max_cascade, (int, float)) and not isinstance(max_cascade, bool)
    if not is_number or not max_cascade >= 0 or (isinstance(max_cascade, float) and max_cascade > 1):
        raise InvalidRequestError(
            f"max_cascade: expected a share from 0.0 to 1.0, a count, or None, got {max_cascade!r}"
        )
    return max_cascade


class ImpactRow(msgspec.Struct, frozen=True):
    """One visible artifact that would go. `via` is the version before it on a shortest path, 0 for a root."""

    key: str
    version: int
    kind: str
    title: str | None
    via: int


class Impact(msgspec.Struct, frozen=True):
    """What an event would do. `withdrawn` counts `rows`; `cascade` also counts versions that are history already."""

    kind: str
    rows: tuple[ImpactRow, ...]
    cascade: int
    limit: int | None
    confirm: str
    names: dict[int, tuple[str, int]]  # version -> its key, and the version before it

    @property
    def withdrawn(self) -> int:
        """Visible artifacts that would be withdrawn."""
        return len(self.rows)

    @property
    def is_guarded(self) -> bool:
        """Whether the event would be refused without `confirm`."""
        return self.limit is not None and self.withdrawn > self.limit

    def path(self, key: str) -> list[str]:
        """Return the keys on a shortest path from a root to `key`, both included."""
        version = next((row.version for row in self.rows if row.key == key), 0)
        if not version:
            raise UnknownKeyError(f"impact: {key!r} would not be withdrawn")
        keys: list[str] = []
        while version:
            name, version = self.names[version]
            keys.append(name)
        return keys[::-1]

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.withdrawn} visible artifacts would be withdrawn (confirm={self.confirm})"]
        for row in self.rows[:50]:
            title = f"  {escaped(row.title)}" if row.title else ""
            lines.append(f"  {row.kind:8}{' <- '.join(map(escaped, reversed(self.path(row.key))))}{title}")
        if self.withdrawn > 50:
            lines.append(f"  ... and {self.withdrawn - 50} more")
        return "\n".join(lines)


def impact_of(view: View, kind: str, digest: bytes, roots: list[int], guard: Guard) -> Impact:
    """Return the impact of withdrawing the closure of `roots`."""
    barrier = view.barrier
    graph = view.scope.graph_at(view.snapshot)
    closure = graph.cascade(roots)
    going = [int(version) for version in (closure & barrier.visible_heads()).ids()]
    via = graph.spanning_tree(roots)
    on_path: set[int] = set()
    for version in going:
        while version and version not in on_path:
            on_path.add(version)
            version = via[version]
    rows: dict[int, VersionRow] = view.snapshot.versions(sorted(on_path))
    return Impact(
        kind=kind,
        rows=tuple(
            ImpactRow(rows[version].key, version, rows[version].kind, rows[version].title, via[version])
            for version in going
        ),
        cascade=closure.count(),
        limit=guard.limit(barrier),
        confirm=confirmation(digest, len(going)),
        names={version: (row.key, via[version]) for version, row in rows.items()},
    )
