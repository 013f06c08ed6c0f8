"""The house rules, checked: linter, types, who may import whom, and no trace of a machine in the repo."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from glob import glob
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ["agents", "scenarios", "judging", "analysis", "training", "parley"]


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("command", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)])
def test_linter_and_types_are_clean(command: tuple[str, ...]) -> None:
    done = tool(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_agents_imports_autogen() -> None:
    strangers = [
        str(path.relative_to(ROOT))
        for room in ROOMS[1:]
        for path in modules(room)
        if any(name.startswith("autogen") for name in imports(path))
    ]
    assert strangers == []


def test_data_flows_down_the_house_and_never_back_up() -> None:
    allowed = {
        "agents": set(),
        "scenarios": set(),
        "judging": {"agents", "scenarios"},
        "analysis": set(),
        "training": {"agents", "scenarios", "judging", "analysis"},
        "parley": {"agents", "scenarios", "judging", "analysis", "training"},
    }
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for room in ROOMS
        for path in modules(room)
        for name in imports(path) & set(ROOMS)
        if name != room and name not in allowed[room]
    ]
    assert wrong == []


def test_every_room_carries_its_mark() -> None:
    assert all('__house__ = "parley"' in (ROOT / room / "__init__.py").read_text("utf-8") for room in ROOMS[:-1])


def test_what_a_room_needs_travels_with_it() -> None:
    """Suites, prompts, personas, rubrics: every file beside our modules is in the package that is installed."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    shipped = {
        (ROOT / package.replace(".", "/") / found).resolve()
        for package in setup["packages"]
        for pattern in setup["package-data"]["*"]
        for found in glob(pattern, root_dir=ROOT / package.replace(".", "/"), recursive=True)
    }
    beside = {
        path
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert len(beside) > 20
    assert beside - shipped == set()


def test_constraints_hold_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    wrong = [x for x in lines if x and not x.startswith("#") and not re.fullmatch(r"[A-Za-z0-9._-]+==[^\s/@]+", x)]
    assert wrong == []


def test_the_five_lines_of_the_readme_run(tmp_path: Path) -> None:
    """The README's Python for a conversation, on a simulated model."""
    code = next(
        b for b in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S) if "Debate" in b
    )
    code = code.replace("rounds=2)", 'rounds=2, model="sim/any")')
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^\[\d\] (?:Ada|Ben):", done.stdout, re.M)) == 4


def test_the_study_of_the_docs_runs(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "studies.md").read_text("utf-8"), re.S)
    assert code is not None
    (tmp_path / "greetings.py").write_text(code.group(1))
    command = ["-m", "parley", "run", "greetings.py:Greetings", "--model", "sim/any", "--json"]
    environment = {**os.environ, "PARLEY_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"done": 2' in done.stdout
