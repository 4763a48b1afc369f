"""What an artifact holds: text, bytes, JSON, or a reference to content kept elsewhere.

Contract: `encode` either stores content exactly (it comes back equal) or raises InvalidContentError; the digest is
sha256 over codec and body, so equal content has equal digests in every process. Nothing here executes what it reads.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from memorepair.errors import InvalidContentError

MAX_CONTENT_BYTES = 2**28
MAX_EXTERNAL_CHARS = 2048
_json = msgspec.json.Encoder(order="deterministic")


class External(msgspec.Struct, frozen=True):
    """Content that stays where it is: a digest (hex sha256 or any text the owner compares) and a locator."""

    digest: str
    uri: str = ""


class Body(msgspec.Struct, frozen=True, gc=False):
    """Encoded content: `state` is inline, external, pruned or erased; `codec` is text, bytes, json or external."""

    state: str
    codec: str
    body: bytes
    digest: bytes


def encode(content: object) -> Body:
    """Encode content for storage; raises InvalidContentError when it would not come back equal."""
    if isinstance(content, str):
        try:
            codec, body = "text", content.encode()
        except UnicodeEncodeError as error:
            raise InvalidContentError(
                f"content: lone surrogate at position {error.start}; expected text that UTF-8 can hold"
            ) from None
    elif isinstance(content, (bytes, bytearray, memoryview)):
        codec, body = "bytes", bytes(content)
    elif isinstance(content, External):
        _checked_external(content)
        return Body("external", "external", content.uri.encode(), content.digest.encode())
    else:
        codec, body = "json", _encode_json(content)
    if len(body) > MAX_CONTENT_BYTES:
        raise InvalidContentError(
            f"content: expected at most {MAX_CONTENT_BYTES} bytes, got {len(body)}; keep it elsewhere and pass External"
        )
    return Body("inline", codec, body, digest_of(codec, body))


def digest_of(codec: str, body: bytes) -> bytes:
    """Return the sha256 that names this content."""
    return hashlib.sha256(codec.encode() + b"\0" + body).digest()


def decode(codec: str, body: bytes, digest: bytes) -> Any:
    """Return the content that `encode` took, as a fresh object."""
    if codec == "text":
        return body.decode()
    if codec == "bytes":
        return body
    if codec == "external":
        return External(digest.decode(), body.decode())
    return msgspec.json.decode(body)


def _checked_external(content: External) -> None:
    for what, text in (("digest", content.digest), ("uri", content.uri)):
        if not isinstance(text, str) or not text.isprintable() or len(text) > MAX_EXTERNAL_CHARS:
            raise InvalidContentError(
                f"External {what}: expected up to {MAX_EXTERNAL_CHARS} printable characters, got {text!r:.80}"
            )
    if not content.digest:
        raise InvalidContentError("External: expected a digest, got an empty one; pass any text that changes with it")


def _encode_json(content: object) -> bytes:
    if content is None:
        raise InvalidContentError("content: expected text, bytes or JSON, got None; store '' or {} if it is empty")
    try:
        body = _json.encode(content)
        back = msgspec.json.decode(body)
    except (TypeError, ValueError, RecursionError, UnicodeError, msgspec.MsgspecError) as error:
        raise InvalidContentError(f"content of type {type(content).__name__}: not JSON ({error})") from None
    if back != content:
        raise InvalidContentError(
            f"content of type {type(content).__name__}: JSON would not give it back equal; "
            "expected dicts with str keys, lists, str, bool, None and finite numbers"
        )
    return body
