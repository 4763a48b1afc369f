"""Hypothesis strategies: keys, contents, graphs, selection problems, histories of a store, faulty operators.

Contract: every strategy shrinks; pools are small, so that what is drawn collides. A history is a list of `Command`
values that name keys, never versions, so it replays on any store and on the reference model: see `apply` and `replay`.
Source: docs/SEMANTICS.md invariants I12 and I13 (hostile keys).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from memorepair.errors import MemorepairError
from memorepair.memory import MemoryBackend
from memorepair.rules import Draft, Job, Rules, Verdict, passed
from memorepair.store import Store, open_store
from memorepair.testing.reference import Reference
from memorepair.testing.rows import rebuilt, reply_of

KEYS = ("a", "b", "c%_", "d'\"--", "é/漢", "s")
OPERATORS = ("build", "build2")
HOSTILE_KEYS = (
    "%",
    "_",
    "*",
    "?",
    "[a-z]",
    "'; DROP TABLE version; --",
    '"',
    "\\",
    "a b",
    "a@1",
    "@",
    "0",
    "-1",
    "NULL",
    "é",
    "漢字",
    "🦊",
    "\U0010fffd",
    "a\ufeff",
    "k" * 512,
    "漢" * 170,
)
BAD_KEYS = (
    "",
    " a",
    "a ",
    "a\n",
    "\x00",
    "a\x7f",
    "\x85",
    "\ud800",
    "e\u0301",
    "a\u202eb",
    "\u2066",
    "k" * 513,
    "漢" * 171,
    7,
    None,
    b"a",
    True,
)


def keys() -> st.SearchStrategy[str]:
    """Legal keys, hostile ones among them."""
    plain = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
    return st.sampled_from(KEYS + HOSTILE_KEYS) | plain.filter(_is_legal)


def bad_keys() -> st.SearchStrategy[Any]:
    """What must be refused as a key, with InvalidKeyError."""
    return st.sampled_from(BAD_KEYS)


def _is_legal(text: str) -> bool:
    from memorepair.keys import checked_name

    try:
        checked_name(text)
    except MemorepairError:
        return False
    return True


def contents() -> st.SearchStrategy[Any]:
    """Content that must come back equal: text, bytes, JSON."""
    numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    text = st.text(st.characters(codec="utf-8"), max_size=20)
    leaves = st.booleans() | numbers | text | st.none()
    trees = st.recursive(leaves, lambda kids: st.lists(kids, max_size=3) | st.dictionaries(text, kids, max_size=3))
    return text | st.binary(max_size=20) | trees.filter(lambda tree: tree is not None)


def bad_contents() -> st.SearchStrategy[Any]:
    """What must be refused as content, with InvalidContentError."""
    ring: list[Any] = []
    ring.append(ring)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    return st.sampled_from(
        [None, float("nan"), [float("inf")], "\ud800", ["\udfff"], {1: "a"}, (1, 2), object(), {1, 2}]
    ) | (st.sampled_from([ring, deep, print, {"a": b"bytes"}]))


def graphs(max_nodes: int = 12) -> st.SearchStrategy[tuple[int, list[tuple[int, int]]]]:
    """Numbers of nodes with edges (parent, child); nodes are 1 to n, edges run from older to younger."""

    def edges(count: int) -> st.SearchStrategy[tuple[int, list[tuple[int, int]]]]:
        pair = st.tuples(st.integers(1, count), st.integers(1, count)).filter(lambda edge: edge[0] < edge[1])
        some = st.lists(pair, max_size=3 * count, unique=True) if count > 1 else st.just([])
        return st.tuples(st.just(count), some)

    return st.integers(1, max_nodes).flatmap(edges)


@dataclass(frozen=True)
class SelectionProblem:
    """Nodes 0 to n - 1 with values, costs, executable flags, and what each one needs; `budget` is an upper limit."""

    values: tuple[int, ...]
    costs: tuple[int, ...]
    executable: tuple[bool, ...]
    needs: tuple[tuple[int, ...], ...]
    budget: int


@st.composite
def selection_problems(draw: st.DrawFn, max_nodes: int = 8) -> SelectionProblem:
    """Small selection problems, cycles and free nodes included; a needed node may be one that cannot be executed."""
    count = draw(st.integers(1, max_nodes))
    amounts = st.integers(0, 9) | st.sampled_from([10**6, 3 * 10**6, 7 * 10**12])
    return SelectionProblem(
        values=tuple(draw(st.lists(amounts, min_size=count, max_size=count))),
        costs=tuple(draw(st.lists(amounts, min_size=count, max_size=count))),
        executable=tuple(draw(st.lists(st.sampled_from([True, True, True, False]), min_size=count, max_size=count))),
        needs=tuple(
            tuple(sorted(draw(st.sets(st.integers(0, count - 1), max_size=2)) - {node})) for node in range(count)
        ),
        budget=draw(st.integers(0, 30) | amounts),
    )


# -- histories ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """One call. `parents` and `optional` are keys and stand for the newest version of each; so are event roots."""

    verb: str
    key: str = ""
    content: Any = ""
    kind: str = "record"
    form: str | None = None
    parents: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    operator: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    supersede: bool = False
    stale: str = "reject"
    event: str = ""


def commands(pool: Sequence[str] = KEYS, event_ids: Sequence[str] = ("e1", "e2", "e3")) -> st.SearchStrategy[Command]:
    """Single calls over a small pool of keys."""
    key, event = st.sampled_from(pool), st.sampled_from(event_ids)
    content = st.sampled_from(["x", "y", "z"])
    some = st.lists(key, max_size=2, unique=True).map(tuple)
    labels = st.sampled_from([(), (), (("team", "cs"),)])
    operator = st.sampled_from(["build@1", "build2@3", "unknown@1", None])
    put = st.builds(
        Command, st.just("put"), key, content, labels=labels, supersede=st.sampled_from([False, False, True])
    )
    derive = st.builds(
        Command,
        st.just("derive"),
        key,
        content,
        kind=st.sampled_from(["summary", "cache", "skill"]),
        parents=some,
        optional=some,
        operator=operator,
        labels=labels,
        stale=st.sampled_from(["reject", "withdraw"]),
    )
    named = st.builds(Command, st.sampled_from(["delete", "suspect"]), key, event=event)
    correct = st.builds(Command, st.just("correct"), key, content, event=event)
    interface = st.builds(
        Command, st.sampled_from(["put", "migrate"]), key, content, form=st.just("interface"), event=event
    )
    back = st.builds(Command, st.sampled_from(["undo", "abandon"]), event=event)
    edge = st.builds(
        Command, st.just("add_parent"), key, parents=key.map(lambda name: (name,)), supersede=st.booleans()
    )
    return st.one_of(put, derive, derive, derive, named, correct, interface, back, edge)


def histories(
    pool: Sequence[str] = KEYS, event_ids: Sequence[str] = ("e1", "e2", "e3"), max_size: int = 25
) -> st.SearchStrategy[list[Command]]:
    """Lists of calls; many are refused, which is part of the history."""
    return st.lists(commands(pool, event_ids), min_size=1, max_size=max_size)


def head_of(target: Store | Reference, key: str) -> int:
    """The number of a key's head, withdrawn or not; a number that no version has when the key is unknown."""
    if isinstance(target, Reference):
        return target.heads.get(key, 2**31)
    return target.get_many([key])[0].version or 2**31


def apply(target: Store | Reference, command: Command, event_id: str = "") -> tuple[str, Any]:
    """
    Make one call; return ("done", version or event in plain values) or ("refused", name of the error).

    `event_id` names the event of a put that turns out to be a correction, for the reference model.
    """
    c, store = command, target
    parents = [head_of(target, key) for key in c.parents]
    optional = [head_of(target, key) for key in c.optional]
    answer: Any
    try:
        match c.verb:
            case "put":
                named = {"event_id": event_id} if isinstance(store, Reference) else {}
                answer = store.put(
                    c.key,
                    c.content,
                    form=c.form,
                    labels=dict(c.labels),
                    supersede=c.supersede,
                    **named,  # type: ignore[arg-type]
                )
            case "derive":
                answer = store.derive(
                    c.key,
                    c.content,
                    kind=c.kind,
                    parents=parents,
                    optional=optional,
                    operator=c.operator,
                    labels=dict(c.labels),
                    stale=c.stale,
                )
            case "delete" | "suspect":
                answer = getattr(store, c.verb)(c.key, event_id=c.event)
            case "correct" | "migrate":
                answer = getattr(store, c.verb)(c.key, c.content, event_id=c.event)
            case "undo":
                answer = store.undo(c.event)
            case "abandon":
                answer = store.abandon(c.event)
            case _:
                answer = store.add_parent(head_of(target, c.key), parents[0], optional=c.supersede)
    except MemorepairError as error:
        return "refused", type(error).__name__
    if hasattr(answer, "__index__"):
        return "done", answer.__index__()
    return "done", reply_of(answer) if hasattr(answer, "event_id") else answer


def replay(target: Store | Reference, history: Iterable[Command]) -> list[tuple[str, Any]]:
    """Make every call in order and return the answers."""
    return [apply(target, command, f"put-{number}") for number, command in enumerate(history)]


@st.composite
def stores(draw: st.DrawFn, pool: Sequence[str] = KEYS, max_size: int = 25) -> Store:
    """In-memory stores with a past."""
    store = open_store(MemoryBackend(), max_cascade=None)
    replay(store, draw(histories(pool, max_size=max_size)))
    return store


# -- operators and validators ------------------------------------------------------------------------------------------


def build(job: Job) -> Draft:
    """The deterministic operator: the same inputs give the same content, as in the reference model."""
    return Draft(rebuilt(job.key, {**job.inputs, **job.interface}), cost="3 tokens")


def deterministic_rules(
    operators: Iterable[str] = OPERATORS, is_broken: Callable[[str], bool] = lambda key: False
) -> Rules:
    """Rules whose operators are `build`; they raise for keys that are broken. A validator passes everything."""

    def run(job: Job) -> Draft:
        if is_broken(job.key):
            raise RuntimeError(f"told to fail for {job.key}")
        return build(job)

    rules = Rules()
    for name in operators:
        rules.operator(name, version="1")(run)
    rules.validator("any")(lambda job, draft: passed())
    return rules


class _Rude(BaseException):
    """An error that `except Exception` does not catch."""


class _Mute(Exception):
    """An error whose message raises."""

    def __str__(self) -> str:
        raise RuntimeError("no message for you")

    __repr__ = __str__


def _raises(error: BaseException) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        raise error

    return run


def _returns(answer: Any) -> Callable[..., Any]:
    return lambda *values: answer


def _hangs(*values: Any) -> Any:
    threading.Event().wait(30)


HANG_TIMEOUT_SECONDS = 0.02
FAULTS: dict[str, Callable[..., Any]] = {
    "raises": _raises(ValueError("boom")),
    "raises without a message": _raises(KeyError()),
    "raises SystemExit": _raises(SystemExit(3)),
    "raises KeyboardInterrupt": _raises(KeyboardInterrupt()),
    "raises a BaseException": _raises(_Rude("rude")),
    "raises without a readable message": _raises(_Mute()),
    "raises a lone surrogate": _raises(ValueError("\ud800")),
    "raises StopIteration": _raises(StopIteration()),
    "hangs": _hangs,
    "returns None": _returns(None),
    "returns text": _returns("a draft, says it"),
    "returns bytes": _returns(b"\xff"),
    "returns a class": _returns(Draft),
    "returns what cannot be shown": _returns(_Mute()),
}
OPERATOR_FAULTS: dict[str, Callable[..., Any]] = FAULTS | {
    "returns True": _returns(True),
    "no content": _returns(Draft(None)),
    "content NaN": _returns(Draft(float("nan"))),
    "content a lone surrogate": _returns(Draft("\ud800")),
    "content an object": _returns(Draft(object())),
    "content not JSON": _returns(Draft({1: {2, 3}})),
    "cost without a unit": _returns(Draft("x", cost="7")),
    "cost negative": _returns(Draft("x", cost="-1 tokens")),
    "cost NaN": _returns(Draft("x", cost="nan tokens")),
    "cost a float": _returns(Draft("x", cost=1.5)),  # type: ignore[arg-type]
    "cost huge": _returns(Draft("x", cost="1e300 tokens")),
    "facts not JSON": _returns(Draft("x", facts={"a": object()})),
    "facts a list": _returns(Draft("x", facts=[1])),  # type: ignore[arg-type]
    "facts bytes": _returns(Draft("x", facts=b"\xff")),  # type: ignore[arg-type]
}
VALIDATOR_FAULTS: dict[str, Callable[..., Any]] = FAULTS | {
    "returns True": _returns(True),
    "returns 1": _returns(1),
    "returns ok": _returns("ok"),
    "verdict of 1": _returns(Verdict(1)),  # type: ignore[arg-type]
    "verdict of text": _returns(Verdict("no")),  # type: ignore[arg-type]
    "fails without a readable reason": _returns(Verdict(False, _Mute())),  # type: ignore[arg-type]
    "fails": _returns(Verdict(False, "no \x1b[31m\ud800")),
}


def faulty_operators() -> st.SearchStrategy[tuple[str, Callable[[Job], Draft]]]:
    """Operators that must end as `failed`, by name. Register them with `timeout_seconds=HANG_TIMEOUT_SECONDS`."""
    return st.sampled_from(sorted(OPERATOR_FAULTS)).map(lambda name: (name, OPERATOR_FAULTS[name]))


def faulty_validators() -> st.SearchStrategy[tuple[str, Callable[[Job, Draft], Verdict]]]:
    """Validators that must never let a draft pass, by name."""
    return st.sampled_from(sorted(VALIDATOR_FAULTS)).map(lambda name: (name, VALIDATOR_FAULTS[name]))
