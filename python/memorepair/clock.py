"""The only module that reads a clock.

Contract: `wall_micros` dates rows and expires versions and orders nothing (epochs do); `monotonic_seconds` measures
deadlines and leases. A store takes another wall clock by `open(..., clock=)`.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from memorepair.errors import InvalidRequestError


def wall_micros() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def monotonic_seconds() -> float:
    """Seconds on a clock that never jumps."""
    return time.monotonic()


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LAST = datetime(9999, 1, 1, tzinfo=UTC)  # a year before the end, so that any time zone can show it


def checked_instant(instant: datetime | None) -> int | None:
    """Return an aware datetime as microseconds since 1970 UTC, None as None."""
    if instant is None:
        return None
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise InvalidRequestError(f"expires_at: expected an aware datetime or None, got {instant!r}; give it a tzinfo")
    if not EPOCH <= instant < LAST:
        raise InvalidRequestError(f"expires_at: expected a time from 1970 to 9998, got {instant}; pass None for never")
    return (instant - EPOCH) // MICROSECOND


def as_datetime(micros: int | None) -> datetime | None:
    """The inverse of `checked_instant`."""
    return None if micros is None else EPOCH + micros * MICROSECOND
