"""The shipped AgentDojo trace keeps its promises.

Purpose: the demo and the benchmarks build on `python/memorepair/data/agentdojo.json.gz`; its invariants are checked
here without agentdojo, and, where agentdojo is installed, the file is regenerated and compared.
Contract: see `python/memorepair/data/README.md`.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "python" / "memorepair" / "data"
FILE = DATA / "agentdojo.json.gz"


@pytest.fixture(scope="module")
def trace() -> dict[str, Any]:
    return json.loads(gzip.decompress(FILE.read_bytes()))


@pytest.fixture(scope="module")
def calls(trace: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {call["id"]: call for call in trace["calls"]}


@pytest.fixture(scope="module")
def records(trace: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in trace["records"]}


def above(calls: dict[str, dict[str, Any]], ident: str) -> set[str]:
    seen: set[str] = set()
    stack = [ident]
    while stack:
        for parent in calls.get(stack.pop(), {"parents": []})["parents"]:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return seen


def markers_in(text: str, trace: dict[str, Any]) -> set[str]:
    return {vector for vector, info in trace["vectors"].items() if info["marker"] in text}


def test_small_and_licensed() -> None:
    assert FILE.stat().st_size < 400_000
    assert FILE.read_bytes()[4:8] == b"\0\0\0\0", "a time stamp makes the bytes differ from run to run"
    licence = (DATA / "AGENTDOJO_LICENSE").read_text()
    assert "MIT License" in licence
    assert "Copyright" in licence


def test_counts(trace: dict[str, Any]) -> None:
    suites = {
        suite: sum(task["suite"] == suite for task in trace["tasks"])
        for suite in ("workspace", "banking", "slack", "travel")
    }
    assert suites == {"workspace": 40, "banking": 16, "slack": 21, "travel": 20}
    assert len(trace["vectors"]) + len(trace["unread_vectors"]) == 39
    assert not trace["vectors"].keys() & set(trace["unread_vectors"])
    assert trace["figures"]["calls"] == len(trace["calls"])
    assert trace["figures"]["edges_source"] == sum(
        parent.startswith("source/") for call in trace["calls"] for parent in call["parents"]
    )


def test_every_task_passes_its_own_check(trace: dict[str, Any]) -> None:
    assert all(task["utility"] for task in trace["tasks"])


def test_ids_are_unique_and_resolve(trace: dict[str, Any]) -> None:
    ids = [entry["id"] for kind in ("records", "calls", "tasks", "skills") for entry in trace[kind]]
    assert len(ids) == len(set(ids))
    known = set(ids)
    for call in trace["calls"]:
        assert set(call["parents"]) <= known
        assert set(call.get("optional", [])) <= set(call["parents"])
        assert call["parents"][0] == f"tool/{call['suite']}/{call['fn']}"
        assert set(call["tasks"]) <= known
    for task in trace["tasks"]:
        assert set(task["calls"]) <= known
        assert len(task["arguments"]) == len(task["calls"])
    for skill in trace["skills"]:
        assert set(skill["parents"]) | set(skill["tasks"]) | {step["tool"] for step in skill["steps"]} <= known


def test_every_record_is_used(trace: dict[str, Any], records: dict[str, Any]) -> None:
    used = {parent for call in trace["calls"] for parent in call["parents"]}
    assert records.keys() <= used


def test_acyclic(trace: dict[str, Any], calls: dict[str, Any]) -> None:
    place = {ident: i for i, ident in enumerate(calls)}
    for call in trace["calls"]:
        assert all(place[parent] < place[call["id"]] for parent in call["parents"] if parent in place)


def test_calls_and_tasks_agree(trace: dict[str, Any], calls: dict[str, Any]) -> None:
    users: dict[str, list[str]] = {ident: [] for ident in calls}
    for task in trace["tasks"]:
        for ident in dict.fromkeys(task["calls"]):
            users[ident].append(task["id"])
    assert {ident: call["tasks"] for ident, call in calls.items()} == users
    asked = [(c["suite"], c["fn"], json.dumps(c["args"], sort_keys=True), c["result"]) for c in trace["calls"]]
    assert len(asked) == len(set(asked)), "one call, one artifact"


def test_skills_are_the_sequences_of_their_tasks(trace: dict[str, Any], calls: dict[str, Any]) -> None:
    tasks = {task["id"]: task for task in trace["tasks"]}
    seen = set()
    for skill in trace["skills"]:
        fns = [step["fn"] for step in skill["steps"]]
        assert len(fns) >= 2
        assert (skill["suite"], *fns) not in seen
        seen.add((skill["suite"], *fns))
        for ident in skill["tasks"]:
            assert [calls[call]["fn"] for call in tasks[ident]["calls"]] == fns
        for i, step in enumerate(skill["steps"]):
            origins = {origin for found in step["args"].values() for origin in found}
            assert all(origin in ("prompt", "literal") or int(origin.removeprefix("step:")) < i for origin in origins)
    assert sum(len(task["calls"]) > 1 for task in trace["tasks"]) == sum(len(s["tasks"]) for s in trace["skills"])


def test_each_vector_sits_in_its_records_only(trace: dict[str, Any], records: dict[str, Any]) -> None:
    for vector, info in trace["vectors"].items():
        holding = {ident for ident, record in records.items() if info["marker"] in record.get("content_injected", "")}
        assert holding == set(info["records"])
        assert all(records[ident]["vector"] == vector for ident in holding)
    for record in records.values():
        assert ("vector" in record) == ("content_injected" in record)
        assert not markers_in(record["content"], trace)


def test_changed_calls_rest_on_their_vectors(trace: dict[str, Any], calls: dict[str, Any]) -> None:
    changed = [call for call in trace["calls"] if {"result_injected", "args_injected"} & call.keys()]
    assert len(changed) == trace["figures"]["calls_changed"] > 50
    for call in trace["calls"]:
        assert bool(call.get("vectors")) == (call in changed)
        for vector in call.get("vectors", []):
            assert above(calls, call["id"]) & set(trace["vectors"][vector]["records"]), (call["id"], vector)


def test_markers_land_where_the_record_is_read(trace: dict[str, Any], calls: dict[str, Any]) -> None:
    for call in trace["calls"]:
        vectors = set(call.get("vectors", []))
        direct = {v for v in vectors if set(trace["vectors"][v]["records"]) & set(call["parents"])}
        assert not markers_in(call["result"], trace)
        landed = call.get("result_injected", "") + json.dumps(call.get("args_injected", {}))
        assert direct <= markers_in(landed, trace) <= vectors
        for vector in vectors - direct:
            assert any(vector in calls[parent].get("vectors", []) for parent in call["parents"] if parent in calls)


def test_single_vector_results(trace: dict[str, Any]) -> None:
    for call in trace["calls"]:
        assert (len(call.get("vectors", [])) > 1) == ("result_alone" in call)
        for vector, text in call.get("result_alone", {}).items():
            assert markers_in(text, trace) == {vector}
        assert set(call.get("result_alone", call.get("vectors", []))) == set(call.get("vectors", []))


def test_the_file_is_what_the_package_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("agentdojo")
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "agentdojo"))
    try:
        make_trace = importlib.import_module("make_trace")
        assert make_trace.main(["--check"]) == 0
    finally:
        for name in ("make_trace", "agentdojo_runs"):
            sys.modules.pop(name, None)
