"""Choosing many roots at once, by what they are.

Contract: a selector is resolved to version ids inside the event's transaction and only those ids are kept, so what
is put later is never caught by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from memorepair.artifact import KINDS
from memorepair.errors import InvalidRequestError
from memorepair.keys import checked_code_points

if TYPE_CHECKING:
    from memorepair.protocol import VersionRow
    from memorepair.scope import View


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Visible artifacts that match everything given. Make one with `where(...)`."""

    labels: tuple[tuple[str, str], ...] = ()
    kind: str | None = None
    prefix: str = ""
    namespace: str | None = None
    operator: str | None = None  # "name" or "name@version"
    epochs: tuple[int, int] | None = None  # first and last epoch of birth, both included

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise InvalidRequestError(f"selector: kind: expected one of {', '.join(KINDS)}, got {self.kind!r}")
        if not isinstance(self.prefix, str):
            raise InvalidRequestError(f"selector: prefix: expected a str, got {type(self.prefix).__name__}")
        for what, text in (("prefix", self.prefix), ("namespace", self.namespace), ("operator", self.operator)):
            if text:
                checked_code_points(text, what)
        is_range = isinstance(self.epochs, tuple) and len(self.epochs) == 2
        if self.epochs is not None and not (is_range and all(type(epoch) is int for epoch in self.epochs)):
            raise InvalidRequestError(f"selector: epochs: expected (first, last), got {self.epochs!r}")

    def matches(self, row: VersionRow) -> bool:
        """Whether a version has everything that is asked for."""
        if self.kind not in (None, row.kind) or not row.key.startswith(self.prefix):
            return False
        if self.namespace not in (None, row.namespace):
            return False
        if self.operator not in (None, row.operator, f"{row.operator}@{row.operator_version}"):
            return False
        if self.epochs is not None and not self.epochs[0] <= row.epoch <= self.epochs[1]:
            return False
        if not self.labels:
            return True
        labels = msgspec.json.decode(row.labels)
        return all(labels.get(name) == value for name, value in self.labels)

    def rows(self, view: View) -> Iterator[VersionRow]:
        """Yield the visible versions that match, in key order."""
        for head, row in view.snapshot.heads(self.prefix):
            if view.barrier.is_visible(head.head, view.now_micros) and self.matches(row):
                yield row

    def keys(self, view: View) -> Iterator[str]:
        """Yield their keys."""
        return (row.key for row in self.rows(view))


def where(
    *,
    labels: Mapping[str, str] | None = None,
    kind: str | None = None,
    prefix: str = "",
    namespace: str | None = None,
    operator: str | None = None,
    epochs: tuple[int, int] | None = None,
) -> Selector:
    """Select visible artifacts by labels, kind, key prefix, namespace, operator and epoch range of birth."""
    selector = Selector(
        labels=tuple(sorted((labels or {}).items())),
        kind=kind,
        prefix=prefix,
        namespace=namespace,
        operator=operator,
        epochs=epochs,
    )
    if selector == Selector():
        raise InvalidRequestError(
            "where(): expected at least one condition; an empty selector would take the whole scope"
        )
    return selector
