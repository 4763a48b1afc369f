"""Reading the rows of another store: JSON lines or CSV, every cell checked.

Contract: `read_rows` returns every row of a file or raises InvalidRequestError with the line number of the first bad
one; so does a file that cannot be read. Text is data: nothing is normalised, guessed from a file's name, or executed.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from memorepair.artifact import KINDS
from memorepair.content import External, encode
from memorepair.errors import InvalidRequestError, MemorepairError
from memorepair.keys import checked_labels, checked_name, checked_title


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Which column holds what. `separator` splits a parents column that is no list; `labels.x` is the label x."""

    id: str = "id"
    digest: str = "digest"
    kind: str = "kind"
    parents: str = "parents"
    title: str = "title"
    uri: str = "uri"
    namespace: str = "namespace"
    labels: str = "labels"
    separator: str = ";"

    def __post_init__(self) -> None:
        for name, value in msgspec.structs.asdict(self).items():
            if not isinstance(value, str) or not value:
                raise InvalidRequestError(f"columns: {name}: expected text that is not empty, got {value!r}")


class Row(msgspec.Struct, frozen=True):
    """One checked line."""

    line: int
    key: str
    content: External
    kind: str
    parents: tuple[str, ...]
    title: str | None
    namespace: str
    labels: dict[str, str]


def read_rows(path: str | os.PathLike[str], file_format: str, columns: Columns) -> list[Row]:
    """Return every row of a file, checked. Raises InvalidRequestError, with the line number where there is one."""
    readers = {"jsonl": _json_lines, "csv": _csv_lines}
    if file_format not in readers:
        raise InvalidRequestError(f"file_format: expected 'jsonl' or 'csv', got {file_format!r}")
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidRequestError(f"path: expected a path, got {type(path).__name__}")
    try:
        return _checked(readers[file_format](path), columns)
    except MemorepairError:
        raise
    except OSError as error:
        raise InvalidRequestError(f"{os.fspath(path)!r}: {error.strerror or error}; nothing was changed") from None
    except ValueError as error:  # a name that no file can have
        raise InvalidRequestError(f"path {os.fspath(path)!r}: {error}; nothing was changed") from None


def _checked(records: Iterator[tuple[int, Mapping[str, Any]]], columns: Columns) -> list[Row]:
    rows: list[Row] = []
    lines: dict[str, int] = {}
    for number, record in records:
        try:
            row = _row(number, record, columns)
        except (MemorepairError, ValueError, RecursionError) as error:
            raise InvalidRequestError(f"line {number}: {_problem(error)}; nothing was changed") from None
        if row.key in lines:
            raise InvalidRequestError(
                f"line {number}: id {row.key!r} came on line {lines[row.key]} already; nothing was changed"
            )
        lines[row.key] = number
        rows.append(row)
    return rows


def _problem(error: Exception) -> str:
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def _json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                record = msgspec.json.decode(line)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise InvalidRequestError(f"line {number}: not JSON ({_problem(error)}); nothing was changed") from None
            if not isinstance(record, dict):
                raise InvalidRequestError(f"line {number}: expected a JSON object; nothing was changed")
            yield number, record


def _csv_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream, strict=True)
        try:
            for record in reader:
                if None in record or None in record.values():
                    raise InvalidRequestError(
                        f"line {reader.line_num}: expected {len(reader.fieldnames or ())} fields as in the header; "
                        "nothing was changed"
                    )
                yield reader.line_num, record
        except (csv.Error, UnicodeError) as error:
            raise InvalidRequestError(f"line {reader.line_num + 1}: not CSV ({error}); nothing was changed") from None


def _row(number: int, record: Mapping[str, Any], columns: Columns) -> Row:
    for name in (columns.id, columns.digest):
        if record.get(name) in (None, ""):
            raise InvalidRequestError(f"column {name!r}: expected a value, got none")
    parents = tuple(dict.fromkeys(_parents(record.get(columns.parents), columns)))
    kind = _text(record, columns.kind) or ("cache" if parents else "record")
    if kind not in KINDS:
        raise InvalidRequestError(f"column {columns.kind!r}: expected one of {', '.join(KINDS)}, got {kind!r}")
    digest = _text(record, columns.digest) or ""
    content = External(digest, _text(record, columns.uri) or "")
    encode(content)
    namespace = _text(record, columns.namespace) or ""
    return Row(
        line=number,
        key=checked_name(_text(record, columns.id), "id"),
        content=content,
        kind=kind,
        parents=parents,
        title=checked_title(_text(record, columns.title) or None),
        namespace=checked_name(namespace, "namespace") if namespace else "",
        labels=checked_labels(_labels(record, columns)),
    )


def _text(record: Mapping[str, Any], column: str) -> str | None:
    """A scalar cell as text; an integer id is the same id as its digits."""
    value = record.get(column)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidRequestError(f"column {column!r}: expected text, got {type(value).__name__}")


def _parents(cell: Any, columns: Columns) -> list[str]:
    what = f"column {columns.parents!r}"
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = msgspec.json.decode(cell)
        except msgspec.MsgspecError as error:
            raise InvalidRequestError(f"{what}: not a JSON list ({error})") from None
    if isinstance(cell, str):
        cell = [part for part in map(str.strip, cell.split(columns.separator)) if part]
    if cell is None:
        return []
    if not isinstance(cell, list):
        raise InvalidRequestError(f"{what}: expected a list or text, got {type(cell).__name__}")
    return [checked_name(_text({what: part}, what), "parent id") for part in cell]


def _labels(record: Mapping[str, Any], columns: Columns) -> dict[str, str]:
    cell = record.get(columns.labels)
    if isinstance(cell, str):
        try:
            cell = msgspec.json.decode(cell) if cell.strip() else None
        except msgspec.MsgspecError as error:
            raise InvalidRequestError(f"column {columns.labels!r}: expected a JSON object ({error})") from None
    if cell is not None and not isinstance(cell, dict):
        raise InvalidRequestError(f"column {columns.labels!r}: expected an object, got {type(cell).__name__}")
    dotted = {name: value for name, value in record.items() if name.startswith(f"{columns.labels}.")}
    found = {**(cell or {}), **{name[len(columns.labels) + 1 :]: value for name, value in dotted.items()}}
    return {name: text for name in found if (text := _text(found, name))}
