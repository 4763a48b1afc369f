"""What `import memorepair` costs in CPU time, and what a core install weighs (slow: makes an environment)."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from pairs import measured

ROOT = Path(__file__).parent.parent
ROUNDS = 7


def cpu_seconds(code: str) -> float:
    """User and system time of a fresh interpreter that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


@pytest.mark.parametrize(
    ("what", "code", "at_most"),
    [
        ("import memorepair", "import memorepair; assert memorepair.open", 0.25),
        ("of which numpy, apsw and msgspec", "import numpy, apsw, apsw.sqlite_extra, msgspec", None),
        ("of which the interpreter alone", "pass", None),
    ],
)
def test_import(benchmark: Any, what: str, code: str, at_most: float | None) -> None:
    cpu_seconds(code)  # warms the file cache and writes .pyc files
    times: list[float] = []
    benchmark.pedantic(lambda: times.append(cpu_seconds(code)), rounds=ROUNDS, iterations=1)
    measured(benchmark, f"{what}: CPU time, fresh process", statistics.median(times), "s", at_most=at_most)


@pytest.mark.slow
def test_size_of_a_core_install(benchmark: Any, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    run = subprocess.run
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
    run([*build, "-C", f"build-dir={tmp_path / 'build'}"], check=True)
    (wheel,) = wheels.glob("memorepair-*.whl")
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"

    def install() -> None:
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], check=True)

    benchmark.pedantic(install, rounds=1, iterations=1)
    run([python, "-c", "import memorepair; memorepair.open(':memory:').close()"], check=True, cwd=tmp_path)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    tools = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence.pth")
    weights = {
        entry.name: sum(bytes_on_disk(path) for path in [entry, *entry.rglob("*")])
        for entry in packages.iterdir()
        if entry.name != "__pycache__" and not entry.name.startswith(tools)
    }
    megabytes = sum(weights.values()) / 2**20
    measured(benchmark, "core install with every dependency, site-packages", megabytes, "MiB", at_most=120)
    heaviest = sorted(weights.items(), key=lambda item: -item[1])[:5]
    benchmark.extra_info["heaviest"] = {name: round(size / 2**20, 1) for name, size in heaviest}


def bytes_on_disk(path: Path) -> int:
    """What du counts."""
    return 512 * os.lstat(path).st_blocks
