"""memorepair: the repair layer for agent memory.

This file is the table of contents. A first look: `open` a store, `put` what the agent was told, `derive` what it made
from that; when a source is deleted, corrected or migrated, the whole cascade is withdrawn before the call returns;
`plan` and `repair` bring back what is worth it, validated.
"""

from memorepair._version import __version__
from memorepair.amounts import Cost
from memorepair.artifact import Artifact, Gap, VersionInfo
from memorepair.barrier import Mask
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
from memorepair.planner import Plan, PlanItem, TradeOff, frontier, plan
from memorepair.report import Outcome, Report
from memorepair.rules import Draft, Job, Rules, Verdict, failed, passed
from memorepair.selector import Selector, where
from memorepair.sqlite import SqliteBackend
from memorepair.status import Status
from memorepair.store import Store
from memorepair.store import open_store as open

__all__ = [
    "Artifact",
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
