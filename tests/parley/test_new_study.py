"""A study of one's own: begun with a command, run as a file, installed, killed, resumed, reported and viewed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from parley.runs import RunFile
from parley.viewer.headline import headline

ROOT = Path(__file__).parents[2]
NAMES = ",".join(f"Name{n}" for n in range(20))


def code_lines(text: str) -> int:
    """Lines that are neither empty nor comments nor docstrings of one line."""
    lines = [line.strip() for line in text.split('"""', 2)[2].splitlines()]
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in lines)


def test_a_new_study_is_forty_lines_and_runs_from_its_file(parley: Callable[..., Any], place: Path) -> None:
    begun = parley("new", "study", "warm-letters")
    assert begun.status == 0, begun.err
    assert "warm-letters/warm_letters/study.py:WarmLetters" in begun.out
    study = place / "warm-letters" / "warm_letters" / "study.py"
    assert code_lines(study.read_text()) <= 40

    planned = parley("run", f"{study}:WarmLetters", "--model", "sim/judge", "--dry-run", "--json")
    assert planned.json["units"] == 4
    run = parley("run", f"{study}:WarmLetters", "--model", "sim/judge", "--json", "--quiet")
    assert run.json["done"] == 4
    report = parley("report", run.json["run"], "--json")
    assert {(row["identity"], row["n"]) for row in report.json["means"]} == {("Ada", 2), ("Ben", 2)}
    with closing(RunFile.open(Path(run.json["run"]))) as file:
        seen = headline(file)
    assert [row["identity"] for row in seen["scores"]] == ["Ada", "Ben"]
    assert (seen["largest"]["label"], seen["largest"]["p_holm"]) == ("Ada − Ben", 1.0), "two letters show nothing"


def test_it_is_installed_killed_resumed_reported_and_viewed_by_its_name(
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
    kept = file.done()
    assert 0 < len(kept) < 40
    again = start(*command, **environment).end()
    assert again.status == 0, again.err
    assert kept <= file.done()
    assert file.count() == 40
    file.check()

    # In this process the package is not installed: a run can be read where its study is not.
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
    ("name", "complaint"),
    [("Warm Letters", "lower-case words"), ("malibu", "already"), ("../up", "lower-case"), ("class", "Python")],
)
def test_a_name_that_will_not_do_is_refused(parley: Callable[..., Any], place: Path, name: str, complaint: str) -> None:
    told = parley("new", "study", name)
    assert told.status == 2
    assert complaint in told.complaints[0]
    assert list(place.iterdir()) == []


def test_nothing_is_written_over(parley: Callable[..., Any], place: Path) -> None:
    parley("new", "study", "warm-letters", "--to", "mine")
    (place / "mine" / "warm-letters" / "README.md").write_text("my own words")
    told = parley("new", "study", "warm-letters", "--to", "mine")
    assert told.status == 2
    assert "is there already" in told.complaints[0]
    assert (place / "mine" / "warm-letters" / "README.md").read_text() == "my own words"


def test_a_study_that_cannot_be_loaded_is_explained_in_one_line(parley: Callable[..., Any], place: Path) -> None:
    parley("new", "study", "warm-letters")
    (place / "warm-letters" / "warm_letters" / "ask.txt").unlink()
    told = parley("run", "warm-letters/warm_letters/study.py:WarmLetters", "--model", "sim/judge")
    assert told.status == 2
    assert "ask.txt: No such file or directory" in told.complaints[0]
