"""Every error that memorepair raises on purpose, in one tree.

Contract: each class derives from `MemorepairError` and from the built-in error a caller would expect,
so `except mr.MemorepairError` catches all and `except KeyError` still works.
Messages say the thing, what was expected, what came, and what to do next.
Invariant: this module imports nothing; the C++ bindings raise these classes too.
"""

from __future__ import annotations


class MemorepairError(Exception):
    """Root of every error raised on purpose."""

    def __str__(self) -> str:
        # KeyError would print repr(message); a message is for people.
        return str(self.args[0]) if self.args else self.__class__.__name__


# -- input that can never be right -------------------------------------------------------------------------------------


class InvalidKeyError(MemorepairError, ValueError):
    """A key, namespace, label, event id or scope name breaks the rules of names."""


class InvalidContentError(MemorepairError, ValueError):
    """Content is neither text, bytes nor JSON, or cannot be stored exactly."""


class InvalidAmountError(MemorepairError, ValueError):
    """A value, cost, weight, budget or cost weight is not an exact, finite, non-negative number."""


class MixedUnitsError(MemorepairError, ValueError):
    """Costs in different units met where one unit is needed."""


class InvalidRequestError(MemorepairError, ValueError):
    """Arguments that contradict each other or that a call does not accept."""


# -- kernels (raised from C++) -----------------------------------------------------------------------------------------


class InvalidGraphError(MemorepairError, ValueError):
    """Edges, arrays or masks that do not describe one graph."""


class NodeRangeError(MemorepairError, IndexError):
    """A node id outside its graph or mask."""


class WeightOverflowError(MemorepairError, OverflowError):
    """The sum of absolute weights exceeds 2**62."""


class CapacityError(MemorepairError, OverflowError):
    """A counter or id space is used up; nothing was changed."""


class InvalidMaskError(MemorepairError, ValueError):
    """Bytes that are not a serialised mask, or a damaged one."""


# -- refusals of a read ------------------------------------------------------------------------------------------------


class RefusalError(MemorepairError, LookupError):
    """A read that was refused; `gap` tells why and what is left."""

    def __init__(self, message: str, gap: object = None) -> None:
        super().__init__(message)
        self.gap = gap


class UnknownKeyError(RefusalError, KeyError):
    """No such key, version or event in this scope."""


class WithdrawnError(RefusalError):
    """The artifact was withdrawn by an event and has no validated successor yet."""


class ExpiredError(RefusalError):
    """The artifact's time is over."""


class ErasedError(RefusalError):
    """The artifact's content was erased or pruned."""


# -- refusals of a write -----------------------------------------------------------------------------------------------


class StaleDependencyError(MemorepairError):
    """A parent named by a write is withdrawn, staged, expired or unknown."""


class StaleBaseError(MemorepairError):
    """A write with `base=` did not see the present head."""


class EventConflictError(MemorepairError):
    """An event id came again with another request."""


class CascadeTooLargeError(MemorepairError):
    """The guard: an event would withdraw more than `max_cascade`; nothing was changed."""

    def __init__(self, message: str, impact: object = None) -> None:
        super().__init__(message)
        self.impact = impact


class PlanError(MemorepairError):
    """A plan that cannot be used: its certificate fails, or it belongs to another store."""


# -- operators and validators ------------------------------------------------------------------------------------------


class OperatorError(MemorepairError):
    """An operator raised, returned no draft, or missed its deadline."""


class MissingExtraError(MemorepairError, ImportError):
    """An optional dependency is not installed; the message holds the pip command."""


# -- the store itself --------------------------------------------------------------------------------------------------


class StoreError(MemorepairError):
    """The store cannot answer."""


class MissingStoreError(StoreError, FileNotFoundError):
    """No such file, or no such scope in it, and `create=False` forbids making one."""


class StoreBusyError(StoreError, TimeoutError):
    """Another process held the write lock for longer than the time-out; nothing was changed."""


class StoreUnreachableError(StoreError, ConnectionError):
    """The database server cannot be reached, or the connection to it was lost; nothing was changed."""


class StoreReadOnlyError(StoreError, PermissionError):
    """The store's file, folder or database cannot be written; nothing was changed."""


class StoreFullError(StoreError, OSError):
    """The disk or the store's page limit is full; nothing was changed."""


class DamagedStoreError(StoreError):
    """The file is no memorepair store or is damaged: no answer is given."""


class NewerSchemaError(StoreError):
    """The store was written by a newer memorepair."""


class ClosedStoreError(StoreError):
    """The store was closed, or is used in a process that only inherited it by fork."""


class UnknownOutcomeError(StoreError):
    """A commit failed in a way that leaves its outcome unknown; ask again with the same event id."""
