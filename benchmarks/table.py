"""Run every benchmark once and print one table: `python benchmarks/table.py [--json PATH] [--quick]`.

Prints the machine and the table as Markdown; `--json` also writes them as JSON. `--quick` leaves out what is slow (the
size of an install).
Exit code: that of pytest, so 1 when an answer was wrong; a missed target is a row of the table, not an error.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = ("memorepair", "apsw", "numpy", "scipy", "pytest-benchmark")
COLUMNS = ("what", "memorepair", "beside it", "takes", "ratio", "wanted", "holds")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every benchmark and print one table.")
    parser.add_argument("--json", type=Path, help="also write the table as JSON")
    parser.add_argument("--quick", action="store_true", help="leave out what is slow")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        marks = "not slow" if arguments.quick else ""
        command = [sys.executable, "-m", "pytest", "-q", "-m", marks, "-p", "no:cacheprovider", str(HERE)]
        code = subprocess.run([*command, f"--benchmark-json={raw}"], stdout=sys.stderr, cwd=HERE.parent).returncode
        runs = json.loads(raw.read_text())["benchmarks"] if raw.exists() else []
    rows = [row for run in runs for row in rows_of(run["extra_info"])]
    facts = machine()
    print("\n".join(f"- {name}: {fact}" for name, fact in facts.items()) + "\n")
    print(markdown(rows))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")
    return code


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
                f"{peer['ratio']:.2g}" if peer["ratio"] < 10 else f"{peer['ratio']:.0f}",
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


def markdown(rows: list[dict[str, Any]]) -> str:
    words = {None: "", True: "yes", False: "**no**"}
    lines = [COLUMNS, ("---",) * len(COLUMNS)]
    lines += [(*(one[name] for name in COLUMNS[:-1]), words[one["holds"]]) for one in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


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
        "python": f"{platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "compiler": compiler.splitlines()[0] if compiler else "none",
    }


def lines_of(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
