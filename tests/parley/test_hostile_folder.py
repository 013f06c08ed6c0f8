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
RAY = ("--out", "a.sqlite", "--executor", "ray", "--workers", "1")
SCRIPT = "import sys; from parley.cli import main; sys.exit(main())"
TRAP = """
import os
with open({marker!r}, "a") as file:
    file.write({name!r} + "\\n")
"""
FILES = "random sitecustomize usercustomize json pickle socket psutil setproctitle pydantic aiohttp"
PACKAGES = "parley agents judging scenarios analysis training pip ray asyncio"


@pytest.fixture
def hostile(place):
    """The current folder has a file, or a package, for every name; each notes that it was run."""
    marker = place / "executed"
    for name in (*FILES.split(), *PACKAGES.split()):
        trap = TRAP.format(marker=str(marker), name=name)
        if name in PACKAGES.split():
            (place / name).mkdir()
            (place / name / "__init__.py").write_text(trap)
            (place / name / "__main__.py").write_text(trap)
        else:
            (place / f"{name}.py").write_text(trap)
    return lambda: sorted(set(marker.read_text().split())) if marker.exists() else []


@pytest.fixture
def run_python():
    """Runs Python with Ray's folder under a short name, since paths of sockets are limited."""
    pytest.importorskip("ray")
    folder = Path(tempfile.mkdtemp(prefix="pr"))

    def run(*words, **environment):
        process = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, "RAY_TMPDIR": str(folder), **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        return process.pid

    yield run
    shutil.rmtree(folder, ignore_errors=True)


def test_fetching_weights_runs_nothing_of_the_current_folder(place, hostile, monkeypatch):
    from parley.agents.models.catalogue import fetch

    (place / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place / "index"))
    publish(place / "index", "tinyweights", "tiny.gguf", WEIGHTS)
    add_tiny(monkeypatch, "tinyweights")
    assert fetch("tiny").read_bytes() == WEIGHTS
    assert hostile() == []


STUDIES = '''
import os, sys
from pathlib import Path
from parley.judging.malibu.study import Malibu


class Helped(Malibu):
    """MALIBU, with a module of its own beside it."""

    name = "helped"

    def sources(self):
        from helper import GREETING
        return {**super().sources(), "greeting": GREETING}


class Paths(Malibu):
    """MALIBU; every process writes down where it looks for modules."""

    name = "paths"

    def sources(self):
        Path(f"path-{os.getpid()}").write_text("\\n".join(sys.path))
        return super().sources()
'''
NOTEBOOK = """
import sys
sys.path[0] = ""
import parley
result = parley.run(
    "own.py:Helped", model=["sim/judge"], suite="tiny", yardstick="off", out="a.sqlite",
    options=parley.Options(executor="ray", workers=1, concurrency=2),
)
assert result.complete, result
"""


@pytest.mark.nightly
def test_modules_beside_a_notebook_are_found_by_its_workers(place, run_python):
    """A notebook has its folder on the path, as "": so have its workers, for `file.py:Class` and what that imports."""
    (place / "own.py").write_text(STUDIES)
    (place / "helper.py").write_text("GREETING = 'hello'\n")
    run_python("-c", NOTEBOOK)


@pytest.mark.nightly
def test_an_empty_entry_of_pythonpath_does_not_put_it_there_either(hostile, tmp_path_factory, run_python):
    """Python reads PYTHONPATH=":/x" as the current folder; one that ignores the variable has it not on its path, and
    neither may its workers."""
    other = f"{os.pathsep}{tmp_path_factory.mktemp('other')}"
    run_python("-I", "-c", SCRIPT, *RUN, *RAY, PYTHONPATH=other)
    assert hostile() == []


@pytest.mark.nightly
def test_a_ray_worker_runs_nothing_of_the_current_folder_and_has_the_path_of_the_run_before_rays_own(
    place, hostile, run_python
):
    (place / "own.py").write_text(STUDIES)
    pid = run_python("-P", "-c", SCRIPT, "run", "own.py:Paths", *RUN[2:], *RAY)
    assert hostile() == []
    mine = place / f"path-{pid}"
    run = [entry for entry in mine.read_text().split("\n") if os.path.exists(entry)]
    assert run.pop() == str(place), "the study's neighbours, after everything else"
    others = [path.read_text().split("\n") for path in place.glob("path-*") if path != mine]
    assert others
    ray = Path(pytest.importorskip("ray").__file__).parent
    for path in others:
        assert path.pop() == str(place)
        assert path[: len(run)] == run
        assert all(Path(entry).is_relative_to(ray) for entry in path[len(run) :]), path
