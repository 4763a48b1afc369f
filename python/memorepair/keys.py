"""Names: keys, namespaces, labels, event ids, scopes, titles.

Contract: a name is 1 to 512 UTF-8 bytes, NFC, without control, surrogate or bidi-control code points and without
outer white space. Whatever breaks this is refused with the code point named; nothing is ever normalised silently,
so two spellings of one glyph can never become two artifacts, and no text can reorder a terminal or a log.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from memorepair.errors import InvalidKeyError, InvalidRequestError, UnknownKeyError

MAX_NAME_BYTES = 512
MAX_TITLE_BYTES = 4096
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def checked_name(text: object, what: str = "key") -> str:
    """Return `text` when it is a legal name; raise InvalidKeyError naming what is wrong otherwise."""
    if not isinstance(text, str):
        raise InvalidKeyError(f"{what}: expected a str, got {type(text).__name__}; names are text")
    if text.isascii() and text.isprintable() and 0 < len(text) <= MAX_NAME_BYTES and text[0] != " " != text[-1]:
        return text
    checked_code_points(text, what)
    if text != text.strip():
        raise InvalidKeyError(f"{what} {text!r}: expected no outer white space; strip it first")
    size = len(text.encode())
    if not 1 <= size <= MAX_NAME_BYTES:
        raise InvalidKeyError(f"{what}: expected 1 to {MAX_NAME_BYTES} UTF-8 bytes, got {size}; shorten or hash it")
    return text


def checked_keys(keys: object, what: str = "keys") -> list[str]:
    """Return several keys as a list; one text is refused, which would be read letter by letter."""
    if isinstance(keys, str):
        raise InvalidRequestError(f"{what}: expected several keys such as [{keys!r:.80}], got the text {keys!r:.80}")
    if not isinstance(keys, Iterable):
        raise InvalidRequestError(f"{what}: expected several keys such as ['summary/refunds'], got {keys!r:.80}")
    return [checked_name(key) for key in keys]


def not_among(key: object, number: int, where: str) -> UnknownKeyError:
    """The error for a key that a plan or report does not hold."""
    return UnknownKeyError(f"{key!r:.80} is not among the {number} candidate{'s' * (number != 1)} of this {where}")


def checked_title(text: object) -> str | None:
    """Return a title (or None): the same code points as a name, up to 4096 bytes, may be empty."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidKeyError(f"title: expected a str or None, got {type(text).__name__}")
    checked_code_points(text, "title")
    if len(text.encode()) > MAX_TITLE_BYTES:
        raise InvalidKeyError(f"title: expected at most {MAX_TITLE_BYTES} UTF-8 bytes, got {len(text.encode())}")
    return text


def checked_reason(text: object) -> str:
    """Return a reason: any text that UTF-8 can hold, up to 4096 bytes, may be empty."""
    try:
        size = len(text.encode()) if isinstance(text, str) else -1
    except UnicodeEncodeError:
        size = -1
    if not isinstance(text, str) or not 0 <= size <= MAX_TITLE_BYTES:
        raise InvalidRequestError(f"reason: expected text of at most {MAX_TITLE_BYTES} UTF-8 bytes, got {text!r:.80}")
    return text


def checked_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Return labels as a dict in name order; both sides must be legal names."""
    if not labels:
        return {}
    if not isinstance(labels, Mapping):
        raise InvalidKeyError(f"labels: expected a mapping of str to str, got {type(labels).__name__}")
    pairs = {checked_name(name, "label"): checked_name(value, f"label {name!r}") for name, value in labels.items()}
    return dict(sorted(pairs.items()))


def checked_code_points(text: str, what: str) -> None:
    """Raise InvalidKeyError unless `text` is a str without forbidden code points, in NFC."""
    if not isinstance(text, str):
        raise InvalidKeyError(f"{what}: expected a str, got {type(text).__name__}")
    for position, char in enumerate(text):
        category = unicodedata.category(char)
        if category in ("Cc", "Cs") or char in _BIDI_CONTROLS:
            kind = {"Cc": "control", "Cs": "surrogate"}.get(category, "bidi-control")
            raise InvalidKeyError(
                f"{what}: {kind} code point U+{ord(char):04X} at position {position}; expected none, remove it"
            )
    if not unicodedata.is_normalized("NFC", text):
        raise InvalidKeyError(f"{what} {text!r}: expected NFC; the NFC form is {unicodedata.normalize('NFC', text)!r}")


def escaped(text: str) -> str:
    """Return `text` safe for a terminal or a log line: control and bidi code points as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() and char not in _BIDI_CONTROLS
        else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )
