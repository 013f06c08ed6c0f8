"""A folder that somebody else filled: Python files in it named like modules are not run by workers, Ray or pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.agents.test_catalogue import WEIGHTS, add_tiny, publish
from tests.panels import RUN_PANEL

RUN = (*RUN_PANEL, "--suite", "tiny", "--quiet", "--model", "sim/judge", "--concurrency", "2")
RAY = ("--executor", "ray", "--workers", "1")
TRAP = """
import os
with open({marker!r}, "a") as file:
    file.write({name!r} + "\\n")
"""
NAMES = (
    *("random", "sitecustomize", "usercustomize", "json", "pickle", "asyncio", "socket", "psutil", "setproctitle"),
    *("parley", "agents", "judging", "scenarios", "analysis", "training", "pip", "ray", "pydantic", "aiohttp"),
)


@pytest.fixture
def hostile(place):
    """The current folder has a file, or a package, for every name; each notes that it was run."""
    marker = place / "executed"
    for name in NAMES:
        trap = TRAP.format(marker=str(marker), name=name)
        if name in ("pip", "ray", "parley", "asyncio", "agents", "judging", "scenarios", "analysis", "training"):
            (place / name).mkdir()
            (place / name / "__init__.py").write_text(trap)
            (place / name / "__main__.py").write_text(trap)
        else:
            (place / f"{name}.py").write_text(trap)
    return lambda: sorted(set(marker.read_text().split())) if marker.exists() else []


@pytest.mark.nightly
def test_an_empty_entry_of_pythonpath_does_not_put_it_there_either(place, hostile, tmp_path_factory, short):
    """Python reads PYTHONPATH=":/x" as the current folder; one that ignores the variable has it not on its path, and
    neither may its workers."""
    pytest.importorskip("ray")
    script = "import sys; from parley.cli import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", script, *RUN, "--out", "a.sqlite", *RAY],
        env={**os.environ, "RAY_TMPDIR": str(short), "PYTHONPATH": f"{os.pathsep}{tmp_path_factory.mktemp('other')}"},
        capture_output=True,
        text=True,
    )
    assert hostile() == []
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def short():
    """Where Ray writes; a short name, since paths of sockets are limited."""
    path = Path(tempfile.mkdtemp(prefix="pr"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_fetching_weights_runs_nothing_of_the_current_folder(place, hostile, monkeypatch):
    from parley.agents.models.catalogue import fetch

    (place / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place / "index"))
    publish(place / "index", "tinyweights", "tiny.gguf", WEIGHTS)
    add_tiny(monkeypatch, "tinyweights")
    assert fetch("tiny").read_bytes() == WEIGHTS
    assert hostile() == []


HELPED = '''
from helper import GREETING
from parley.judging.malibu.study import Malibu


class Helped(Malibu):
    """MALIBU, with a module of its own beside it."""

    name = "helped"

    def sources(self):
        return {**super().sources(), "greeting": GREETING}
'''
NOTEBOOK = """
import sys
sys.path[0] = {entry!r}
import parley
result = parley.run(
    "helped.py:Helped", model=["sim/judge"], suite="tiny", yardstick="off", out="a.sqlite",
    options=parley.Options(executor="ray", workers=1, concurrency=2),
)
assert result.complete, result
"""


@pytest.mark.nightly
def test_modules_beside_a_notebook_are_found_by_its_workers(place, short):
    """A notebook has its folder on the path, as "": so have its workers, for `file.py:Class` and what that imports."""
    pytest.importorskip("ray")
    (place / "helped.py").write_text(HELPED)
    (place / "helper.py").write_text("GREETING = 'hello'\n")
    ended = subprocess.run(
        [sys.executable, "-c", NOTEBOOK.format(entry="")],
        env={**os.environ, "RAY_TMPDIR": str(short)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr


PATHS = '''
import os, sys
from pathlib import Path
from parley.judging.malibu.study import Malibu


class Paths(Malibu):
    """MALIBU; every process writes down where it looks for modules."""

    name = "paths"

    def sources(self):
        Path(f"path-{os.getpid()}").write_text("\\n".join(sys.path))
        return super().sources()
'''


@pytest.mark.nightly
def test_a_ray_worker_runs_nothing_of_the_current_folder_and_has_the_path_of_the_run_before_rays_own(
    place, hostile, short
):
    ray = pytest.importorskip("ray")
    (place / "paths.py").write_text(PATHS)
    script = "import sys; from parley.cli import main; sys.exit(main())"
    command = ["run", "paths.py:Paths", *RUN[2:], "--out", "a.sqlite", *RAY]
    environment = {**os.environ, "RAY_TMPDIR": str(short)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", script, *command], env=environment, stderr=subprocess.PIPE, text=True
    )
    _, err = process.communicate(timeout=240)
    assert hostile() == []
    assert process.returncode == 0, err
    mine = place / f"path-{process.pid}"
    run = [entry for entry in mine.read_text().split("\n") if os.path.exists(entry)]
    assert run.pop() == str(place), "the study's neighbours, after everything else"
    others = [path.read_text().split("\n") for path in place.glob("path-*") if path != mine]
    assert others
    for path in others:
        assert path.pop() == str(place)
        assert path[: len(run)] == run
        assert all(Path(entry).is_relative_to(Path(ray.__file__).parent) for entry in path[len(run) :]), path
