"""Programs that are measured in a process of their own, so that one which collapses or crashes ends nothing else.

Contract: both ends of the pipe. A peer module ends in `serve(load, PEERS)`; whoever measures makes a `Worker` and asks
it again and again. A worker that is late, dies or refuses raises Refusal, and its process is gone.
Memory is the growth of the peak resident size over the first run, after imports and input: what the work itself took.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]
Input = TypeVar("Input")
Answer = TypeVar("Answer")


class Peer(NamedTuple):
    """How a peer is called in the table, what it imports, and what it does."""

    distribution: str
    module: str
    work: Callable[[Any], Any]

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None


class Refusal(Exception):
    """Why there is no answer: too late, crashed, or not its kind of problem."""


def serve(
    peers: Mapping[str, Peer], load: Callable[[Arrays], Input], facts: Callable[[Input, Any], dict[str, Any]]
) -> None:
    """Be the process: `python MODULE PEER FILE`. Each line on stdin is one run; `facts` of its answer go back."""
    name, path = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    peer = peers[name]
    import_module(peer.module)
    with np.load(path) as arrays:
        problem = load(dict(arrays))
    gc.collect()
    before = restart_peak()
    growth = None
    for _ in sys.stdin:
        try:
            start = time.perf_counter()
            answer = peer.work(problem)
            seconds = time.perf_counter() - start
            growth = peak() - before if growth is None else growth
            told = {"seconds": seconds, "bytes": growth, **facts(problem, answer)}
            del answer
        except Exception as error:  # whatever a peer raises is a fact about it
            told = {"refused": str(error) or type(error).__name__}
        print(json.dumps(told), file=answers, flush=True)


def restart_peak() -> int:
    """Forget the highest resident size so far; return the present one in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


class Worker:
    """A peer at work in another process."""

    def __init__(self, program: Path, name: str, file: Path, *, patience: float = 60.0) -> None:
        self._patience = patience
        self._process = subprocess.Popen(
            [sys.executable, str(program), name, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self) -> dict[str, Any]:
        """Run once. Raises Refusal."""
        pipe = self._process
        assert pipe.stdin is not None
        assert pipe.stdout is not None
        try:
            pipe.stdin.write(b"go\n")
            pipe.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        if not select.select([pipe.stdout], [], [], self._patience)[0]:
            self.stop()
            raise Refusal(f"> {self._patience:g} s")
        line = pipe.stdout.readline()
        if not line:
            raise self._died()
        told: dict[str, Any] = json.loads(line)
        if "refused" in told:
            self.stop()
            raise Refusal(told["refused"])
        return told

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def _died(self) -> Refusal:
        self._process.communicate()
        return Refusal(f"crashed ({self._process.returncode})")
