"""A SQLite VFS that kills the process, or fails a call, at the n-th durable step.

Purpose: test_crash.py reaches every instant at which a store can die. Steps are the calls xWrite, xSync, xTruncate and
xDelete, counted over all files of the VFS. A kill comes before the step, in the middle of it (half of the bytes are
written) or after it; a fault raises an I/O error or a full disk instead, in this process.
How: run as a program it is a nursery: it reads lines "path count phase", forks a child for each, which runs `script` on
that path and dies at that step, and answers with "<exit status> <steps>". Forking is cheap, starting Python is not.
Source: docs/SEMANTICS.md rule 8; SQLite's n-th-call fault loop.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

import apsw

import memorepair as mr
from memorepair.sqlite import checksum_vfs
from memorepair.testing import strategies as mine

PHASES = ("before", "torn", "after")
VFS_NAME = "memorepair-crash"


class Steps:
    """What happens at which step: `act(phase)` is called at step `at`; 0 never comes."""

    def __init__(self) -> None:
        self.count = 0
        self.at = 0
        self.lasts = False  # every later step fails too, as a full disk does
        self.act: Callable[[str], None] = lambda phase: None
        self.phases: tuple[str, ...] = PHASES

    def take(self, call: Callable[[], None], half: Callable[[], None] | None = None) -> None:
        self.count += 1
        if not (self.count == self.at or (self.lasts and self.at and self.count > self.at)):
            call()
            return
        if "before" in self.phases:
            self.act("before")
        if "torn" in self.phases and half is not None:
            half()
        if "torn" in self.phases:
            self.act("torn")
        call()
        self.act("after")


steps = Steps()


class CountedFile(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:
        write = super().xWrite
        steps.take(lambda: write(data, offset), lambda: write(bytes(data)[: len(data) // 2], offset))

    def xSync(self, flags: int) -> None:
        sync = super().xSync
        steps.take(lambda: sync(flags))

    def xTruncate(self, size: int) -> None:
        truncate = super().xTruncate
        steps.take(lambda: truncate(size))


class CountedVFS(apsw.VFS):
    def __init__(self, base: str, is_default: bool) -> None:
        self._base = base
        super().__init__(VFS_NAME, base, makedefault=is_default)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return CountedFile(self._base, name, flags)

    def xDelete(self, name: str, sync_dir: bool) -> None:
        delete = super().xDelete
        steps.take(lambda: delete(name, sync_dir))


_registered: list[CountedVFS] = []


def install_below() -> None:
    """Register the VFS below the one that writes checksums, so that half a page can be written. Before any open."""
    _registered.append(CountedVFS(apsw.vfs_names()[0], is_default=True))
    assert VFS_NAME in apsw.vfs_names()
    checksum_vfs()


def open_counted(path: str) -> mr.Store:
    """Open a store through the VFS, on top of the one that writes checksums."""
    if not _registered:
        _registered.append(CountedVFS(checksum_vfs(), is_default=False))
    store = mr.open(mr.SqliteBackend(path, vfs=VFS_NAME), max_cascade=None)
    store._owns_backend = True  # nobody else has it, so it closes with the store
    return store


def script(store: mr.Store, acknowledge: Callable[[str], None]) -> None:
    """A small life; `acknowledge` is told what has returned: "version number key" or "event id"."""

    def kept(artifact: mr.Artifact) -> mr.Artifact:
        acknowledge(f"version {artifact.version} {artifact.key}")
        return artifact

    def told(event: mr.Event) -> None:
        acknowledge(f"event {event.event_id}")

    tool = kept(store.put("tool", {"args": ["id"]}, form="interface"))
    first, second = kept(store.put("first", "one")), kept(store.put("second", "two " * 400))
    hit = kept(store.derive("hit", "hit", kind="cache", parents=[tool, first], operator="build@1", cost="2 tokens"))
    both = kept(
        store.derive("both", "both", kind="summary", optional=[first, second], operator="build@1", cost="3 tokens")
    )
    kept(store.derive("deep", "deep", kind="skill", parents=[hit, both], operator="build2@1", cost="5 tokens"))
    told(store.correct("first", "one, corrected", event_id="correct-first"))
    repaired(store, "correct-first", acknowledge)
    told(store.delete("second", event_id="delete-second", reason="asked to"))
    told(store.undo("delete-second"))
    told(store.suspect("hit", event_id="suspect-hit"))
    repaired(store, None, acknowledge)
    with store.batch() as batch:
        numbers = [batch.put(f"batch{number}", "x" * 300) for number in range(4)]
    acknowledge(f"batch {' '.join(map(str, numbers))}")
    told(store.migrate("tool", {"args": ["id", "name"]}, event_id="migrate-tool"))
    told(store.abandon("migrate-tool"))


def repaired(store: mr.Store, event_id: str | None, acknowledge: Callable[[str], None]) -> None:
    """Plan and repair an event with the deterministic operator."""
    rules = mine.deterministic_rules()
    report = mr.repair(store, mr.plan(store, event_id, rules, cost_weight=0), rules)
    for key, outcome in report.outcomes.items():
        if outcome.fate == "published":
            acknowledge(f"version {outcome.version} {key}")


def live(path: str, at: int, phase: str) -> None:
    """Run the script on `path` and die at step `at`; acknowledgements go to `path`.acks."""
    log = os.open(f"{path}.acks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    steps.at, steps.count, steps.phases = at, 0, (phase,)
    steps.act = lambda now: os.kill(os.getpid(), signal.SIGKILL) if now == phase else None
    with mr.open(path, max_cascade=None) as store:  # through the checksums down to the VFS
        script(store, lambda line: os.write(log, f"{line}\n".encode()) and None)
    os.write(log, f"steps {steps.count}\n".encode())


def main() -> None:
    install_below()
    for line in sys.stdin:
        path, at, phase = line.rstrip("\n").rsplit("\t", 2)
        child = os.fork()
        if not child:
            status = 1
            try:
                live(path, int(at), phase)
                status = 0
            except BaseException:
                traceback.print_exc(limit=-5)
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
