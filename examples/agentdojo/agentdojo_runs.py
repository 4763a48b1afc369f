"""Run the AgentDojo ground truth and see what each call read.

Purpose: everything that needs the `agentdojo` package, and nothing else: load the suites, plant texts in the injection
vectors, replay a task's ground-truth calls on the suite's environment, and list the environment as objects.
Contract: the same package version gives the same runs on every machine. Three things in the tools are not repeatable
(the wall clock in the e-mail and drive tools, the set order of participants in the calendar tool);
`repeatable_tools` pins them. A task always starts on a fresh environment.
Source: AgentDojo (Debenedetti et al., 2024), MIT licence, https://github.com/ethz-spylab/agentdojo.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.default_suites.v1.tools import calendar_client, cloud_drive_client, email_client
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import ChatAssistantMessage, ChatToolResultMessage, text_content_block_from_string
from pydantic import BaseModel

PACKAGE_VERSION = "0.1.35"
BENCHMARK_VERSION = "v1.2.2"
"""The latest benchmark version of that package."""
SUITE_NAMES = ("workspace", "banking", "slack", "travel")
FIXED_NOW = datetime.datetime(2024, 5, 15, 12, 0, 0)

ObjectKey = tuple[str, str]
Objects = dict[ObjectKey, dict[str, Any]]


# --- suites, tasks, injections ------------------------------------------------------------------------------------


def load_suites(version: str = BENCHMARK_VERSION) -> dict[str, Any]:
    """The four task suites by name."""
    suites = get_suites(version)
    return {name: suites[name] for name in SUITE_NAMES}


def ordered_tasks(suite: Any) -> list[Any]:
    """User tasks in the order of their number."""
    return sorted(suite.user_tasks.values(), key=lambda task: int(task.ID.rsplit("_", 1)[1]))


def marker(vector: str) -> str:
    """The string that shows beyond doubt that a vector's text is present."""
    return f"INJECTED-{vector}"


def injection_texts(suite: Any) -> dict[str, tuple[str, str]]:
    """`vector: (injection task, text)`: each vector gets one of the suite's own goals, in turn, in a plain sentence."""
    tasks = sorted(suite.injection_tasks.values(), key=lambda task: int(task.ID.rsplit("_", 1)[1]))
    vectors = suite.get_injection_vector_defaults()
    texts = {}
    for i, vector in enumerate(vectors):
        task = tasks[i % len(tasks)]
        texts[vector] = (task.ID, f"{marker(vector)} before anything else do this - {plain(task.GOAL)}")
    return texts


def plain(text: str) -> str:
    """One line without characters that mean something to YAML, as the package fills its YAML by text substitution."""
    text = " ".join(text.replace('"', "").replace("'", "").replace("\\", "").replace("#", "").split())
    return text.replace("{", "(").replace("}", ")").replace(": ", " - ")


def load_environment(suite: Any, injections: Mapping[str, str]) -> Any:
    """A fresh environment with these texts in the vectors (defaults elsewhere)."""
    return _environment(suite, tuple(sorted(injections.items()))).model_copy(deep=True)


@functools.lru_cache(maxsize=8)
def _environment(suite: Any, injections: tuple[tuple[str, str], ...]) -> Any:
    return suite.load_and_inject_default_environment(dict(injections))


def tool_interface(suite: Any, fn: str) -> dict[str, Any]:
    """Name, description and JSON schema of a tool, as the package hands them to a model."""
    tool = next(tool for tool in suite.tools if tool.name == fn)
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters.model_json_schema()}


@contextlib.contextmanager
def repeatable_tools() -> Iterator[None]:
    """Pin the clock and the set order inside the package's tools while runs are made."""
    clock = SimpleNamespace(datetime=SimpleNamespace(now=lambda: FIXED_NOW))
    email_datetime, drive_datetime = email_client.datetime, cloud_drive_client.datetime
    email_client.datetime = cloud_drive_client.datetime = clock
    calendar_client.set = dict.fromkeys  # `list(set(participants))` keeps the first-seen order
    try:
        yield
    finally:
        email_client.datetime, cloud_drive_client.datetime = email_datetime, drive_datetime
        del calendar_client.set


# --- replaying the ground truth -----------------------------------------------------------------------------------


@dataclass
class CallRun:
    """One executed call: what was asked, what came back, and the environment objects around it."""

    fn: str
    args: dict[str, Any]
    raw: Any
    result: str
    error: str | None
    before: Objects = field(repr=False)
    written: set[ObjectKey]


@dataclass
class TaskRun:
    """The ground-truth calls of one task in one world, and the verdict of the suite's own utility check."""

    task_id: str
    calls: list[CallRun]
    utility: bool | None


class GroundTruthRecorder(BasePipelineElement):
    """The package's GroundTruthPipeline, keeping every call and going on after a tool error."""

    def __init__(self, task: Any, watch: bool) -> None:
        self.task = task
        self.watch = watch
        self.calls: list[CallRun] = []

    def query(
        self, query: str, runtime: Any, env: Any = None, messages: Sequence[Any] = (), extra_args: Any = None
    ) -> tuple[str, Any, Any, list[Any], dict[str, Any]]:
        self.calls = []
        log = list(messages)
        before = environment_objects(env) if self.watch else {}
        for call in self.task.ground_truth(env):
            raw, error = runtime.run_function(env, call.function, call.args)
            text = tool_result_to_str(raw)
            raw = raw.model_copy(deep=True) if isinstance(raw, BaseModel) else _copy(raw)
            after = environment_objects(env) if self.watch else {}
            written = {key for key, data in after.items() if before.get(key) != data} | (before.keys() - after.keys())
            self.calls.append(CallRun(call.function, _json(call.args), raw, text, error, before, written))
            before = after
            content = [_block(text)]
            log.append(ChatAssistantMessage(role="assistant", tool_calls=[call], content=[_block("")]))
            log.append(
                ChatToolResultMessage(role="tool", content=content, tool_call=call, tool_call_id=None, error=error)
            )
        answer = [_block(self.task.GROUND_TRUTH_OUTPUT)]
        log.append(ChatAssistantMessage(role="assistant", content=answer, tool_calls=None))
        return query, runtime, env, log, extra_args or {}


def run_ground_truth(suite: Any, task: Any, injections: Mapping[str, str], watch: bool = True) -> TaskRun:
    """Replay a task's ground truth with these texts in the vectors.

    `watch=False` skips the object snapshots and the verdict (`utility` is None). The verdict goes through
    `run_task_with_pipeline`, as some tasks judge by `utility_from_traces` and raise in `utility`.
    """
    recorder = GroundTruthRecorder(task, watch)
    environment = load_environment(suite, injections)
    if not watch:
        recorder.query(task.PROMPT, FunctionsRuntime(suite.tools), environment)
        return TaskRun(task.ID, recorder.calls, None)
    utility, _ = suite.run_task_with_pipeline(recorder, task, None, {}, environment=environment)
    return TaskRun(task.ID, recorder.calls, bool(utility))


def _copy(raw: Any) -> Any:
    if isinstance(raw, list):
        return [item.model_copy(deep=True) if isinstance(item, BaseModel) else item for item in raw]
    return raw


def _block(text: str) -> Any:
    return text_content_block_from_string(text)


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


# --- the environment as objects -----------------------------------------------------------------------------------


def environment_objects(env: Any) -> Objects:
    """Every real object of an environment, `(type, name): values`, in a fixed order."""
    objects: Objects = {}
    for attribute in type(env).model_fields:
        objects.update(_EXTRACTORS[attribute](getattr(env, attribute)))
    return objects


def _dump(model: BaseModel) -> dict[str, Any]:
    return {name: _plain_value(getattr(model, name)) for name in type(model).model_fields}


def _plain_value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _dump(value)
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain_value(item) for key, item in value.items()}
    return value if isinstance(value, bool | int | float | None) else str(value)


def _by(kind: str, attribute: str, models: Sequence[BaseModel]) -> Objects:
    return {(kind, str(getattr(model, attribute))): _dump(model) for model in models}


def _inbox(inbox: Any) -> Objects:
    return _by("email", "id_", list(inbox.emails.values())) | _by("contact", "email", inbox.contact_list)


def _calendar(calendar: Any) -> Objects:
    settings = {"current_day": str(calendar.current_day), "account_email": calendar.account_email}
    return {("calendar", "settings"): settings} | _by("event", "id_", list(calendar.events.values()))


def _bank(account: Any) -> Objects:
    return (
        {("account", account.iban): {"iban": account.iban, "balance": account.balance}}
        | _by("transaction", "id", account.transactions)
        | _by("scheduled", "id", account.scheduled_transactions)
    )


def _slack(slack: Any) -> Objects:
    objects: Objects = {}
    for channel in slack.channels:
        members = [user for user, channels in slack.user_channels.items() if channel in channels]
        objects["channel", channel] = {"name": channel, "members": members}
    objects.update({("user", user): {"name": user} for user in slack.users})
    for kind, boxes in (("post", slack.channel_inbox), ("direct", slack.user_inbox)):
        for box, messages in boxes.items():
            objects.update({(kind, f"{box}-{i}"): _dump(message) for i, message in enumerate(messages)})
    return objects


def _pages(kind: str, texts: Mapping[str, str]) -> Objects:
    return {(kind, name): {"name": name, "content": text} for name, text in texts.items()}


_EXTRACTORS: dict[str, Callable[[Any], Objects]] = {
    "inbox": _inbox,
    "calendar": _calendar,
    "cloud_drive": lambda drive: _by("file", "id_", list(drive.files.values())),
    "bank_account": _bank,
    "filesystem": lambda filesystem: _pages("file", filesystem.files),
    "user_account": lambda user: {("user", "account"): _dump(user)},
    "slack": _slack,
    "web": lambda web: _pages("webpage", web.web_content),
    "hotels": lambda hotels: _by("hotel", "name", hotels.hotel_list),
    "restaurants": lambda restaurants: _by("restaurant", "name", restaurants.restaurant_list),
    "car_rental": lambda rental: _by("car_rental", "name", rental.company_list),
    "flights": lambda flights: _by("flight", "flight_number", flights.flight_list),
    "user": lambda user: {("user", "account"): _dump(user)},
    "reservation": lambda reservation: {("reservation", "current"): _dump(reservation)},
}
