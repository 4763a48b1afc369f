"""Commands that only look: status, explain, fsck."""

from __future__ import annotations

import click

from memorepair.cli.arguments import split_version, unknown_version
from memorepair.cli.command import Session, command, counted, plain
from memorepair.errors import UnknownKeyError
from memorepair.keys import escaped
from memorepair.status import Status


@command("status")
def status(session: Session) -> None:
    """Count what is visible, held and withdrawn.

    Also the open events, and how complete provenance is.
    """
    with session.open() as store:
        counts = store.status()
    session.show({**plain(counts), "open_events": counts.open_events}, _counts(counts))


@command("explain", click.argument("what", metavar="KEY[@VERSION]"))
def explain(session: Session, what: str) -> None:
    """Say why an artifact is visible or withdrawn.

    Tells the events, the path from a root and the last decision.
    """
    with session.open() as store:
        try:
            story = store.explain(what)
        except UnknownKeyError as error:
            named = split_version(what)
            try:
                versions = [info.version for info in store.history(named[0])] if named else []
            except UnknownKeyError:
                raise error from None
            if named is None or named[1] not in versions:
                raise unknown_version(store, what, error) from None
            story = store.explain(named[1])
    session.show(story, str(story))


@command("fsck")
def fsck(session: Session) -> int:
    """Check the store against its own rules.

    Exit code 1 on any finding.
    """
    with session.open() as store:
        findings = store.fsck()
    lines = [escaped(str(finding)) for finding in findings]
    lines.append(counted(len(findings), "finding") if findings else "sound: nothing was found")
    session.show({"findings": plain(findings), "is_sound": not findings}, "\n".join(lines))
    return 1 if findings else 0


def _counts(counts: Status) -> str:
    lines = [
        f"scope {escaped(counts.scope)} at epoch {counts.epoch}: {counts.keys} keys, {counts.versions} versions",
        f"  visible {counts.visible}, held {counts.held}, withdrawn {counts.withdrawn}, expired {counts.expired}",
        f"  provenance of what is visible: complete {counts.complete}, partial {counts.partial}, "
        f"opaque {counts.opaque}; {counts.without_parents} derived without parents",
    ]
    if counts.fates:
        lines.append("  held, by last repair: " + ", ".join(f"{fate} {n}" for fate, n in sorted(counts.fates.items())))
    lines += [
        f"  {event.state} {event.kind} {escaped(event.event_id)}: {event.held} held, {event.undecided} undecided"
        for event in counts.events[-20:]
    ]
    lines.append(counted(counts.open_events, "open event"))
    return "\n".join(lines)
