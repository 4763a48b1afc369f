"""Validators that most users need; register them with `rules.validator(...)`.

Contract: each function here returns a validator `(job, draft) -> Verdict` that changes nothing.
Source: MemoRepair, the composed validation suite (schema alone lets most stale content pass).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memorepair.errors import MissingExtraError
from memorepair.rules import Draft, Job, ValidatorFunction, Verdict, failed, passed


def text_of(content: Any) -> str:
    """Content as text to search in: text as it is, bytes as latin-1, JSON without escapes."""
    if isinstance(content, str):
        return content
    if isinstance(content, (bytes, bytearray)):
        return bytes(content).decode("latin-1")
    return msgspec.json.encode(content).decode()


def not_empty() -> ValidatorFunction:
    """Refuse drafts that hold nothing: empty or blank text, empty bytes, an empty list or object."""

    def check(job: Job, draft: Draft) -> Verdict:
        content = draft.content.strip() if isinstance(draft.content, str) else draft.content
        if content in ("", b"", [], {}):
            return failed("the draft is empty")
        return passed()

    return check


def json_schema(schema: dict[str, Any]) -> ValidatorFunction:
    """Refuse drafts that do not match a JSON schema. Needs the extra `schema`."""
    try:
        import jsonschema
    except ImportError as error:
        raise MissingExtraError(
            "json_schema: jsonschema is not installed; run: pip install 'memorepair[schema]'"
        ) from error
    jsonschema.validators.validator_for(schema).check_schema(schema)
    checker = jsonschema.validators.validator_for(schema)(schema)

    def check(job: Job, draft: Draft) -> Verdict:
        problem = next(iter(checker.iter_errors(draft.content)), None)
        if problem is None:
            return passed()
        place = "/".join(map(str, problem.absolute_path)) or "the draft"
        return failed(f"schema: {place}: {problem.message:.200}")

    return check


def no_retired_content(markers: Callable[[Job], Iterable[str]]) -> ValidatorFunction:
    """
    Refuse drafts that still hold retired text.

    `markers(job)` returns strings that only the old content of `job.roots` held; each is searched for in the draft.
    """

    def check(job: Job, draft: Draft) -> Verdict:
        text = text_of(draft.content)
        for marker in markers(job):
            if not isinstance(marker, str) or not marker:
                return failed(f"no_retired_content: expected non-empty marker strings, got {marker!r}")
            if marker in text:
                return failed(f"the draft still holds retired content: {marker[:80]!r}")
        return passed()

    return check
