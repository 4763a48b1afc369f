"""Benchmarks are collected from bench_*.py: `pytest benchmarks`, and `pytest benchmarks -m slow` for the slow ones."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("python_files", "bench_*.py")
