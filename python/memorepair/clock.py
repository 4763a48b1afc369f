"""The only module that reads a clock.

Contract: `wall_micros` dates rows and expires versions and orders nothing (epochs do); `monotonic_seconds` measures
deadlines and leases. A store takes another wall clock by `open(..., clock=)`.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from memorepair.errors import InvalidRequestError


def wall_micros() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def monotonic_seconds() -> float:
    """Seconds on a clock that never jumps."""
    return time.monotonic()


def checked_instant(instant: datetime | None) -> int | None:
    """Return an aware datetime as microseconds since 1970 UTC, None as None."""
    if instant is None:
        return None
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise InvalidRequestError(f"expires_at: expected an aware datetime or None, got {instant!r}; give it a tzinfo")
    return int((instant - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


def as_datetime(micros: int | None) -> datetime | None:
    """The inverse of `checked_instant`."""
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, tz=UTC)
