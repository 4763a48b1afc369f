"""The shipped trace as an agent's memory: what it read, what its tools returned, what it wrote down.

Contract: `remember` fills an empty store with the memory an agent would have made in one world, clean or injected;
`rules_of` registers the functions that made it, so that a repair runs exactly what a clean run runs. An operator
decides by the content of its inputs alone and refuses a mix of worlds that was never run.
Memory: sources and tool interfaces are records; a tool result is a cache (operator replay@1); a summary of each task
(digest@1) takes the calls as optional parents; a procedure learned from tasks of one shape is a skill (procedure@1).
Source: AgentDojo (MIT), see data/README.md.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any

from memorepair.errors import OperatorError
from memorepair.rules import Draft, Job, Rules, Verdict, failed, passed
from memorepair.store import BatchWriter, Store
from memorepair.validators import no_retired_content, not_empty

Trace = dict[str, Any]
Contents = Mapping[str, Any]

PROCEDURE = "Procedure: "
CHARS_PER_TOKEN = 4
WRITTEN_PRICE = 4
COSTS = (
    f"tokens, one per {CHARS_PER_TOKEN} characters: a summary or skill costs what it reads plus {WRITTEN_PRICE} x what "
    "it writes, a tool call its arguments and its result"
)
VALUES = (
    "1 + reads; reads are real store.get calls: a cached result or a skill that a later task uses, "
    "a summary that a skill is learned from"
)
_FIELD = re.compile(r"\s*(?:- )?([A-Za-z_][\w ]{0,30}):(?:\s|$)")
_COMMON = frozenset(
    re.findall(r"\w+", "and are can for from have him his its the them then this that was what when which who with you")
)


class Memory:
    """The trace, indexed. `markers` maps a source's key to the string that betrays its injected content."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.records = {record["id"]: record for record in trace["records"]}
        self.calls = {call["id"]: call for call in trace["calls"]}
        self.tasks = {_summary_key(task["id"]): task for task in trace["tasks"]}
        self.skills = {skill["id"]: skill for skill in trace["skills"]}
        self.markers = {
            record: vector["marker"] for vector in trace["vectors"].values() for record in vector["records"]
        }

    @staticmethod
    def shipped() -> Memory:
        """Return the trace that comes with the package."""
        packed = files("memorepair").joinpath("data", "agentdojo.json.gz").read_bytes()
        return Memory(json.loads(gzip.decompress(packed)))

    @cached_property
    def poisoned(self) -> tuple[str, ...]:
        """The sources whose injected content differs, in key order."""
        return tuple(sorted(key for key, record in self.records.items() if "content_injected" in record))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Every key of the memory, in the order in which it is made."""
        return (*self.records, *self.calls, *self.tasks, *self.skills)

    def source(self, key: str, world: str) -> Any:
        """Return a record's content in a world."""
        record = self.records[key]
        if record["kind"] == "tool":
            return json.loads(record["content"])
        return record["content_injected"] if world == "injected" and key in self.poisoned else record["content"]


# -- operators ---------------------------------------------------------------------------------------------------------


def rules_of(memory: Memory) -> Rules:
    """Register the three operators that made the memory, and what a draft must pass."""
    rules = Rules()

    @rules.operator("replay", version="1")
    def rerun(job: Job) -> Draft:
        content = replay(memory, job.key, job.inputs)
        return Draft(content, cost=call_cost(content))

    @rules.operator("digest", version="1")
    def write_summary(job: Job) -> Draft:
        content = digest(job.title or "", job.inputs)
        return Draft(content, cost=writing_cost(job.inputs, content))

    @rules.operator("procedure", version="1")
    def learn(job: Job) -> Draft:
        inputs = {**job.inputs, **job.interface}
        content = procedure(job.title or "", inputs)
        return Draft(content, cost=writing_cost(inputs, content))

    rules.validator("not_empty")(not_empty())
    rules.validator("no_retired_content")(no_retired_content(lambda job: markers_of(memory, job)))

    @rules.validator("tells_every_call", kinds=["summary"])
    def tells_every_call(job: Job, draft: Draft) -> Verdict:
        told = len(str(draft.content).splitlines()) - 1
        return passed() if told == len(job.inputs) else failed(f"it tells {told} calls of {len(job.inputs)}")

    @rules.validator("uses_its_tools", kinds=["skill"])
    def uses_its_tools(job: Job, draft: Draft) -> Verdict:
        tools = {tool["name"] for tool in job.interface.values()}
        unknown = sorted({step["tool"] for step in draft.content["steps"]} - tools)
        return failed(f"step {unknown[0]!r} is none of its tools") if unknown else passed()

    return rules


def markers_of(memory: Memory, job: Job) -> list[str]:
    """The strings that betray the retired content of the job's roots."""
    return [memory.markers[root] for root in job.roots if root in memory.markers]


def replay(memory: Memory, key: str, inputs: Contents) -> dict[str, Any]:
    """
    Return what the tool call gives on these inputs: the recorded outcome of the world that they are in.

    Raises OperatorError for inputs whose combination was never run.
    """
    call = memory.calls[key]
    seen: dict[str, set[bool]] = {vector: set() for vector in call.get("vectors", ())}
    for parent, content in sorted(inputs.items()):
        may, present = _vectors_of(memory, parent, content)
        for vector in may & seen.keys():
            seen[vector].add(vector in present)
    if any(len(states) != 1 for states in seen.values()):
        raise OperatorError(f"{key}: its inputs mix clean and injected content, and no run has seen that")
    injected = frozenset(vector for vector, states in seen.items() if states == {True})
    for vectors, outcome in _outcomes(call):
        if vectors == injected:
            return outcome
    raise OperatorError(f"{key}: no run has seen {len(injected)} of its {len(seen)} injections together")


def _outcomes(call: Mapping[str, Any]) -> list[tuple[frozenset[str], dict[str, Any]]]:
    """What a call was seen to return, by the vectors that were injected."""
    clean = {"fn": call["fn"], "args": call["args"], "result": call["result"]}
    if "error" in call:
        clean["error"] = call["error"]
    vectors = call.get("vectors", ())
    answer = [(frozenset[str](), clean)]
    if vectors:
        injected = dict(clean, args=call.get("args_injected", call["args"]))
        injected["result"] = call.get("result_injected", call["result"])
        if "error_injected" in call:
            injected["error"] = call["error_injected"]
        answer.append((frozenset(vectors), injected))
    for vector, result in call.get("result_alone", {}).items():
        answer.append((frozenset((vector,)), dict(clean, result=result)))
    return answer


def _vectors_of(memory: Memory, key: str, content: Any) -> tuple[set[str], frozenset[str]]:
    """The vectors that an input may carry, and those that it carries, judged by its content."""
    if key in memory.records:
        record = memory.records[key]
        if "vector" not in record:
            return set(), frozenset()
        states = [(frozenset((record["vector"],)), record["content_injected"]), (frozenset(), record["content"])]
    else:
        states = _outcomes(memory.calls[key])
    for vectors, known in states:
        if known == content:
            return set().union(*(other for other, _ in states)), vectors
    raise OperatorError(f"{key}: an input with content that no run has seen")


def digest(prompt: str, inputs: Contents) -> str:
    """Return a summary of a task: of each result, the few fields that share most words with the prompt."""
    lines = [f"Task: {_cut(prompt, 240)}"]
    wanted = _words(prompt)
    for key in sorted(inputs):
        call = inputs[key]
        found = _fields(call["result"]) if call["result"] else []
        ranked = sorted(range(len(found)), key=lambda i: (-len(wanted & _words(found[i])), i))
        best = [i for i in ranked if wanted & _words(found[i])][:3] or ranked[:2]
        told = "; ".join(_cut(found[i], 160) for i in sorted(best)) or "done"
        lines.append(f"- {_shown_call(call)}: {told}")
    return "\n".join(lines)


def procedure(title: str, inputs: Contents) -> dict[str, Any]:
    """Return a procedure: when to use it, and each step with its tool, arguments and one result seen."""
    steps = []
    for fn in title.removeprefix(PROCEDURE).split(" > "):
        tools = [content for key, content in inputs.items() if key.startswith("tool/") and content["name"] == fn]
        calls = [inputs[key] for key in sorted(inputs) if key.startswith("call/") and inputs[key]["fn"] == fn]
        step: dict[str, Any] = {"tool": fn, "does": tools[0]["description"].split("\n")[0] if tools else ""}
        if calls:
            step["arguments"] = {name: _cut(_line(str(value)), 80) for name, value in calls[0]["args"].items()}
            step["seen"] = _cut(_telling(_fields(calls[0]["result"])), 160)
        steps.append(step)
    when = [inputs[key].splitlines()[0] for key in sorted(inputs) if key.startswith("summary/")]
    return {"when": when, "steps": steps}


def call_cost(content: Mapping[str, Any]) -> str:
    """The declared cost of a tool call; see COSTS."""
    return f"{1 + (len(_json(content['args'])) + len(content['result'])) // CHARS_PER_TOKEN} tokens"


def writing_cost(inputs: Contents, content: Any) -> str:
    """The declared cost of a text made from `inputs`; see COSTS."""
    read = sum(len(_json(text)) for text in inputs.values())
    return f"{(read + WRITTEN_PRICE * len(_json(content))) // CHARS_PER_TOKEN} tokens"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shown_call(call: Mapping[str, Any]) -> str:
    args = ", ".join(f"{name}={_cut(_line(str(value)), 40)}" for name, value in sorted(call["args"].items()))
    return f"{call['fn']}({args})"


def _fields(text: str) -> list[str]:
    """A result's fields or lines, each on one line; what follows a field name belongs to it."""
    found: list[str] = []
    is_field = False
    for line in text.splitlines():
        starts = _FIELD.match(line) is not None
        part = _line(line).removeprefix("- ")
        if part and (starts or not is_field):
            found.append(part)
        elif part:
            found[-1] += " " + part
        is_field = is_field or starts
    return found


def _telling(found: list[str]) -> str:
    """The field that says most: a description or body before the longest one."""
    named = [part for part in found if part.partition(":")[0] in ("description", "body", "content", "subject")]
    return max(named or found, key=len, default="")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]{3,}", text.lower())) - _COMMON


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 3].rstrip() + "..."


# -- filling a store ---------------------------------------------------------------------------------------------------


def _summary_key(task: str) -> str:
    return "summary/" + task.removeprefix("task/")


def remember(store: Store, memory: Memory, world: str) -> None:
    """Fill an empty store with what an agent would hold after all tasks in `world`, "clean" or "injected"."""
    contents: dict[str, Any] = {}
    versions: dict[str, int] = {}
    with store.batch() as batch:
        _put_records(batch, memory, world, contents, versions)
        for key, call in memory.calls.items():
            _derive_call(batch, memory, key, call, contents, versions)
    for key, task in memory.tasks.items():
        # A call that an earlier task made is a hit in the agent's cache: one read.
        _read(store, (call for call in dict.fromkeys(task["calls"]) if memory.calls[call]["tasks"][0] != task["id"]))
        _derive_summary(store, key, task, contents, versions)
    for key, skill in memory.skills.items():
        _read(store, map(_summary_key, skill["tasks"]))
        _derive_skill(store, key, skill, contents, versions)
        _read(store, [key] * (len(skill["tasks"]) - 1))  # each later task of this shape follows the procedure


def _read(store: Store, keys: Iterable[str]) -> None:
    for key in keys:
        store.get(key)


def _put_records(
    batch: BatchWriter, memory: Memory, world: str, contents: dict[str, Any], versions: dict[str, int]
) -> None:
    for key, record in memory.records.items():
        contents[key] = memory.source(key, world)
        form = "interface" if record["kind"] == "tool" else None
        labels = {"suite": record["suite"], "type": record["type"]}
        versions[key] = batch.put(key, contents[key], form=form, title=_title(record["title"]), labels=labels)


def _derive_call(
    batch: BatchWriter,
    memory: Memory,
    key: str,
    call: Mapping[str, Any],
    contents: dict[str, Any],
    versions: dict[str, int],
) -> None:
    optional = set(call.get("optional", ()))
    inputs = {parent: contents[parent] for parent in call["parents"] if not parent.startswith("tool/")}
    contents[key] = replay(memory, key, inputs)
    versions[key] = batch.derive(
        key,
        contents[key],
        kind="cache",
        form="tool_output",
        parents=[versions[parent] for parent in call["parents"] if parent not in optional],
        optional=[versions[parent] for parent in sorted(optional)],
        operator="replay@1",
        cost=call_cost(contents[key]),
        title=_title(_shown_call(contents[key])),
        labels={"suite": call["suite"]},
    )


def _derive_summary(
    store: Store, key: str, task: Mapping[str, Any], contents: dict[str, Any], versions: dict[str, int]
) -> None:
    title = _title(task["prompt"])
    inputs = {call: contents[call] for call in task["calls"]}
    contents[key] = digest(title, inputs)
    versions[key] = store.derive(
        key,
        contents[key],
        kind="summary",
        optional=[versions[call] for call in inputs],
        operator="digest@1",
        cost=writing_cost(inputs, contents[key]),
        title=title,
        labels={"suite": task["suite"], "task": task["task"]},
    ).version


def _derive_skill(
    store: Store, key: str, skill: Mapping[str, Any], contents: dict[str, Any], versions: dict[str, int]
) -> None:
    title = _title(PROCEDURE + " > ".join(step["fn"] for step in skill["steps"]))
    parents = [*skill["parents"], *map(_summary_key, skill["tasks"])]
    inputs = {parent: contents[parent] for parent in parents}
    contents[key] = procedure(title, inputs)
    versions[key] = store.derive(
        key,
        contents[key],
        kind="skill",
        form="chain",
        parents=[versions[parent] for parent in parents if parent.startswith("tool/")],
        optional=[versions[parent] for parent in parents if not parent.startswith("tool/")],
        operator="procedure@1",
        cost=writing_cost(inputs, contents[key]),
        title=title,
        labels={"suite": skill["suite"]},
    ).version


def _title(text: str) -> str:
    """Text as a legal title: one line, printable."""
    return unicodedata.normalize("NFC", _line(text))
