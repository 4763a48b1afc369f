"""The examples of README and docs, run as they stand; links that lead somewhere; commands that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Fenced blocks with their language."""
    return re.findall(r"^```([\w-]+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/SEMANTICS.md"])
def test_examples_print_what_the_page_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each Python block, in one session for the page, prints the text block that follows it."""
    blocks = blocks_of((ROOT / page).read_text())
    code = [text for language, text in blocks if language == "python"]
    expected = [text for language, text in blocks if language == "text"]
    assert len(code) == len(expected) > 0
    names: dict[str, object] = {}
    for text, printed in zip(code, expected, strict=True):
        exec(compile(text, page, "exec"), names)
        assert capsys.readouterr().out == printed


def test_the_shell_transcript_prints_what_the_readme_says(tmp_path: Path) -> None:
    transcripts = [text for language, text in blocks_of(README) if language == "console"]
    assert transcripts
    bin_folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    environment["PYTHONPATH"] = str(tmp_path)
    environment.pop("MEMOREPAIR_STORE", None)
    for name, text in re.findall(
        r"^`(\w+\.py)`:\n\n```python-file\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(text)
    for text in transcripts:
        for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            ran = subprocess.run(
                shlex.split(command, comments=True),
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert ran.returncode == 0, (command, ran.stderr)
            assert _plain(ran.stdout) == _plain(expected), command


def _plain(text: str) -> list[str]:
    lines = [line.rstrip() for line in re.sub(r"evt-[0-9a-f]{32}", "evt-...", text).splitlines()]
    return [line for line in lines if line]


def test_the_readme_is_short_and_says_what_it_must() -> None:
    assert len(README.splitlines()) <= 200
    assert "independent implementation" in README
    for command in ("pip install . && memorepair demo", "pip install '.[test]' && pytest"):
        assert f"\n{command}\n" in README


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/SEMANTICS.md"])
def test_links_and_named_files_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
    for named in re.findall(r"\b((?:cpp|python|tests|docs|benchmarks|examples)/[\w/.]+\.(?:cpp|py|md|txt))\b", text):
        assert (ROOT / named).exists(), named


def test_no_page_names_a_path_of_a_machine() -> None:
    for page in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]:
        assert not re.search(r"(?<![\w.])/(work|root|home|farm)/", page.read_text()), page
