"""Arguments that several commands take: content, roots, selectors, rules.

Contract: each pair of options and reader turns text from a shell into what the library takes; what cannot be meant is
wrong usage (exit code 2), what is refused by the library is a typed error (exit code 1).
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from memorepair.artifact import FORMS, KINDS
from memorepair.cli.command import options
from memorepair.errors import (
    InvalidAmountError,
    InvalidContentError,
    InvalidRequestError,
    UnknownKeyError,
    WithdrawnError,
)
from memorepair.keys import escaped
from memorepair.rules import Rules
from memorepair.selector import Selector, where
from memorepair.store import Store

_PATH = click.Path(exists=True, dir_okay=False, allow_dash=True)
KIND = click.Choice(KINDS)
FORM = click.Choice(sorted({form for forms in FORMS.values() for form in forms}))


def amount(parse: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A click callback that reads an option with the library's parser; what it refuses is wrong usage."""

    def read(context: click.Context, option: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else parse(text)
        except InvalidAmountError as error:
            # The library names its argument first; click names the option.
            raise click.BadParameter(escaped(str(error).partition(": ")[2]), context, option) from None

    return read


# -- content -----------------------------------------------------------------------------------------------------------

content_options = options(
    click.option("--file", "content_file", type=_PATH, help="Read content from a file (UTF-8 text, otherwise bytes)."),
    click.option("--content-json", metavar="JSON", help="Content as JSON instead of text."),
)


def read_content(content: str | None, content_file: str | None, content_json: str | None) -> Any:
    """Return the one content that was given."""
    if sum(given is not None for given in (content, content_file, content_json)) != 1:
        raise click.UsageError("Give content exactly once: CONTENT ('-' reads stdin), --file or --content-json.")
    if content_json is not None:
        return _json(content_json, "--content-json")
    if content is not None and content != "-":
        return content
    body = _bytes(content_file or "-")
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _bytes(path: str) -> bytes:
    with click.open_file(path, "rb") as stream:
        body: bytes = stream.read()
    return body


def _json(text: str | bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        problem = "nested too deep" if isinstance(error, RecursionError) else error
        raise InvalidContentError(f"{what}: not JSON ({problem}); nothing was changed") from None


replacement_options = options(
    click.argument("key", required=False),
    click.argument("content", required=False),
    content_options,
    click.option("--from", "batch_file", type=_PATH, help='Many at once: JSON lines {"key": ..., "content": ...}.'),
)


def read_replacements(
    key: str | None, content: str | None, content_file: str | None, content_json: str | None, batch_file: str | None
) -> dict[str, Any]:
    """Return new content by key, from one key or from a file of JSON lines."""
    if batch_file is None:
        if key is None:
            raise click.UsageError("Name a KEY with its new content, or --from a file.")
        return {key: read_content(content, content_file, content_json)}
    if any(given is not None for given in (key, content, content_file, content_json)):
        raise click.UsageError("--from brings keys and content; give neither beside it.")
    answer: dict[str, Any] = {}
    for number, line in enumerate(_bytes(batch_file).splitlines(), 1):
        if not line.strip():
            continue
        row = _json(line, f"line {number}")
        if not isinstance(row, dict) or set(row) != {"key", "content"} or not isinstance(row["key"], str):
            raise InvalidRequestError(
                f'line {number}: expected {{"key": text, "content": ...}} and nothing else; nothing was changed'
            )
        if row["key"] in answer:
            raise InvalidRequestError(f"line {number}: key {row['key']!r} comes twice; nothing was changed")
        answer[row["key"]] = row["content"]
    if not answer:
        raise InvalidRequestError("--from: expected at least one line, got none; nothing was changed")
    return answer


# -- choosing artifacts ------------------------------------------------------------------------------------------------

selector_options = options(
    click.option("--label", "labels", multiple=True, metavar="K=V", help="Only with this label (repeatable)."),
    click.option("--kind", type=KIND, help="Only this kind."),
    click.option("--prefix", default="", help="Only keys that begin so."),
    click.option("--operator", help='Only made by this operator, "name" or "name@version".'),
    click.option("--namespace", help="Only in this namespace."),
    click.option("--epochs", metavar="A:B", help="Only born at epochs A to B."),
)


def read_labels(labels: tuple[str, ...]) -> dict[str, str]:
    """Return --label k=v options as a dict."""
    answer = {}
    for label in labels:
        name, equals, value = label.partition("=")
        if not equals:
            raise click.BadParameter(f"expected K=V, got {label!r}", param_hint="--label")
        answer[name] = value
    return answer


def read_selector(
    labels: tuple[str, ...],
    kind: str | None,
    prefix: str,
    operator: str | None,
    namespace: str | None,
    epochs: str | None,
) -> Selector:
    """Return a selector; an empty one matches everything."""
    return Selector(
        labels=tuple(sorted(read_labels(labels).items())),
        kind=kind,
        prefix=prefix,
        namespace=namespace,
        operator=operator,
        epochs=None if epochs is None else _epochs(epochs),
    )


def _epochs(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and len(text) <= 40):
        raise click.BadParameter(f"expected two numbers such as 10:20, got {text!r}", param_hint="--epochs")
    return int(first), int(last)


def read_roots(keys: tuple[str, ...], **selection: Any) -> list[str] | Selector:
    """Return roots for delete, suspect or impact: keys, or a selector with at least one condition."""
    selector = read_selector(**selection)
    if bool(keys) == (selector != Selector()):
        raise click.UsageError(
            "Name KEYs, or choose by --label, --kind, --prefix, --operator, --namespace or --epochs."
        )
    if keys:
        return list(keys)
    return where(
        labels=dict(selector.labels),
        kind=selector.kind,
        prefix=selector.prefix,
        namespace=selector.namespace,
        operator=selector.operator,
        epochs=selector.epochs,
    )


def check_matches(store: Store, roots: list[str] | Selector, event_id: str | None) -> None:
    """Refuse a selector that takes nothing, unless the event is known and only gives its reply again."""
    if not isinstance(roots, Selector):
        return
    with store._reading() as view:
        is_known = event_id is not None and view.snapshot.event(event_id) is not None
        if not is_known and next(roots.keys(view), None) is None:
            raise UnknownKeyError("no visible artifact matches; nothing was changed. See 'memorepair ls'")


def split_version(name: str) -> tuple[str, int] | None:
    """Return key and version of `key@version`, or None when `name` does not have that form."""
    key, at, number = name.rpartition("@")
    if key and at and number.isascii() and number.isdigit() and len(number) <= 10:
        return key, int(number)
    return None


def unknown_version(store: Store, name: str, error: UnknownKeyError) -> UnknownKeyError:
    """The error for an unknown name: that of `key@version`, when the key is there, says what to ask instead."""
    named = split_version(name)
    if named is None:
        return error
    key, number = named
    try:
        versions = [info.version for info in store.history(key)]
    except UnknownKeyError:
        return error
    if number in versions:
        return UnknownKeyError(
            f"{name!r} is version {number} of {key!r}, and this takes a KEY; see 'ls --history {key}'", error.gap
        )
    return UnknownKeyError(f"{key!r} has no version {number}; see 'ls --history {key}'", error.gap)


def find_version(store: Store, name: str, *, is_withdrawn_fine: bool = False) -> int:
    """Return the version that `key` (its visible one) or `key@version` names."""
    try:
        return store.get(name).version
    except WithdrawnError as error:
        if is_withdrawn_fine:
            return int(error.gap.version)  # type: ignore[attr-defined]
        raise
    except UnknownKeyError as error:
        named = split_version(name)
        if named is None:
            raise
        key, number = named
        if number in {info.version for info in store.history(key)}:
            return number
        raise unknown_version(store, name, error) from None


# -- rules -------------------------------------------------------------------------------------------------------------

rules_option = click.option(
    "--rules", "rules_name", required=True, metavar="MODULE:NAME",
    help="Operators and validators: a Rules, or a function that returns one; the working directory is importable.",
)  # fmt: skip


def load_rules(text: str) -> Rules:
    """Import `package.module:name`. What cannot be used is wrong usage, and the message says what is missing."""
    module_name, colon, name = text.partition(":")
    if not (colon and module_name and name.isidentifier()):
        raise click.BadParameter(f"expected package.module:name, got {text!r}", param_hint="--rules")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module of the user may fail in any way while it is imported
        raise _unusable(text, f"module {module_name!r} cannot be imported ({_problem(error)})") from error
    if not hasattr(module, name):
        raise _unusable(text, f"module {module_name!r} has no {name!r}")
    found = getattr(module, name)
    if callable(found) and not isinstance(found, Rules):
        try:
            found = found()
        except (Exception, SystemExit) as error:  # as above
            raise _unusable(text, f"{name}() failed ({_problem(error)})") from error
    if not isinstance(found, Rules):
        raise _unusable(text, f"expected a memorepair.Rules or a function that returns one, got {type(found).__name__}")
    return found


def _unusable(text: str, problem: str) -> click.BadParameter:
    return click.BadParameter(escaped(f"{text}: {problem}"), param_hint="--rules")


def _problem(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
