"""Adopting another store: counts, edges, idempotence, bad lines, cycles, changed digests, and what is still served."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import memorepair as mr
from memorepair.adopt import Columns, adopt, count_served
from memorepair.cli import main

ROWS: list[dict[str, Any]] = [
    {"id": "sum/1", "digest": "d4", "kind": "summary", "parents": ["hit/1", "doc/1"], "title": "A summary"},
    {"id": "hit/1", "digest": "d3", "kind": "cache", "parents": ["doc/1"], "labels": {"team": "cs"}},
    {"id": "doc/1", "digest": "d1", "kind": "record", "uri": "s3://bucket/doc/1", "namespace": "docs"},
    {"id": "doc/2", "digest": "d2"},
    {"id": "skill/1", "digest": "d5", "kind": "skill"},
]


@pytest.fixture
def store() -> Iterator[mr.Store]:
    with mr.open(":memory:", max_cascade=None) as opened:
        yield opened


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def state(store: mr.Store) -> tuple[int, int]:
    status = store.status()
    return status.epoch, status.versions


def test_rows_become_versions(store: mr.Store, tmp_path: Path) -> None:
    done = adopt(store, write(tmp_path / "a.jsonl", ROWS), file_format="jsonl")
    assert (done.rows, done.added, done.unchanged, done.edges) == (5, 5, 0, 3)
    assert done.kinds == {"cache": 1, "record": 2, "skill": 1, "summary": 1}
    assert (done.complete, done.partial, done.opaque) == (4, 0, 1)
    summary = store.get("sum/1")
    assert summary.content == mr.External("d4")
    assert summary.title == "A summary"
    assert summary.required == ()
    assert set(summary.optional) == {store.get("hit/1").version, store.get("doc/1").version}
    assert store.get("hit/1").required == (store.get("doc/1").version,)
    assert store.get("hit/1").labels == {"team": "cs"}
    assert store.get("doc/1").content == mr.External("d1", "s3://bucket/doc/1")
    assert store.get("doc/1").namespace == "docs"
    assert store.get("doc/2").completeness == "complete"
    assert store.get("skill/1").completeness == "opaque"
    assert store.fsck() == []


def test_an_event_reaches_what_was_adopted(store: mr.Store, tmp_path: Path) -> None:
    adopt(store, write(tmp_path / "a.jsonl", ROWS), file_format="jsonl")
    assert store.delete("doc/1").withdrawn == 3
    served = count_served(store, ["sum/1\n", "\n", "doc/2", "elsewhere", "sum/1"])
    assert (served.ids, served.visible, served.unknown, served.withdrawn) == (3, 1, 1, ("sum/1",))
    assert str(served).endswith("1 withdrawn ids are still served")


def test_adopting_twice_changes_nothing(store: mr.Store, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ROWS)
    adopt(store, path, file_format="jsonl")
    before = state(store)
    again = adopt(store, path, file_format="jsonl")
    assert (again.added, again.unchanged, again.changed) == (0, 5, ())
    assert state(store) == before


def test_dry_run_changes_nothing(store: mr.Store, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ROWS)
    dry = adopt(store, path, file_format="jsonl", dry_run=True)
    assert (dry.added, dry.edges, dry.is_dry_run) == (5, 3, True)
    assert state(store) == (0, 0)
    assert str(dry).endswith("dry run: nothing was changed")


def test_changed_digests_are_reported_then_corrected(store: mr.Store, tmp_path: Path) -> None:
    adopt(store, write(tmp_path / "a.jsonl", ROWS), file_format="jsonl")
    later = write(tmp_path / "b.jsonl", [dict(row, digest="new") if row["id"] == "doc/1" else row for row in ROWS])
    before = state(store)
    seen = adopt(store, later, file_format="jsonl")
    assert (seen.changed, seen.event_id) == (("doc/1",), None)
    assert state(store) == before
    done = adopt(store, later, file_format="jsonl", apply_changes=True)
    assert done.event_id is not None
    assert store.get("doc/1").content.digest == "new"
    with pytest.raises(mr.WithdrawnError):
        store.get("hit/1")
    again = adopt(store, later, file_format="jsonl", apply_changes=True)
    assert (again.changed, again.withdrawn) == ((), ("sum/1", "hit/1"))


def test_what_was_rebuilt_elsewhere_is_derived_anew(store: mr.Store, tmp_path: Path) -> None:
    def file(**digests: str) -> Path:
        return write(
            tmp_path / "b.jsonl", [{**row, "digest": digests.get(row["id"][:3], row["digest"])} for row in ROWS]
        )

    adopt(store, write(tmp_path / "a.jsonl", ROWS), file_format="jsonl")
    changed = adopt(store, file(doc="new"), file_format="jsonl", apply_changes=True)
    assert (len(changed.changed), changed.event_withdrawn) == (2, 4)
    assert "2 changed digests are correct event evt-" in str(changed)
    assert ": 4 artifacts withdrawn" in str(changed)
    # The summary is new, what it read is not: it is kept for the next repair.
    early = file(doc="new", sum="s1")
    assert adopt(store, early, file_format="jsonl", dry_run=True).rebuilt == ("sum/1",)
    done = adopt(store, early, file_format="jsonl")
    assert (done.added, done.unchanged, done.rebuilt, done.withdrawn) == (0, 3, ("sum/1",), ("hit/1",))
    with pytest.raises(mr.WithdrawnError):
        store.get("sum/1")
    before = state(store)
    assert adopt(store, early, file_format="jsonl").rebuilt == ()
    assert adopt(store, file(doc="new"), file_format="jsonl").rebuilt == ()  # back to withdrawn content is no rebuild
    assert state(store) == before
    both = adopt(store, file(doc="new", hit="h2", sum="s2"), file_format="jsonl")
    assert (set(both.rebuilt), both.edges, both.rows) == ({"sum/1", "hit/1"}, 3, 5)
    assert "0 new, 3 known and unchanged, 0 changed, 2 rebuilt elsewhere, 0 withdrawn here" in str(both)
    assert store.get("hit/1").content == mr.External("h2")
    assert store.get("hit/1").required == (store.get("doc/1").version,)
    assert set(store.get("sum/1").optional) == {store.get("hit/1").version, store.get("doc/1").version}
    assert store.status().held == 0
    assert store.fsck() == []


def test_what_was_deleted_stays_withdrawn(store: mr.Store, tmp_path: Path) -> None:
    adopt(store, write(tmp_path / "a.jsonl", ROWS), file_format="jsonl")
    store.delete("hit/1")
    rows = [{**row, "digest": f"{row['digest']}-new"} if row["id"] in ("hit/1", "sum/1") else row for row in ROWS]
    done = adopt(store, write(tmp_path / "b.jsonl", rows), file_format="jsonl")
    assert (done.rebuilt, done.withdrawn) == (("sum/1",), ("hit/1",))
    for key in ("hit/1", "sum/1"):
        with pytest.raises(mr.WithdrawnError):
            store.get(key)
    assert store.fsck() == []


def test_a_guarded_change_writes_nothing(tmp_path: Path) -> None:
    with mr.open(":memory:", max_cascade=0) as store:
        adopt(store, write(tmp_path / "a.jsonl", ROWS), file_format="jsonl")
        before = state(store)
        rows = [dict(row, digest="new") if row["id"] == "doc/1" else row for row in ROWS]
        path = write(tmp_path / "b.jsonl", [*rows, {"id": "doc/3", "digest": "d9"}])
        with pytest.raises(mr.CascadeTooLargeError) as refused:
            adopt(store, path, file_format="jsonl", apply_changes=True)
        assert state(store) == before
        confirm = refused.value.impact.confirm  # type: ignore[attr-defined]
        assert adopt(store, path, file_format="jsonl", apply_changes=True, confirm=confirm).added == 1


def test_a_new_row_on_a_withdrawn_parent_is_born_withdrawn(store: mr.Store, tmp_path: Path) -> None:
    adopt(store, write(tmp_path / "a.jsonl", ROWS), file_format="jsonl")
    store.delete("doc/1")
    late = write(tmp_path / "b.jsonl", [*ROWS, {"id": "hit/2", "digest": "d8", "parents": "doc/1"}])
    assert adopt(store, late, file_format="jsonl").added == 1
    with pytest.raises(mr.WithdrawnError):
        store.get("hit/2")
    assert store.fsck() == []


def test_unknown_parents_and_cycles_are_said(store: mr.Store, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "digest": "1", "kind": "cache", "parents": ["b", "root"]},
        {"id": "b", "digest": "2", "kind": "cache", "parents": ["a"]},
        {"id": "c", "digest": "3", "kind": "cache", "parents": ["c"]},
        {"id": "d", "digest": "4", "kind": "cache", "parents": ["gone", "root"]},
        {"id": "e", "digest": "5", "kind": "cache", "parents": ["gone"]},
        {"id": "f", "digest": "6", "kind": "cache", "parents": ["a"]},
        {"id": "root", "digest": "7"},
    ]
    done = adopt(store, write(tmp_path / "a.jsonl", rows), file_format="jsonl")
    assert set(done.cycles) == {("a", "b"), ("b", "a"), ("c", "c")}
    assert set(done.unknown_parents) == {("d", "gone"), ("e", "gone")}
    completeness = {info.key: info.completeness for info in store.find()}
    assert completeness == {
        "a": "opaque",
        "b": "opaque",
        "c": "opaque",
        "d": "partial",
        "e": "opaque",
        "f": "complete",
        "root": "complete",
    }
    assert store.get("a").parents == (store.get("root").version,)
    assert "3 edges in cycles, left out" in str(done)


def test_csv_with_other_columns(store: mr.Store, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "key,sha,type,sources,labels.team\ndoc/1,d1,record,,cs\nhit/1,d2,cache,doc/1| doc/2,\ndoc/2,d3,record,,\n"
        'hit/2,d4,cache,"[""doc/1"", ""doc/2""]",x\n'
    )
    columns = Columns(id="key", digest="sha", kind="type", parents="sources", separator="|")
    done = adopt(store, path, file_format="csv", columns=columns, completeness="partial")
    assert (done.added, done.edges, done.partial) == (4, 4, 2)
    assert store.get("doc/1").labels == {"team": "cs"}
    assert store.get("hit/1").labels == {}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (['{"id": "a", "digest": "1"}', "nonsense"], "line 2: not JSON"),
        (['{"id": "a", "digest": "1"}', "[1]"], "line 2: expected a JSON object"),
        (['{"id": "a"}'], "line 1: column 'digest'"),
        (['{"id": "", "digest": "1"}'], "line 1: column 'id'"),
        (['{"id": "a", "digest": "1"}', "", '{"id": "a", "digest": "2"}'], "line 3: id 'a' came on line 1"),
        (['{"id": "a\\u0007", "digest": "1"}'], "line 1: id: control code point"),
        (['{"id": "a", "digest": "1", "kind": "thing"}'], "line 1: column 'kind'"),
        (['{"id": "a", "digest": "1", "parents": 7.5}'], "line 1: column 'parents'"),
        (['{"id": "a", "digest": "1", "parents": "[1"}'], "line 1: column 'parents': not a JSON list"),
        (['{"id": "a", "digest": "\\n"}'], "line 1: External digest"),
        (['{"id": "a", "digest": {"x": 1}}'], "line 1: column 'digest': expected text"),
        (['{"id": "a", "digest": "1", "labels": [1]}'], "line 1: column 'labels'"),
        (['{"id": "a", "digest": "1", "labels": {"x": "\\u202e"}}'], "line 1: label 'x': bidi-control"),
        (['{"id": "a", "digest": "1"}', "[" * 100_000], "line 2: not JSON (nested too deep)"),
        (['{"id": "a", "digest": "1", "parents": "' + "[" * 100_000 + '"}'], "line 1: nested too deep"),
        (['{"id": "a", "digest": "1", "labels": "' + "[" * 100_000 + '"}'], "line 1: nested too deep"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(
    store: mr.Store, tmp_path: Path, lines: list[str], problem: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(mr.InvalidRequestError, match=re.escape(problem)):
        adopt(store, path, file_format="jsonl")
    assert state(store) == (0, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"id,digest\na,1,2\n", "line 2: expected 2 fields"),
        (b"id,digest\na\n", "line 2: expected 2 fields"),
        (b'id,digest\na,"1\n', "not CSV"),
        (b"id,digest\n\xff,1\n", "not CSV"),
        (b"id,digest\na," + b"1" * 200_000 + b"\n", "line 2: not CSV"),
        (b"key,digest\na,1\n", "line 2: column 'id'"),
    ],
)
def test_bad_csv(store: mr.Store, tmp_path: Path, text: bytes, problem: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(text)
    with pytest.raises(mr.InvalidRequestError, match=problem):
        adopt(store, path, file_format="csv")
    assert state(store) == (0, 0)


def test_batches_are_one_epoch_each(store: mr.Store, tmp_path: Path) -> None:
    rows = [{"id": f"doc/{n:04}", "digest": str(n)} for n in range(25)]
    told: list[str] = []
    done = adopt(store, write(tmp_path / "a.jsonl", rows), file_format="jsonl", batch_rows=10, on_progress=told.append)
    assert (done.added, store.status().epoch) == (25, 3)
    assert told[-1] == "25 of 25 rows written"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 12), max_size=4), min_size=1, max_size=10))
def test_any_parents_give_a_sound_store(tmp_path_factory: pytest.TempPathFactory, parents: list[list[int]]) -> None:
    """Counts add up, every parent is accounted for, and the store passes its own check."""
    rows = [{"id": f"k{n}", "digest": str(n), "kind": "cache", "parents": [f"k{p}" for p in some]}
            for n, some in enumerate(parents)]  # fmt: skip
    path = write(tmp_path_factory.mktemp("adopt") / "a.jsonl", rows)
    with mr.open(":memory:") as store:
        done = adopt(store, path, file_format="jsonl", batch_rows=3)
        assert done.added == len(rows)
        assert done.complete + done.partial + done.opaque == len(rows)
        assert done.edges + len(done.cycles) + len(done.unknown_parents) == sum(len(set(some)) for some in parents)
        assert store.fsck() == []
        assert adopt(store, path, file_format="jsonl").unchanged == len(rows)


def test_from_the_command_line(tmp_path: Path) -> None:
    path, database, ids = write(tmp_path / "a.jsonl", ROWS), str(tmp_path / "s.db"), tmp_path / "ids.txt"
    ids.write_text("sum/1\ndoc/2\n")

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["adopt", *arguments, "--store", database])

    dry = run(str(path), "--from", "jsonl", "--dry-run")
    assert dry.exit_code == 1
    assert "'memorepair init' makes one" in dry.stderr
    assert not Path(database).exists()
    unserved = run("--served", str(ids))
    assert unserved.exit_code == 1
    assert "does not exist" in unserved.stderr
    assert CliRunner().invoke(main, ["init", "--store", database]).exit_code == 0
    assert run(str(path), "--from", "jsonl", "--dry-run").stdout.startswith("5 rows: 5 new")
    done = run(str(path), "--from", "jsonl", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["added"] == 5
    assert run("--served", str(ids)).exit_code == 0
    with mr.open(database) as store:
        store.delete("doc/1")
    leak = run("--served", str(ids), "--json")
    assert leak.exit_code == 1
    assert json.loads(leak.stdout)["served"]["withdrawn"] == ["sum/1"]
    assert run(str(path)).stdout.startswith("5 rows: 0 new")  # the suffix tells the format
    assert "neither .jsonl nor .csv" in run(str(ids)).stderr
    assert run(str(ids)).exit_code == 2
    assert run("--from", "jsonl", "--served", str(ids)).exit_code == 2
    assert run().exit_code == 2
    ids.write_bytes(b"\xff\n")
    unreadable = run("--served", str(ids))
    assert (unreadable.exit_code, unreadable.stderr.count("\n")) == (1, 1)


def test_wrong_options(store: mr.Store, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ROWS)
    for wrong in ({"file_format": "xml"}, {"completeness": "opaque"}, {"batch_rows": 0}):
        with pytest.raises(mr.InvalidRequestError):
            adopt(store, path, **({"file_format": "jsonl"} | wrong))  # type: ignore[arg-type]
    for name in (tmp_path / "missing.jsonl", tmp_path, 7, "a\0b", "\udcff\ud800"):
        for file_format in ("jsonl", "csv"):
            with pytest.raises(mr.InvalidRequestError):
                adopt(store, name, file_format=file_format)  # type: ignore[arg-type]
    for bad in ({"separator": ""}, {"id": None}):
        with pytest.raises(mr.InvalidRequestError, match="columns: "):
            Columns(**bad)  # type: ignore[arg-type]
    for ids in ("sum/1", 7, ["a", b"b"]):
        with pytest.raises(mr.InvalidRequestError, match="ids: "):
            count_served(store, ids)  # type: ignore[arg-type]
    assert state(store) == (0, 0)
