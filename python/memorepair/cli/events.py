"""Commands on events: impact, delete, suspect, correct, migrate, undo, abandon."""

from __future__ import annotations

from typing import Any

import click

from memorepair.cli.arguments import (
    check_matches,
    content_options,
    read_replacements,
    read_roots,
    replacement_options,
    selector_options,
)
from memorepair.cli.command import Session, command, counted, plain
from memorepair.events import Event
from memorepair.keys import escaped

_reason = click.option("--reason", default="", help="Why; kept with the event.")
_event_id = click.option("--event-id", help="The same id and request give the same reply, at any later time.")
_max_cascade = click.option(
    "--max-cascade", help="Refuse to withdraw more than this share or count unless confirmed; or none."
)
_guard = (click.option("--confirm", help="The text that impact printed."), _max_cascade)


@command(
    "impact",
    click.argument("keys", nargs=-1),
    selector_options,
    click.option("--event", type=click.Choice(["delete", "suspect", "correct", "migrate"]), default="delete",
                 show_default=True, help="The event to look at; correct and migrate need the new content."),
    click.option("--content", help="New content for correct or migrate ('-' reads stdin)."),
    content_options,
    click.option("--from", "batch_file", type=click.Path(exists=True, dir_okay=False, allow_dash=True),
                 help='New content of many keys: JSON lines {"key": ..., "content": ...}.'),
    _max_cascade,
)  # fmt: skip
def impact(
    session: Session,
    keys: tuple[str, ...],
    event: str,
    content: str | None,
    content_file: str | None,
    content_json: str | None,
    batch_file: str | None,
    max_cascade: str | None,
    **selection: Any,
) -> None:
    """Show what an event would withdraw, changing nothing."""
    roots: Any
    if event in ("correct", "migrate"):
        if len(keys) > 1:
            raise click.UsageError(f"--event {event} takes one KEY with content, or --from a file.")
        roots = read_replacements(keys[0] if keys else None, content, content_file, content_json, batch_file)
    elif any(given is not None for given in (content, content_file, content_json, batch_file)):
        raise click.UsageError(f"--event {event} takes no content.")
    else:
        roots = read_roots(keys, **selection)
    with session.open(max_cascade) as store:
        answer = store.impact(roots, event)
    guarded = "; it would be refused without --confirm" if answer.is_guarded else ""
    rows = [{**plain(row), "path": answer.path(row.key)} for row in answer.rows]
    facts = {"kind": answer.kind, "withdrawn": answer.withdrawn, "cascade": answer.cascade, "limit": answer.limit}
    session.show(
        {**facts, "is_guarded": answer.is_guarded, "confirm": answer.confirm, "rows": rows},
        f"{answer}\nnothing was changed{guarded}",
    )


@command("delete", click.argument("keys", nargs=-1), selector_options, _event_id, _reason, *_guard)
def delete(
    session: Session,
    keys: tuple[str, ...],
    event_id: str | None,
    reason: str,
    confirm: str | None,
    max_cascade: str | None,
    **selection: Any,
) -> None:
    """Withdraw artifacts and all derived from them, for good.

    KEYS are keys or key@version.
    """
    roots = read_roots(keys, **selection)
    with session.open(max_cascade) as store:
        check_matches(store, roots, event_id)
        event = store.delete(roots, event_id=event_id, reason=reason, confirm=confirm)
    session.show(*told(event))


@command("suspect", click.argument("keys", nargs=-1), selector_options, _event_id, _reason)
def suspect(session: Session, keys: tuple[str, ...], event_id: str | None, reason: str, **selection: Any) -> None:
    """Withdraw artifacts in doubt and all derived from them.

    Never waits for a confirmation; the artifacts themselves may be rebuilt too.
    """
    roots = read_roots(keys, **selection)
    with session.open() as store:
        check_matches(store, roots, event_id)
        event = store.suspect(roots, event_id=event_id, reason=reason)
    session.show(*told(event))


@command("correct", replacement_options, _event_id, _reason, *_guard)
def correct(
    session: Session, event_id: str | None, reason: str, confirm: str | None, max_cascade: str | None, **replaced: Any
) -> None:
    """Replace a source and withdraw what it led to."""
    contents = read_replacements(**replaced)
    with session.open(max_cascade) as store:
        event = store.correct(contents, event_id=event_id, reason=reason, confirm=confirm)
    session.show(*told(event))


@command("migrate", replacement_options, _event_id, _reason, *_guard)
def migrate(
    session: Session, event_id: str | None, reason: str, confirm: str | None, max_cascade: str | None, **replaced: Any
) -> None:
    """Replace a tool schema, model or prompt; withdraw its results."""
    contents = read_replacements(**replaced)
    with session.open(max_cascade) as store:
        event = store.migrate(contents, event_id=event_id, reason=reason, confirm=confirm)
    session.show(*told(event))


@command(
    "undo",
    click.argument("event"),
    click.option("--event-id", "undo_id", help="An id for the undo itself."),
    _reason,
    *_guard,
)
def undo(
    session: Session, event: str, undo_id: str | None, reason: str, confirm: str | None, max_cascade: str | None
) -> None:
    """Take an event back wherever no other event forbids it."""
    with session.open(max_cascade) as store:
        undone = store.undo(event, undo_id=undo_id, reason=reason, confirm=confirm)
    value, _ = told(undone)
    text = f"undo of {escaped(event)}: {counted(len(undone.restored), 'key')} restored"
    if undone.left:
        more = ", ..." if len(undone.left) > 5 else ""
        text += f", {len(undone.left)} left: {', '.join(map(escaped, undone.left[:5]))}{more}"
    if undone.withdrawn:
        text += f"; {counted(undone.withdrawn, 'artifact')} withdrawn at epoch {undone.epoch}"
    session.show(value, text)


@command("abandon", click.argument("event"))
def abandon(session: Session, event: str) -> None:
    """Give up repairing an event: its keys stay withdrawn."""
    with session.open() as store:
        given_up = store.abandon(event)
    session.show(given_up, f"abandoned {escaped(given_up.event_id)}: what it holds stays withdrawn")


def told(event: Event) -> tuple[dict[str, Any], str]:
    """An event as JSON and as one line."""
    value = {**plain(event), "is_unchanged": event.is_unchanged}
    name = f"{event.kind} {escaped(event.event_id)}"
    if event.is_unchanged:
        return value, f"{name}: nothing to withdraw"
    return value, f"{name}: {counted(event.withdrawn, 'artifact')} withdrawn at epoch {event.epoch}"
