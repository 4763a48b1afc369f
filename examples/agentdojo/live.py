"""Repair by running the real tools: AgentDojo's own, in its own environments, judged by its own checks.

Purpose: the same job as `memorepair demo`, without the shipped trace. A store is filled while the 97 user tasks run in
poisoned environments; the poisoned objects are corrected; what rested on them is rebuilt by executing the tools again.
Contract: the operator learns the world from its inputs alone: an environment is loaded with exactly the injections
that its input records hold, and the task runs in it up to the call. A task's outcome is published only when the
suite's own utility check passes on that run (tasks judged by `utility_from_traces` included: the check goes through
the package's `run_task_with_pipeline`). Afterwards every readable artifact is compared with a clean run.
Needs: pip install agentdojo==0.1.35. Run: python examples/agentdojo/live.py [--suite banking]
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import memorepair as mr

try:
    import agentdojo_runs as runs
    import make_trace
except ImportError as error:
    sys.exit(f"error: this example needs agentdojo ({error.name} is missing); run: pip install agentdojo==0.1.35")

Contents = Mapping[str, Any]


@dataclass(eq=False)
class Live:
    """One suite: its tasks, its injections, and the objects that hold them."""

    name: str
    suite: Any
    tasks: dict[str, Any] = field(init=False)
    texts: dict[str, str] = field(init=False)
    clean: runs.Objects = field(init=False)
    keys: dict[runs.ObjectKey, str] = field(init=False)  # objects of the poisoned environment -> keys of records

    def __post_init__(self) -> None:
        self.tasks = {task.ID: task for task in runs.ordered_tasks(self.suite)}
        self.texts = {vector: text for vector, (_, text) in runs.injection_texts(self.suite).items()}
        self.clean = runs.environment_objects(runs.load_environment(self.suite, {}))
        self.poisoned = runs.environment_objects(runs.load_environment(self.suite, self.texts))
        # An injection may change an object's name (a Slack channel); its key stays that of the clean object.
        self.keys = {
            poisoned: f"source/{self.name}/{kind}/{label}"
            for poisoned, (kind, label) in zip(self.poisoned, self.clean, strict=True)
        }

    def source(self, world: runs.Objects) -> dict[str, Any]:
        """The environment's objects by key."""
        return dict(zip(self.keys.values(), world.values(), strict=True))

    @functools.cached_property
    def corrections(self) -> dict[str, Any]:
        """Clean content of every poisoned object."""
        poisoned = self.source(self.poisoned)
        return {key: data for key, data in self.source(self.clean).items() if poisoned[key] != data}

    def injections(self, inputs: Contents) -> dict[str, str]:
        """The vectors that are present in some input, judged by its content."""
        text = repr(dict(inputs))
        return {vector: text_ for vector, text_ in self.texts.items() if f"{runs.marker(vector)} " in text}

    @functools.cache  # noqa: B019 - one Live per process and suite
    def executed(self, task_id: str, vectors: tuple[str, ...]) -> runs.TaskRun:
        """Run a task's calls in a fresh environment with these vectors planted."""
        planted = {vector: self.texts[vector] for vector in vectors}
        return runs.run_ground_truth(self.suite, self.tasks[task_id], planted)


def call_key(live: Live, task_id: str, position: int) -> str:
    return f"call/{live.name}/{task_id}/{position}"


def call_content(call: runs.CallRun) -> dict[str, Any]:
    content = {"fn": call.fn, "args": call.args, "result": call.result}
    return content if call.error is None else content | {"error": call.error}


def outcome_content(calls: Sequence[Contents]) -> dict[str, Any]:
    """What a task left in memory: its calls and what the last lines of their results say."""
    return {"steps": [f"{call['fn']}: {str(call['result'])[-200:]}" for call in calls]}


def fill(store: mr.Store, live: Live) -> None:
    """Run every task in the poisoned environment and keep what was read, returned and concluded."""
    versions: dict[str, int] = {}
    with store.batch() as batch:
        for key, data in live.source(live.poisoned).items():
            versions[key] = batch.put(key, data)
        for tool in sorted(live.suite.tools, key=lambda tool: tool.name):
            key = f"tool/{live.name}/{tool.name}"
            versions[key] = batch.put(key, runs.tool_interface(live.suite, tool.name), form="interface")
    for task_id, task in live.tasks.items():
        run = live.executed(task_id, tuple(sorted(live.texts)))
        flows = make_trace.flows(run, task.PROMPT)
        with store.batch() as batch:
            for position, (call, flow) in enumerate(zip(run.calls, flows, strict=True)):
                earlier = [call_key(live, task_id, place) for place in sorted(flow.state | flow.lent())]
                parents = [f"tool/{live.name}/{call.fn}", *sorted(live.keys[key] for key in flow.read), *earlier]
                key = call_key(live, task_id, position)
                versions[key] = batch.derive(
                    key,
                    call_content(call),
                    kind="cache",
                    form="tool_output",
                    parents=[versions[parent] for parent in parents],
                    operator="execute@1",
                    labels={"task": task_id, "position": str(position)},
                    cost=f"{1 + len(call.result) // 4} tokens",
                )
            calls = [call_key(live, task_id, position) for position in range(len(run.calls))]
            batch.derive(
                f"outcome/{live.name}/{task_id}",
                outcome_content([call_content(call) for call in run.calls]),
                kind="summary",
                parents=[versions[key] for key in calls],
                operator="conclude@1",
                labels={"task": task_id},
                cost=f"{1 + sum(len(call.result) for call in run.calls) // 4} tokens",
            )


def rules_of(live: Live) -> mr.Rules:
    """The real tools as operator, the suite's own check as validator."""
    rules = mr.Rules()

    def run_for(job: mr.Job) -> runs.TaskRun:
        return live.executed(job.labels["task"], tuple(sorted(live.injections(job.inputs))))

    @rules.operator("execute", version="1")
    def execute(job: mr.Job) -> mr.Draft:
        return mr.Draft(call_content(run_for(job).calls[int(job.labels["position"])]))

    @rules.operator("conclude", version="1")
    def conclude(job: mr.Job) -> mr.Draft:
        calls = sorted(job.inputs, key=lambda key: int(key.rpartition("/")[2]))
        return mr.Draft(outcome_content([job.inputs[key] for key in calls]))

    @rules.validator("utility", kinds=["summary"])
    def utility(job: mr.Job, draft: mr.Draft) -> mr.Verdict:
        run = run_for(job)
        for position, call in enumerate(run.calls):
            if job.inputs[call_key(live, job.labels["task"], position)] != call_content(call):
                return mr.failed(f"call {position} is not what the tools return in this environment")
        return mr.passed() if run.utility else mr.failed("the suite's own check says no")

    @rules.validator("no_injected_text")
    def no_injected_text(job: mr.Job, draft: mr.Draft) -> mr.Verdict:
        return mr.failed("it holds injected text") if "INJECTED-" in repr(draft.content) else mr.passed()

    return rules


def stale(store: mr.Store, clean: Contents) -> int:
    """How many readable artifacts hold injected text or differ from the clean run."""
    readable = [store.get(info.key) for info in store.find()]
    return sum("INJECTED-" in repr(got.content) or clean.get(got.key, got.content) != got.content for got in readable)


def clean_contents(live: Live) -> dict[str, Any]:
    """What the same tasks leave when nothing was injected."""
    contents = live.source(live.clean)
    for task_id in live.tasks:
        calls = [call_content(call) for call in live.executed(task_id, ()).calls]
        contents |= {call_key(live, task_id, position): call for position, call in enumerate(calls)}
        contents[f"outcome/{live.name}/{task_id}"] = outcome_content(calls)
    return contents


def repair_suite(live: Live) -> bool:
    """Fill, correct, repair and measure one suite; print a line; return whether nothing stale is left."""
    with mr.open(":memory:", max_cascade=None) as store:
        fill(store, live)
        clean = clean_contents(live)
        before = stale(store, clean)
        event = store.correct(live.corrections, reason="injected text found")
        between = stale(store, clean)
        rules = rules_of(live)
        report = mr.repair(store, mr.plan(store, event, rules, cost_weight=0), rules)
        after = stale(store, clean)
    checked = sum(o.kind == "summary" and o.fate == "published" for o in report.outcomes.values())
    print(
        f"{live.name:10} {len(live.tasks):5} {event.withdrawn:9} {report.published:9} {checked:8} "
        f"{report.candidates - report.published:6} {before:7} {between:7} {after:6}"
    )
    for outcome in report.outcomes.values():
        if outcome.fate != "published":
            print(f"  {outcome.fate} {outcome.key}: {outcome.reason}")
    return between == 0 and after == 0 and report.published == report.candidates


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Repair an agent's memory by running AgentDojo's real tools.")
    parser.add_argument("--suite", choices=runs.SUITE_NAMES, help="only this suite")
    options = parser.parse_args(argv)
    make_trace.check_package()
    print("suite      tasks withdrawn published  utility  other   stale readable: before, withdrawn, after")
    with runs.repeatable_tools():
        suites = [Live(name, suite) for name, suite in runs.load_suites().items() if options.suite in (None, name)]
        verdicts = [repair_suite(live) for live in suites]
    is_clean = all(verdicts)
    print("done: nothing stale is readable" if is_clean else "FAILED: see above")
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
