"""The store for async code: the same calls, each run in a thread.

Contract: `await store.aio.get(key)` is `store.get(key)` off the event loop. The core stays synchronous.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorepair.store import Store

CALLS = frozenset(
    [
        "put",
        "derive",
        "add_parent",
        "relate",
        "get",
        "get_many",
        "visible",
        "filter",
        "find",
        "history",
        "similar",
        "delete",
        "suspect",
        "correct",
        "migrate",
        "undo",
        "abandon",
        "impact",
        "events",
        "explain",
        "status",
        "fsck",
        "close",
    ]
)


class AsyncStore:
    """Every call of a Store that does not yield, as a coroutine."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name not in CALLS:
            raise AttributeError(f"store.aio has no call {name!r}; expected one of {', '.join(sorted(CALLS))}")
        call = getattr(self._store, name)

        def in_thread(*values: Any, **named: Any) -> Awaitable[Any]:
            return asyncio.to_thread(call, *values, **named)

        return in_thread
