"""Files in a bad way: damaged, foreign, newer, locked, read-only. A typed error, nothing lost, no wrong answer."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from stores import chain

import memorepair as mr
from memorepair.sqlite import _refuse_network, checksum_vfs


def edit(path: Path, sql: str) -> None:
    """Change a store behind its back, keeping the page checksums right."""
    db = apsw.Connection(str(path), vfs=checksum_vfs())
    db.execute(sql)
    db.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def test_a_foreign_database_is_refused_and_left_alone(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(mr.DamagedStoreError, match="another program"):
        mr.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("dear diary " * 1000)
    with pytest.raises(mr.DamagedStoreError, match="no database"):
        mr.open(path)
    assert path.read_text().startswith("dear diary")


def test_a_page_written_past_the_checksums_is_never_read(path: Path) -> None:
    with mr.open(path) as store:
        chain(store)
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM event")
    db.execute("UPDATE version SET parents = x''")
    db.close()
    with pytest.raises(mr.DamagedStoreError, match="checksum"), mr.open(path) as store:
        store.get("a")


def test_a_newer_schema_is_refused(path: Path) -> None:
    mr.open(path).close()
    edit(path, "PRAGMA user_version = 99")
    with pytest.raises(mr.NewerSchemaError, match="upgrade"):
        mr.open(path)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with mr.open(path) as store:
        store.put("p", "x")


def test_a_missing_folder_and_a_folder_as_file_are_typed(tmp_path: Path) -> None:
    with pytest.raises(mr.StoreReadOnlyError, match="cannot open"):
        mr.open(tmp_path / "no" / "agent.db")
    with pytest.raises(mr.StoreError):
        mr.open(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_file_is_typed(path: Path) -> None:
    mr.open(path).close()
    path.chmod(0o400)
    with pytest.raises(mr.StoreReadOnlyError):
        mr.open(path).put("p", "x")


def test_another_writer_makes_us_wait_then_busy_and_nothing_changes(path: Path) -> None:
    with mr.open(path, timeout_seconds=0.05) as store:
        made = chain(store)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(mr.StoreBusyError, match="nothing was changed"):
            store.delete("p", event_id="e1")
        assert store.visible(made.values()).all()  # readers go on
        other.execute("ROLLBACK")
        assert store.delete("p", event_id="e1").withdrawn == 4


def test_a_deferred_reader_never_breaks_a_write(path: Path) -> None:
    with mr.open(path) as store:
        made = chain(store)
        with store._reading() as view:
            store.delete("p")
            assert view.visible_head("c") is not None  # the old snapshot stays whole
        assert not store.visible(made.values()).any()


def test_settings_are_what_they_must_be(path: Path) -> None:
    with mr.open(path) as store:
        store.put("p", "x")
        db = store._scope.backend._writer  # type: ignore[attr-defined]
        settings = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "mmap_size")
        assert [db.pragma(name) for name in settings] == ["wal", 2, 1, 1, None if db.pragma("mmap_size") is None else 0]


def test_content_changed_behind_our_back_is_never_served(path: Path) -> None:
    with mr.open(path) as store:
        store.put("p", "the truth")
    edit(path, "UPDATE content SET body = x'2020202020202020'")
    with mr.open(path) as store:
        with pytest.raises(mr.DamagedStoreError, match="digest"):
            store.get("p")
        assert [finding.check for finding in store.fsck()] == ["content"]


@pytest.mark.parametrize(
    ("sql", "check"),
    [
        ("DELETE FROM content", "content"),
        ("UPDATE version SET parents = x'63000000', num_required = 1 WHERE key = 'a'", "parents"),
        ("UPDATE version SET parents = x'0100' WHERE key = 'a'", "parents"),
        ("UPDATE head SET head = 1 WHERE key = 'c'", "heads"),
        ("UPDATE ledger SET epoch = epoch + 100 WHERE epoch = 2", "ledger"),
        ("DELETE FROM ledger WHERE epoch = 3", "ledger"),
        ("UPDATE version SET previous = 4 WHERE key = 'a'", "history"),
        ("UPDATE scope SET next_version = 3", "versions"),
        ("INSERT INTO stage VALUES(1, 9, 50, x'80', '', x'', 1, x'', 'staged', '')", "stages"),
    ],
)
def test_fsck_names_what_is_broken(path: Path, sql: str, check: str) -> None:
    with mr.open(path) as store:
        chain(store)
        assert store.fsck() == []
    edit(path, sql)
    with mr.open(path) as store:
        findings = store.fsck()
        assert findings
        assert {check, "read"} & {finding.check for finding in findings}
        assert all(str(finding) for finding in findings)


def test_fsck_finds_an_edge_lost_after_capture(path: Path) -> None:
    with mr.open(path) as store:
        chain(store)
        store.impact("p")  # loads the graph
        db = store._scope.backend._writer  # type: ignore[attr-defined]
        db.execute("UPDATE version SET parents = x'', num_required = 0 WHERE key = 'c'")
        assert "graph" in {finding.check for finding in store.fsck()}


def test_random_flips_are_detected_or_harmless(path: Path) -> None:
    with mr.open(path) as store:
        made = chain(store)
        store.put("q", "kept " * 200)
        store.correct("p", "other")
    good = path.read_bytes()
    rng = random.Random(5)
    detected = 0
    for turn in range(120):
        broken = path.with_name(f"broken-{turn}.db")
        data = bytearray(good)
        for _ in range(8):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        broken.write_bytes(data)
        try:
            with mr.open(broken) as store:
                answers = store.get_many(["q", "p", "c"])
                served = {answer.key: answer.content for answer in answers if isinstance(answer, mr.Artifact)}
                detected += bool(store.fsck())
        except (mr.MemorepairError, ValueError):
            detected += 1
            continue
        finally:
            for suffix in ("", "-wal", "-shm"):
                broken.with_name(broken.name + suffix).unlink(missing_ok=True)
        assert served.get("q", "kept " * 200) == "kept " * 200
        assert served.get("p", "other") == "other"
        assert "c" not in served
    assert detected
    assert made


def test_a_lost_wal_leaves_an_older_whole_store(path: Path, tmp_path: Path) -> None:
    store = mr.open(path)
    chain(store)
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)  # the file without its WAL, as a careless backup would
    store.close()
    with mr.open(copy) as older:
        assert older.fsck() == []


def test_network_file_systems_are_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    with pytest.raises(mr.InvalidRequestError, match="network file system"):
        _refuse_network(str(tmp_path / "agent.db"), str(mounts))
    _refuse_network("/elsewhere/agent.db", str(mounts))
    _refuse_network("agent.db", str(tmp_path / "absent"))


def test_two_processes_write_one_file(path: Path) -> None:
    script = (
        "import sys, memorepair as mr\n"
        "with mr.open(sys.argv[1], timeout_seconds=30) as store:\n"
        "    for i in range(40):\n"
        "        p = store.put(f'{sys.argv[2]}/p{i}', 'x')\n"
        "        store.derive(f'{sys.argv[2]}/d{i}', 'y', kind='cache', parents=[p])\n"
        "        if i % 4 == 0:\n"
        "            store.delete(f'{sys.argv[2]}/p{i}')\n"
    )
    mr.open(path).close()
    workers = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in "ab"]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    with mr.open(path) as store:
        assert len(store.find()) == 120
        assert store.status().versions == 160
        assert store.fsck() == []
