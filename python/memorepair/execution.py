"""Running user code: operators and validators under a deadline, their answers checked and copied.

Contract: `run_operator` returns an encoded, immutable draft or raises OperatorError; `judge` returns None for a pass
and a reason otherwise. Nothing user code does after its deadline can matter: its answer is never looked at again.
Invariants: only an explicit pass is a pass; any exception, hang or wrong type is a failure with a reason.
Source: MemoRepair phase 4; docs/SEMANTICS.md rule 8.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from memorepair.amounts import Cost, parse_cost
from memorepair.content import Body, External, decode, encode
from memorepair.errors import MemorepairError, OperatorError
from memorepair.rules import Draft, Job, Operator, Validator, Verdict

R = TypeVar("R")


class Made(msgspec.Struct, frozen=True):
    """A draft, encoded: what an operator made cannot change any more."""

    body: Body
    cost: Cost | None
    facts: str | None

    def draft(self) -> Draft:
        """Return a fresh copy for a validator."""
        content = decode(self.body.codec, self.body.body, self.body.digest)
        facts = None if self.facts is None else msgspec.json.decode(self.facts)
        return Draft(content, None if self.cost is None else str(self.cost), facts)


def within_deadline(what: str, timeout_seconds: float, call: Callable[[], R]) -> R:
    """Return call(), or raise OperatorError when it raises anything or does not return in time."""
    answers: queue.SimpleQueue[tuple[Any, str | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # user code may raise anything, SystemExit included
            answers.put((error, f"{type(error).__name__}: {_first_line(error)}"))

    # A daemon thread: one that never returns must not keep the process alive, and its late answer has no reader.
    threading.Thread(target=work, name=f"memorepair {what}", daemon=True).start()
    try:
        answer, problem = answers.get(timeout=timeout_seconds)
    except queue.Empty:
        raise OperatorError(f"{what} missed its deadline of {timeout_seconds:g} s; a late answer is refused") from None
    if problem is not None:
        raise OperatorError(f"{what} raised {problem}") from answer
    result: R = answer
    return result


def fresh(job: Job) -> Job:
    """Return the job with contents of its own, so that nobody it was given to before can have changed them."""
    inputs, interface = (
        {key: _copied(content) for key, content in contents.items()} for contents in (job.inputs, job.interface)
    )
    return msgspec.structs.replace(
        job, inputs=inputs, interface=interface, versions=dict(job.versions), labels=dict(job.labels)
    )


def _copied(content: Any) -> Any:
    if isinstance(content, (str, bytes, External)):
        return content
    return msgspec.json.decode(msgspec.json.encode(content))


def run_operator(operator: Operator, job: Job) -> Made:
    """Run an operator and encode what it returns."""
    what = f"operator {operator.name}@{operator.version} for {job.key!r}"
    draft = within_deadline(what, operator.timeout_seconds, lambda: operator.function(job))
    if not isinstance(draft, Draft):
        raise OperatorError(f"{what}: expected a Draft, got {type(draft).__name__}; return memorepair.Draft(content)")
    if not (draft.facts is None or isinstance(draft.facts, dict)):
        raise OperatorError(f"{what}: facts: expected a dict or None, got {type(draft.facts).__name__}")
    try:
        facts = None if draft.facts is None else encode(draft.facts).body.decode()
        return Made(encode(draft.content), parse_cost(draft.cost), facts)
    except MemorepairError as error:
        raise OperatorError(f"{what}: {error}") from error


def judge(validators: list[Validator], job: Job, made: Made) -> str | None:
    """Return None when every validator passes the draft, otherwise the first reason against it."""
    for validator in validators:
        what = f"validator {validator.name}"
        try:
            verdict = within_deadline(what, validator.timeout_seconds, _call(validator, job, made))
        except OperatorError as error:
            return str(error)
        if not isinstance(verdict, Verdict) or not isinstance(verdict.is_passed, bool):
            return f"{what}: expected passed() or failed(reason), got {_named(verdict)}; that is not a pass"
        if not verdict.is_passed:
            return f"{what}: {_storable(verdict.reason) if isinstance(verdict.reason, str) else _named(verdict.reason)}"
    return None


def _call(validator: Validator, job: Job, made: Made) -> Callable[[], Verdict]:
    given = fresh(job)
    return lambda: validator.function(given, made.draft())


def _first_line(error: BaseException) -> str:
    try:
        lines = str(error).splitlines()
    except BaseException as other:  # the message is user code too
        return f"its message raised {type(other).__name__}"
    return _storable(lines[0][:300]) if lines else "no message"


def _storable(text: str) -> str:
    """Text that every backend can store: a lone surrogate becomes an escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def _named(value: object) -> str:
    """A value as text, without running its own code."""
    return f"{value!r:.80}" if type(value) in (bool, int, str, bytes, type(None)) else f"a {type(value).__name__}"
