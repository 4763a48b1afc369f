"""The rows of the reference model: versions, events, plans, and content in plain values.

Contract: plain data without rules; `rebuilt` is the deterministic operator that the model and the tests share.
Source: docs/SEMANTICS.md section 3.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


def canonical(content: object) -> str:
    """Return a text that is equal for equal content only."""
    if isinstance(content, str):
        return "text:" + content
    if isinstance(content, (bytes, bytearray)):
        return "bytes:" + bytes(content).hex()
    return "json:" + json.dumps(content, sort_keys=True, ensure_ascii=True)


def rebuilt(key: str, inputs: Mapping[str, object]) -> str:
    """The content that the deterministic operator makes of `inputs`; short, however long the history is."""
    text = json.dumps([key, sorted((name, canonical(content)) for name, content in inputs.items())])
    return f"built {hashlib.sha256(text.encode()).hexdigest()[:10]}"


@dataclass(frozen=True)
class Version:
    """One version. `required` and `optional` hold version numbers."""

    number: int
    key: str
    content: object
    kind: str
    form: str | None
    title: str | None
    labels: tuple[tuple[str, str], ...]
    operator: str | None
    required: frozenset[int]
    optional: frozenset[int]
    origin: str

    @property
    def parents(self) -> frozenset[int]:
        """Every parent."""
        return self.required | self.optional

    def says_the_same(self, other: Version) -> bool:
        """Equal content, kind and form."""
        mine = (canonical(self.content), self.kind, self.form)
        return mine == (canonical(other.content), other.kind, other.form)

    def looks_the_same(self, other: Version) -> bool:
        """Equal title and labels."""
        return (self.title, self.labels) == (other.title, other.labels)


@dataclass
class Event:
    """One event; `closure` is W(e), late versions included. `roots`: key, withdrawn versions, replacement or 0."""

    event_id: str
    kind: str
    payload: object
    roots: list[tuple[str, list[int], int]]
    closure: set[int]
    withdrawn: int
    cascade: int
    undoes: str | None = None
    restored: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    is_abandoned: bool = False

    @property
    def reply(self) -> tuple[object, ...]:
        """What a caller is told, in plain values; see `reply_of`."""
        keys = tuple(key for key, _, _ in self.roots)
        return (
            self.event_id,
            self.kind,
            keys,
            self.withdrawn,
            self.cascade,
            tuple(self.restored),
            tuple(self.left),
        )


def reply_of(event: Any) -> tuple[object, ...]:
    """A store's `Event` in the plain values of `Event.reply`."""
    return (
        event.event_id,
        event.kind,
        event.roots,
        event.withdrawn,
        event.cascade,
        event.restored,
        event.left,
    )


@dataclass(frozen=True)
class Inputs:
    """What a rebuild may read: parent keys, the newest version of its own that stands, and whether it ever had any."""

    required: frozenset[str]
    optional: frozenset[str]
    own: int | None
    had_any: bool


@dataclass(frozen=True)
class Planned:
    """One candidate: its head, v, what must be selected with it, and what it waits for."""

    head: int
    is_executable: bool
    needs: frozenset[str]
    waits_for: frozenset[str]


@dataclass(frozen=True)
class ReferencePlan:
    """Candidates and the smallest best selection; `num_events` fences what comes later."""

    candidates: dict[str, Planned]
    selected: frozenset[str]
    objective: Fraction
    num_events: int
