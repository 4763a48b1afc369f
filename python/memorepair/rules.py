"""Rules: the user's operators and validators, and what they are handed.

Contract: an operator takes a Job and returns a Draft; a validator takes (Job, Draft) and returns passed() or
failed(reason). Anything else is a failure, never a pass. Content reaches an operator as data: job.inputs are fresh
copies, and nothing an operator keeps a hold of can change what was staged.
Source: MemoRepair phases 2 and 4; docs/SEMANTICS.md invariant I13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from memorepair.artifact import KINDS
from memorepair.errors import InvalidRequestError
from memorepair.keys import checked_name

MODES = ("recompute", "regen", "param")
DEFAULT_TIMEOUT_SECONDS = 60.0


class Draft(msgspec.Struct, frozen=True):
    """What an operator made: content, what it cost ("250 tokens"), and facts worth keeping (JSON)."""

    content: Any
    cost: str | None = None
    facts: dict[str, Any] | None = None


class Verdict(msgspec.Struct, frozen=True):
    """A validator's answer. Make one with passed() or failed(reason)."""

    is_passed: bool
    reason: str = ""


def passed() -> Verdict:
    """The draft may be published."""
    return Verdict(True)


def failed(reason: str) -> Verdict:
    """The draft must not be published, because of `reason`."""
    return Verdict(False, str(reason))


class Job(msgspec.Struct, frozen=True):
    """
    One rebuild. `inputs` and `interface` map parent keys to their present content; `absent` names optional parents
    that are gone. `version` is the id that the successor will have, for writing beside it in an index of your own.
    """

    key: str
    version: int
    kind: str
    form: str | None
    mode: str
    title: str | None
    labels: dict[str, str]
    inputs: dict[str, Any]
    interface: dict[str, Any]
    versions: dict[str, int]  # every input's key -> version
    absent: tuple[str, ...]
    roots: tuple[str, ...]  # root keys of the events that withdrew this artifact
    events: tuple[str, ...]
    read_old: Callable[[], Any]

    def old(self) -> Any:
        """Return the withdrawn content. Refused after delete or suspect unless the operator declares reads_old."""
        return self.read_old()


OperatorFunction = Callable[[Job], Draft]
ValidatorFunction = Callable[[Job, Draft], Verdict]
O = TypeVar("O", bound=OperatorFunction)  # noqa: E741
V = TypeVar("V", bound=ValidatorFunction)


class Operator(msgspec.Struct, frozen=True):
    """A registered operator. `mode` None means the mode of the artifact's kind."""

    name: str
    version: str
    function: OperatorFunction
    mode: str | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    reads_old: bool = False


class Validator(msgspec.Struct, frozen=True):
    """A registered validator. `kinds` empty means every kind."""

    name: str
    function: ValidatorFunction
    kinds: tuple[str, ...] = ()
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


class Rules:
    """Operators by name and validators by kind, in the order they were registered."""

    def __init__(self) -> None:
        self.operators: dict[str, Operator] = {}
        self.validators: list[Validator] = []

    def operator(
        self,
        name: str,
        *,
        version: str,
        mode: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        reads_old: bool = False,
    ) -> Callable[[O], O]:
        """Register the function that rebuilds artifacts derived by operator `name`, of whatever version."""
        checked_name(name, "operator")
        checked_name(version, "operator version")
        if "@" in name:
            raise InvalidRequestError(
                f"operator {name!r}: expected no '@' in a name; pass version={name.partition('@')[2]!r}"
            )
        if mode is not None and mode not in MODES:
            raise InvalidRequestError(
                f"operator {name!r}: mode: expected one of {', '.join(MODES)} or None, got {mode!r}"
            )
        if name in self.operators:
            raise InvalidRequestError(f"operator {name!r}: registered already; expected one function per name")
        timeout = _checked_timeout(timeout_seconds, f"operator {name!r}")

        def register(function: O) -> O:
            self.operators[name] = Operator(name, version, function, mode, timeout, reads_old)
            return function

        return register

    def validator(
        self, name: str, *, kinds: Iterable[str] = (), timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> Callable[[V], V]:
        """Register a check that every draft of `kinds` (all when empty) must pass."""
        checked_name(name, "validator")
        chosen = tuple(kinds)
        for kind in chosen:
            if kind not in KINDS:
                raise InvalidRequestError(f"validator {name!r}: kind: expected one of {', '.join(KINDS)}, got {kind!r}")
        timeout = _checked_timeout(timeout_seconds, f"validator {name!r}")

        def register(function: V) -> V:
            self.validators.append(Validator(name, function, chosen, timeout))
            return function

        return register

    def validators_for(self, kind: str) -> list[Validator]:
        """Return the validators of a kind."""
        return [validator for validator in self.validators if not validator.kinds or kind in validator.kinds]

    def coverage(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names of the validators that watch each kind; an empty one publishes unchecked drafts."""
        return {kind: tuple(validator.name for validator in self.validators_for(kind)) for kind in KINDS}


def _checked_timeout(timeout_seconds: float, what: str) -> float:
    if (
        isinstance(timeout_seconds, bool)
        or not isinstance(timeout_seconds, (int, float))
        or not 0 < timeout_seconds < 1e7
    ):
        raise InvalidRequestError(
            f"{what}: timeout_seconds: expected a positive number below 1e7, got {timeout_seconds!r}"
        )
    return float(timeout_seconds)


def default_mode(kind: str, form: str | None) -> str:
    """Return the paper's repair mode of a kind."""
    if kind in ("record", "cache"):
        return "recompute"
    return "param" if form == "neural" else "regen"
