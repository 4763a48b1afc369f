"""Commands on artifacts: init, put, derive, show, ls."""

from __future__ import annotations

import os
from typing import Any

import click

from memorepair import reading
from memorepair.amounts import parse_cost
from memorepair.artifact import Artifact, VersionInfo, info_fields
from memorepair.cli.arguments import (
    FORM,
    KIND,
    amount,
    content_options,
    find_version,
    read_content,
    read_labels,
    read_selector,
    selector_options,
    unknown_version,
)
from memorepair.cli.command import Session, command, counted, plain, shown
from memorepair.cli.events import told
from memorepair.content import External
from memorepair.errors import MissingStoreError, UnknownKeyError
from memorepair.holds import find_holds
from memorepair.keys import escaped
from memorepair.location import is_postgres, shown_location
from memorepair.selector import Selector
from memorepair.store import Store, open_store

_birth = (
    click.option("--form", type=FORM, help="What it is more closely; which forms there are depends on the kind."),
    click.option("--title", help="A name for people."),
    click.option("--label", "labels", multiple=True, metavar="K=V", help="A label (repeatable)."),
    click.option("--namespace", default="", help="A namespace inside the scope."),
)


@command("init", creates=True)
def init(session: Session) -> None:
    """Create a store or a scope in it, or check that it opens."""
    has_file = is_postgres(session.path) or os.path.exists(session.path)
    has_scope = has_file and _has_scope(session)
    with session.open() as store:
        status = store.status()
    verb, made = "exists" if has_file else "created", " created" if has_file and not has_scope else ""
    counts = f"{counted(status.keys, 'key')}, epoch {status.epoch}"
    session.show(
        {"store": shown_location(session.path), "scope": status.scope, "created": not has_scope, "epoch": status.epoch},
        f"{escaped(shown_location(session.path))} {verb}: scope {escaped(status.scope)}{made}, {counts}",
    )


def _has_scope(session: Session) -> bool:
    try:
        open_store(session.path, session.scope, create=False).close()
    except MissingStoreError:
        return False
    return True


@command(
    "put",
    click.argument("key"),
    click.argument("content", required=False),
    content_options,
    *_birth,
    click.option("--supersede", is_flag=True, help="The old content was true in its time: withdraw nothing."),
    click.option("--confirm", help="The text that impact printed."),
    click.option("--max-cascade", help="A share, a count, or none."),
)
def put(
    session: Session,
    key: str,
    content: str | None,
    content_file: str | None,
    content_json: str | None,
    labels: tuple[str, ...],
    max_cascade: str | None,
    **fields: Any,
) -> None:
    """Put a record: something the agent was told or read.

    Other content over a visible key is a correction, and withdraws what was made from the old one.
    """
    body = read_content(content, content_file, content_json)
    with session.open(max_cascade) as store:
        with store._reading() as view:
            before = view.epoch
        artifact = store.put(key, body, labels=read_labels(labels), **fields)
        made = [] if artifact.epoch <= before else [e for e in store.events() if e.epoch == artifact.epoch]
    value, text = plain(artifact), _written(artifact)
    value["event"] = None
    for event in made:
        value["event"], line = told(event)
        text += f"\n{line}"
    session.show(value, text)


@command(
    "derive",
    click.argument("key"),
    click.argument("content", required=False),
    content_options,
    click.option("--kind", type=KIND, required=True, help="What it is."),
    click.option("--parent", "parents", multiple=True, metavar="KEY[@VERSION]", help="What it was made from."),
    click.option("--optional", multiple=True, metavar="KEY[@VERSION]", help="An input that a rebuild may do without."),
    click.option("--operator", help='What made it, "name@version".'),
    click.option("--cost", callback=amount(parse_cost), help='What it took, such as "250 tokens".'),
    *_birth,
    click.option("--stale", type=click.Choice(["reject", "withdraw"]), default="reject", show_default=True,
                 help="When a parent is withdrawn: refuse, or keep the result for the next repair."),
)  # fmt: skip
def derive(
    session: Session,
    key: str,
    content: str | None,
    content_file: str | None,
    content_json: str | None,
    labels: tuple[str, ...],
    parents: tuple[str, ...],
    optional: tuple[str, ...],
    stale: str,
    **fields: Any,
) -> None:
    """Record something made from other artifacts."""
    body = read_content(content, content_file, content_json)
    may_be_gone = stale == "withdraw"
    with session.open() as store:
        artifact = store.derive(
            key,
            body,
            parents=[find_version(store, name, is_withdrawn_fine=may_be_gone) for name in parents],
            optional=[find_version(store, name, is_withdrawn_fine=may_be_gone) for name in optional],
            labels=read_labels(labels),
            stale=stale,
            **fields,
        )
    session.show(artifact, _written(artifact))


@command("show", click.argument("key"))
def show(session: Session, key: str) -> None:
    """Print the visible artifact of a key, or say why there is none."""
    with session.open() as store:
        try:
            artifact = store.get(key)
        except UnknownKeyError as error:
            raise unknown_version(store, key, error) from None
    session.show(artifact, _whole(artifact))


@command(
    "ls",
    selector_options,
    click.option("--held", is_flag=True, help="Withdrawn artifacts that a repair may bring back, instead."),
    click.option("--history", metavar="KEY", help="Every version of one key, newest first, instead."),
)
def ls(session: Session, held: bool, history: str | None, **selection: Any) -> None:
    """List artifacts: key, version, kind, title."""
    selector = read_selector(**selection)
    if history is not None and (held or selector != Selector()):
        raise click.UsageError("--history KEY stands alone.")
    with session.open() as store:
        if history is not None:
            try:
                found = store.history(history)
            except UnknownKeyError as error:
                raise unknown_version(store, history, error) from None
        elif held:
            found = _held(store, selector)
        else:
            with store._reading() as view:
                found = reading.find(view, selector, None)
    lines = [_line(info) for info in found]
    state = "held" if held else "visible"
    lines.append(counted(len(found), "version") if history is not None else f"{len(found)} {state}")
    session.show(found, "\n".join(lines))


def _held(store: Store, selector: Selector) -> list[VersionInfo]:
    with store._reading() as view:
        rows = view.snapshot.versions(sorted(find_holds(view).by_version)).values()
        found = [VersionInfo(**info_fields(row, "withdrawn")) for row in rows if selector.matches(row)]
    return sorted(found, key=lambda info: info.key.encode())


def _written(artifact: Artifact) -> str:
    return f"{escaped(artifact.key)}@{artifact.version} {artifact.kind}, {artifact.state}"


def _line(info: VersionInfo) -> str:
    title = f"  {escaped(info.title)}" if info.title else ""
    return f"{escaped(info.key)}@{info.version}  {info.kind}  {info.state}{title}"


def _whole(artifact: Artifact) -> str:
    lines = [
        f"{escaped(artifact.key)}@{artifact.version}  {artifact.kind}" + (f"/{artifact.form}" if artifact.form else "")
    ]
    if artifact.title:
        lines.append(f"title: {escaped(artifact.title)}")
    lines += [f"label: {escaped(name)}={escaped(value)}" for name, value in artifact.labels.items()]
    if artifact.operator:
        version = f"@{escaped(artifact.operator_version)}" if artifact.operator_version else ""
        lines.append(f"operator: {escaped(artifact.operator)}{version}")
    if artifact.cost is not None:
        lines.append(f"cost: {artifact.cost}")
    if artifact.completeness != "complete":
        lines.append(f"provenance: {artifact.completeness}")
    if isinstance(artifact.content, External):
        uri = f" at {escaped(artifact.content.uri)}" if artifact.content.uri else ""
        return "\n".join([*lines, f"content: kept elsewhere{uri}, digest {escaped(artifact.content.digest)}"])
    return "\n".join([*lines, "", shown(artifact.content)])
