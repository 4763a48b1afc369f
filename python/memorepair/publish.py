"""The fence and the publication: the only way a rebuilt successor becomes visible.

Contract: `publish` runs behind the gate. A batch passes iff the attempt still owns its token, each of its keys is
still held with the head the plan saw, no event after the plan has such a head or a recorded input in its W, and each
input is visible, superseded or in the batch. What does not pass is returned with the reason and stays withdrawn.
Invariants: what passes is predecessor-closed; each staged version is published at most once (I5, I6).
Source: MemoRepair phase 4; docs/SEMANTICS.md invariants I2, I5, I6.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from memorepair.holds import find_holds
from memorepair.protocol import AttemptRow, ContentRow, FateRow, StageRow
from memorepair.scope import Writer


def owns(writer: Writer, attempt: AttemptRow) -> bool:
    """Whether the attempt still carries the current token."""
    row = writer.snapshot.attempt(attempt.attempt)
    return row is not None and row.token == attempt.token and row.state == "staging"


def fence(writer: Writer, attempt: AttemptRow, batch: Iterable[StageRow]) -> dict[str, str]:
    """Return, per key that must not be published, the reason; in the order of the batch."""
    staged = list(batch)
    if not owns(writer, attempt):
        return {stage.row.key: "another engine took this attempt over" for stage in staged}
    holds = find_holds(writer).by_version
    after = [(event, closure) for event, closure in writer.closures() if event.epoch > attempt.plan_epoch]
    refused: dict[str, str] = {}
    passing: set[int] = set()
    for stage in sorted(staged, key=lambda stage: stage.row.version):
        row = stage.row
        inputs = [*row.required, *row.optional]
        reason = ""
        head = writer.head(row.key)
        if head is None or head.head != stage.head:
            reason = "the key has a newer head than the plan saw"
        elif stage.head not in holds:
            reason = "no event holds the key any more"
        elif writer.row(stage.head).parents != stage.head_parents:
            reason = "a parent was added since its operator ran; plan again"
        elif row.expires_at is not None and row.expires_at <= writer.now_micros:
            reason = "its time is over: it expired"
        for event, closure in after:
            touched = next((version for version in (stage.head, *inputs) if version in closure), None)
            if not reason and touched is not None:
                reason = f"event {event.event_id!r} came after the plan and touches it; plan again"
        for version in inputs:
            if not reason and version not in passing and not _stands(writer, version):
                reason = f"input version {version} is no longer visible or superseded; plan again"
        if reason:
            refused[row.key] = reason
        else:
            passing.add(row.version)
    return refused


def _stands(writer: Writer, version: int) -> bool:
    return writer.snapshot.version(version) is not None and writer.barrier.is_parent(version, writer.now_micros)


def publish(writer: Writer, attempt: AttemptRow, batch: Iterable[StageRow]) -> dict[str, str]:
    """Publish what passes the fence; return the reasons of what does not."""
    staged = sorted(batch, key=lambda stage: stage.row.version)
    refused = fence(writer, attempt, staged)
    is_ours = owns(writer, attempt)
    for stage in staged:
        if is_ours:
            writer.batch.unstaged.append((stage.attempt, stage.row.version))
        if stage.row.key in refused:
            continue
        head = writer.head(stage.row.key)
        assert head is not None
        row = replace(stage.row, epoch=writer.new_epoch, previous=head.latest)
        state = "external" if stage.codec == "external" else "inline"
        writer.batch.versions.append(row)
        writer.batch.contents.append(ContentRow(row.version, state, stage.codec, stage.body))
        writer.remember(row)
        writer.crown(row.key, row.version)
        writer.batch.fates.append(FateRow(stage.head, row.key, "published", "", attempt.attempt, writer.new_epoch))
    return refused
