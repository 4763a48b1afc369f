"""Exact kernels over influence graphs: reach, masks, order and maximum closure (C++).

Id arrays are 1-D C-contiguous uint32, weights int64; nothing is converted, a wrong dtype is a TypeError.
Arrays that come back are read-only. Every kernel runs without the GIL.
"""

from fractions import Fraction
from mmap import mmap
from typing import SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt

_Bytes: TypeAlias = bytes | bytearray | memoryview | mmap | npt.NDArray[np.uint8]
_Ids: TypeAlias = npt.NDArray[np.uint32]
_Weights: TypeAlias = npt.NDArray[np.int64]

@final
class Mask:
    """An immutable set of node ids below `size`. Binary operators zero-extend to the larger size."""

    def __init__(self, size: SupportsIndex = 0) -> None: ...
    @staticmethod
    def from_ids(ids: _Ids, size: SupportsIndex) -> Mask:
        """Any order, repeats allowed. Raises NodeRangeError, CapacityError."""

    @staticmethod
    def from_bytes(data: bytes) -> Mask:
        """What to_bytes() wrote; InvalidMaskError for anything else."""

    @property
    def size(self) -> int: ...
    def count(self) -> int: ...
    def ids(self) -> _Ids:
        """Sorted."""

    def test(self, ids: _Ids) -> npt.NDArray[np.bool_]:
        """For each id, is it set? Raises NodeRangeError."""

    def filter(self, ids: _Ids) -> _Ids:
        """The ids that are NOT set, in order, repeats kept. Raises NodeRangeError."""

    def resized(self, size: SupportsIndex) -> Mask:
        """The same ids below another size; NodeRangeError if one does not fit."""

    def to_bytes(self) -> bytes:
        """Compact and canonical: equal masks give equal bytes."""

    def __or__(self, other: Mask, /) -> Mask: ...
    def __and__(self, other: Mask, /) -> Mask: ...
    def __sub__(self, other: Mask, /) -> Mask: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __bool__(self) -> bool: ...
    def __contains__(self, id: SupportsIndex) -> bool:
        """As in a set, an id past the size is not in it; a negative one raises NodeRangeError."""

    __hash__ = None  # type: ignore[assignment]

@final
class Certificate:
    """A flow (from target to source of each edge listed) that proves a closure optimal and smallest."""

    @property
    def sources(self) -> _Ids: ...
    @property
    def targets(self) -> _Ids: ...
    @property
    def flow(self) -> _Weights:
        """Positive, one per edge listed."""

    @property
    def absorbed(self) -> _Weights:
        """One per node of the graph, at most max(-weight, 0)."""

@final
class Closure:
    """The smallest maximum-weight predecessor closure: a set that holds, with each node, its parents."""

    @property
    def selected(self) -> Mask:
        """Its nodes."""

    @property
    def objective(self) -> int:
        """The sum of their weights."""

    @property
    def certificate(self) -> Certificate: ...
    def verify(self) -> bool:
        """Check it by code that shares nothing with the solver. InvalidGraphError when the graph has grown since."""

@final
class FrontierCertificate:
    """One flow (from target to source of each edge listed) that proves every point of a frontier.

    flow = flow_high * 2**64 + flow_low, positive, in units of value times the denominator of the breakpoint at which
    both ends enter (1 for what is free or never selected).
    """

    @property
    def sources(self) -> _Ids: ...
    @property
    def targets(self) -> _Ids: ...
    @property
    def flow_high(self) -> _Weights: ...
    @property
    def flow_low(self) -> npt.NDArray[np.uint64]: ...

@final
class FrontierPoint:
    """The smallest optimum of value - cost_weight x cost."""

    @property
    def selected(self) -> Mask:
        """Its nodes."""

    @property
    def value(self) -> int:
        """The sum of their values, in the units that frontier() was given."""

    @property
    def cost(self) -> int:
        """The sum of their costs, likewise."""

    @property
    def cost_weight(self) -> Fraction | None:
        """The weight asked for, when at() was.

        From point(index): the smallest one that gives the point, 0 for the last; None for point(0), which is what is
        free and is worth having at any weight.
        """

@final
class BudgetChoice:
    """What a budget buys: a point of the frontier, and a greedy fill that is not certified.

    It may be worth less than the best selection within the budget; `bound` tells by how much at most.
    """

    @property
    def point(self) -> int:
        """The dearest point within the budget, or 0 where filling up from what is free is worth more."""

    @property
    def certified(self) -> Mask:
        """That point's closure."""

    @property
    def fill(self) -> _Ids:
        """What was added to it, in order: nodes whose parents are in by then."""

    @property
    def selected(self) -> Mask:
        """Both together."""

    @property
    def value(self) -> int:
        """The sum of values of all that is selected."""

    @property
    def cost(self) -> int:
        """The sum of their costs, within the budget."""

    @property
    def bound(self) -> Fraction:
        """No selection within the budget is worth more (the concave hull of the frontier)."""

@final
class Frontier:
    """The smallest optimum of value - x cost for every x >= 0: points from the largest x down, each within the next.

    Point 0 is what is worth having at any x; point i is the answer from breakpoints[i] (0 for the last) up to, and
    without, breakpoints[i - 1]. len() is the number of points, one more than there are breakpoints.
    """

    @property
    def breakpoints(self) -> list[Fraction]:
        """Strictly decreasing, positive; a new list each time."""

    @property
    def numerators(self) -> _Weights:
        """Of the breakpoints, reduced."""

    @property
    def denominators(self) -> _Weights: ...
    @property
    def values(self) -> _Weights:
        """Per point, the value of what is selected."""

    @property
    def costs(self) -> _Weights:
        """Per point."""

    @property
    def sizes(self) -> _Weights:
        """Per point, the number of nodes."""

    @property
    def piece(self) -> _Ids:
        """Per node the first point that holds it; 2**32 - 1 for a node that none holds."""

    @property
    def free(self) -> Mask:
        """Point 0: it costs nothing."""

    @property
    def certificate(self) -> FrontierCertificate: ...
    def point(self, index: SupportsIndex) -> FrontierPoint:
        """Raises NodeRangeError."""

    def at(self, cost_weight: int | Fraction) -> FrontierPoint:
        """The smallest optimum at a cost weight; InvalidAmountError below 0."""

    def for_budget(self, budget: SupportsIndex, tie_order: _Ids | None = None) -> BudgetChoice:
        """The dearest point within the budget, filled up by value for cost.

        Single nodes whose parents are in come first, then nodes with up to 63 ancestors they lack. Among equals the
        node with the smaller entry of `tie_order` (one per node) goes first, else the smaller id. Never worth less
        than filling up from nothing, nor than any one node with its ancestors (up to 63), where that fits. Groups that
        require one another count as one node. Raises InvalidAmountError below 0, InvalidGraphError when the graph has
        grown.
        """

    def verify(self) -> bool:
        """Check it by code that shares nothing with the solver. InvalidGraphError when the graph has grown since."""

    def __len__(self) -> int: ...

@final
class ProvenanceGraph:
    """An influence graph that only grows: an edge source -> target means "source influences target".

    Thread-safe: reads run together, append() runs alone.
    """

    @staticmethod
    def from_edges(num_nodes: SupportsIndex, sources: _Ids, targets: _Ids) -> ProvenanceGraph:
        """Self edges are dropped, duplicates merged. Raises NodeRangeError, InvalidGraphError, CapacityError."""

    @staticmethod
    def from_bytes(data: _Bytes) -> ProvenanceGraph:
        """What to_bytes() wrote, loaded without being built again. Raises InvalidGraphError for damaged bytes.

        Keeps `bytes` and uses them in place; copies any other buffer. Bytes made to deceive may pass: then answers mean
        nothing, and validate() tells.
        """

    def to_bytes(self) -> bytes:
        """A snapshot: the same graph gives the same bytes, however it grew."""

    def validate(self) -> None:
        """Prove that lists are sorted and parents and children hold the same edges, else InvalidGraphError."""

    @property
    def num_nodes(self) -> int: ...
    @property
    def num_edges(self) -> int: ...
    def append(self, num_new_nodes: SupportsIndex, sources: _Ids, targets: _Ids) -> None:
        """Add nodes with the next ids, then edges between any nodes; amortised O(what is appended).

        An append that raises has changed nothing.
        """

    def reach(self, roots: _Ids) -> Mask:
        """Everything the roots influence, the roots included."""

    def ancestors(self, roots: _Ids) -> Mask:
        """Everything that influences the roots, the roots included."""

    def parents(self, node: SupportsIndex) -> _Ids:
        """Sorted."""

    def children(self, node: SupportsIndex) -> _Ids:
        """Sorted."""

    def groups(self) -> _Ids:
        """Per node its strongly connected component, numbered in topological order, as order() lists them."""

    def order(self) -> _Ids:
        """All nodes, influence first; nodes of a group adjacent and ascending.

        Ties: among the groups that are ready, the one with the smallest node comes first.
        """

    def frontier(
        self, values: _Weights, costs: _Weights, executable: Mask | None = None, within: Mask | None = None
    ) -> Frontier:
        """The smallest optimum of value - x cost for every x >= 0, under the rules of closure().

        One value and one cost per node; costs are at least 0, values may be below. Raises WeightOverflowError when
        the sum of |value| or of costs inside `within` exceeds 2**62, InvalidAmountError for a negative cost,
        InvalidGraphError when sizes do not fit. Source: Gallo, Grigoriadis and Tarjan 1989.
        """

    def closure(self, weights: _Weights, executable: Mask | None = None, within: Mask | None = None) -> Closure:
        """The smallest maximum-weight set that holds, with each node, its parents inside `within`.

        Holds nothing that is not executable, nor what depends on such a node inside `within`. A mask shorter than
        the graph is zero-extended. Raises WeightOverflowError when the sum of |weight| inside `within` exceeds 2**62,
        InvalidGraphError when the sizes do not fit. Source: Picard 1976.
        """

def verify_closure(
    graph: ProvenanceGraph,
    weights: _Weights,
    executable: Mask | None,
    within: Mask | None,
    selected: Mask,
    objective: int,
    sources: _Ids,
    targets: _Ids,
    flow: _Weights,
    absorbed: _Weights,
) -> bool:
    """Is this the smallest optimal closure, and does this certificate prove it?"""

def verify_frontier(
    graph: ProvenanceGraph,
    values: _Weights,
    costs: _Weights,
    executable: Mask | None,
    within: Mask | None,
    piece: _Ids,
    numerators: _Weights,
    denominators: _Weights,
    sources: _Ids,
    targets: _Ids,
    flow_high: _Weights,
    flow_low: npt.NDArray[np.uint64],
) -> bool:
    """Is this the whole frontier of smallest optima, and does this certificate prove it?"""
