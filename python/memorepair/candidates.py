"""Candidates: what may be repaired, in which mode, from which inputs, and what stands in the way.

Contract: `find_candidates` reads one View and returns one Candidate per held key, in key order, with the executable
flag v of the method and its reason, and the edges of the plan's own graph (nodes are keys, edges the binding ones).
Invariants: required parents that are held are candidates too; what stays strongly connected by required edges is not
executable.
Source: MemoRepair phase 2; docs/SEMANTICS.md section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import msgspec
import numpy as np
from msgspec.structs import replace

from memorepair.barrier import as_ids
from memorepair.errors import UnknownKeyError
from memorepair.graph import ProvenanceGraph
from memorepair.holds import Holds, find_holds
from memorepair.protocol import EventRow, UseRow, VersionRow, unpack_ids
from memorepair.rules import Operator, Rules, default_mode
from memorepair.scope import View


class Inputs(msgspec.Struct, frozen=True, gc=False):
    """
    Where a rebuild of a key gets its material: parent keys, and the newest version of its own that still stands.

    `required` are keys that the head needs; `optional` the others met on the way back along its own versions.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    own: int = 0
    is_own_required: bool = False
    is_empty: bool = False  # the artifact never had an input


class Candidate(msgspec.Struct, frozen=True):
    """
    One held key, as a schedule function is given it.

    For a schedule: `key`; `mode`, how it would be rebuilt; `needs`, the candidate keys that must be selected with it;
    `row.cost`, its recorded cost in micro-units (1_000_000 is 1) of `row.unit`, both None when none is recorded;
    `row.kind`; `row.weight`, its weight in micro-units; `use.reads`, how often it was read. `waits_for` are the
    candidate keys that it runs after; what cannot be executed (`is_executable`, `reason`) counts for nothing.
    """

    key: str
    row: VersionRow
    inputs: Inputs
    mode: str
    operator: Operator | None
    events: tuple[EventRow, ...]
    use: UseRow
    needs: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    is_executable: bool = True
    reason: str = ""
    blocked_by: tuple[str, ...] = ()


def trace_inputs(view: View, head: VersionRow, known: dict[int, VersionRow] | None = None) -> Inputs:
    """
    Follow a head back along its own withdrawn versions and collect what a rebuild can read.

    `known` holds rows by version and takes in what is read, so that many heads can share it.
    """
    known = {} if known is None else known
    key = head.key
    required: set[str] = set()
    optional: set[str] = set()
    own, is_own_required = 0, False
    seen, queue = {head.version}, [head]
    while queue:
        row = queue.pop()
        needed = set(row.required)
        parents = [*row.required, *row.optional]
        _read(view, parents, known)
        for parent in (known[version] for version in parents if version in known):
            if parent.key != key:
                (required if row is head and parent.version in needed else optional).add(parent.key)
            elif parent.version in view.barrier.withdrawn:
                if parent.version not in seen:
                    seen.add(parent.version)
                    queue.append(parent)
            elif parent.version > own:
                own, is_own_required = parent.version, parent.version in needed
    return Inputs(
        tuple(sorted(required)), tuple(sorted(optional - required)), own, is_own_required, is_empty=not head.parents
    )


def _read(view: View, versions: Iterable[int], known: dict[int, VersionRow]) -> None:
    """Add the rows of `versions` to `known`."""
    missing = [version for version in versions if version not in known]
    if missing:
        known.update(view.snapshot.versions(missing))


def find_candidates(view: View, event_id: str | None, keys: Iterable[str] | None, rules: Rules) -> list[Candidate]:
    """Return the candidates of an event (None = of all events), or of some keys, with their required parents."""
    holds = find_holds(view)
    known = view.snapshot.versions(sorted(holds.by_version))
    rows = {row.key: row for row in known.values()}
    _read(view, {parent for row in rows.values() for parent in unpack_ids(row.parents)}, known)
    traced = {key: trace_inputs(view, row, known) for key, row in rows.items()}
    chosen = _narrowed(view, holds, event_id, keys, rows, traced)
    uses = view.snapshot.uses(chosen)
    first = [_candidate(rows[key], traced[key], uses[key], holds, rules) for key in sorted(chosen)]
    first = [_in_time(candidate, view.now_micros) for candidate in first]
    return _linked(view, first)


def _narrowed(
    view: View,
    holds: Holds,
    event_id: str | None,
    keys: Iterable[str] | None,
    rows: dict[str, VersionRow],
    traced: dict[str, Inputs],
) -> set[str]:
    """The keys that were asked for and, transitively, their required parents among the held."""
    wanted = set(rows)
    if event_id is not None:
        event = view.snapshot.event(event_id)
        if event is None:
            raise UnknownKeyError(
                f"event {event_id!r} is unknown in scope {view.scope.name!r}; 'memorepair status' names the latest"
            )
        held = set(holds.of(event))
        wanted = {key for key, row in rows.items() if row.version in held}
    if keys is not None:
        names = set(keys)
        unknown = sorted(names - set(rows))
        if unknown:
            raise UnknownKeyError(f"{unknown[0]!r} is not held by any event; only withdrawn keys can be planned")
        wanted &= names
    queue = list(wanted)
    while queue:
        for parent in traced[queue.pop()].required:
            if parent in rows and parent not in wanted:
                wanted.add(parent)
                queue.append(parent)
    return wanted


def _candidate(row: VersionRow, inputs: Inputs, use: UseRow, holds: Holds, rules: Rules) -> Candidate:
    operator = rules.operators.get(row.operator or "")
    mode, reason = default_mode(row.kind, row.form), ""
    if row.operator is None:
        mode, reason = "remove", "no operator is recorded with it"
    elif operator is None:
        mode, reason = "remove", f"operator {row.operator!r} is not registered in the rules"
    elif mode == "param" and operator.mode != "param":
        mode, reason = "remove", f"a neural skill needs an operator of mode param, {operator.name!r} is not one"
    elif row.completeness == "opaque" and inputs.is_empty:
        mode, reason = "remove", "it is opaque: nobody recorded what it was made from"
    else:
        mode = operator.mode or mode
    return Candidate(
        key=row.key,
        row=row,
        inputs=inputs,
        mode=mode,
        operator=operator,
        events=tuple(holds.by_version[row.version]),
        use=use,
        is_executable=not reason,
        reason=reason,
    )


def _in_time(candidate: Candidate, now_micros: int) -> Candidate:
    """A successor takes over the expiry, so what is past it cannot come back."""
    expires_at = candidate.row.expires_at
    if not candidate.is_executable or expires_at is None or expires_at > now_micros:
        return candidate
    return replace(candidate, is_executable=False, reason="its time is over: it expired")


def _linked(view: View, candidates: list[Candidate]) -> list[Candidate]:
    """Add the edges of the plan's graph and the executable flags that follow from them."""
    index = {candidate.key: node for node, candidate in enumerate(candidates)}
    needs = [[index[key] for key in c.inputs.required if key in index] for c in candidates]
    spare = [[index[key] for key in c.inputs.optional if key in index] for c in candidates]
    whole = graph_of([required + optional for required, optional in zip(needs, spare, strict=True)])
    groups = whole.groups()
    # An optional edge inside a cycle is taken as absent; a cycle of required edges needs a joint operator.
    spare = [[j for j in parents if groups[j] != groups[node]] for node, parents in enumerate(spare)]
    bound = graph_of(needs).groups()
    sizes = np.bincount(bound, minlength=len(candidates)) if candidates else bound
    order = graph_of([required + optional for required, optional in zip(needs, spare, strict=True)]).order()
    stands = cache(lambda key: view.visible_head(key) is not None)
    answer = list(candidates)
    for node in map(int, order):
        candidate = answer[node]
        if candidate.is_executable and sizes[bound[node]] > 1:
            candidate = replace(candidate, is_executable=False, reason="it is in a cycle of required parents")
        live = [j for j in spare[node] if answer[j].is_executable]
        candidate, binds = _judged(stands, candidate, index, [answer[j] for j in needs[node]], live)
        bound_too = live if binds else []
        answer[node] = replace(
            candidate,
            needs=tuple(candidates[j].key for j in sorted({*needs[node], *bound_too})),
            waits_for=tuple(candidates[j].key for j in sorted({*needs[node], *spare[node]})),
        )
    return answer


def _judged(
    stands: Callable[[str], bool],
    candidate: Candidate,
    index: dict[str, int],
    required: list[Candidate],
    live: list[int],
) -> tuple[Candidate, bool]:
    """The candidate with its executable flag, and whether its live optional candidates bind like required ones."""
    inputs = candidate.inputs
    outside = [key for key in (*inputs.required, *inputs.optional) if key not in index and stands(key)]
    binds = not outside and not inputs.own
    if not candidate.is_executable:
        return candidate, binds
    missing = [key for key in inputs.required if key not in index and key not in outside]
    stuck = [parent.key for parent in required if not parent.is_executable]
    if missing:
        reason = f"required parent {missing[0]!r} has no visible version and is no candidate"
        return replace(candidate, is_executable=False, reason=reason, blocked_by=tuple(missing)), binds
    if stuck:
        reason = f"required parent {stuck[0]!r} cannot be repaired"
        return replace(candidate, is_executable=False, reason=reason, blocked_by=tuple(stuck)), binds
    if not (inputs.is_empty or outside or inputs.own or required or live):
        return replace(candidate, is_executable=False, reason="none of its inputs is left"), binds
    return candidate, binds


def graph_of(parents: list[list[int]]) -> ProvenanceGraph:
    """Return the graph in which node k has the given parents."""
    sources = as_ids([parent for row in parents for parent in row])
    targets = np.repeat(np.arange(len(parents), dtype=np.uint32), [len(row) for row in parents]).astype(np.uint32)
    return ProvenanceGraph.from_edges(len(parents), sources, targets)
