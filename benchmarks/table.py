"""Run every benchmark once and print the tables: `python benchmarks/table.py [--json PATH] [--quick] [--only A,B]`.

Prints the machine and the tables as Markdown; `--json` also writes them as JSON. `--quick` leaves out what is slow:
10^6 nodes, solvers that take minutes, the search for bad cases, the instruction counts. `--only` names sections:
`closure` is what bench_closure.py measures and so on, and beside those there are `worst` and `instructions`.
Exit code: that of pytest, so 1 when an answer was wrong; a missed target is a row of a table, not an error.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import closure_peers
import instructions
import worst_case
from closure_peers import OURS

HERE = Path(__file__).parent
PACKAGES = ("memorepair", "apsw", "numpy", "scipy", "pytest-benchmark")
PEERS = tuple(name for name in closure_peers.PEERS if name != OURS)
COLUMNS = ("what", "memorepair", "beside it", "takes", "ratio", "wanted", "holds")
MEASURED = tuple(sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py")))
APART = ("worst", "instructions")
FASTER = 3.0  # than the best peer, as a geometric mean
MEMORY_FROM = 10**5  # nodes; below, what the imports left free hides what is used
WORDS = {None: "", True: "yes", False: "**no**"}
Record = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every benchmark once and print the tables.")
    parser.add_argument("--json", type=Path, help="also write the tables as JSON")
    parser.add_argument("--quick", action="store_true", help="leave out what is slow")
    parser.add_argument("--only", help=f"sections, with commas: {', '.join(MEASURED + APART)}")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else [*MEASURED, *(() if arguments.quick else APART)]
    if unknown := set(chosen) - {*MEASURED, *APART}:
        parser.error(f"no section {', '.join(sorted(unknown))}")
    code, records = measure([name for name in MEASURED if name in chosen], quick=arguments.quick)
    tables: dict[str, Any] = {"machine": machine()}
    print("\n".join(f"- {name}: {fact}" for name, fact in tables["machine"].items()))
    for section, shown_as in (("closure", closures), ("frontier", frontiers)):
        tables[section] = [record for record in records if record.get("section") == section]
        show(section.capitalize(), shown_as(tables[section]), tables[section])
    tables["rows"] = [row for record in records if "section" not in record for row in rows_of(record)]
    show("Everything else", markdown(COLUMNS, map(cells, tables["rows"])), tables["rows"])
    if "worst" in chosen:
        median, worst = worst_case.search(1 if arguments.quick else 4)
        tables["worst"] = {"median_ns_an_arc": 1e9 * median, "rows": worst_case.rows(median, worst)}
        show("The worst that a search found for the closure kernel", worsts(tables["worst"]), worst)
    if "instructions" in chosen:
        try:
            tables["instructions"] = instructions.rows()
            show("Instructions (callgrind)", instructions.markdown(tables["instructions"]), tables["instructions"])
        except instructions.NotHere as missing:
            show("Instructions (callgrind)", f"Skipped: {missing}.", True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(tables, indent=1) + "\n")
    return code


def measure(sections: Sequence[str], *, quick: bool) -> tuple[int, list[Record]]:
    """The exit code of pytest, and what each benchmark left."""
    if not sections:
        return 0, []
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        files = [str(HERE / f"bench_{name}.py") for name in sections]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow" if quick else "", "-p", "no:cacheprovider"]
        command += ["-rs", f"--benchmark-json={raw}", *files]
        code = subprocess.run(command, stdout=sys.stderr, cwd=HERE.parent, check=False).returncode
        return code, [run["extra_info"] for run in json.loads(raw.read_text())["benchmarks"]] if raw.exists() else []


def show(title: str, text: str, content: object) -> None:
    if content:
        print(f"\n### {title}\n\n{text}", flush=True)


# --- races: one column per solver -------------------------------------------------------------------------------------


def closures(records: list[Record]) -> str:
    """Against the best peer of each problem, and pymineflow's memory."""
    columns = ["problem", "nodes", "edges", OURS, *PEERS, "ours / best", "holds", "MiB", "pymineflow's", "holds"]
    lines, gains = [], []
    for record in records:
        race = record["race"]
        ratio = max((race[peer]["ratio"] for peer in PEERS if "ratio" in race.get(peer, {})), default=None)
        faster = None if ratio is None or not record["judged"] else ratio < 1
        if faster is not None and ratio is not None:
            gains.append(1 / ratio)
        own, other = race[OURS]["bytes"], race.get("pymineflow", {}).get("bytes")
        lean = None if other is None or record["nodes"] < MEMORY_FROM else own <= other
        lines.append(
            [
                *(record["what"], f"{record['nodes']:,}", f"{record['edges']:,}"),
                *(run_shown(race.get(name)) for name in (OURS, *PEERS)),
                *("" if ratio is None else shown_ratio(ratio), WORDS[faster]),
                *(mebibytes(own), "" if other is None else mebibytes(other), WORDS[lean]),
            ]
        )
    text = markdown(columns, lines)
    if gains:
        mean = statistics.geometric_mean(gains)
        text += (
            f"\n\nGeometric mean over the best peer: {mean:.2f} times as fast in {len(gains)} problems of 10^4 nodes "
        )
        text += f"and more; wanted {FASTER:g}: {WORDS[mean >= FASTER]}. Slowest against the best: {min(gains):.2f}."
    return text


def frontiers(records: list[Record]) -> str:
    columns = [
        "problem",
        "nodes",
        "edges",
        "breakpoints",
        OURS,
        "beside it",
        "takes",
        "ratio",
        "wanted",
        "holds",
        "MiB",
    ]
    lines = []
    for record in records:
        race = record["race"]
        (peer,) = race.keys() - {OURS}
        ratio = race[peer].get("ratio")
        lines.append(
            [
                *(record["what"], f"{record['nodes']:,}", f"{record['edges']:,}", f"{record['breakpoints']:,}"),
                *(run_shown(race[OURS]), peer, run_shown(race[peer]), "" if ratio is None else shown_ratio(ratio)),
                *(f"<= {record['at_most']:g}", WORDS[None if ratio is None else ratio <= record["at_most"]]),
                mebibytes(race[OURS]["bytes"]),
            ]
        )
    return markdown(columns, lines)


def worsts(found: Record) -> str:
    peers = [name for name in PEERS if any(name in row["seconds"] for row in found["rows"])]
    columns = ["problem", "nodes", "arcs", OURS, *peers, "ns an arc", "of the median", "ours / best"]
    lines = [
        [
            *(row["problem"], f"{row['nodes']:,}", f"{row['arcs']:,}"),
            *(shown(row["seconds"][name]) for name in (OURS, *peers)),
            *(f"{row['ns_an_arc']:.0f}", f"{row['of_median']:.1f}", shown_ratio(row["of_best_peer"])),
        ]
        for row in found["rows"]
    ]
    return markdown(columns, lines) + f"\n\nMedian of the search: {found['median_ns_an_arc']:.0f} ns an arc."


def run_shown(run: Record | None) -> str:
    if run is None:
        return ""
    return shown(run["seconds"]) if "seconds" in run else str(run["refused"])


def mebibytes(size: int) -> str:
    return f"{size / 2**20:.3g}"


# --- pairs: one row per peer ------------------------------------------------------------------------------------------


def rows_of(extra: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one benchmark: one per peer, or one figure."""
    if "value" in extra:
        limit = extra["at_most"]
        wanted = "" if limit is None else f"<= {limit:g} {extra['unit']}"
        own = f"{extra['value']:.3g} {extra['unit']}"
        return [row(extra["what"], own, wanted=wanted, holds=None if limit is None else extra["value"] <= limit)]
    own = shown(extra["seconds"])
    if "each" in extra:
        own += f", {shown(extra['seconds'] / extra['each'])} each"
    rows = []
    if "rate" in extra:
        rate, least = extra["rate"], extra["at_least"]
        rows.append(row(extra["what"], f"{rate:,.0f}/s", wanted=f">= {least:,}/s", holds=rate >= least))
    for peer in extra["beside"]:
        limit = peer["at_most"]
        rows.append(
            row(
                extra["what"],
                own,
                peer["peer"],
                shown(peer["seconds"]),
                shown_ratio(peer["ratio"]),
                "" if limit is None else f"<= {limit:g}",
                None if limit is None else peer["ratio"] <= limit,
            )
        )
    return rows or [row(extra["what"], own)]


def row(
    what: str,
    own: str,
    peer: str = "",
    takes: str = "",
    ratio: str = "",
    wanted: str = "",
    holds: bool | None = None,
) -> dict[str, Any]:
    return dict(zip(COLUMNS, (what, own, peer, takes, ratio, wanted, holds), strict=True))


def shown(seconds: float) -> str:
    """A time in three figures."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError(seconds)


def shown_ratio(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def cells(one: Record) -> list[str]:
    return [*(one[name] for name in COLUMNS[:-1]), WORDS[one["holds"]]]


def markdown(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, ["---"] * len(columns), *lines))


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = [line.partition(":")[2].strip() for line in lines_of("/proc/cpuinfo") if line.startswith("model name")]
    memory = [int(line.split()[1]) for line in lines_of("/proc/meminfo") if line.startswith("MemTotal")]
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=False).stdout
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": f"{len(os.sched_getaffinity(0))} cores, {cpu[0] if cpu else platform.machine()}",
        "memory": f"{memory[0] / 2**20:.0f} GiB" if memory else "unknown",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "load": f"{os.getloadavg()[2]:.1f} runnable processes over the last 15 minutes, these ones included",
        "python": f"{platform.python_version()}, " + ", ".join(map(versioned, PACKAGES)),
        "peers": ", ".join(versioned(closure_peers.PEERS[name].distribution) for name in PEERS),
        "compiler": compiler.splitlines()[0] if compiler else "none",
    }


def versioned(distribution: str) -> str:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return f"{distribution} not installed"


def lines_of(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
