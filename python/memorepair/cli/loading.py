"""Commands that bring data in: adopt, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memorepair.cli.command import Session, command, plain
from memorepair.keys import escaped

_PATH = click.Path(exists=True, dir_okay=False)


@command(
    "adopt",
    click.argument("file", type=_PATH, required=False),
    click.option("--from", "file_format", type=click.Choice(["jsonl", "csv"]),
                 help="The file's format; otherwise its suffix tells."),
    click.option("--id-column", "id", default="id", show_default=True, help="Column of the key."),
    click.option("--digest-column", "digest", default="digest", show_default=True, help="Column of the digest."),
    click.option("--kind-column", "kind", default="kind", show_default=True, help="Column of the kind."),
    click.option("--parents-column", "parents", default="parents", show_default=True,
                 help="Column of the ids it was made from: separated by ';', or a JSON list."),
    click.option("--title-column", "title", default="title", show_default=True, help="Column of the title."),
    click.option("--uri-column", "uri", default="uri", show_default=True, help="Column that says where content is."),
    click.option("--namespace-column", "namespace", default="namespace", show_default=True, help="Its column."),
    click.option("--labels-prefix", "labels", default="labels", show_default=True,
                 help="Columns labels.NAME (or a JSON object of that name) become labels."),
    click.option("--separator", default=";", show_default=True, help="Between ids in the parents column."),
    click.option("--completeness", type=click.Choice(["complete", "partial"]), default="complete", show_default=True,
                 help="Whether the parents column lists every input."),
    click.option("--apply-changes", is_flag=True, help="Raise one correct event for rows whose digest changed."),
    click.option("--confirm", help="The text that a refused --apply-changes printed."),
    click.option("--dry-run", is_flag=True, help="Only count."),
    click.option("--served", type=_PATH, help="Ids that the other store serves, one a line: count the withdrawn ones."),
)  # fmt: skip
def adopt(
    session: Session,
    file: str | None,
    file_format: str | None,
    separator: str,
    completeness: str,
    apply_changes: bool,
    confirm: str | None,
    dry_run: bool,
    served: str | None,
    **columns: str,
) -> int:
    """Take over another store's ids, digests and parents.

    Content stays where it is. Adopting the same file again changes nothing. --served counts ids that should not be
    served any more; exit code 1 when there are any.
    """
    from memorepair.adopt import Columns, adopt, count_served

    if file is None and (file_format is not None or served is None):
        raise click.UsageError("Give FILE, or --served, or both.")
    if file is not None and file_format is None:
        file_format = Path(file).suffix.lower().removeprefix(".")
        if file_format not in ("jsonl", "csv"):
            raise click.UsageError(f"{escaped(file)} ends in neither .jsonl nor .csv; give --from jsonl or csv.")
    value: dict[str, Any] = {}
    lines: list[str] = []
    with session.open() as store, session.progress("reading") as tell:
        if file is not None:
            adopted = adopt(
                store,
                file,
                file_format=file_format or "",
                columns=Columns(**columns, separator=separator),
                completeness=completeness,
                apply_changes=apply_changes,
                confirm=confirm,
                dry_run=dry_run,
                on_progress=tell,
            )
            value, lines = plain(adopted), str(adopted).splitlines()
        if served is not None:
            with open(served, encoding="utf-8") as stream:
                leak = count_served(store, stream)
            value["served"] = plain(leak)
            lines += str(leak).splitlines()
    session.show(value, "\n".join(lines))
    return 1 if served is not None and leak.withdrawn else 0


@command("demo", creates=True)
def demo(session: Session) -> int:
    """Run the whole job on real agent work, and measure it.

    Poisons, withdraws and repairs the memory of 97 tasks.
    Needs nothing and leaves nothing behind; --store keeps the repaired store in a new file. Exit code 1 when a figure
    is not what memorepair promises.
    """
    from memorepair import demo as demonstration

    context = click.get_current_context()
    is_kept = context.get_parameter_source("path") is click.core.ParameterSource.COMMANDLINE
    with session.progress("starting") as tell:
        report = demonstration.run(session.path if is_kept else None, scope=session.scope, on_progress=tell)
    if session.is_json:
        session.show({**plain(report), "problems": list(report.problems)}, "")
    else:
        _print(report, session.path if is_kept else None)
    return 1 if report.problems else 0


def _print(report: Any, path: str | None) -> None:
    from rich.console import Console

    from memorepair.demo.show import WIDTH, rendered, verdict

    console = Console(markup=False, highlight=False, emoji=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    console.print(rendered(report))
    if path is not None:
        click.echo(f"the repaired store is {escaped(path)}; look at it with: memorepair status --store {escaped(path)}")
    console.print(verdict(report))
