"""plain_bfs.cpp, the peer a C++ programmer would write, as a running process that has read an instance."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from pairs import Peer

Ids = npt.NDArray[np.uint32]
SOURCE = Path(__file__).with_name("plain_bfs.cpp")


def write_edges(path: Path, num_nodes: int, sources: Ids, targets: Ids) -> Path:
    """The format that plain_bfs.cpp reads."""
    with path.open("wb") as stream:
        np.array([num_nodes, len(sources)], dtype=np.uint64).tofile(stream)
        sources.tofile(stream)
        targets.tofile(stream)
    return path


class PlainBfs:
    """A context manager."""

    def __init__(self, program: Path, edges: Path) -> None:
        self._process = subprocess.Popen([program, edges], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._into: IO[str] = self._process.stdin
        self._out: IO[str] = self._process.stdout

    def __enter__(self) -> PlainBfs:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, command: str) -> tuple[float, int, int]:
        """Return seconds, nodes reached, and the sum of their ids."""
        self._into.write(command + "\n")
        self._into.flush()
        seconds, count, total = self._out.readline().split()
        return float(seconds), int(count), int(total)

    def build(self, directions: str) -> Peer:
        return lambda: self.ask(directions)[0]

    def reach(self, roots: Ids, times: int) -> str:
        return f"reach {times} {len(roots)} " + " ".join(map(str, roots.tolist()))
