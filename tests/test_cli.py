"""The command line: every command, its exit codes, its JSON, and hostile text on a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import memorepair as mr
from memorepair.cli import main
from memorepair.cli.command import OrderedGroup

Run = Callable[..., Result]
HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]markup[/bold] [/] :smile: \u202eevil \r\ndone"
RULES = """
import memorepair as mr

rules = mr.Rules()

@rules.operator("sum", version="1")
def summarise(job):
    return mr.Draft(" ".join(str(text) for text in job.inputs.values()), cost="10 tokens")

@rules.operator("broken", version="1")
def broken(job):
    raise RuntimeError("\\x1b[31mno[/bold]")

def make():
    return rules

def fails():
    raise ValueError("on purpose")

number = 7
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder of its own, on the store s.db there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMOREPAIR_STORE", "s.db")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    sys.modules.pop("my_rules", None)
    (tmp_path / "my_rules.py").write_text(RULES)

    def invoke(*arguments: str, code: int = 0, **options: Any) -> Result:
        result = CliRunner().invoke(main, [*arguments], **options)
        assert result.exit_code == code, f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
        if code == 1 and "--json" not in arguments and result.stderr:
            assert result.stderr.startswith("error: ")
            assert result.stderr.count("\n") == 1
        return result

    return invoke


@pytest.fixture
def filled(run: Run) -> Run:
    """A source, an interface and what was made from them."""
    run("init")
    run("put", "doc/1", "thirty days", "--title", "Policy", "--label", "team=cs")
    run("put", "tool/1", "--content-json", '{"name": "lookup"}', "--form", "interface")
    run("derive", "hit/1", "row", "--kind", "cache", "--parent", "tool/1", "--operator", "sum@1", "--cost", "10 tokens")
    run(
        "derive", "sum/1", "thirty", "--kind", "summary", "--optional", "doc/1", "--optional", "hit/1",
        "--operator", "sum@1", "--cost", "10 tokens",
    )  # fmt: skip
    return run


def value(result: Result) -> Any:
    return json.loads(result.stdout)


# -- the whole surface -------------------------------------------------------------------------------------------------


def test_every_command_is_listed_and_has_help(run: Run) -> None:
    assert isinstance(main, OrderedGroup)
    assert set(main.commands) == set(OrderedGroup.order)
    overview = run("--help").stdout
    for name, command in main.commands.items():
        assert f"\n  {name} " in overview
        text = run(name, "--help").stdout
        assert command.help, name
        assert "--store" in text
        assert "--json" in text
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.name}"
    assert "..." not in overview.replace("[ARGS]...", "")
    assert run("--version").stdout.startswith("memorepair, version ")


def test_every_command_refuses_a_missing_store(run: Run) -> None:
    arguments = {
        "show": ["k"], "ls": [], "impact": ["k"], "delete": ["k"], "correct": ["k", "x"], "migrate": ["k", "x"],
        "suspect": ["k"], "undo": ["e"], "abandon": ["e"], "plan": ["--rules", "my_rules:rules"],
        "frontier": ["--rules", "my_rules:rules"], "repair": ["--rules", "my_rules:rules"], "status": [],
        "explain": ["k"], "fsck": [],
        "put": ["k", "x"], "derive": ["k", "x", "--kind", "cache"], "adopt": ["my_rows.jsonl", "--dry-run"],
    }  # fmt: skip
    Path("my_rows.jsonl").write_text('{"id": "a", "digest": "1"}\n')
    assert set(arguments) | {"demo", "init"} == set(main.commands)
    for name, rest in arguments.items():
        result = run(name, *rest, code=1)
        assert "'s.db' does not exist" in result.stderr, name
        assert "'memorepair init' makes one" in result.stderr, name
        assert result.stdout == ""
        error = value(run(name, *rest, "--json", code=1))["error"]
        assert error["type"] == "MissingStoreError"
    assert not Path("s.db").exists()
    run("init")
    for name, rest in arguments.items():
        assert "scope 'typo' does not exist" in run(name, *rest, "--scope", "typo", code=1).stderr, name
    assert "scope 'typo' does not exist" in run("ls", "--scope", "typo", code=1).stderr


def test_usage_errors_are_two(run: Run) -> None:
    for wrong in (["nothing"], ["put"], ["put", "k"], ["put", "k", "a", "--content-json", "1"], ["delete"],
                  ["delete", "k", "--prefix", "k"], ["delete", "--epochs", "a:b"], ["ls", "--label", "x"],
                  ["correct", "k"], ["correct"], ["impact", "a", "b", "--event", "correct"], ["plan"],
                  ["impact", "a", "--content", "x"], ["plan", "--rules", "nocolon"], ["put", "k", "--file", "nope"],
                  ["derive", "k", "x"], ["put", "k", "x", "--max-cascade", "many"], ["ls", "--held", "--history", "k"],
                  ["repair", "--rules", "a:b", "--publish", "never"], ["frontier"],
                  ["frontier", "--rules", "a:b", "--points", "1"]):  # fmt: skip
        run(*wrong, code=2)
    run("init")
    run("ls", "--label", "x", code=2)
    run("ls", "--held", "--history", "k", code=2)


def test_wrong_values_of_options_are_usage_errors_that_name_the_option(run: Run) -> None:
    run("init")
    choice, made = ("--rules", "my_rules:rules"), ("derive", "k", "x", "--kind", "cache")
    for command in (("plan", *choice), ("repair", *choice)):
        for option, wrong in (("--cost-weight", "abc"), ("--cost-weight", "-1"), ("--cost-weight", "1e-400"),
                              ("--budget", "abc"), ("--budget", "5000"), ("--budget", "-5 tokens")):  # fmt: skip
            assert f"Invalid value for '{option}': expected a number" in run(*command, option, wrong, code=2).stderr
        both = run(*command, "--cost-weight", "1", "--budget", "5 tokens", code=2).stderr
        assert "Give --cost-weight or --budget, not both." in both
    for arguments in ((*made, "--cost", "abc"), (*made, "--form", "bogus"), ("derive", "k", "x", "--kind", "bogus"),
                      ("put", "k", "x", "--form", "bogus"), ("ls", "--kind", "bogus")):  # fmt: skip
        assert f"Invalid value for '{arguments[-2]}'" in run(*arguments, code=2).stderr
    assert "\x1b" not in run("plan", *choice, "--cost-weight", "\x1b[31m", code=2).stderr


# -- artifacts ---------------------------------------------------------------------------------------------------------


def test_init_is_idempotent(run: Run) -> None:
    assert "created" in run("init").stdout
    assert value(run("init", "--json"))["created"] is False
    assert run("init", "--scope", "b").stdout == "s.db exists: scope b created, 0 keys, epoch 0\n"
    assert value(run("init", "--scope", "b", "--json"))["created"] is False
    assert "ends with the command" in run("init", "--store", ":memory:", code=1).stderr


def test_put_show_and_ls(filled: Run) -> None:
    shown = filled("show", "doc/1").stdout
    assert "title: Policy" in shown
    assert shown.endswith("thirty days\n")
    artifact = value(filled("show", "doc/1", "--json"))
    assert (artifact["content"], artifact["labels"], artifact["state"]) == ("thirty days", {"team": "cs"}, "visible")
    assert value(filled("show", "tool/1", "--json"))["content"] == {"name": "lookup"}
    assert [row["key"] for row in value(filled("ls", "--json"))] == ["doc/1", "hit/1", "sum/1", "tool/1"]
    assert filled("ls", "--label", "team=cs").stdout.splitlines() == ["doc/1@1  record  visible  Policy", "1 visible"]
    assert [row["key"] for row in value(filled("ls", "--operator", "sum@1", "--json"))] == ["hit/1", "sum/1"]
    assert [row["key"] for row in value(filled("ls", "--epochs", "1:2", "--json"))] == ["doc/1", "tool/1"]
    assert filled("ls", "--prefix", "zz").stdout == "0 visible\n"
    assert "unknown" in filled("show", "nothing", code=1).stderr
    assert value(filled("show", "nothing", "--json", code=1))["error"]["gap"]["state"] == "unknown"


def test_a_put_that_corrects_says_so(filled: Run) -> None:
    changed = filled("put", "doc/1", "fourteen days").stdout.splitlines()
    assert changed[0] == "doc/1@5 record, visible"
    assert changed[1].startswith("correct evt-")
    assert changed[1].endswith(": 2 artifacts withdrawn at epoch 5")
    assert value(filled("put", "doc/1", "fourteen days", "--json"))["event"] is None
    event = value(filled("put", "doc/1", "ten days", "--json"))["event"]
    assert (event["kind"], event["roots"], event["withdrawn"]) == ("correct", ["doc/1"], 1)
    assert len(filled("put", "doc/1", "nine days", "--supersede").stdout.splitlines()) == 1
    assert "1 artifact withdrawn" in filled("put", "doc/1", "eight days").stdout


def test_an_error_names_key_and_version(filled: Run) -> None:
    for command in (["show"], ["ls", "--history"]):
        known = filled(*command, "doc/1@1", code=1).stderr
        assert "'doc/1@1' is version 1 of 'doc/1', and this takes a KEY; see 'ls --history doc/1'" in known
        assert "'doc/1' has no version 99" in filled(*command, "doc/1@99", code=1).stderr
        assert "'other@1' is unknown" in filled(*command, "other@1", code=1).stderr
        assert "unknown" in filled(*command, "doc/1@" + "9" * 400, code=1).stderr
    assert value(filled("show", "doc/1@1", "--json", code=1))["error"]["type"] == "UnknownKeyError"
    assert "'doc/1' has no version 99; see 'ls --history doc/1'" in filled("explain", "doc/1@99", code=1).stderr
    assert "'doc/1' has no version 3" in filled("explain", "doc/1@3", code=1).stderr


def test_content_comes_from_stdin_a_file_or_json(run: Run, tmp_path: Path) -> None:
    run("init")
    run("put", "a", "-", input="from stdin\n")
    (tmp_path / "text").write_text("two\nlines")
    (tmp_path / "bytes").write_bytes(b"\xff\x00")
    run("put", "b", "--file", "text")
    run("put", "c", "--file", "bytes")
    run("put", "d", "--content-json", "[1, 2]")
    run("put", "e", "--file", "-", input="piped")
    with mr.open("s.db") as store:
        assert [store.get(key).content for key in "abcde"] == [
            "from stdin\n",
            "two\nlines",
            b"\xff\x00",
            [1, 2],
            "piped",
        ]
    assert "b'\\xff\\x00'" in run("show", "c").stdout
    assert "not JSON" in run("put", "f", "--content-json", "{", code=1).stderr


def test_derive_names_versions(filled: Run) -> None:
    filled("put", "doc/1", "fourteen days", "--supersede")
    with mr.open("s.db") as store:
        first, second = [info.version for info in reversed(store.history("doc/1"))]
    filled("derive", "x", "x", "--kind", "cache", "--parent", f"doc/1@{first}", "--parent", "hit/1")
    filled("derive", "y", "y", "--kind", "cache", "--parent", "doc/1")
    with mr.open("s.db") as store:
        assert first in store.get("x").required
        assert store.get("y").required == (second,)
    assert "no version 999" in filled("derive", "z", "z", "--kind", "cache", "--parent", "doc/1@999", code=1).stderr
    assert "unknown" in filled("derive", "z", "z", "--kind", "cache", "--parent", "no@1", code=1).stderr
    assert "'--kind': 'thing' is not one of" in filled("derive", "z", "z", "--kind", "thing", code=2).stderr


def test_a_late_derivation(filled: Run) -> None:
    filled("delete", "doc/1")
    assert "withdrawn" in filled("derive", "z", "z", "--kind", "cache", "--parent", "doc/1", code=1).stderr
    late = filled("derive", "z", "z", "--kind", "cache", "--parent", "doc/1", "--stale", "withdraw", "--json")
    assert value(late)["state"] == "withdrawn"


def test_history(filled: Run) -> None:
    filled("correct", "doc/1", "fourteen days")
    rows = filled("ls", "--history", "doc/1").stdout.splitlines()
    assert [row.split()[2] for row in rows[:-1]] == ["visible", "withdrawn"]
    assert rows[-1] == "2 versions"


def test_scopes_are_apart(filled: Run) -> None:
    filled("init", "--scope", "b")
    filled("put", "doc/1", "other", "--scope", "b")
    assert value(filled("show", "doc/1", "--scope", "b", "--json"))["content"] == "other"
    assert filled("ls", "--scope", "b").stdout.splitlines()[-1] == "1 visible"
    assert (
        "scope 'typo' does not exist in this store; it has 'b', 'default'"
        in filled("ls", "--scope", "typo", code=1).stderr
    )
    with mr.open("s.db") as store, store._reading() as view:
        assert view.scope.backend.scopes() == ["b", "default"]


# -- events ------------------------------------------------------------------------------------------------------------


def test_impact_changes_nothing_and_confirms(filled: Run) -> None:
    before = filled("status", "--json").stdout
    impact = value(filled("impact", "doc/1", "--event", "correct", "--content", "x", "--max-cascade", "1", "--json"))
    assert (impact["withdrawn"], impact["is_guarded"], impact["limit"]) == (2, True, 1)
    assert impact["rows"][1]["path"] == ["doc/1", "sum/1"]
    assert filled("impact", "--prefix", "doc/").stdout.splitlines()[-1] == "nothing was changed"
    assert filled("status", "--json").stdout == before
    refused = value(filled("correct", "doc/1", "x", "--max-cascade", "1", "--json", code=1))["error"]
    assert refused["type"] == "CascadeTooLargeError"
    assert refused["confirm"] == impact["confirm"]
    assert filled("status", "--json").stdout == before
    filled("correct", "doc/1", "x", "--max-cascade", "1", "--confirm", impact["confirm"])


def test_delete_by_key_version_and_selector(filled: Run) -> None:
    event = value(filled("delete", "sum/1", "--event-id", "e1", "--reason", "asked", "--json"))
    assert (event["event_id"], event["withdrawn"], event["roots"]) == ("e1", 1, ["sum/1"])
    assert filled("delete", "sum/1", "--event-id", "e1", "--json").stdout == json.dumps(event) + "\n"
    assert "known" in filled("delete", "doc/1", "--event-id", "e1", code=1).stderr
    assert "hit/1" in value(filled("delete", "--kind", "cache", "--json"))["roots"]
    version = value(filled("show", "doc/1", "--json"))["version"]
    assert value(filled("delete", f"doc/1@{version}", "--json"))["withdrawn"] == 1
    assert "asked" in filled("show", "sum/1", code=1).stderr


def test_a_selector_that_takes_nothing_raises_nothing(filled: Run) -> None:
    for command in ("delete", "suspect"):
        assert "no visible artifact matches" in filled(command, "--prefix", "zz", code=1).stderr
    event = filled("delete", "--prefix", "sum/", "--event-id", "e").stdout
    assert event == "delete e: 1 artifact withdrawn at epoch 5\n"
    assert filled("delete", "--prefix", "sum/", "--event-id", "e").stdout == event
    assert "no visible artifact matches" in filled("delete", "--prefix", "sum/", "--event-id", "f", code=1).stderr
    with mr.open("s.db") as store:
        assert [known.event_id for known in store.events()] == ["e"]


def test_undo_tells_what_came_back(filled: Run) -> None:
    filled("correct", "doc/1", "fourteen", "--event-id", "a")
    filled("delete", "sum/1", "--event-id", "b")
    assert filled("undo", "a").stdout == "undo of a: 1 key restored, 1 left: sum/1; 1 artifact withdrawn at epoch 7\n"


def test_suspect_undo_and_abandon(filled: Run) -> None:
    filled("suspect", "doc/1", "tool/1", "--event-id", "s")
    assert filled("ls", "--held").stdout.splitlines()[-1] == "4 held"
    undone = value(filled("undo", "s", "--event-id", "u", "--json"))
    assert (undone["event_id"], sorted(undone["restored"])) == ("u", ["doc/1", "hit/1", "sum/1", "tool/1"])
    assert "was undone" in filled("undo", "s", "--event-id", "again", code=1).stderr
    filled("suspect", "doc/1", "--event-id", "t")
    assert "abandoned t" in filled("abandon", "t").stdout
    assert filled("ls", "--held").stdout == "0 held\n"
    assert "unknown" in filled("abandon", "never", code=1).stderr


def test_correct_many_from_a_file(filled: Run, tmp_path: Path) -> None:
    lines = [{"key": "doc/1", "content": "new"}, {"key": "tool/1", "content": {"name": "other"}}]
    Path("all.jsonl").write_text("\n".join(map(json.dumps, lines)))
    impact = value(filled("impact", "--event", "correct", "--from", "all.jsonl", "--json"))
    event = value(filled("correct", "--from", "all.jsonl", "--json"))
    assert event["withdrawn"] == impact["withdrawn"] == 4
    assert value(filled("correct", "--from", "all.jsonl", "--json"))["is_unchanged"] is True
    for text, problem in (
        ("x", "line 1: not JSON"),
        ('{"key": "a"}', "line 1: expected"),
        ('{"key":"a","content":1}\n{"key":"a","content":2}', "line 2: key 'a' comes twice"),
        ("\n", "at least one line"),
    ):
        Path("bad.jsonl").write_text(text)
        assert problem in filled("correct", "--from", "bad.jsonl", code=1).stderr


def test_migrate_takes_interfaces_only(filled: Run) -> None:
    assert "expected a record of form interface" in filled("migrate", "doc/1", "x", code=1).stderr
    assert value(filled("migrate", "tool/1", "--content-json", '{"name": "v2"}', "--json"))["withdrawn"] == 3


# -- plan and repair ---------------------------------------------------------------------------------------------------


def test_plan_and_repair(filled: Run) -> None:
    filled("correct", "doc/1", "fourteen days", "--event-id", "e")
    chosen = value(filled("plan", "--rules", "my_rules:make", "--event", "e", "--json"))
    assert (chosen["selected"], chosen["certificate"]) == (["sum/1"], "verified")
    assert filled("plan", "--rules", "my_rules:rules").stdout.splitlines()[-1] == "nothing was changed"
    report = value(filled("repair", "--rules", "my_rules:rules", "--event", "e", "--publish", "at_end", "--json"))
    assert (report["published"], report["outcomes"]["sum/1"]["fate"]) == (1, "published")
    assert value(filled("show", "sum/1", "--json"))["content"] == "fourteen days row"
    assert (
        filled("repair", "--rules", "my_rules:rules").stdout.splitlines()[-1] == "done: 0 published, 0 stay withdrawn"
    )


def test_a_plan_within_a_budget_and_of_some_keys(filled: Run) -> None:
    filled("suspect", "tool/1", "doc/1")
    common = ["plan", "--rules", "my_rules:rules", "--json"]
    assert value(filled(*common, "--budget", "0 tokens"))["selected"] == []
    assert "expected 'tokens', the unit of the recorded costs" in filled(*common, "--budget", "5 usd", code=1).stderr
    told = value(filled(*common, "--budget", "12 tokens"))
    assert (told["cost_weight"], told["value"]) == (
        None,
        sum(item["value"] for item in told["items"] if item["key"] in told["selected"]),
    )
    keys = [item["key"] for item in value(filled(*common, "--key", "tool/1", "--cost-weight", "0"))["items"]]
    assert keys == ["tool/1"]
    assert "only withdrawn keys" in filled(*common, "--key", "nothing", code=1).stderr


def test_a_frontier_is_every_choice_and_its_rows_give_the_plans(run: Run) -> None:
    run("init")
    run("put", "doc", "x")
    for cost in range(1, 31):
        run("derive", f"s/{cost:02}", "x", "--kind", "summary", "--parent", "doc", "--operator", "sum@1",
            "--cost", f"{cost} tokens")  # fmt: skip
    run("correct", "doc", "y", "--event-id", "e")
    common = ["--rules", "my_rules:rules", "--event", "e"]
    solved = value(run("frontier", *common, "--json"))
    assert (len(solved["points"]), len(solved["keys"]), solved["certificate"]) == (31, 30, "verified")
    assert solved["repair_all"]["selected"] == 30
    lines = run("frontier", *common, "--points", "5").stdout.splitlines()
    assert lines[0] == (
        "frontier by normalised: 30 of 30 candidates can be rebuilt, value 30, cost 465 tokens; certificate verified"
    )
    assert lines[1:3] == [
        "  * is the choice at 3/10, the schedule's own cost weight",
        "  5 of 31 points, evenly spread by number of points",
    ]
    assert lines[-1] == "nothing was changed"
    assert [line[:2] for line in lines[4:-1]] == ["  ", "  ", "  ", "  ", "* "]
    rows = [line[2:].split() for line in lines[4:-1]]
    assert [int(row[1]) for row in rows] == [0, 7, 15, 22, 30]
    assert [row[4] for row in rows] == ["0", "28", "120", "253", "465"]
    assert [row[5] for row in rows] == ["0.00", "0.06", "0.26", "0.54", "1.00"]
    for weight, selected, *_, cost, _ in rows:
        plan = value(run("plan", *common, "--cost-weight", weight, "--json"))
        assert (len(plan["selected"]), plan["planned_cost"]) == (int(selected), f"{cost} tokens")
    for index in (0, 1, 15, 29, 30):
        point = solved["points"][index]
        chosen = [key for key, enters in zip(solved["keys"], solved["enters"], strict=True)
                  if enters is not None and enters <= index]  # fmt: skip
        assert len(chosen) == point["selected"]
        assert value(run("plan", *common, "--cost-weight", point["cost_weight"], "--json"))["selected"] == chosen
    assert len(run("frontier", *common, "--points", "100").stdout.splitlines()) == 35


def test_a_frontier_of_little(filled: Run) -> None:
    assert filled("frontier", "--rules", "my_rules:rules").stdout.splitlines() == [
        "frontier by normalised: 0 of 0 candidates can be rebuilt, value 0, cost 0; certificate verified",
        "  warning: nothing is held",
        "  * is the choice at 3/10, the schedule's own cost weight",
        "  cost weight  selected  value  of all  cost  of all",
        "*           0         0      0       -     0       -",
        "nothing was changed",
    ]
    filled("suspect", "tool/1", "doc/1")
    solved = value(filled("frontier", "--rules", "my_rules:rules", "--key", "hit/1", "--json"))
    assert [solved["keys"], solved["enters"]] == [["hit/1", "tool/1"], [None, None]]
    for wrong, problem in {"--event": "event 'no' is unknown", "--key": "'no' is not held by any event; only"}.items():
        refused = filled("frontier", "--rules", "my_rules:rules", wrong, "no", code=1)
        assert refused.stderr.startswith(f"error: {problem}")


def test_help_says_what_is_exact_and_what_a_budget_needs(run: Run) -> None:
    told = {name: " ".join(run(name, "--help").stdout.split()) for name in ("plan", "frontier", "repair")}
    assert "exact at a cost weight" in told["plan"]
    assert "may miss the best selection within it" in told["plan"]
    for name in ("plan", "repair"):
        assert "in the unit of the recorded costs, and only when costs are recorded" in told[name]
    assert "evenly spread by number of points" in told["frontier"]


def test_a_failed_repair_ends_with_failure(filled: Run) -> None:
    filled("derive", "bad", "x", "--kind", "cache", "--parent", "doc/1", "--operator", "broken@1")
    filled("correct", "doc/1", "fourteen days")
    result = filled("repair", "--rules", "my_rules:rules", "--cost-weight", "0", code=1)
    assert result.stdout.splitlines()[-1] == "incomplete: 1 published, 1 failed; these stay withdrawn"
    assert "\x1b" not in result.stdout
    assert "[/bold]" in result.stdout
    assert "failed" in filled("show", "bad", code=1).stderr


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_such_module:rules", "cannot be imported (ModuleNotFoundError"),
        ("my_rules:nothing", "has no 'nothing'"),
        ("my_rules:number", "expected a memorepair.Rules"),
        ("my_rules:fails", "fails() failed (ValueError: on purpose)"),
        ("os.path:join", "join() failed (TypeError"),
        ("my_exit:rules", "'my_exit' cannot be imported (SystemExit: 3)"),
        ("my_hostile:rules", "'my_hostile' cannot be imported (MemoryError: \\x1b[31mred"),
    ],
)
def test_wrong_rules(filled: Run, name: str, problem: str) -> None:
    Path("my_exit.py").write_text("raise SystemExit(3)")
    Path("my_hostile.py").write_text("raise MemoryError('\\x1b[31mred')")
    for command in ("plan", "frontier", "repair"):
        assert problem in filled(command, "--rules", name, code=2).stderr


# -- accounts ----------------------------------------------------------------------------------------------------------


def test_status_explain_and_fsck(filled: Run) -> None:
    filled("correct", "doc/1", "x", "--event-id", "e", "--reason", "wrong")
    status = value(filled("status", "--json"))
    assert (status["keys"], status["visible"], status["held"], status["open_events"]) == (4, 3, 1, 1)
    assert filled("status").stdout.splitlines()[-1] == "1 open event"
    story = value(filled("explain", "sum/1", "--json"))
    assert story["causes"][0]["path"] == ["doc/1", "sum/1"]
    assert "withdrawn by correct e" in filled("explain", f"sum/1@{story['version']}").stdout
    assert "unknown" in filled("explain", f"other@{story['version']}", code=1).stderr
    assert filled("fsck").stdout == "sound: nothing was found\n"
    assert value(filled("fsck", "--json")) == {"findings": [], "is_sound": True}


def test_fsck_exits_with_one_on_findings(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [mr.Finding("check", "row\x1b[0m", "problem")]
    monkeypatch.setattr(mr.Store, "fsck", lambda self: found)
    result = filled("fsck", code=1)
    assert result.stdout.splitlines() == ["check: row\\x1b[0m: problem", "1 finding"]


def test_a_file_that_is_no_store(run: Run) -> None:
    Path("s.db").write_text("this is not a database, and long enough to be looked at as one" * 20)
    assert value(run("status", "--json", code=1))["error"]["type"] == "DamagedStoreError"


# -- hostile text ------------------------------------------------------------------------------------------------------


def test_text_from_the_store_cannot_drive_a_terminal(run: Run) -> None:
    run("init")
    run("put", "doc/[bold]x[/]", "-", "--title", "[red]t[/red] :smile:", "--label", "[b]=[/b]", input=HOSTILE)
    run("derive", "sum/1", HOSTILE, "--kind", "summary", "--optional", "doc/[bold]x[/]", "--operator", "broken@1")
    event = run("correct", "doc/[bold]x[/]", HOSTILE + "2", "--event-id", "[/]e", "--reason", HOSTILE)
    outputs = [
        event,
        run("show", "doc/[bold]x[/]"),
        run("ls"),
        run("ls", "--held"),
        run("status"),
        run("explain", "sum/1"),
        run("show", "sum/1", code=1),
        run("impact", "doc/[bold]x[/]"),
        run("plan", "--rules", "my_rules:rules"),
        run("frontier", "--rules", "my_rules:rules"),
        run("repair", "--rules", "my_rules:rules", code=1),
        run("show", "sum/1", "--json", code=1),
        run("put", "bad\x1bkey", "x", code=1),
        run("put", "bad\x1bkey", "x", "--json", code=1),
        run("show", "\u202e", code=1),
    ]
    for result in outputs:
        text = result.stdout + result.stderr
        for char in ("\x1b", "\x07", "\u202e", "\r"):
            assert char not in text
    assert "\\x1b[31mred" in outputs[1].stdout
    assert "[bold]markup[/bold]" in outputs[1].stdout
    assert ":smile:" in outputs[2].stdout


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device", "x.db"), "x.db: No space left on device"),
        (OSError("odd"), "OSError: odd"),
        (RecursionError("deep"), "content or a file is nested too deep to be read"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "text that is not valid Unicode"),
        (ValueError("\x1b two\nlines"), "ValueError: \\x1b two\\nlines"),
    ],
)
def test_nothing_ends_in_a_traceback(filled: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str) -> None:
    def fail(self: mr.Store) -> None:
        raise error

    monkeypatch.setattr(mr.Store, "status", fail)
    assert told in filled("status", code=1).stderr
    assert value(filled("status", "--json", code=1))["error"]["type"] == type(error).__name__


def test_arguments_that_are_no_text_are_usage_errors(filled: Run) -> None:
    for wrong in (["put", "k\udcff", "x"], ["put", "k", "x\udcff"], ["ls", "--label", "a=\udcff"],
                  ["status", "--scope", "\udcff"], ["status", "--store", "\udcff"]):  # fmt: skip
        assert "expected UTF-8 text" in filled(*wrong, code=2).stderr
    filled("ls", "--epochs", "1:" + "9" * 5000, code=2)
    assert "nested too deep" in filled("put", "k", "--content-json", "[" * 100_000, code=1).stderr
    filled("put", "k", "x", "--max-cascade", "9" * 5000, code=2)


# -- as a process ------------------------------------------------------------------------------------------------------


def process(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from memorepair.cli import main; main()", *arguments]
    environment = {name: text for name, text in os.environ.items() if name != "MEMOREPAIR_STORE"}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_as_a_process(tmp_path: Path) -> None:
    """The default store, rules from the working directory, one JSON value on stdout, exit codes."""
    (tmp_path / "my_rules.py").write_text(RULES)
    missing = process("status", "--json", cwd=tmp_path)
    assert (missing.returncode, json.loads(missing.stdout)["error"]["type"]) == (1, "MissingStoreError")
    assert missing.stderr.startswith("error: open: store 'agent.db' does not exist")
    assert process("init", cwd=tmp_path).returncode == 0
    assert process("put", "doc", "-", cwd=tmp_path, input="text").returncode == 0
    assert process("derive", "sum", "text", "--kind", "summary", "--optional", "doc", "--operator", "sum@1", cwd=tmp_path).returncode == 0  # fmt: skip # noqa: E501
    assert process("correct", "doc", "better", cwd=tmp_path).returncode == 0
    repaired = process("repair", "--rules", "my_rules:rules", "--json", cwd=tmp_path)
    assert (repaired.returncode, repaired.stderr) == (0, "")
    assert json.loads(repaired.stdout)["published"] == 1
    assert json.loads(process("show", "sum", "--json", cwd=tmp_path).stdout)["content"] == "better"
    assert process("nothing", cwd=tmp_path).returncode == 2


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    with mr.open(tmp_path / "agent.db") as store:
        store.put("doc", "line\n" * 2_000_000)
    command = [sys.executable, "-c", "from memorepair.cli import main; main()", "show", "doc"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) in (0, 1)  # some releases of click take a broken pipe for an end
