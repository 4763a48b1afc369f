"""memorepair.testing: what we test with, for those who build on memorepair.

This file is the table of contents. `reference`: a plain model of a store (its rows in `rows`).
`brute_force`: answers by trying everything. `strategies`: Hypothesis strategies for
keys, contents, graphs, histories, faulty operators. `invariants`: the promises as functions that raise AssertionError.
`conformance`: a suite that every backend must pass. Needs Hypothesis: pip install 'memorepair[test]'.
"""

from memorepair.errors import MissingExtraError

try:
    import hypothesis as _hypothesis
except ImportError as error:
    raise MissingExtraError(
        "memorepair.testing: hypothesis is not installed; run: pip install 'memorepair[test]'"
    ) from error

from memorepair.testing import brute_force, invariants, reference, strategies
from memorepair.testing.conformance import BackendConformance
from memorepair.testing.reference import Reference

del _hypothesis

__all__ = ["BackendConformance", "Reference", "brute_force", "invariants", "reference", "strategies"]
