"""Instructions per kernel, counted by callgrind: `python benchmarks/instructions.py [--json PATH]`.

The one figure here that other work on the machine does not move; the compiler and its version do. Each kernel runs once
on fixed problems of 10^4 and 10^5 nodes, from C++ (kernels_driver.cpp with the released core), its memory included.
Needs valgrind with its headers, cmake and a C++ compiler; says so and prints nothing when one is missing.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from families import COST_WEIGHTS, possible, problem_of, weights

HERE = Path(__file__).parent
SIZES = (10**4, 10**5)
FAMILIES = ("prov3", "prov10", "chain", "rand3", "proj", "pit")
# `flow` is the minimum cut on what the reduction leaves, `push_relabel` another algorithm on the same.
KERNELS = ("build", "load", "reach", "filter", "closure", "instance", "reduce", "flow", "push_relabel", "frontier")


class NotHere(Exception):
    """What is missing on this machine."""


def driver(folder: Path) -> Path:
    """Build it in `folder`. Raises NotHere."""
    missing = [tool for tool in ("valgrind", "cmake") if shutil.which(tool) is None]
    if missing:
        raise NotHere(f"needs {' and '.join(missing)}")
    configure = ["cmake", "-S", str(HERE), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"]
    for command in (configure, ["cmake", "--build", str(folder), "--parallel", "2"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            problem = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line]
            raise NotHere(f"the driver does not build: {problem[0] if problem else command}")
    return folder / "kernels_driver"


def write_problem(path: Path, family: str, size: int) -> int:
    """What kernels_driver.cpp reads. Returns the number of nodes and edges."""
    problem = possible(problem_of(family, size))
    rng = np.random.default_rng(0)
    roots = np.sort(rng.choice(problem.roots, max(1, len(problem.roots) // 100), replace=False))
    ids = rng.integers(0, problem.num_nodes, problem.num_nodes, dtype=np.uint32)
    sizes = np.array([problem.num_nodes, len(problem.sources), len(roots), len(ids)], dtype=np.uint64)
    priced = weights(problem, COST_WEIGHTS[family][1])
    with path.open("wb") as stream:
        for array in (sizes, problem.sources, problem.targets, roots, ids, problem.values, problem.costs, priced):
            array.tofile(stream)
    return problem.num_nodes + len(problem.sources)


def counts(program: Path, problem: Path) -> dict[str, int]:
    """Instructions by kernel."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        done = subprocess.run([*command, str(program), str(problem)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotHere(f"valgrind: {done.stderr.strip().splitlines()[-1]}")
        found = {}
        for dump in Path(folder).iterdir():
            text = dump.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.MULTILINE)
            total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
            if name and total:
                found[name[1]] = int(total[1])
    return found


def rows() -> list[dict[str, Any]]:
    """One row per problem. Raises NotHere."""
    answer = []
    with tempfile.TemporaryDirectory() as folder:
        program = driver(Path(folder) / "build")
        for size in SIZES:
            for family in FAMILIES:
                file = Path(folder) / "problem"
                total = write_problem(file, family, size)
                answer.append({"problem": f"{family} {size:,}", "size": total, **counts(program, file)})
    return answer


def markdown(found: list[dict[str, Any]]) -> str:
    """Millions of instructions, and how many a node or edge."""
    lines = ["| problem | " + " | ".join(KERNELS) + " |", "| --- " * (len(KERNELS) + 1) + "|"]
    for row in found:
        cells = [f"{row[kernel] / 1e6:.3g} M, {row[kernel] / row['size']:.0f} each" for kernel in KERNELS]
        lines.append(f"| {row['problem']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions per kernel, counted by callgrind.")
    parser.add_argument("--json", type=Path, help="also write the counts as JSON")
    arguments = parser.parse_args()
    try:
        found = rows()
    except NotHere as missing:
        sys.exit(f"instructions: skipped, {missing}")
    print(markdown(found))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
