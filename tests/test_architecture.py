"""The sentences of ARCHITECTURE.md and docs/SEMANTICS.md that a machine can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import memorepair

ROOT = Path(__file__).parent.parent
PACKAGE = Path(memorepair.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

# In the direction of dependencies: a module imports from its own rank and from earlier ones only.
RANKS = [
    ["_version", "errors", "_core"],
    ["keys", "clock", "amounts", "content", "location"],
    ["protocol"],
    ["memory", "sqlite_rows", "sqlite", "postgres_rows", "postgres", "barrier"],
    ["graph", "eventlog"],
    ["artifact", "scope", "selector"],
    ["writing", "holds", "impact"],
    ["events"],
    ["reading"],
    ["explain", "fsck", "status"],
    ["aio", "store"],
    ["rules"],
    ["validators", "candidates", "schedule", "selection", "execution"],
    ["publish"],
    ["planner"],
    ["report"],
    ["engine"],
    ["__init__"],
    ["adopt", "testing"],
    ["demo"],
    ["cli", "__main__"],
]
RANK = {name: rank for rank, names in enumerate(RANKS) for name in names}
# Imports that only name a type, under TYPE_CHECKING, may look forward.


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Top-level module names that a file imports from the package at run time."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("memorepair"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("memorepair.")}
    return {name if name in RANK else "__init__" for name in found}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_dependencies_run_one_way(path: Path) -> None:
    me = name_of(path)
    assert me in RANK, f"{me} has no rank: give it a place in the direction of dependencies"
    late = {name for name in imports(path) if RANK[name] > RANK[me]}
    assert not late, f"{me} imports {sorted(late)}, which stand after it"


def test_only_the_barrier_and_the_graph_import_the_core() -> None:
    assert {name_of(path) for path in MODULES if "_core" in imports(path)} == {"barrier", "graph"}


def test_only_the_clock_reads_a_clock() -> None:
    pattern = re.compile(r"\btime\.(time|monotonic|time_ns|perf_counter|monotonic_ns)\b|datetime\.(now|utcnow|today)\b")
    readers = {name_of(path) for path in MODULES if pattern.search(path.read_text())}
    assert readers == {"clock"}


def test_only_a_url_imports_the_driver() -> None:
    texts = {name_of(path): path.read_text() for path in MODULES if "cli" not in path.parts}
    drivers = {"postgres", "postgres_rows"}
    assert {name for name, text in texts.items() if re.search(r"^\s*(import|from) psycopg", text, re.M)} == drivers
    users = {name for name, text in texts.items() if re.search(r"^\s*from memorepair\.postgres", text, re.M)}
    assert users == {"postgres", "store"}
    assert not re.search(r"^from memorepair\.postgres", texts["store"], re.M)


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("pickle and its kin", r"\b(pickle|marshal|shelve|dill|cloudpickle)\b"),
        ("evaluation", r"(?<![\w.])(eval|exec)\("),
        ("REPLACE", r"\bOR\s+REPLACE\b|\bREPLACE\s+INTO\b"),
        ("a swallowed exception", r"except[^\n]*:\s*\n?\s*pass\b"),
        ("yaml that builds objects", r"yaml\.(load|unsafe_load)\("),
    ],
)
def test_nothing_uses(what: str, pattern: str) -> None:
    texts = {path.name: path.read_text() for path in [*MODULES, PACKAGE / "schema.sql", PACKAGE / "postgres.sql"]}
    assert [name for name, text in texts.items() if re.search(pattern, text)] == []


def test_no_sql_is_built_from_values() -> None:
    """Only constants of the module or of the same function (`sql`) may stand in an SQL text."""
    allowed = {"_SELECT_VERSION", "_VERSION_COLUMNS", "APPLICATION_ID", "SCHEMA_VERSION", "_EVENT", "_ATTEMPT"}
    allowed |= {"_STATE", "_CHANGES", "_VERSION", "_CONTENT", "_ITS_VERSION", "SMALL_BYTES", "sql"}
    for path in (PACKAGE / f"{name}.py" for name in ("sqlite", "sqlite_rows", "postgres", "postgres_rows")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.JoinedStr) or not re.search(
                r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA)\b", ast.unparse(node)
            ):
                continue
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    names = {name.id for name in ast.walk(part) if isinstance(name, ast.Name)} | {
                        name.attr for name in ast.walk(part) if isinstance(name, ast.Attribute)
                    }
                    assert names - {"self", "replace"} <= allowed, f"{path.name}: {ast.unparse(node)}"


def test_no_function_calls_itself() -> None:
    for path in MODULES:
        if "testing" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                calls = {
                    call.func.id
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                }
                assert node.name not in calls or node.name in ("abandon", "adopt", "explain", "status", "fsck"), (
                    f"{path.name}: {node.name} calls itself"
                )


def test_the_core_knows_no_python() -> None:
    cpp = ROOT / "cpp"
    if not cpp.exists():
        pytest.skip("the C++ sources are not beside the tests")
    sources = [path for path in cpp.rglob("*pp") if "bindings" not in path.parts]
    assert sources
    for path in sources:
        text = path.read_text()
        assert not re.search(r"pybind11|Python\.h", text), path
        if "tests" not in path.parts:
            assert not re.search(r"<iostream>|<fstream>|<cstdio>|\bprintf\b|\bdouble\b|\bfloat\b", text), path


def test_every_file_opens_with_its_purpose() -> None:
    for path in MODULES:
        doc = ast.get_docstring(ast.parse(path.read_text()))
        assert doc, f"{path.name} has no docstring"


def test_no_file_is_too_long() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 600, path.name


def test_every_public_name_has_a_docstring() -> None:
    for name in memorepair.__all__:
        thing = getattr(memorepair, name)
        if name != "__version__":
            assert thing.__doc__, name


def test_architecture_names_modules_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| ([a-z_.,/ ]+) \|", text, flags=re.MULTILINE)
    named = {name.strip() for row in rows for name in row.split(",")}
    assert {name_of(path) for path in MODULES} - {"__init__", "_version"} <= named | {"__main__"}
    for name in named:
        assert (PACKAGE / f"{name}.py").exists() or (PACKAGE / name).exists(), name
