"""Benchmarks are collected from bench_*.py: `pytest benchmarks`, and `pytest benchmarks -m slow` for the slow ones."""

import shutil
import subprocess
from pathlib import Path

import pytest
from plain_bfs import SOURCE


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("python_files", "bench_*.py")


@pytest.fixture(scope="session")
def plain_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """plain_bfs.cpp, compiled."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the C++ peer needs g++")
    binary = tmp_path_factory.mktemp("peer") / "plain_bfs"
    subprocess.run([compiler, "-O3", "-std=c++20", "-o", str(binary), str(SOURCE)], check=True)
    return binary
