"""memorepair: the repair layer for agent memory.

This file is the table of contents. A first look: `open` a store, `put` what the agent was told, `derive` what it made
from that; when a source is deleted, corrected or migrated, the whole cascade is withdrawn before the call returns;
`plan` and `repair` bring back what is worth it, validated.

What is worth it: `plan` chooses at a cost weight (exact) or within a budget (a certified point of the frontier and a
greedy fill, with a bound); `frontier` returns a `TradeOff`, the choice at every cost weight, one `TradeOffPoint` each.
Amounts in these are integers of micro-units, 1_000_000 for one token or one unit of value, so that everything after the
first rounding is exact; `Cost.amount` is the amount as a fraction. Cost weights are exact fractions.
"""

from memorepair._version import __version__
from memorepair.amounts import Cost
from memorepair.artifact import Artifact, Gap, VersionInfo
from memorepair.barrier import Mask
from memorepair.candidates import Candidate
from memorepair.content import External
from memorepair.engine import repair
from memorepair.errors import (
    CapacityError,
    CascadeTooLargeError,
    ClosedStoreError,
    DamagedStoreError,
    ErasedError,
    EventConflictError,
    ExpiredError,
    InvalidAmountError,
    InvalidContentError,
    InvalidGraphError,
    InvalidKeyError,
    InvalidMaskError,
    InvalidRequestError,
    MemorepairError,
    MissingExtraError,
    MissingStoreError,
    MixedUnitsError,
    NewerSchemaError,
    NodeRangeError,
    OperatorError,
    PlanError,
    RefusalError,
    StaleBaseError,
    StaleDependencyError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
    UnknownKeyError,
    UnknownOutcomeError,
    WeightOverflowError,
    WithdrawnError,
)
from memorepair.events import Event
from memorepair.explain import Explanation
from memorepair.fsck import Finding
from memorepair.graph import ProvenanceGraph
from memorepair.impact import Impact
from memorepair.memory import MemoryBackend
from memorepair.planner import Plan, PlanItem, TradeOff, TradeOffPoint, frontier, plan
from memorepair.report import Outcome, Report
from memorepair.rules import Draft, Job, Rules, Verdict, failed, passed
from memorepair.selector import Selector, where
from memorepair.sqlite import SqliteBackend
from memorepair.status import Status
from memorepair.store import Store
from memorepair.store import open_store as open

__all__ = [
    "Artifact",
    "Candidate",
    "CapacityError",
    "CascadeTooLargeError",
    "ClosedStoreError",
    "Cost",
    "DamagedStoreError",
    "Draft",
    "ErasedError",
    "Event",
    "EventConflictError",
    "ExpiredError",
    "Explanation",
    "External",
    "Finding",
    "Gap",
    "Impact",
    "InvalidAmountError",
    "InvalidContentError",
    "InvalidGraphError",
    "InvalidKeyError",
    "InvalidMaskError",
    "InvalidRequestError",
    "Job",
    "Mask",
    "MemorepairError",
    "MemoryBackend",
    "MissingExtraError",
    "MissingStoreError",
    "MixedUnitsError",
    "NewerSchemaError",
    "NodeRangeError",
    "OperatorError",
    "Outcome",
    "Plan",
    "PlanError",
    "PlanItem",
    "ProvenanceGraph",
    "RefusalError",
    "Report",
    "Rules",
    "Selector",
    "SqliteBackend",
    "StaleBaseError",
    "StaleDependencyError",
    "Status",
    "Store",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreUnreachableError",
    "TradeOff",
    "TradeOffPoint",
    "UnknownKeyError",
    "UnknownOutcomeError",
    "Verdict",
    "VersionInfo",
    "WeightOverflowError",
    "WithdrawnError",
    "__version__",
    "failed",
    "frontier",
    "open",
    "passed",
    "plan",
    "repair",
    "where",
]
