"""What a reader holds: an artifact, what is known of a version, and the gap where an artifact was.

Contract: frozen values; a read gives a fresh `content` each time, a write gives back the caller's own. A
`Gap` says why there is no answer, which events caused it and what is left to rebuild from.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from memorepair.amounts import Cost
from memorepair.clock import as_datetime
from memorepair.errors import InvalidRequestError
from memorepair.protocol import VersionRow

KINDS = ("record", "cache", "summary", "skill")
FORMS = {
    "record": ("interface", "tool_output"),
    "cache": ("tool_output", "embedding"),
    "summary": (),
    "skill": ("neural", "prompt", "chain"),
}
COMPLETENESS = ("complete", "partial", "opaque")


def checked_kind(kind: str, form: str | None) -> None:
    """Raise InvalidRequestError unless `kind` and `form` go together."""
    if kind not in KINDS:
        raise InvalidRequestError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if form is not None and form not in FORMS[kind]:
        expected = f"expected {', '.join(FORMS[kind])} or None" if FORMS[kind] else "it has none, expected None"
        raise InvalidRequestError(f"form of a {kind}: {expected}, got {form!r}")


class VersionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One immutable version of a key, without its content."""

    key: str
    version: int
    kind: str
    form: str | None
    namespace: str
    title: str | None
    labels: dict[str, str]
    digest: str
    operator: str | None
    operator_version: str | None
    cost: Cost | None
    weight: int
    expires_at: datetime | None
    completeness: str
    required: tuple[int, ...]
    optional: tuple[int, ...]
    epoch: int
    origin: str
    state: str  # visible | superseded | withdrawn | expired

    @property
    def parents(self) -> tuple[int, ...]:
        """Versions this one was derived from, required ones first."""
        return self.required + self.optional

    def __index__(self) -> int:
        return self.version


class Artifact(VersionInfo, frozen=True, kw_only=True):
    """A visible version with its content and the token of the read."""

    content: Any
    token: str


class Gap(msgspec.Struct, frozen=True):
    """A typed refusal: no content, but the reason, and what a repair could start from."""

    key: str
    version: int  # 0 when unknown
    state: str  # withdrawn | expired | erased | unknown
    reason: str
    events: tuple[str, ...] = ()
    fate: str | None = None  # what the last repair decided: "not worth it", "left out", "failed", ...
    retained: tuple[str, ...] = ()  # parent keys that are visible
    token: str = ""


def info_fields(row: VersionRow, state: str) -> dict[str, Any]:
    """A version row as the fields of VersionInfo."""
    return {
        "key": row.key,
        "version": row.version,
        "kind": row.kind,
        "form": row.form,
        "namespace": row.namespace,
        "title": row.title,
        "labels": {} if row.labels == "{}" else msgspec.json.decode(row.labels),
        "digest": row.digest.hex(),
        "operator": row.operator,
        "operator_version": row.operator_version,
        "cost": None if row.cost is None else Cost(row.cost, row.unit or ""),
        "weight": row.weight,
        "expires_at": as_datetime(row.expires_at),
        "completeness": row.completeness,
        "required": tuple(row.required),
        "optional": tuple(row.optional),
        "epoch": row.epoch,
        "origin": row.origin,
        "state": state,
    }
