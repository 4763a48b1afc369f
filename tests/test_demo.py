"""The demo: its figures are what the method promises, its output fits a screen, and the JSON is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

import memorepair as mr
from memorepair.cli import main
from memorepair.demo import DemoReport, run
from memorepair.demo.show import WIDTH, rendered, verdict
from memorepair.demo.trace import Memory, digest, procedure, remember, replay, rules_of


@pytest.fixture(scope="module")
def report() -> DemoReport:
    return run()


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory.shipped()


def test_nothing_stale_is_readable_behind_the_barrier_and_after_the_repair(report: DemoReport) -> None:
    assert (report.leak_withdrawn, report.leak_after, report.repair_all_leak) == (0, 0, 0)
    assert report.problems == ()


def test_the_attack_is_real(report: DemoReport) -> None:
    assert report.leak_before == report.truly_stale == 192
    assert report.leak_source_only == report.truly_stale - report.roots == 155
    assert 0 < report.marked_before <= report.leak_before


def test_figures(report: DemoReport) -> None:
    assert report.memory == {"cache": 165, "record": 176, "skill": 71, "summary": 97}
    assert (report.roots, report.cascade, report.candidates) == (37, 336, 299)
    assert report.cascade == report.roots + report.candidates
    assert report.precision == round(report.truly_stale / report.cascade, 4)
    assert (report.selected, report.published, report.failed, report.not_worth_it) == (284, 284, 0, 15)
    assert report.repair_all_published == 299
    assert report.certificate == "verified"


def test_the_selector_has_something_to_decide(report: DemoReport) -> None:
    assert 0 < report.selected < report.candidates
    assert 0.5 < report.cost_ratio < 0.9
    assert report.cost_ratio == pytest.approx(report.cost / report.repair_all_cost, abs=1e-4)


def test_every_readable_artifact_equals_a_clean_run(report: DemoReport) -> None:
    assert report.equal_to_clean == report.visible == 176 + 165 + 97 + 71 - report.not_worth_it
    assert report.fsck_findings == 0


def test_a_problem_is_told(report: DemoReport) -> None:
    import msgspec

    broken = msgspec.structs.replace(report, leak_after=2, certificate="none")
    assert len(broken.problems) == 2
    assert "FAILED" in verdict(broken).plain
    assert "done" in verdict(report).plain


def test_output_is_one_screenful(report: DemoReport) -> None:
    console = Console(width=WIDTH, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(rendered(report))
        console.print(verdict(report))
    lines = capture.get().splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= WIDTH
    assert lines[-1].startswith("done in")
    assert any("INJECTED-" in line for line in lines)
    for word in ("no action", "only the sources replaced", "after the repair", "Costs:", "Limit:"):
        assert any(word in line for line in lines), word


def test_the_story_starts_stale_and_ends_clean(report: DemoReport) -> None:
    story = report.story
    assert story.marker in story.before
    assert story.marker not in story.after
    assert "demo/injected-sources" in story.withdrawn
    assert story.path[-1] == story.key


def test_json_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    result = CliRunner().invoke(main, ["demo", "--json", "--store", str(path)])
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    for name in ("cascade", "leak_before", "leak_source_only", "candidates", "selected", "published", "cost_ratio"):
        assert value[name] > 0, name
    assert value["leak_after"] == 0
    assert value["certificate"] == "verified"
    assert value["problems"] == []
    assert {"costs", "values", "precision", "repair_all_published", "seconds", "limits"} <= set(value)
    assert value["seconds"]["total"] < 30

    with mr.open(path) as store:
        assert store.status().visible == value["visible"]
        assert store.fsck() == []
    again = CliRunner().invoke(main, ["demo", "--store", str(path)])
    assert again.exit_code == 1
    assert "exists" in again.stderr


def test_figures_do_not_depend_on_the_run(report: DemoReport) -> None:
    import msgspec

    again = run()
    assert msgspec.structs.replace(again, seconds={}) == msgspec.structs.replace(report, seconds={})


def test_replay_decides_by_content(memory: Memory) -> None:
    for key, call in memory.calls.items():
        for world in ("clean", "injected"):
            inputs = {
                parent: memory.source(parent, world) for parent in call["parents"] if parent.startswith("source/")
            }
            if any(parent.startswith("call/") for parent in call["parents"]):
                continue
            expected = call.get("result_injected", call["result"]) if world == "injected" else call["result"]
            assert replay(memory, key, inputs)["result"] == expected


def test_replay_refuses_what_was_never_run(memory: Memory) -> None:
    key = "call/travel/get_rating_reviews_for_restaurants/6"
    parents = [parent for parent in memory.calls[key]["parents"] if parent.startswith("source/")]
    clean = {parent: memory.source(parent, "clean") for parent in parents}
    poisoned = [parent for parent in parents if parent in memory.poisoned]
    one = clean | {poisoned[0]: memory.source(poisoned[0], "injected")}
    alone = memory.calls[key]["result_alone"]
    assert replay(memory, key, one)["result"] in alone.values()
    two = one | {poisoned[1]: memory.source(poisoned[1], "injected")}
    with pytest.raises(mr.OperatorError, match="2 of its 4 injections"):
        replay(memory, key, two)
    with pytest.raises(mr.OperatorError, match="no run has seen"):
        replay(memory, key, clean | {poisoned[0]: "something else"})


def test_operators_do_not_depend_on_the_order_of_inputs() -> None:
    calls = {
        f"call/x/f/{n}": {"fn": "f", "args": {"q": f"a\n{n}"}, "result": f"title: word {n}\nother: {n}"} for n in "312"
    }
    back = dict(reversed(calls.items()))
    assert digest("word", calls) == digest("word", back)
    assert len(digest("word", calls).splitlines()) == 4
    assert procedure("Procedure: f", calls) == procedure("Procedure: f", back)


def test_a_validator_catches_what_an_operator_lets_through(memory: Memory) -> None:
    """A summary operator that keeps the injected text publishes nothing, and nothing below it is stale."""
    rules = rules_of(memory)
    key = "summary/workspace/user_task_0"
    with mr.open(":memory:", max_cascade=None) as store:
        remember(store, memory, "injected")
        old = store.get(key).content
        event = store.correct({source: memory.source(source, "clean") for source in memory.poisoned})
        lazy = mr.Rules()
        lazy.operators.update(rules.operators)
        lazy.validators.extend(rules.validators)
        lazy.operators.pop("digest")
        lazy.operator("digest", version="1")(lambda job: mr.Draft(old))
        report = mr.repair(store, mr.plan(store, event, lazy, keys=[key], cost_weight=0), lazy)
        assert report[key].fate in ("failed", "blocked")
        with pytest.raises(mr.WithdrawnError):
            store.get(key)
