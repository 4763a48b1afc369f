"""Commands on artifacts: init, put, derive, show, ls."""

from __future__ import annotations

import os
from typing import Any

import click

from memorepair import reading
from memorepair.artifact import Artifact, VersionInfo, info_fields
from memorepair.cli.arguments import (
    content_options,
    find_version,
    read_content,
    read_labels,
    read_selector,
    selector_options,
)
from memorepair.cli.command import Session, command, shown
from memorepair.content import External
from memorepair.holds import find_holds
from memorepair.keys import escaped
from memorepair.selector import Selector
from memorepair.store import Store

_birth = (
    click.option("--form", help="interface, tool_output, embedding, neural, prompt or chain."),
    click.option("--title", help="A name for people."),
    click.option("--label", "labels", multiple=True, metavar="K=V", help="A label (repeatable)."),
    click.option("--namespace", default="", help="A namespace inside the scope."),
)


@command("init", creates=True)
def init(session: Session) -> None:
    """Create a store file, or check that it opens."""
    existed = os.path.exists(session.path)
    with session.open() as store:
        status = store.status()
    verb = "exists" if existed else "created"
    session.show(
        {"store": session.path, "scope": status.scope, "created": not existed, "epoch": status.epoch},
        f"{escaped(session.path)} {verb}: scope {escaped(status.scope)}, {status.keys} keys, epoch {status.epoch}",
    )


@command(
    "put",
    click.argument("key"),
    click.argument("content", required=False),
    content_options,
    *_birth,
    click.option("--supersede", is_flag=True, help="The old content was true in its time: withdraw nothing."),
    click.option("--confirm", help="The text that impact printed."),
    click.option("--max-cascade", help="A share, a count, or none."),
    creates=True,
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
        artifact = store.put(key, body, labels=read_labels(labels), **fields)
    session.show(artifact, _written(artifact))


@command(
    "derive",
    click.argument("key"),
    click.argument("content", required=False),
    content_options,
    click.option("--kind", required=True, help="cache, summary, skill or record."),
    click.option("--parent", "parents", multiple=True, metavar="KEY[@VERSION]", help="What it was made from."),
    click.option("--optional", multiple=True, metavar="KEY[@VERSION]", help="An input that a rebuild may do without."),
    click.option("--operator", help='What made it, "name@version".'),
    click.option("--cost", help='What it took, such as "250 tokens".'),
    *_birth,
    click.option("--stale", type=click.Choice(["reject", "withdraw"]), default="reject", show_default=True,
                 help="When a parent is withdrawn: refuse, or keep the result for the next repair."),
    creates=True,
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
        artifact = store.get(key)
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
            found = store.history(history)
        elif held:
            found = _held(store, selector)
        else:
            with store.reading() as view:
                found = reading.find(view, selector, None)
    lines = [_line(info) for info in found]
    lines.append(f"{len(found)} {'versions' if history is not None else 'held' if held else 'visible'}")
    session.show(found, "\n".join(lines))


def _held(store: Store, selector: Selector) -> list[VersionInfo]:
    with store.reading() as view:
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
