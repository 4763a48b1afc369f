"""What every command shares: the store it names, how it prints, and how it fails.

Contract: `@command` makes a click command whose function takes a Session first and returns its exit code (None = 0).
A typed error becomes one line on stderr and exit code 1, and in JSON mode an object on stdout as well; so does what
no other code has caught (text that is no Unicode, a full disk, content nested too deep): never a traceback. Only
`init` and `demo` (`creates=True`) may create a store or a scope.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click
import msgspec

from memorepair._version import __version__
from memorepair.errors import (
    CascadeTooLargeError,
    InvalidRequestError,
    MemorepairError,
    MissingStoreError,
    RefusalError,
)
from memorepair.impact import DEFAULT_MAX_CASCADE, Impact
from memorepair.keys import escaped
from memorepair.store import Store, open_store

DEFAULT_STORE = "agent.db"
Function = Callable[..., Any]


class OrderedGroup(click.Group):
    """A group that lists its commands in the order in which one meets them."""

    order = (
        "demo", "init", "put", "derive", "show", "ls", "impact", "delete", "correct", "migrate", "suspect", "undo",
        "abandon", "plan", "frontier", "repair", "status", "explain", "fsck", "adopt",
    )  # fmt: skip

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands, key=self.order.index)


@click.group(cls=OrderedGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="memorepair")
def main() -> None:
    """Withdraw at once, repair exactly: a versioned store of agent memory.

    `memorepair demo` shows the whole job in seconds. Every command takes --store (or MEMOREPAIR_STORE), --scope and
    --json. Exit code: 0 done, 1 refused or findings, 2 wrong usage.
    """


class Session:
    """One run of one command."""

    def __init__(self, path: str, scope: str, is_json: bool, creates: bool) -> None:
        self.path, self.scope, self.is_json, self.creates = path, scope, is_json, creates

    def open(self, max_cascade: str | None = None) -> Store:
        """Open the store; refuses to create a file or a scope unless that is what the command is for."""
        if self.path == ":memory:":
            raise InvalidRequestError("store ':memory:' ends with the command; expected a path")
        share = checked_share(max_cascade)
        try:
            return open_store(self.path, self.scope, create=self.creates, max_cascade=share)
        except MissingStoreError as error:
            raise MissingStoreError(
                f"{error}. 'memorepair init' makes one; --store, --scope or MEMOREPAIR_STORE name another"
            ) from None

    def show(self, value: Any, text: str) -> None:
        """Print a result: `value` as JSON, or `text`, whose foreign parts are escaped already."""
        if self.is_json:
            click.echo(json.dumps(plain(value)))
        else:
            click.echo(text)

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows what is being done, on a terminal's stderr only."""
        if not sys.stderr.isatty():
            yield lambda text: None
            return
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True, markup=False, highlight=False).status(Text(escaped(what))) as line:
            yield lambda text: line.update(Text(escaped(text)))

    def fail(self, error: Exception) -> NoReturn:
        """Tell an error and end with exit code 1."""
        told = str(error) if isinstance(error, MemorepairError) else _unforeseen(error)
        if self.is_json:
            body: dict[str, Any] = {"type": type(error).__name__, "message": told}
            if isinstance(error, CascadeTooLargeError) and isinstance(error.impact, Impact):
                body["confirm"] = error.impact.confirm
            if isinstance(error, RefusalError) and error.gap is not None:
                body["gap"] = plain(error.gap)
            click.echo(json.dumps({"error": body}))
        click.echo(f"error: {escaped(told)}", err=True)
        sys.exit(1)


def _unforeseen(error: Exception) -> str:
    """An error that is not one of memorepair's, in one line for people."""
    if isinstance(error, RecursionError):
        return "content or a file is nested too deep to be read"
    if isinstance(error, UnicodeError):
        return f"text that is not valid Unicode ({error})"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return f"{type(error).__name__}: {error}"


def plain(value: Any) -> Any:
    """A public value as plain JSON types."""
    return msgspec.to_builtins(value, enc_hook=str)


def shown(content: Any) -> str:
    """Content for a terminal: text line by line, anything else as JSON or repr, all escaped."""
    if isinstance(content, bytes):
        return repr(content)
    text = content if isinstance(content, str) else json.dumps(plain(content), ensure_ascii=False, indent=2)
    return "\n".join(escaped(line) for line in text.split("\n"))


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 artifact", "2 artifacts"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def checked_text(value: Any, what: str) -> None:
    """Refuse an argument that the shell did not give as UTF-8: wrong usage."""
    for text in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
            raise click.UsageError(f"{what}: expected UTF-8 text, got {text!r:.80}")


def checked_share(text: str | None) -> float | int | None:
    """--max-cascade as the store takes it: a share with a point, a count, or none."""
    if text is None:
        return DEFAULT_MAX_CASCADE
    if text.lower() == "none":
        return None
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise click.BadParameter(
            f"expected a share such as 0.2, a count, or none, got {text!r}", param_hint="--max-cascade"
        ) from None


def options(*decorators: Function) -> Function:
    """Several click decorators as one, in the order in which help shows them."""

    def apply(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


_common = options(
    click.option("--store", "path", envvar="MEMOREPAIR_STORE", default=DEFAULT_STORE, show_default=True,
                 metavar="PATH|URL", help="The store, a file or postgresql://...; also MEMOREPAIR_STORE."),
    click.option("--scope", default="default", show_default=True, help="Tenant, agent or project."),
    click.option("--json", "is_json", is_flag=True, help="Print one JSON value on stdout."),
)  # fmt: skip


def command(name: str, *decorators: Function, creates: bool = False) -> Callable[[Function], click.Command]:
    """Register a command of `memorepair`."""

    def register(function: Function) -> click.Command:
        @functools.wraps(function)
        def run(path: str, scope: str, is_json: bool, **arguments: Any) -> None:
            session = Session(path, scope, is_json, creates)
            try:
                for what, given in {"store": path, "scope": scope, **arguments}.items():
                    checked_text(given, what)
                code = function(session, **arguments)
                sys.stdout.flush()
            except BrokenPipeError:
                # The reader has gone; what is left to print, also at exit, goes nowhere.
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                sys.exit(1)
            except (MemorepairError, OSError, ValueError, RecursionError) as error:
                session.fail(error)
            sys.exit(code or 0)

        return main.command(name)(options(*decorators, _common)(run))

    return register
