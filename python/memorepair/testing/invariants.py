"""The invariants of a store, as functions that raise AssertionError and say what broke.

Contract: each function reads a store or compares two readings and changes nothing. `check_store` runs all that need no
more than the store.
Source: docs/SEMANTICS.md section 5 (I1, I2, I3, I14) and section 2 (the barrier is monotone).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from memorepair.artifact import Artifact, Gap
from memorepair.planner import Plan
from memorepair.store import Store
from memorepair.testing.brute_force import MAX_BRUTE_FORCE, best_closure


def check_store(store: Store) -> None:
    """Run every check that needs no more than a store."""
    no_stale_served(store)
    predecessor_closed(store)
    is_sound(store)
    counts_agree(store)


def no_stale_served(store: Store) -> None:
    """I1: what `get_many` and `find` serve is in no event's closure, and each key serves its head or a reason."""
    with store._reading() as view:
        stale = {int(version): event.event_id for event, closure in view.closures() for version in closure.ids()}
        keys = [head.key for head, _ in view.snapshot.heads()]
    found = {info.key: info.version for info in store.find()}
    for key, answer in zip(keys, store.get_many(keys), strict=True):
        if isinstance(answer, Artifact):
            assert answer.version not in stale, f"{key!r} serves {answer.version}, withdrawn by {stale[answer.version]}"
            assert found.get(key) == answer.version, f"{key!r}: get serves {answer.version}, find {found.get(key)}"
        else:
            assert isinstance(answer, Gap)
            assert answer.state != "unknown", f"{key!r} has a head and is unknown"
            assert answer.reason, f"{key!r} is refused without a reason"
            assert key not in found, f"{key!r} is refused by get and found by find"


def predecessor_closed(store: Store) -> None:
    """I2: no parent of a visible version is withdrawn, staged or missing."""
    with store._reading() as view:
        for version in map(int, view.barrier.visible_heads().ids()):
            row = view.row(version)
            for parent in (*row.required, *row.optional):
                name = f"{row.key!r} version {version}"
                assert view.snapshot.version(parent) is not None, (
                    f"{name} is visible, its parent {parent} is no version"
                )
                assert parent not in view.barrier.withdrawn, f"{name} is visible, its parent {parent} is withdrawn"
                assert parent < version, f"{name} has a younger parent {parent}"


def is_sound(store: Store) -> None:
    """fsck finds nothing; the ledger is conserved among other things."""
    findings = store.fsck()
    assert not findings, "fsck: " + "; ".join(map(str, findings))


def counts_agree(store: Store) -> None:
    """The counts of `status` add up, and no event is open without a held key."""
    status = store.status()
    total = status.visible + status.expired + status.held + status.withdrawn
    assert total == status.keys, f"visible + expired + held + withdrawn = {total}, keys = {status.keys}"
    for event in status.events:
        assert event.state in ("open", "settled", "abandoned"), f"{event.event_id} is {event.state}"
        assert event.state != "open" or event.held, f"{event.event_id} is open and holds nothing"


def nothing_lost(store: Store, acknowledged: Mapping[int, str], event_ids: Iterable[str] = ()) -> None:
    """I3: every acknowledged version (number -> key) and event is still there."""
    with store._reading() as view:
        for number, key in acknowledged.items():
            row = view.snapshot.version(number)
            assert row is not None, f"version {number} of {key!r} was acknowledged and is gone"
            assert row.key == key, f"version {number} was acknowledged as {key!r} and is {row.key!r}"
            assert view.snapshot.content(number) is not None, f"the content of {key!r} version {number} is gone"
        for event_id in event_ids:
            assert view.snapshot.event(event_id) is not None, f"event {event_id!r} was acknowledged and is gone"


def withdrawn_set(store: Store) -> frozenset[int]:
    """Every withdrawn version, for `barrier_monotone`."""
    with store._reading() as view:
        return frozenset(map(int, view.barrier.withdrawn.ids()))


def barrier_monotone(before: frozenset[int], after: frozenset[int]) -> None:
    """The withdrawn set only grows."""
    assert before <= after, f"versions {sorted(before - after)} are no longer withdrawn"


def cascade_is_withdrawn(store: Store, event_id: str) -> None:
    """Phase 1: the whole closure of an acknowledged event is withdrawn, and closed under edges."""
    with store._reading() as view:
        closure = next((closure for event, closure in view.closures() if event.event_id == event_id), None)
        assert closure is not None, f"event {event_id!r} is gone"
        gone = set(map(int, closure.ids()))
        awake = gone - set(map(int, view.barrier.withdrawn.ids()))
        assert not awake, f"versions {sorted(awake)} of {event_id!r} are not withdrawn"
        for row in view.snapshot.all_versions():
            stale = gone.intersection((*row.required, *row.optional))
            assert not stale or row.version in gone, f"{row.key!r} version {row.version} derives from {stale}"
    asked = store.visible(sorted(gone))
    assert not asked.any(), f"{event_id!r}: {int(asked.sum())} versions of its cascade are visible"


def plan_is_exact(plan: Plan) -> None:
    """I14: the certificate was verified, and the selection is the smallest best one; by brute force when small."""
    assert plan.certificate == "verified", f"the certificate is {plan.certificate}"
    items = {item.key: item for item in plan.items}
    chosen = {item.key for item in plan.items if item.decision == "selected"}
    for key in (*chosen, *plan.fill):
        assert items[key].is_executable, f"{key!r} is selected and cannot be executed"
        missing = set(items[key].needs) - chosen - set(plan.fill)
        assert not missing, f"{key!r} is selected without {sorted(missing)}, which it needs"
    executable = {item.key for item in plan.items if item.is_executable}
    if plan.budget is not None or len(executable) > MAX_BRUTE_FORCE:
        return
    mean = plan.mean_cost  # `cost` is rounded where the schedule divides by a mean
    costs = {key: item.cost if mean is None else item.recorded_cost / Fraction(mean) for key, item in items.items()}
    weights = {key: item.value - Fraction(plan.cost_weight or 0) * costs[key] for key, item in items.items()}
    best, worth = best_closure(weights, {key: item.needs for key, item in items.items()}, executable)
    assert chosen == best, f"selected {sorted(chosen)}, the smallest best selection is {sorted(best)}"
    assert Fraction(plan.objective) * 1_000_000 == worth, f"the objective is {plan.objective}, expected {worth} micro"


def visible_contents(store: Store) -> dict[str, object]:
    """What a reader can see: key -> content."""
    answers = store.get_many([info.key for info in store.find()])
    return {answer.key: answer.content for answer in answers if isinstance(answer, Artifact)}
