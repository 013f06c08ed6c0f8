"""The house rules, checked: linter, types, who may import whom, and no trace of a machine in the repo."""

from __future__ import annotations

import ast
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import closing
from functools import cache
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ["base", "agents", "scenarios", "judging", "analysis", "training", "parley"]
NOT_MODULES = re.compile(r"parley\.(studies|jsonl|cached|attempts|cost)")
"""A group of entry points, a file's name and attributes of our own: not modules."""
NAMED = re.compile(r"parley(\.\w+)+(:\w+)?")


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(ast.parse(path.read_text("utf-8")))]


@cache
def imports(path: Path) -> set[str]:
    """The modules that a file imports anywhere, and those it names in a string such as "parley.agents.x:Class"."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value):
            names |= set() if NOT_MODULES.fullmatch(node.value) else {node.value.partition(":")[0]}
    return names


def room_of(module: str) -> str:
    """`parley.agents.models` → agents; `parley.cli` → parley; anything else as its first word."""
    first, _, rest = module.partition(".")
    second = rest.partition(".")[0]
    return second if first == "parley" and second in ROOMS else first


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "parley" else ("parley", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The first circle that a walk along the arrows finds, or nothing."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            if found := walk(other, [*way, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := walk(name, []))), [])


def modules(room: str) -> list[Path]:
    """The files of a room; the links parley/agents and so on are not followed."""
    folder = ROOT / "parley" / "base" if room == "base" else ROOT / room
    return sorted(
        path for path in folder.rglob("*.py") if not (room == "parley" and path.parts[len(ROOT.parts) + 1] in ROOMS)
    )


@pytest.mark.parametrize("command", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)])
def test_linter_and_types_are_clean(command: tuple[str, ...]) -> None:
    done = tool(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_agents_imports_autogen() -> None:
    strangers = [
        str(path.relative_to(ROOT))
        for room in ROOMS
        if room != "agents"
        for path in modules(room)
        if any(name.startswith(("autogen_", "autogen.")) for name in imports(path))
    ]
    assert strangers == []


def test_data_flows_down_the_house_and_never_back_up() -> None:
    allowed = {
        "base": set(),
        "agents": {"base"},
        "scenarios": {"base"},
        "judging": {"base", "agents", "scenarios", "analysis"},
        "analysis": {"base"},
        "training": {"base", "agents", "scenarios", "judging", "analysis"},
        "parley": {"base", "agents", "scenarios", "judging", "analysis", "training"},
    }
    wrong = [
        f"{path.relative_to(ROOT)} names {name}"
        for room in ROOMS
        for path in modules(room)
        for name in sorted(imports(path))
        if (other := room_of(name)) in ROOMS and other not in {room, *allowed[room]} and not NOT_MODULES.fullmatch(name)
        if not (room == "training" and name.startswith(("parley.runs", "parley.reports")))  # it runs studies
    ]
    assert wrong == []


def test_only_the_registry_knows_a_provider_by_its_name() -> None:
    """What a model's provider is, `Provider` says: nothing asks whether a name begins with `local/`."""
    prefix = r"[\"'](local|hf|sim)/[\"']"  # as an argument or in a tuple; f"local/{name}" makes a name
    compared = r"provider(\.name)? (==|!=|in|not in) \(?[\"'](local|hf|sim)[\"']"
    tested = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ROOMS
        for path in modules(room)
        for line in path.read_text("utf-8").splitlines()
        if re.search(prefix, line) or re.search(compared, line)
    ]
    assert tested == []


def test_the_applications_rooms_are_in_order() -> None:
    """Reports know nothing of the viewer, for one, nor of training, which makes reports."""
    order = ["runs", "reports", "viewer", "cli"]
    after = {room: [*order[place + 1 :], *(["training"] if room != "cli" else [])] for place, room in enumerate(order)}
    assert {path.parent.name for path in (ROOT / "parley").glob("*/__init__.py")} == {*ROOMS[:-1], *order}
    wrong = [
        f"{path.relative_to(ROOT)} names {name}"
        for room in order
        for path in (ROOT / "parley" / room).rglob("*.py")
        for name in sorted(imports(path))
        if name.startswith(tuple(f"parley.{later}" for later in after[room])) and not NOT_MODULES.fullmatch(name)
    ]
    assert wrong == []


def test_a_verdict_is_given_in_one_place_and_never_replaced() -> None:
    """`decided` gives a line its verdict, once; everything else asks for it, or reads it. A claim has its own."""
    given = [
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in modules(room)
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Line", "replace", "dataclasses.replace")
        if any(keyword.arg == "verdict" for keyword in node.keywords)
    ]
    assert {*given} == {"analysis/claims/rule.py", "analysis/decide.py"}


def test_everything_is_imported_as_parley() -> None:
    """`import agents` from the repository's root would give a second copy of a module."""
    folders = ["tests", "docs", "benchmarks", *ROOMS]
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for folder in folders
        for path in modules(folder)
        for name in imports(path)
        if name.partition(".")[0] in ROOMS[:-1]
    ]
    assert wrong == []


def test_no_circle_of_modules() -> None:
    """Not through imports for type checkers, imports inside functions, or modules named in strings either."""
    known = {module_name(path): path for room in ROOMS for path in modules(room)}
    graph = {
        name: {other for other in imports(path) if other in known and not name.startswith(f"{other}.")} - {name}
        for name, path in known.items()
    }
    assert circle(graph) == []


def test_no_circle_of_the_viewers_scripts() -> None:
    scripts = {path.name: path.read_text("utf-8") for path in (ROOT / "parley" / "viewer" / "static").glob("*.js")}
    graph = {name: set(re.findall(r'from "\./([\w.]+)"', text)) for name, text in scripts.items()}
    assert len(graph) > 20
    assert "dom.js" in graph["app.js"], "imports are found"
    assert set().union(*graph.values()) <= set(scripts)
    assert circle(graph) == []


def test_no_circle_of_folders() -> None:
    """Within a room, too: one study's folder may use another's, but not both ways."""
    known = {module_name(path): path for room in ROOMS[:-1] for path in modules(room)}
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        folder = ".".join(name.split(".")[:3]) if len(path.relative_to(ROOT).parts) > 2 else name
        graph.setdefault(folder, set())
        for other in imports(path):
            if other in known and room_of(other) == room_of(name):
                there = known[other].relative_to(ROOT).parts
                place = ".".join(other.split(".")[:3]) if len(there) > 2 else other
                if place != folder and not folder.startswith(f"{place}.") and not place.startswith(f"{folder}."):
                    graph[folder].add(place)
    assert circle(graph) == []


def test_every_folder_is_a_package_that_is_installed() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = {module_name(path.parent / "__init__.py") for room in ROOMS for path in modules(room)}
    assert set(setup["packages"]) == folders


def test_what_a_room_needs_travels_with_it() -> None:
    """Suites, prompts, personas, rubrics: every file beside our modules is in the package that is installed."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = [ROOT / (package.replace(".", "/")) for package in setup["packages"]]
    shipped = {
        (folder / found).resolve()
        for folder in folders
        for pattern in setup["package-data"]["*"]
        for found in glob(pattern, root_dir=folder, recursive=True)
    }
    beside = {
        path
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert len(beside) > 20
    assert {path.resolve() for path in beside} - shipped == set()


def test_constraints_have_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    wrong = [x for x in lines if x and not x.startswith("#") and not re.fullmatch(r"[A-Za-z0-9._-]+==[^\s/@]+", x)]
    assert wrong == []


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 700


def test_the_study_of_the_docs_runs(place: Path, parley: Callable[..., Any]) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "studies.md").read_text("utf-8"), re.S)
    assert code is not None
    (place / "blanks.py").write_text(code.group(1))
    done = parley("run", "blanks.py:Blanks", "--model", "sim/any", "--out", "a.sqlite", "--report")
    assert done.status == 0, done.err
    assert "6 of 6 units done" in done.out
    assert "What is the mean of 'stereotyped'?" in done.out
    with closing(sqlite3.connect(place / "a.sqlite")) as db:
        choices = db.execute("SELECT text, value, status FROM verdicts").fetchall()
    values = {"slow": 1, "careless": 1, "quick": -1, "careful": -1, "tall": 0, "Canadian": 0}
    assert choices == [(word, values[word], "ok") for word, _, _ in choices]
    assert len(choices) == 6


@pytest.mark.parametrize("package", ["parley", "parley.agents", "parley.analysis", "parley.reports", "parley.runs"])
def test_every_name_that_is_loaded_when_first_used_exists(package: str) -> None:
    module = import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018
