"""The plain reference model: what a store must do, in dicts and sets, slowly.

Purpose: an oracle written apart from the package. It shares no code with it but the error classes: closure by
repeated scans, holds kept step by step as events come, selection by trying every subset.
Contract: `Reference` has the verbs of a Store, takes the same arguments (as far as it models them) and raises the same
errors; version numbers are handed out in the same order. Expiry, batches and namespaces are not modelled.
Invariants: `withdrawn` and every `Event.closure` only grow; a version never changes but for `add_parent`.
Source: docs/SEMANTICS.md sections 1, 3, 4 and 5; MemoRepair phases 1 to 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from memorepair.errors import (
    EventConflictError,
    InvalidRequestError,
    StaleDependencyError,
    UnknownKeyError,
    WithdrawnError,
)
from memorepair.testing.brute_force import best_closure, reachable
from memorepair.testing.rows import Event, Inputs, Planned, ReferencePlan, Version, canonical, rebuilt


class Reference:
    """One scope, modelled."""

    def __init__(self) -> None:
        self.versions: dict[int, Version] = {}
        self.history: dict[str, list[int]] = {}  # oldest first
        self.heads: dict[str, int] = {}
        self.events: dict[str, Event] = {}  # in epoch order
        self.withdrawn: set[int] = set()
        self.holds: dict[str, set[str]] = {}  # event id -> keys it keeps withdrawn
        self.fates: dict[int, str] = {}
        self.next_number = 1

    # -- looking ---------------------------------------------------------------------------------------------------

    def is_visible(self, number: int) -> bool:
        """Whether a version may be served."""
        version = self.versions.get(number)
        return version is not None and self.heads[version.key] == number and number not in self.withdrawn

    @property
    def visible(self) -> set[int]:
        """Every version that may be served."""
        return {number for number in self.heads.values() if number not in self.withdrawn}

    def visible_head(self, key: str) -> Version | None:
        """The visible version of a key."""
        number = self.heads.get(key, 0)
        return self.versions[number] if self.is_visible(number) else None

    def state(self, key: str) -> str:
        """What a read of `key` says: visible, withdrawn or unknown."""
        if key not in self.heads:
            return "unknown"
        return "visible" if self.is_visible(self.heads[key]) else "withdrawn"

    def version_state(self, number: int) -> str:
        """Visible, superseded or withdrawn."""
        if number in self.withdrawn:
            return "withdrawn"
        return "visible" if self.is_visible(number) else "superseded"

    def holders(self, key: str) -> set[str]:
        """The events that hold a key."""
        return {event_id for event_id, keys in self.holds.items() if key in keys}

    def event_state(self, event_id: str) -> str:
        """Open while a held key has no fate, then settled; abandoned when given up and nothing came late."""
        undecided = [key for key in self.holds[event_id] if self.heads[key] not in self.fates]
        if undecided:
            return "open"
        return "abandoned" if self.events[event_id].is_abandoned else "settled"

    def closure(self, roots: Iterable[int]) -> set[int]:
        """Roots and every version that derives from them, by repeated scans over all versions."""
        found = set(roots)
        grew = True
        while grew:
            more = {v.number for v in self.versions.values() if v.parents & found} - found
            found |= more
            grew = bool(more)
        return found

    # -- writing ---------------------------------------------------------------------------------------------------

    def put(
        self,
        key: str,
        content: object,
        *,
        kind: str = "record",
        form: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        supersede: bool = False,
        event_id: str = "",
    ) -> int:
        """As Store.put; `event_id` names the event if this turns out to be a correction."""
        new = self._draft(key, content, kind, form, title, labels)
        old = self.visible_head(key)
        if old is None:
            return self._add(new)
        if old.says_the_same(new) and old.looks_the_same(new):
            return old.number
        if old.says_the_same(new):
            return self._add(replace(old, number=0, title=new.title, labels=new.labels, origin="put"))
        if supersede:
            return self._add(new)
        self._replace(event_id, "correct", ("correct", ((key, canonical(content)),)), [new])
        return self.heads[key]

    def derive(
        self,
        key: str,
        content: object,
        *,
        kind: str,
        parents: Iterable[int] = (),
        optional: Iterable[int] = (),
        form: str | None = None,
        operator: str | None = None,
        cost: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        stale: str = "reject",
    ) -> int:
        """As Store.derive. `cost` is taken and not modelled."""
        required = set(parents)
        for number in (*required, *optional):
            if number not in self.versions:
                raise StaleDependencyError(f"parent {number} does not exist")
        required |= {number for number in optional if self.versions[number].form == "interface"}
        new = replace(
            self._draft(key, content, kind, form, title, labels),
            operator=operator,
            required=frozenset(required),
            optional=frozenset(optional) - required,
            origin="derive",
        )
        gone = new.parents & self.withdrawn
        old = self.visible_head(key)
        if gone and stale == "reject":
            raise StaleDependencyError(f"parents {sorted(gone)} are withdrawn")
        if gone:
            number = self._add(replace(new, origin="late"), is_head=old is None)
            self._join_late({number}, gone)
            return number
        if old is not None and old.says_the_same(new) and old.looks_the_same(new):
            edges = (old.required, old.optional, old.operator) == (new.required, new.optional, new.operator)
            if edges:
                return old.number
        return self._add(new)

    def add_parent(self, child: int, parent: int, *, optional: bool = False) -> None:
        """As Store.add_parent."""
        if parent >= child:
            raise InvalidRequestError("the parent is not older than the child")
        for number in (child, parent):
            if number not in self.versions:
                raise UnknownKeyError(f"version {number} does not exist")
        first = self.versions[child]
        copies = [n for n in self.history[first.key] if n not in self.withdrawn and n != child and n > parent]
        changed = set()
        for number in [child, *(n for n in copies if self.versions[n].says_the_same(first))]:
            old = self.versions[number]
            if parent in old.required or (
                parent in old.optional and optional and self.versions[parent].form != "interface"
            ):
                continue
            changed.add(number)
            if optional and self.versions[parent].form != "interface":
                self.versions[number] = replace(old, optional=old.optional | {parent})
            else:
                self.versions[number] = replace(old, required=old.required | {parent}, optional=old.optional - {parent})
        if changed and parent in self.withdrawn:
            self._join_late(self.closure(changed), {parent})

    # -- events ----------------------------------------------------------------------------------------------------

    def delete(self, roots: Any, *, event_id: str) -> tuple[object, ...]:
        """As Store.delete."""
        return self._withdraw("delete", roots, event_id)

    def suspect(self, roots: Any, *, event_id: str) -> tuple[object, ...]:
        """As Store.suspect."""
        return self._withdraw("suspect", roots, event_id)

    def correct(self, key: Any, content: object = None, *, event_id: str) -> tuple[object, ...]:
        """As Store.correct."""
        return self._exchange("correct", key, content, event_id)

    def migrate(self, key: Any, content: object = None, *, event_id: str) -> tuple[object, ...]:
        """As Store.migrate."""
        return self._exchange("migrate", key, content, event_id)

    def abandon(self, event_id: str) -> tuple[object, ...]:
        """As Store.abandon."""
        event = self.events.get(event_id)
        if event is None:
            raise UnknownKeyError(event_id)
        event.is_abandoned = True
        self.holds[event_id] = set()
        return event.reply

    def undo(self, event_id: str, *, undo_id: str | None = None) -> tuple[object, ...]:
        """As Store.undo."""
        name = undo_id or f"undo:{event_id}"
        known = self._known(name, ("undo", event_id))
        if known is not None:
            return known.reply
        event = self.events.get(event_id)
        if event is None:
            raise UnknownKeyError(event_id)
        undone = {other.undoes for other in self.events.values() if other.undoes}
        if event.undoes or event_id in undone:
            raise InvalidRequestError(f"{event_id} cannot be undone")
        others: set[int] = set()
        for other in self.events.values():
            if other is not event and other.event_id not in undone:
                others |= other.closure
        back = []
        for key, versions, replacement in event.roots:
            if replacement and self.is_visible(replacement) and versions[-1] not in others:
                back.append((key, versions, replacement))
        closure = self.closure(replacement for _, _, replacement in back)
        count = len(closure & self.visible)
        before = self._visible_or_held()
        heads_before = dict(self.heads)
        was_visible = {key for key in self.heads if self.state(key) == "visible"}
        candidates = {number for number in self.heads.values() if number in event.closure}
        candidates |= {versions[-1] for _, versions, _ in back}
        self.withdrawn |= closure
        successors: dict[int, int] = {}
        restored: list[str] = []
        waiting = sorted(candidates)
        while True:  # again while something came back
            left = []
            for number in waiting:
                old = self.versions[number]
                may = all(parent in successors or parent not in self.withdrawn for parent in old.parents)
                if number in others | closure or not may:
                    left.append(number)
                    continue
                required = frozenset(successors.get(parent, parent) for parent in old.required)
                optional = frozenset(successors.get(parent, parent) for parent in old.optional) - required
                new = replace(old, number=0, required=required, optional=optional, origin="restore")
                fresh = self._add(new)
                restored.append(old.key)
                said_the_same = [other for _, versions, _ in back if versions[-1] == number for other in versions]
                successors.update(dict.fromkeys([number, *said_the_same], fresh))
            if len(left) == len(waiting):
                break
            waiting = left
        restored.sort()
        roots = [(key, [replacement], 0) for key, _, replacement in back]
        row = Event(name, "undo", ("undo", event_id), roots, closure, count, len(closure), event_id, restored)
        behind = {self.versions[number].key for number in left}
        behind |= {key for key, head in heads_before.items() if head in closure and key in was_visible}
        behind |= {key for key, _, replacement in event.roots if replacement and self.heads[key] == replacement}
        row.left = sorted(behind - set(restored))
        self.events[name] = row
        self._hold(row, before, replaced=set(restored))
        return row.reply

    def _withdraw(self, kind: str, roots: Any, event_id: str) -> tuple[object, ...]:
        items = [roots] if isinstance(roots, (str, int)) else list(roots)
        payload = (kind, frozenset(items))
        known = self._known(event_id, payload)
        if known is not None:
            return known.reply
        found: dict[str, set[int]] = {}
        for item in items:
            if isinstance(item, int):
                if item not in self.versions:
                    raise UnknownKeyError(f"version {item}")
                one = self.versions[item]
                live = {
                    n for n in self.history[one.key] if n not in self.withdrawn and self.versions[n].says_the_same(one)
                }
                found.setdefault(one.key, set()).update(live | {item})
            elif item not in self.heads:
                raise UnknownKeyError(item)
            else:
                live = {number for number in self.history[item] if number not in self.withdrawn}
                found.setdefault(item, set()).update(live | {self.heads[item]})
        rows = [(key, sorted(versions), 0) for key, versions in sorted(found.items())]
        event = self._close(event_id, kind, payload, rows)
        deleted = {key for key, versions in found.items() if kind == "delete" and self.heads[key] in versions}
        before = self._visible_or_held()
        self.withdrawn |= event.closure
        self._release(deleted)
        self._hold(event, before, replaced=deleted)
        return event.reply

    def _exchange(self, kind: str, key: Any, content: object, event_id: str) -> tuple[object, ...]:
        contents = dict(key) if isinstance(key, Mapping) else {key: content}
        for name in contents:
            if name not in self.heads:
                raise UnknownKeyError(name)
        payload = (kind, tuple(sorted((name, canonical(what)) for name, what in contents.items())))
        drafts = []
        for name, what in sorted(contents.items()):
            drafts.append(
                replace(
                    self.versions[self.heads[name]],
                    number=0,
                    content=what,
                    operator=None,
                    required=frozenset(),
                    optional=frozenset(),
                    origin="put",
                )
            )
        return self._replace(event_id, kind, payload, drafts)

    def _replace(self, event_id: str, kind: str, payload: object, drafts: list[Version]) -> tuple[object, ...]:
        known = self._known(event_id, payload)
        if known is not None:
            return known.reply
        changed = []
        for new in drafts:
            old = self.versions[self.heads[new.key]]
            if kind == "migrate" and old.form != "interface":
                raise InvalidRequestError(f"{new.key} is no interface")
            if not self.is_visible(old.number) and not self.holders(new.key):
                raise WithdrawnError(new.key)
            if not (self.is_visible(old.number) and old.says_the_same(new)):
                changed.append((old, new))
        rows = {}
        for old, new in changed:
            same = [n for n in self.history[new.key] if n not in self.withdrawn and self.versions[n].says_the_same(old)]
            rows[new.key] = [*sorted(set(same) - {old.number}), old.number]
        event = self._close(event_id, kind, payload, [(new.key, rows.get(new.key, []), 0) for new in drafts])
        before = self._visible_or_held()
        self.withdrawn |= event.closure
        fresh = {}
        for old, new in changed:
            required, optional = old.required - self.withdrawn, old.optional - self.withdrawn
            fresh[new.key] = self._add(replace(new, required=required, optional=optional))
        event.roots = [(key, versions, fresh.get(key, 0)) for key, versions, _ in event.roots]
        self._hold(event, before, replaced=set(fresh))
        return event.reply

    def _known(self, event_id: str, payload: object) -> Event | None:
        known = self.events.get(event_id)
        if known is not None and known.payload != payload:
            raise EventConflictError(event_id)
        return known

    def _close(self, event_id: str, kind: str, payload: object, roots: list[tuple[str, list[int], int]]) -> Event:
        closure = self.closure(number for _, versions, _ in roots for number in versions)
        event = Event(event_id, kind, payload, roots, closure, len(closure & self.visible), len(closure))
        self.events[event_id] = event
        return event

    # -- holds -----------------------------------------------------------------------------------------------------

    def _visible_or_held(self) -> set[str]:
        return {key for key in self.heads if self.state(key) == "visible" or self.holders(key)}

    def _hold(self, event: Event, before: set[str], replaced: set[str]) -> None:
        """Let the event hold each key whose head it took and which was visible or held before."""
        taken = {key for key, head in self.heads.items() if head in event.closure}
        self.holds.setdefault(event.event_id, set()).update(taken & before - replaced)

    def _release(self, keys: Collection[str]) -> None:
        for held in self.holds.values():
            held.difference_update(keys)

    def _join_late(self, numbers: Collection[int], parents: Collection[int]) -> None:
        """Add versions to the W of every event that has one of `parents`; a head among them is held from now on."""
        holders = [event for event in self.events.values() if event.closure.intersection(parents)]
        heads = {key for key, head in self.heads.items() if head in numbers}
        before = self._visible_or_held()
        self.withdrawn.update(numbers)
        for event in holders:
            event.closure.update(numbers)
            self.holds[event.event_id] |= heads & before

    # -- planning --------------------------------------------------------------------------------------------------

    def inputs(self, head: int) -> Inputs:
        """Follow a head back along its own withdrawn versions, and collect parent keys on the way."""
        start = self.versions[head]
        required = {self.versions[parent].key for parent in start.required} - {start.key}
        met: set[str] = set()
        own: set[int] = set()
        seen, todo = {head}, [start]
        while todo:
            for parent in todo.pop().parents:
                version = self.versions[parent]
                if version.key != start.key:
                    met.add(version.key)
                elif parent not in self.withdrawn:
                    own.add(parent)
                elif parent not in seen:
                    seen.add(parent)
                    todo.append(version)
        return Inputs(frozenset(required), frozenset(met - required), max(own, default=None), bool(start.parents))

    def plan(
        self,
        event_id: str | None,
        operators: Collection[str],
        prices: Mapping[str, tuple[int, int]],
        cost_weight: Fraction,
    ) -> ReferencePlan:
        """Return candidates, flags and the smallest best selection; `prices`: key -> (value, cost)."""
        held = set().union(*self.holds.values()) if self.holds else set()
        if event_id is not None and event_id not in self.events:
            raise UnknownKeyError(event_id)
        keys = held if event_id is None else set(self.holds[event_id])
        while True:  # narrowed to the event's own, and what they require among the held
            more = {name for key in keys for name in self.inputs(self.heads[key]).required if name in held} - keys
            if not more:
                break
            keys |= more
        inputs = {key: self.inputs(self.heads[key]) for key in keys}
        required = {key: inputs[key].required & keys for key in keys}
        every = {key: (inputs[key].required | inputs[key].optional) & keys for key in keys}
        cyclic = {key for key in keys if key in reachable(required, key)}
        spare = {}
        for key in keys:
            ring = {name for name in reachable(every, key) if key in reachable(every, name)}
            spare[key] = (inputs[key].optional & keys) - ring
        outside = {
            key: {
                name
                for name in inputs[key].required | inputs[key].optional
                if name not in keys and self.visible_head(name) is not None
            }
            for key in keys
        }
        able = {
            key
            for key in keys
            if self._can_run(key, operators)
            and key not in cyclic
            and inputs[key].required <= required[key] | outside[key]
        }
        while True:  # what cannot be repaired takes others with it
            stuck = set()
            for key in able:
                lacks = not required[key] <= able
                remaining = outside[key] | required[key] | (spare[key] & able)
                if lacks or (inputs[key].had_any and not remaining and inputs[key].own is None):
                    stuck.add(key)
            if not stuck:
                break
            able -= stuck
        needs = {}
        for key in keys:
            binds = not outside[key] and inputs[key].own is None
            needs[key] = required[key] | (spare[key] & able if binds else set())
        weights = {key: Fraction(prices[key][0]) - cost_weight * prices[key][1] for key in keys}
        chosen, worth = best_closure(weights, needs, able)
        candidates = {
            key: Planned(self.heads[key], key in able, frozenset(needs[key]), frozenset(required[key] | spare[key]))
            for key in keys
        }
        return ReferencePlan(candidates, chosen, worth, len(self.events))

    def _can_run(self, key: str, operators: Collection[str]) -> bool:
        version = self.versions[self.heads[key]]
        name = (version.operator or "").partition("@")[0]
        return bool(name) and name in operators and version.form != "neural"

    # -- repairing -------------------------------------------------------------------------------------------------

    def repair(
        self,
        plan: ReferencePlan,
        order: Iterable[str],
        *,
        is_broken: Callable[[str], bool] = lambda key: False,
        is_at_end: bool = False,
    ) -> dict[str, str]:
        """
        Rebuild what was selected, in `order`, with the deterministic operator, and return each candidate's fate.

        `is_broken(key)` says that its operator or validator fails. Fates: published, failed, blocked, stalled, left.
        """
        todo = list(order)
        numbers = dict(zip(todo, itertools.count(self.next_number)))
        self.next_number += len(todo)
        fates: dict[str, str] = {}
        staged: dict[str, Version] = {}
        for level in self._levels(plan, todo):
            for key in level:
                if self.heads[key] != plan.candidates[key].head:
                    fates[key] = "stalled"
                    continue
                made = self._rebuild(plan.candidates[key].head, staged)
                if made is None:
                    fates[key] = "blocked"
                    continue
                if max(made.parents, default=0) > numbers[key]:
                    numbers[key] = self.next_number
                    self.next_number += 1
                if is_broken(key):
                    fates[key] = "failed"
                    continue
                staged[key] = replace(made, number=numbers[key])
            if not is_at_end:
                fates |= self._publish(plan, staged)
                staged = {}
        fates |= self._publish(plan, staged)
        for key, planned in plan.candidates.items():
            fates.setdefault(key, "left")
            if fates[key] not in ("published", "stalled") and self.heads[key] == planned.head:
                self.fates[planned.head] = fates[key]
        return fates

    @staticmethod
    def _levels(plan: ReferencePlan, order: list[str]) -> list[list[str]]:
        depth: dict[str, int] = {}
        for key in order:
            before = [depth[name] for name in plan.candidates[key].waits_for if name in depth]
            depth[key] = max(before, default=-1) + 1
        return [[key for key in order if depth[key] == level] for level in sorted(set(depth.values()))]

    def _rebuild(self, head: int, staged: Mapping[str, Version]) -> Version | None:
        """The successor of a head made from what is there, or None when an input is missing."""
        old, inputs = self.versions[head], self.inputs(head)
        found: dict[str, Version] = {}
        for name in inputs.required | inputs.optional:
            version = staged.get(name) or self.visible_head(name)
            if version is not None:
                found[name] = version
        if not inputs.required <= set(found):
            return None
        required = frozenset(found[name].number for name in inputs.required)
        if inputs.own is not None:
            found[old.key] = self.versions[inputs.own]
        if not found and inputs.had_any:
            return None
        content = rebuilt(old.key, {name: version.content for name, version in found.items()})
        parents = frozenset(version.number for version in found.values())
        return replace(old, content=content, required=required, optional=parents - required, origin="publish")

    def _publish(self, plan: ReferencePlan, staged: Mapping[str, Version]) -> dict[str, str]:
        """Let through the fence what may pass."""
        fates: dict[str, str] = {}
        after = list(self.events.values())[plan.num_events :]
        passing: set[int] = set()
        for key, version in sorted(staged.items(), key=lambda item: item[1].number):
            head = plan.candidates[key].head
            touched = any(({head} | version.parents) & event.closure for event in after)
            stands = all(
                parent in passing or (parent in self.versions and parent not in self.withdrawn)
                for parent in version.parents
            )
            if self.heads[key] != head or not self.holders(key) or touched or not stands:
                fates[key] = "stalled"
                continue
            fates[key] = "published"
            passing.add(version.number)
        for key in [key for key, fate in fates.items() if fate == "published"]:
            self._add(staged[key], number=staged[key].number)
        return fates

    # -- plumbing --------------------------------------------------------------------------------------------------

    @staticmethod
    def _draft(
        key: str,
        content: object,
        kind: str,
        form: str | None,
        title: str | None,
        labels: Mapping[str, str] | None,
    ) -> Version:
        marks = tuple(sorted((labels or {}).items()))
        return Version(0, key, content, kind, form, title, marks, None, frozenset(), frozenset(), "put")

    def _add(self, draft: Version, *, is_head: bool = True, number: int | None = None) -> int:
        """Add a version; a new head ends every hold of its key."""
        if number is None:
            number, self.next_number = self.next_number, self.next_number + 1
        self.versions[number] = replace(draft, number=number)
        self.history.setdefault(draft.key, []).append(number)
        if is_head:
            self.heads[draft.key] = number
            self._release([draft.key])
        return number
