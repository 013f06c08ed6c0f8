"""Your own study: created with a command, run as a file, installed, killed, resumed, reported and viewed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from parley.runs import RunFile
from parley.viewer.headline import headline

ROOT = Path(__file__).parents[2]
NAMES = ",".join(f"Name{n}" for n in range(20))


def code_lines(text: str) -> int:
    """The number of lines that are not empty, comments or one-line docstrings."""
    lines = [line.strip() for line in text.split('"""', 2)[2].splitlines()]
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in lines)


def test_a_new_study_is_forty_lines_and_runs_from_its_file(parley: Callable[..., Any], place: Path) -> None:
    created = parley("new", "study", "warm-letters")
    assert created.status == 0, created.err
    assert "warm-letters/warm_letters/study.py:WarmLetters" in created.out
    study = place / "warm-letters" / "warm_letters" / "study.py"
    assert code_lines(study.read_text()) <= 40

    planned = parley("run", f"{study}:WarmLetters", "--model", "sim/judge", "--dry-run", "--json")
    assert planned.json["units"] == 4
    run = parley("run", f"{study}:WarmLetters", "--model", "sim/judge", "--json", "--quiet")
    assert run.json["done"] == 4
    report = parley("report", run.json["run"], "--json")
    assert {(row["identity"], row["n"]) for row in report.json["means"]} == {("Ada", 2), ("Ben", 2)}
    with RunFile.open(Path(run.json["run"])) as file:
        seen = headline(file)
    (line,) = seen["forests"][0]["lines"]
    assert (line["label"], line["p_adjusted"]) == ("Ada − Ben", 1.0), "two letters show nothing"
    assert seen["headline"]["verdict"] == "not measured", "nor do they have an interval"


def test_it_can_be_installed_killed_resumed_reported_and_viewed(
    parley: Callable[..., Any], start: Callable[..., Any], run_file: Any, place: Path
) -> None:
    if find_spec("wheel") is None:
        pytest.importorskip("setuptools", minversion="70.1")  # before, it could not build without `wheel`
    parley("new", "study", "warm-letters")
    site = place / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*pip, "--target", site, "./warm-letters"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    environment = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    command = ("run", "warm-letters", "--names", NAMES, "--model", "sim/judge?latency=0.02", "--quiet")
    command = (*command, "--concurrency", "1", "--out", "letters.sqlite")

    file = run_file("letters.sqlite")
    first = start(*command, **environment)
    first.wait_for(lambda: Path("letters.sqlite").exists() and file.count() > 3)
    first.kill()
    finished = file.done()
    assert 0 < len(finished) < 40
    again = start(*command, **environment).end()
    assert again.status == 0, again.err
    assert finished <= file.done()
    assert file.count() == 40
    file.check()

    # In this process the package is not installed: a run can be read without its study.
    report = parley("report", "letters.sqlite", "--json")
    assert {row["identity"] for row in report.json["means"]} == set(NAMES.split(","))
    assert parley("view", "letters.sqlite", "--export", "page.html").status == 0
    assert "I am sorry to hear that." in Path("page.html").read_text("utf-8")


def test_its_own_test_passes(parley: Callable[..., Any], place: Path) -> None:
    parley("new", "study", "warm-letters")
    folder = place / "warm-letters"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [("Warm Letters", "lower-case words"), ("malibu", "already"), ("../up", "lower-case"), ("class", "Python")],
)
def test_an_unsuitable_name_is_refused(parley: Callable[..., Any], place: Path, name: str, message: str) -> None:
    result = parley("new", "study", name)
    assert result.status == 2
    assert message in result.complaints[0]
    assert list(place.iterdir()) == []


def test_nothing_is_overwritten(parley: Callable[..., Any], place: Path) -> None:
    parley("new", "study", "warm-letters", "--to", "mine")
    (place / "mine" / "warm-letters" / "README.md").write_text("my own words")
    result = parley("new", "study", "warm-letters", "--to", "mine")
    assert result.status == 2
    assert "already exists" in result.complaints[0]
    assert (place / "mine" / "warm-letters" / "README.md").read_text() == "my own words"


def test_a_study_that_cannot_be_loaded_gives_one_line(parley: Callable[..., Any], place: Path) -> None:
    parley("new", "study", "warm-letters")
    (place / "warm-letters" / "warm_letters" / "ask.txt").unlink()
    result = parley("run", "warm-letters/warm_letters/study.py:WarmLetters", "--model", "sim/judge")
    assert result.status == 2
    assert "ask.txt: No such file or directory" in result.complaints[0]
