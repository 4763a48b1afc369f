"""Answers by trying everything: reach, the best closure, the best closure within a budget.

Contract: exact and exponential; more than MAX_BRUTE_FORCE nodes are refused.
Source: MemoRepair Theorem 1 (what is maximised); docs/SEMANTICS.md invariant I14 (the smallest optimum).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from memorepair.errors import InvalidRequestError

MAX_BRUTE_FORCE = 14


def reachable(edges: Mapping[Any, Iterable[Any]], start: Any) -> set[Any]:
    """Return everything reachable from `start` by one edge or more, by repeated scans."""
    found: set[Any] = set(edges.get(start, ()))
    grew = True
    while grew:
        more = {target for node in found for target in edges.get(node, ())} - found
        found |= more
        grew = bool(more)
    return found


def best_closure(
    weights: Mapping[str, Fraction | int], needs: Mapping[str, Iterable[str]], executable: Collection[str]
) -> tuple[frozenset[str], Fraction]:
    """
    Return the smallest subset of `executable`, closed under `needs`, of greatest total weight, by trying them all.

    The smallest one is unique, because the best subsets are closed under intersection.
    """
    names = sorted(executable)
    if len(names) > MAX_BRUTE_FORCE:
        raise InvalidRequestError(f"best_closure: expected at most {MAX_BRUTE_FORCE} nodes, got {len(names)}")
    best: frozenset[str] = frozenset()
    worth = Fraction(0)
    for size in range(1, len(names) + 1):
        for subset in itertools.combinations(names, size):
            chosen = frozenset(subset)
            if all(set(needs[name]) <= chosen for name in chosen):
                total = sum((Fraction(weights[name]) for name in chosen), Fraction(0))
                if total > worth:
                    best, worth = chosen, total
    return best, worth


def best_within(
    values: Mapping[str, int],
    costs: Mapping[str, int],
    needs: Mapping[str, Iterable[str]],
    executable: Collection[str],
    budget: int,
) -> int:
    """Return the greatest value of a closed subset of `executable` whose cost is at most `budget`."""
    names = sorted(executable)
    if len(names) > MAX_BRUTE_FORCE:
        raise InvalidRequestError(f"best_within: expected at most {MAX_BRUTE_FORCE} nodes, got {len(names)}")
    best = 0
    for size in range(1, len(names) + 1):
        for subset in itertools.combinations(names, size):
            chosen = set(subset)
            if sum(costs[name] for name in chosen) <= budget and all(set(needs[name]) <= chosen for name in chosen):
                best = max(best, sum(values[name] for name in chosen))
    return best
