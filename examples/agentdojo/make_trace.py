"""Make the AgentDojo trace that ships with memorepair: `python/memorepair/data/agentdojo.json.gz`.

Purpose: real agent work (97 tasks, their ground-truth tool calls, two worlds) as raw material to fill a memory store.
Contract: the same agentdojo version gives the same bytes; `--check` regenerates and compares. Parents are derived by
value flow in the two recorded worlds, never read off the vectors; then every vector is planted alone and each call
that comes out different must have a parent path from that vector's record, or nothing is written.
Source: AgentDojo (MIT), through `agentdojo_runs`. The schema is in `python/memorepair/data/README.md`.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import io
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agentdojo_runs as runs
import yaml
from agentdojo_runs import CallRun, ObjectKey, Objects, TaskRun
from pydantic import BaseModel

DATA = Path(__file__).resolve().parents[2] / "python" / "memorepair" / "data"
TRACE = DATA / "agentdojo.json.gz"
LICENSE = DATA / "AGENTDOJO_LICENSE"
FORMAT = "memorepair-agentdojo-trace/1"

# --- values -------------------------------------------------------------------------------------------------------


def leaves(value: Any) -> Iterator[str]:
    """The scalar values inside a value, as text. Keys of dicts count (as names), field names of models do not."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from leaves(getattr(value, name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif value is not None and not isinstance(value, bool) and str(value):
        yield str(value)


def field_leaves(data: dict[str, Any]) -> list[str]:
    """The scalar values of an object, without its field names."""
    return [leaf for value in data.values() for leaf in leaves(value)]


NUMBER = re.compile(r"(?<![\w.:/-])\d+(?:\.\d+)?(?![\w:/-])")


def occurs(value: str, text: str) -> bool:
    """Whether a value stands in a text as a whole word or phrase; a number, as an equal number (not inside a date)."""
    if value == text:
        return True
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return any(float(number) == float(value) for number in NUMBER.findall(text))
    if value.lower() not in text.lower():
        return False
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", text, re.IGNORECASE) is not None


def wordy(value: str) -> bool:
    """Long enough and lettered enough to name something."""
    return len(value) >= 3 and any(char.isalpha() for char in value)


# --- value flow: which objects a result shows -----------------------------------------------------------------------


@dataclass
class Shown:
    """What a result holds: returned models one by one, the keyed entries of dicts, and everything else as texts."""

    items: list[list[str]] = field(default_factory=list)
    entries: dict[str, list[str]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def everything(self) -> list[str]:
        pooled = [leaf for item in self.items for leaf in item] + list(self.entries) + self.texts
        return pooled + [leaf for entry in self.entries.values() for leaf in entry]


def split_result(raw: Any) -> Shown:
    shown = Shown()
    for part in raw if isinstance(raw, list) else [raw]:
        if isinstance(part, BaseModel):
            shown.items.append(list(leaves(part)))
        elif isinstance(part, dict):
            shown.entries.update({str(key): list(leaves(value)) for key, value in part.items()})
        else:
            shown.texts.extend(leaves(part))
    return shown


def objects_shown(call: CallRun) -> set[ObjectKey]:
    """The environment objects whose values flowed into the call's result.

    An object is shown when (1) a returned item holds all its values; (2) a value that only this object has, and that
    was not in the arguments, is a value of the result or stands in a returned text; (3) a dict entry under its name
    holds another of its values; (4) its name, not asked for, stands in a returned text that is not as a whole a value
    of another object; (5) its name was asked for and all its other values were returned.
    """
    shown = split_result(call.raw)
    asked = list(leaves(call.args))
    owners = Counter(value for data in call.before.values() for value in set(field_leaves(data)))
    own = {value for value, count in owners.items() if count == 1}
    whole = {text for text in shown.texts if len(text) > 30 and owners[text]}
    view = _View(shown, asked, own, [text for text in shown.texts if text not in whole])
    return {key for key, data in call.before.items() if view.shows(key[1], field_leaves(data))}


@dataclass
class _View:
    """One result, prepared for asking which objects it shows."""

    shown: Shown
    asked: list[str]
    own: set[str]
    free_texts: list[str]

    def shows(self, name: str, values: Sequence[str]) -> bool:
        shown = self.shown
        if len(values) > 1 and any(set(values) <= set(item) for item in shown.items):
            return True
        mine = [value for value in values if value in self.own and not any(occurs(value, arg) for arg in self.asked)]
        loose = [*shown.texts, *(leaf for entry in shown.entries.values() for leaf in entry)]
        if any(value in loose for value in mine if wordy(value) or len(value) >= 8):
            return True
        telling = [value for value in mine if wordy(value)]
        if any(value in item for item in shown.items for value in telling):
            return True
        if any(occurs(value, text) for text in self.free_texts for value in telling if len(value) >= 10):
            return True
        others = [value for value in values if value != name]
        if any(occurs(value, text) for text in shown.entries.get(name, []) for value in others):
            return True
        named = wordy(name) and name in values and name not in self.asked
        if named and any(occurs(name, text) for text in self.free_texts):
            return True
        return bool(others) and name in self.asked and set(others) <= set(shown.texts)


# --- value flow: which earlier calls an argument comes from ---------------------------------------------------------


def is_echo(call: CallRun, value: str) -> bool:
    """A call that wrote and was itself given the value is no source of it."""
    return bool(call.written) and any(occurs(value, arg) for arg in leaves(call.args))


def holds(call: CallRun, value: str) -> bool:
    """Whether an argument value stands in a call's result; an identifier without letters must be a value of its own."""
    if is_echo(call, value):
        return False
    pooled = split_result(call.raw).everything()
    if wordy(value):
        return any(occurs(value, text) for text in pooled)
    return any(char.isdigit() for char in value) and value in pooled


def lends(call: CallRun, value: str, prompt: str) -> bool:
    """Whether a value of the call's result (a name, a line) stands inside a composed argument."""
    lines = {line.strip(" -*\t") for text in split_result(call.raw).everything() for line in text.splitlines()}
    lines |= {line.split(": ", 1)[1] for line in lines if ": " in line}
    names = (line for line in lines if 6 <= len(line) <= 80 and wordy(line) and line.lower() in value.lower())
    return any(occurs(name, value) and not occurs(name, prompt) and not is_echo(call, name) for name in names)


def text_parts(value: str, prompt: str) -> tuple[list[str], list[str]]:
    """The lines of a composed text, and the rarer words of a long one, as far as the prompt does not have them."""
    lines = [line.strip(" -*\t") for line in value.splitlines()] if "\n" in value else []
    words = re.findall(r"[A-Za-z]{6,}", value) if len(value.split()) >= 5 else []

    def telling(parts: list[str]) -> list[str]:
        return [part for part in parts if len(part) > 2 and not occurs(part, prompt)]

    return telling(lines), telling(words)


def leaf_origins(earlier: Sequence[CallRun], value: str, prompt: str) -> set[int]:
    """The earlier calls one argument value comes from: by the whole value, else by its lines and the names in it,
    else by its words. A value that the prompt gives comes from none.
    """
    if occurs(value, prompt):
        return set()
    lines, words = text_parts(value, prompt)
    levels: tuple[Callable[[CallRun], bool], ...] = (
        lambda call: holds(call, value),
        lambda call: any(holds(call, line) for line in lines) or lends(call, value, prompt),
        lambda call: any(holds(call, word) for word in words),
    )
    for level in levels:
        if found := {i for i, call in enumerate(earlier) if level(call)}:
            return found
    return set()


def argument_origins(calls: Sequence[CallRun], position: int, prompt: str) -> dict[str, list[int] | str]:
    """For each argument of a call: the earlier positions its value comes from, else `prompt` or `literal`."""
    origins: dict[str, list[int] | str] = {}
    for name, value in sorted(calls[position].args.items()):
        values = list(leaves(value))
        found = sorted({i for leaf in values for i in leaf_origins(calls[:position], leaf, prompt)})
        in_prompt = bool(values) and all(occurs(leaf, prompt) for leaf in values)
        origins[name] = found or ("prompt" if in_prompt else "literal")
    return origins


@dataclass
class Flow:
    """Where one call's values come from: source objects, earlier calls that wrote what it read, and its arguments."""

    read: set[ObjectKey]
    state: set[int]
    origins: dict[str, list[int] | str]

    def lent(self) -> set[int]:
        """The earlier calls that lent it an argument value."""
        return {place for places in self.origins.values() if isinstance(places, list) for place in places}


def flows(task: TaskRun, prompt: str) -> list[Flow]:
    """The value flow of every call of a task.

    An object that an earlier call of the task wrote comes from that call too; one that it made comes only from it.
    """
    initial = set(task.calls[0].before) if task.calls else set()
    found = []
    for position, call in enumerate(task.calls):
        origins = argument_origins(task.calls, position, prompt)
        read = objects_shown(call)
        state = {i for i in range(position) if read & task.calls[i].written}
        found.append(Flow(read & initial, state, origins))
    return found


# --- the trace ------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """All runs of one suite with one choice of injected texts."""

    tasks: dict[str, TaskRun]
    objects: Objects


def run_world(suite: Any, injections: dict[str, str], watch: bool = True) -> World:
    """`watch=False` gives results only: no object snapshots, no verdicts."""
    tasks = {task.ID: runs.run_ground_truth(suite, task, injections, watch) for task in runs.ordered_tasks(suite)}
    return World(tasks, runs.environment_objects(runs.load_environment(suite, injections)))


class SuiteTrace:
    """Builds the records, calls, tasks and skills of one suite."""

    def __init__(self, name: str, suite: Any) -> None:
        self.name = name
        self.suite = suite
        self.texts = runs.injection_texts(suite)
        self.clean = run_world(suite, {})
        self.injected = run_world(suite, {vector: text for vector, (_, text) in self.texts.items()})
        self.alone = {v: run_world(suite, {v: text}, watch=False) for v, (_, text) in self.texts.items()}
        self.same_object = dict(zip(self.injected.objects, self.clean.objects, strict=True))
        self.vector_records = {vector: self._records_with(vector) for vector in self.texts}
        self.calls: dict[str, dict[str, Any]] = {}
        self.tasks: list[dict[str, Any]] = []
        self._call_ids: dict[str, str] = {}
        self.dropped_edges = 0
        for task in runs.ordered_tasks(suite):
            self._add_task(task)
        self._settle_parents()

    # -- sources

    def source_id(self, key: ObjectKey) -> str:
        return f"source/{self.name}/{key[0]}/{key[1]}"

    def _records_with(self, vector: str) -> list[str]:
        """The objects that hold a vector's text (seen with that vector planted alone)."""
        holding = [
            clean
            for planted, clean in zip(self.alone[vector].objects.items(), self.clean.objects, strict=True)
            if runs.marker(vector) in json.dumps(planted[1])
        ]
        return [self.source_id(key) for key in holding]

    def records(self) -> list[dict[str, Any]]:
        """The source and tool records that some call rests on."""
        used = {parent for call in self.calls.values() for parent in call["parents"]}
        vector_of = {record: vector for vector, ids in self.vector_records.items() for record in ids}
        injected = {self.same_object[key]: data for key, data in self.injected.objects.items()}
        out = []
        for key, data in self.clean.objects.items():
            if (ident := self.source_id(key)) not in used:
                continue
            record = {
                "id": ident,
                "kind": "source",
                "suite": self.name,
                "type": key[0],
                "title": title(key, data),
                "content": as_text(data),
            }
            if ident in vector_of:
                record |= {"vector": vector_of[ident], "content_injected": as_text(injected[key])}
            out.append(record)
        for ident in sorted(parent for parent in used if parent.startswith("tool/")):
            interface = runs.tool_interface(self.suite, ident.rsplit("/", 1)[1])
            out.append(
                {
                    "id": ident,
                    "kind": "tool",
                    "suite": self.name,
                    "type": "tool",
                    "title": f"Tool {interface['name']} ({self.name})",
                    "content": json.dumps(interface, sort_keys=True, ensure_ascii=False),
                }
            )
        return out

    # -- calls and tasks

    def _add_task(self, task: Any) -> None:
        clean, injected = self.clean.tasks[task.ID], self.injected.tasks[task.ID]
        found, found_injected = flows(clean, task.PROMPT), flows(injected, task.PROMPT)
        ids: list[str] = []
        for i, (call, twin) in enumerate(zip(clean.calls, injected.calls, strict=True)):
            ids.append(self._call(call, twin))
            read = found[i].read | {self.same_object[key] for key in found_injected[i].read}
            places = found[i].lent() | found[i].state | found_injected[i].state
            if twin.args != call.args:
                places |= found_injected[i].lent()
            earlier = {ids[j] for j in places} - {ids[i]}
            self._note(ids[i], task.ID, {self.source_id(key) for key in read} | earlier)
            self._note_alone(ids[i], task.ID, i)
        self.tasks.append(
            {
                "id": f"task/{self.name}/{task.ID}",
                "suite": self.name,
                "task": task.ID,
                "prompt": task.PROMPT,
                "calls": ids,
                "answer": task.GROUND_TRUTH_OUTPUT,
                "utility": clean.utility,
                "utility_injected": injected.utility,
                "arguments": [flow.origins for flow in found],
            }
        )

    def _call(self, call: CallRun, twin: CallRun) -> str:
        """The id of this call: a new one when function, arguments or either world's result are new."""
        parts = [call.fn, call.args, call.result, call.error, twin.args, twin.result, twin.error]
        key = json.dumps(parts, sort_keys=True)
        if key in self._call_ids:
            return self._call_ids[key]
        number = sum(1 for known in self.calls.values() if known["fn"] == call.fn)
        ident = self._call_ids[key] = f"call/{self.name}/{call.fn}/{number}"
        entry: dict[str, Any] = {
            "id": ident,
            "suite": self.name,
            "fn": call.fn,
            "args": call.args,
            "result": call.result,
            "args_chars": len(json.dumps(call.args, ensure_ascii=False)),
            "result_chars": len(call.result),
            "tool": f"tool/{self.name}/{call.fn}",
            "by_task": {},
            "alone": {},
        }
        if call.error is not None:
            entry["error"] = call.error
        if twin.args != call.args:
            entry["args_injected"] = twin.args
        if twin.result != call.result:
            entry["result_injected"] = twin.result
        if twin.error is not None:
            entry["error_injected"] = twin.error
        self.calls[ident] = entry
        return ident

    def _note(self, ident: str, task_id: str, parents: set[str]) -> None:
        self.calls[ident]["by_task"].setdefault(task_id, set()).update(parents)

    def _note_alone(self, ident: str, task_id: str, position: int) -> None:
        """What each vector alone makes of this call, where it makes a difference."""
        clean = self.clean.tasks[task_id].calls[position]
        for vector, world in self.alone.items():
            single = world.tasks[task_id].calls[position]
            if (single.result, single.error, single.args) == (clean.result, clean.error, clean.args):
                continue
            outcome = {"result": single.result, "args": single.args, "error": single.error}
            known = self.calls[ident]["alone"].setdefault(vector, outcome)
            assert known == outcome, f"{ident} is not one call under {vector}"

    def _settle_parents(self) -> None:
        """Parents of a call: all that some task saw. Optional: those not every task saw (the call came about without).

        An edge from a call first made later is kept unless it closes a cycle; the calls end up parents first.
        """
        by_task = {ident: call.pop("by_task") for ident, call in self.calls.items()}
        order = {ident: place for place, ident in enumerate(self.calls)}
        parents = {ident: set.union(*seen.values()) for ident, seen in by_task.items()}
        later = {(p, ident) for ident, some in parents.items() for p in some if order.get(p, -1) > order[ident]}
        for parent, ident in later:
            parents[ident].remove(parent)
        for parent, ident in sorted(later, key=lambda edge: (order[edge[1]], order[edge[0]])):
            if ident in reachable(parents, parent):
                self.dropped_edges += 1
            else:
                parents[ident].add(parent)
        for ident, call in self.calls.items():
            every = set.intersection(*by_task[ident].values())
            call["parents"] = [call.pop("tool"), *sorted(parents[ident], key=lambda p: (order.get(p, -1), p))]
            if optional := sorted(parents[ident] - every):
                call["optional"] = optional
            call["tasks"] = [f"task/{self.name}/{task}" for task in by_task[ident]]
        self.calls = {ident: self.calls[ident] for ident in parents_first(parents, list(self.calls))}

    # -- skills

    def skills(self) -> list[dict[str, Any]]:
        """One chain skill per distinct sequence of at least two functions."""
        groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for task in self.tasks:
            groups[tuple(self.calls[call]["fn"] for call in task["calls"])].append(task)
        chains = [(fns, tasks) for fns, tasks in groups.items() if len(fns) > 1]
        return [self._skill(number, fns, tasks) for number, (fns, tasks) in enumerate(chains)]

    def _skill(self, number: int, fns: tuple[str, ...], tasks: list[dict[str, Any]]) -> dict[str, Any]:
        steps = []
        for position, fn in enumerate(fns):
            arguments: dict[str, set[str]] = defaultdict(set)
            for task in tasks:
                origins: dict[str, list[int] | str] = task["arguments"][position]
                for name, origin in origins.items():
                    arguments[name].update([origin] if isinstance(origin, str) else (f"step:{i}" for i in origin))
            steps.append(
                {
                    "fn": fn,
                    "tool": f"tool/{self.name}/{fn}",
                    "args": {name: sorted(found) for name, found in arguments.items()},
                }
            )
        calls = list(dict.fromkeys(call for task in tasks for call in task["calls"]))
        return {
            "id": f"skill/{self.name}/{number}",
            "suite": self.name,
            "steps": steps,
            "tasks": [task["id"] for task in tasks],
            "parents": [*sorted({step["tool"] for step in steps}), *calls],
        }


def reachable(parents: dict[str, set[str]], start: str) -> set[str]:
    """Everything that a call rests on, over the parent edges."""
    seen: set[str] = set()
    stack = [start]
    while stack:
        new = parents.get(stack.pop(), set()) - seen
        seen |= new
        stack.extend(new)
    return seen


def parents_first(parents: dict[str, set[str]], idents: list[str]) -> list[str]:
    """The calls in an order that has each after its parents, otherwise as given."""
    done: dict[str, None] = {}
    while len(done) < len(idents):
        waiting = set(idents) - done.keys()
        done.update({ident: None for ident in idents if ident in waiting and not parents[ident] & waiting})
    return list(done)


def title(key: ObjectKey, data: dict[str, Any]) -> str:
    """A name a person can read."""
    kind = key[0].replace("_", " ").capitalize()
    if key[0] in ("post", "direct"):
        place = f"in '{data['recipient']}'" if key[0] == "post" else f"to {data['recipient']}"
        return f"Slack message from {data['sender']} {place}: {data['body'][:50]}"
    label = next((data[name] for name in ("subject", "title", "filename", "name") if data.get(name)), key[1])
    return f"{kind}: {label}"


def as_text(data: dict[str, Any]) -> str:
    return str(yaml.safe_dump(data, allow_unicode=True, width=10**6, sort_keys=True)).strip()


# --- the counterfactual -----------------------------------------------------------------------------------------------


def check_counterfactual(trace: SuiteTrace) -> Counter[str]:
    """Each call that a vector alone changes must rest on that vector's record. Counts, or ValueError on a missing edge.

    `edges_testable`: (record, call) edges whose record holds a vector; `edges_confirmed`: those of them where that
    vector alone changed the call. `reached_unchanged`: calls below a vector's record that did not change.
    """
    figures: Counter[str] = Counter()
    missing = []
    parents = {ident: set(call["parents"]) for ident, call in trace.calls.items()}
    for ident, call in trace.calls.items():
        above = reachable(parents, ident)
        for vector, records in trace.vector_records.items():
            changed = vector in call["alone"]
            direct = [record for record in records if record in call["parents"]]
            figures["pairs_changed"] += changed
            figures["pairs_changed_direct"] += changed and bool(direct)
            figures["edges_testable"] += len(direct)
            figures["edges_confirmed"] += len(direct) if changed else 0
            reached = any(record in above for record in records)
            figures["pairs_reached"] += reached
            if changed and not reached:
                missing.append((vector, ident))
    if missing:
        raise ValueError(f"calls changed by a vector without a parent path to it: {missing}")
    return figures


def settle_alone(call: dict[str, Any]) -> None:
    """Keep the single-vector results only where they are needed: when more than one vector changes the call."""
    alone = call.pop("alone")
    if len(alone) == 1:
        (outcome,) = alone.values()
        assert outcome["result"] == call.get("result_injected", call["result"]), call["id"]
        assert outcome["args"] == call.get("args_injected", call["args"]), call["id"]
    assert ("result_injected" in call or "args_injected" in call) == bool(alone), call["id"]
    if alone:
        call["vectors"] = sorted(alone)
    if len(alone) > 1:
        call["result_alone"] = {vector: outcome["result"] for vector, outcome in sorted(alone.items())}


# --- putting it together ----------------------------------------------------------------------------------------------


def check_package() -> None:
    """The trace is for one package version: another one may have other tasks, tools or texts."""
    found, expected = importlib.metadata.version("agentdojo"), runs.PACKAGE_VERSION
    if found != expected:
        print(f"note: agentdojo {found} is installed, the shipped trace is from {expected}", file=sys.stderr)


def build_trace() -> dict[str, Any]:
    """The whole trace as plain data."""
    check_package()
    with runs.repeatable_tools():
        suites = [SuiteTrace(name, suite) for name, suite in runs.load_suites().items()]
    figures: Counter[str] = Counter()
    dropped = 0
    trace: dict[str, Any] = {"records": [], "calls": [], "tasks": [], "skills": [], "vectors": {}, "unread_vectors": []}
    for suite in suites:
        figures += check_counterfactual(suite)
        dropped += suite.dropped_edges
        for call in suite.calls.values():
            settle_alone(call)
        trace["records"] += suite.records()
        trace["calls"] += suite.calls.values()
        trace["tasks"] += suite.tasks
        trace["skills"] += suite.skills()
        add_vectors(trace, suite)
    trace["format"] = FORMAT
    trace["source"] = {
        "package": "agentdojo",
        "version": importlib.metadata.version("agentdojo"),
        "benchmark": runs.BENCHMARK_VERSION,
        "licence": "MIT",
        "url": "https://github.com/ethz-spylab/agentdojo",
    }
    trace["figures"] = trace_figures(trace, figures) | {"edges_dropped_for_order": dropped}
    return trace


def add_vectors(trace: dict[str, Any], suite: SuiteTrace) -> None:
    read = {vector for call in suite.calls.values() for vector in call.get("vectors", [])}
    for vector, (goal_task, text) in suite.texts.items():
        if vector not in read:
            trace["unread_vectors"].append(vector)
            continue
        trace["vectors"][vector] = {
            "suite": suite.name,
            "records": suite.vector_records[vector],
            "marker": runs.marker(vector),
            "text": text,
            "goal_of": f"{suite.name}/{goal_task}",
        }


def trace_figures(trace: dict[str, Any], counterfactual: Counter[str]) -> dict[str, int]:
    parents = [parent for call in trace["calls"] for parent in call["parents"]]
    kinds = Counter(record["kind"] for record in trace["records"])
    return {
        "source_records": kinds["source"],
        "tool_records": kinds["tool"],
        "calls": len(trace["calls"]),
        "calls_executed": sum(len(task["calls"]) for task in trace["tasks"]),
        "calls_shared": sum(len(call["tasks"]) > 1 for call in trace["calls"]),
        "calls_changed": sum("vectors" in call for call in trace["calls"]),
        "tasks": len(trace["tasks"]),
        "tasks_pass": sum(task["utility"] for task in trace["tasks"]),
        "tasks_pass_injected": sum(task["utility_injected"] for task in trace["tasks"]),
        "skills": len(trace["skills"]),
        "edges_tool": sum(parent.startswith("tool/") for parent in parents),
        "edges_source": sum(parent.startswith("source/") for parent in parents),
        "edges_call": sum(parent.startswith("call/") for parent in parents),
        "edges_optional": sum(len(call.get("optional", [])) for call in trace["calls"]),
        "vectors_read": len(trace["vectors"]),
        "vectors_unread": len(trace["unread_vectors"]),
        **{f"counterfactual_{name}": count for name, count in counterfactual.items()},
    }


def packed(trace: dict[str, Any]) -> bytes:
    """The file's bytes: compact JSON with sorted keys, gzip without a time stamp or a name."""
    text = json.dumps(trace, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(text.encode())
    return buffer.getvalue()


def check_shipped(content: bytes) -> str | None:
    """What is wrong with the shipped files, or None. Another zlib may compress differently: then the text decides."""
    if not TRACE.exists() or not LICENSE.exists():
        return "the trace or the licence is not there"
    shipped = TRACE.read_bytes()
    if shipped != content and gzip.decompress(shipped) != gzip.decompress(content):
        return "the shipped trace is not what the package gives"
    if LICENSE.read_text() != package_licence():
        return "the shipped licence is not the package's"
    return None


def package_licence() -> str:
    """The MIT text with its copyright line, from the installed package."""
    files: Iterable[Any] = importlib.metadata.files("agentdojo") or []
    return str(next(path for path in files if path.name == "LICENSE").read_text())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make or check the AgentDojo trace.")
    parser.add_argument("--check", action="store_true", help="regenerate and compare with the shipped file")
    options = parser.parse_args(argv)
    trace = build_trace()
    content = packed(trace)
    for name, count in trace["figures"].items():
        print(f"{name:40} {count}")
    print(f"{'bytes':40} {len(content)}")
    if options.check:
        problem = check_shipped(content)
        print(problem or "the shipped trace is what the package gives")
        return 1 if problem else 0
    DATA.mkdir(parents=True, exist_ok=True)
    TRACE.write_bytes(content)
    LICENSE.write_text(package_licence())
    return 0


if __name__ == "__main__":
    sys.exit(main())
