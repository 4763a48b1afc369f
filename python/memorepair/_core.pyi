"""Exact kernels over influence graphs: reach, masks, order and maximum closure (C++).

Id arrays are 1-D C-contiguous uint32, weights int64; nothing is converted, a wrong dtype is a TypeError.
Arrays that come back are read-only. Every kernel runs without the GIL.
"""

from typing import SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt

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
    """The smallest maximum-weight predecessor closure."""

    @property
    def selected(self) -> Mask: ...
    @property
    def objective(self) -> int: ...
    @property
    def certificate(self) -> Certificate: ...
    def verify(self) -> bool:
        """Check it by code that shares nothing with the solver. InvalidGraphError when the graph has grown since."""

@final
class ProvenanceGraph:
    """An influence graph that only grows: an edge source -> target means "source influences target".

    Thread-safe: reads run together, append() runs alone.
    """

    @staticmethod
    def from_edges(num_nodes: SupportsIndex, sources: _Ids, targets: _Ids) -> ProvenanceGraph:
        """Self edges are dropped, duplicates merged. Raises NodeRangeError, InvalidGraphError, CapacityError."""

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
