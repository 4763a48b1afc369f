"""The examples run, and say what they are meant to say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run_example(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=EXAMPLES)


def test_quickstart() -> None:
    result = run_example(str(EXAMPLES / "quickstart.py"))
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "before   Refunds within 30 days." in result.stdout
    assert "between  'summary/refunds' is withdrawn" in result.stdout
    assert "published, certificate verified" in result.stdout
    assert "after    Refunds within 14 days." in result.stdout


@pytest.mark.skipif(importlib.util.find_spec("agentdojo") is None, reason="agentdojo is not installed")
def test_live_tools_and_the_suites_own_checks() -> None:
    result = run_example(str(EXAMPLES / "agentdojo" / "live.py"), "--suite", "banking")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[1].split()[-3:] == ["36", "0", "0"]
    assert result.stdout.splitlines()[-1] == "done: nothing stale is readable"


@pytest.mark.skipif(importlib.util.find_spec("agentdojo") is not None, reason="agentdojo is installed")
def test_live_says_what_it_needs() -> None:
    result = run_example(str(EXAMPLES / "agentdojo" / "live.py"))
    assert result.returncode == 1
    assert "pip install agentdojo" in result.stderr
