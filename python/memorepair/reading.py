"""The rules of every read: one committed state, visibility first, a gap instead of stale content.

Contract: functions over a View; what they return was visible in that view, or is a Gap that says why not.
Source: docs/SEMANTICS.md invariants I1 and I13.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorepair.artifact import Artifact, Gap, VersionInfo, info_fields
from memorepair.content import encode
from memorepair.errors import ErasedError, ExpiredError, RefusalError, UnknownKeyError, WithdrawnError
from memorepair.events import unknown_key, walk_history
from memorepair.keys import checked_name
from memorepair.protocol import VersionRow
from memorepair.scope import View, Writer
from memorepair.selector import Selector
from memorepair.writing import Proposal

_REFUSALS: dict[str, type[RefusalError]] = {
    "unknown": UnknownKeyError,
    "withdrawn": WithdrawnError,
    "expired": ExpiredError,
    "erased": ErasedError,
}


def read(view: View, key: str) -> Artifact | Gap:
    """Return the visible artifact of `key`, or the gap."""
    head = view.head(key)
    if head is None:
        return Gap(key, 0, "unknown", f"no artifact has this key in scope {view.scope.name!r}", token=view.token)
    row = view.row(head.head)
    if not view.barrier.is_visible(row.version, view.now_micros):
        return gap(view, row)
    content = view.content(row)
    if content is None:
        return Gap(key, row.version, "erased", "its content was erased or pruned", token=view.token)
    return Artifact(**info_fields(row, "visible"), content=content, token=view.token)


def gap(view: View, row: VersionRow) -> Gap:
    """Return why a head is not served."""
    state = view.state(row)
    if state == "expired":
        return Gap(row.key, row.version, state, "its time is over; put or derive it anew", token=view.token)
    events = [event for event, closure in view.closures() if row.version in closure]
    fate = view.snapshot.fates([row.version]).get(row.version)
    parents = view.snapshot.versions([*row.required, *row.optional]).values()
    retained = sorted({parent.key for parent in parents if view.visible_head(parent.key) is not None})
    why = "; ".join(
        f"{event.kind} {event.event_id}" + (f" ({event.reason})" if event.reason else "") for event in events[-3:]
    )
    return Gap(
        key=row.key,
        version=row.version,
        state=state,
        reason=f"withdrawn by {why}" + (f"; last repair: {fate.fate}, {fate.reason}" if fate else ""),
        events=tuple(event.event_id for event in events),
        fate=fate.fate if fate else None,
        retained=tuple(retained),
        token=view.token,
    )


def refusal(answer: Gap) -> RefusalError:
    """A gap as the error that `get` raises."""
    return _REFUSALS[answer.state](f"{answer.key!r} is {answer.state}: {answer.reason}", answer)


def written(writer: Writer, row: VersionRow, content: Any) -> Artifact:
    """Return what a write left standing, as an Artifact; a version born withdrawn says so in `state`."""
    is_over = row.expires_at is not None and row.expires_at <= writer.now_micros
    state = "withdrawn" if row.origin == "late" else "expired" if is_over else "visible"
    return Artifact(**info_fields(row, state), content=content, token=writer.token_after)


def find(view: View, selector: Selector, limit: int | None) -> list[VersionInfo]:
    """Return visible artifacts that match, in key order."""
    answer: list[VersionInfo] = []
    for row in selector.rows(view):
        if limit is not None and len(answer) >= limit:
            break
        answer.append(VersionInfo(**info_fields(row, "visible")))
    return answer


def history(view: View, key: str) -> list[VersionInfo]:
    """Return every version of `key`, newest first."""
    head = view.head(key)
    if head is None:
        raise UnknownKeyError(f"{key!r} is unknown in scope {view.scope.name!r}")
    return [VersionInfo(**info_fields(row, view.state(row))) for row in walk_history(view, head.latest)]


def replacements(view: View, contents: Mapping[str, Any], kind: str) -> tuple[Proposal, ...]:
    """Return the new versions of a correct or migrate: new content, all else as it stands, past expiry apart."""
    proposals = []
    for key, content in sorted(contents.items()):
        head = view.head(checked_name(key))
        if head is None:
            raise unknown_key(view, kind, key)
        row = view.row(head.head)
        fields = {name: getattr(row, name) for name in ("kind", "form", "namespace", "title", "labels", "weight")}
        expires_at = row.expires_at if row.expires_at is not None and row.expires_at > view.now_micros else None
        proposals.append(Proposal(key=key, body=encode(content), expires_at=expires_at, **fields))
    return tuple(proposals)
