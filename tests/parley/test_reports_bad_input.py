"""Reports on runs with few, no or unusable verdicts: one clear line or a "–", never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parley as library
from tests.panels import ONE_CELL, in_design
from tests.parley.test_bad_input import one_line

FEW = ("--draws", "50")
Parley = Callable[..., Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of the quick suite, by what is odd about them."""
    folder = tmp_path_factory.mktemp("runs")
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "unread": {"model": "sim/judge?malformed=1"},
        "singles": {"phases": [1]},
        "pairs": {"phases": [2], "controls": False},
        "paper": {"design": "paper"},
        "one identity": {"identities": ["female"]},
        "one scenario": {"suite": "full", "scenarios": ["fitness"], "per_base": 1, "identities": ["gender"]},
        "equal": {"model": "sim/judge?noise=0"},
        "a chair": {"consensus": "chair"},
        "staged": {"design": "staged"},
        "silent": {"design": "silent"},
        "sampled": {"design": "silent", "model": "sim/judge?silent=false"},
    }
    paths = {}
    for name, config in settings.items():
        paths[name] = folder / f"{name.replace(' ', '-')}.sqlite"
        options = library.Options(cache=False, out=str(paths[name]))
        assert library.run(
            "malibu",
            options=options,
            **in_design({"model": "sim/judge", "suite": "tiny", "yardstick": "off", **config}, ONE_CELL),
        ).complete
    none = folder / "none.sqlite"
    library.run(
        "malibu",
        model="sim/judge",
        yardstick="off",
        options=library.Options(cache=False, out=str(none), budget_calls=0),
    )
    return paths | {"none": none}


# Runs with few verdicts


KINDS = ("singles", "pairs", "paper", "one identity", "one scenario", "equal", "a chair", "staged", "silent", "sampled")


@pytest.mark.parametrize("name", KINDS)
def test_any_kind_of_run_is_reported(parley: Parley, runs: dict[str, Path], name: str) -> None:
    result = parley("report", runs[name], "--no-files", *FEW)
    assert (result.status, result.err) == (0, "")
    assert " nan" not in result.out.lower()


def test_replies_that_could_not_be_parsed_are_dashes(parley: Parley, runs: dict[str, Path]) -> None:
    result = parley("report", runs["unread"], "--no-files", "--all", *FEW)
    assert "replies gave no verdict" in result.out
    row = next(line for line in result.out.splitlines() if line.strip().startswith("female"))
    assert set(row.split()[1:]) == {"–"}


def test_one_identity_has_nothing_to_be_compared_with(parley: Parley, runs: dict[str, Path]) -> None:
    data = parley("report", runs["one identity"], "--json", *FEW).json
    assert {row["p"] for row in data["tests"]} == {None}
    assert all(row["note"] for row in data["tests"])


def test_equal_scores_are_no_difference_and_three_bases_have_no_interval(parley: Parley, runs: dict[str, Path]) -> None:
    data = parley("report", runs["equal"], "--json", *FEW).json
    gaps = [row for row in data["differences"] if row["within"] and row["measure"] == "score"]
    assert {(row["estimate"], row["low"], row["high"], row["p"]) for row in gaps} == {(0.0, None, None, 1.0)}
    # Over all metrics the note says why there is no verdict; a single metric's says why it has no interval.
    few = {True: "3 bases cannot show a difference between labels", False: "3 clusters: an interval needs 6"}
    assert all(few[row["metric"] == "all"] in row["note"] for row in gaps)


# Runs without verdicts


def test_a_run_without_a_finished_unit_has_no_report_yet(parley: Parley, runs: dict[str, Path]) -> None:
    one_line(parley("report", runs["none"]), 2, "is done")
    one_line(parley("compare", runs["none"], runs["plain"]), 2, "is done")


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_file_that_is_not_a_run_is_named(parley: Parley, runs: dict[str, Path], place: Path, command: str) -> None:
    (place / "text.sqlite").write_text("Dear diary")
    one_line(parley(command, runs["plain"], "text.sqlite"), 1, "text.sqlite is not a Parley run file")
    one_line(parley(command, "gone.sqlite"), 2, "there is no run file gone.sqlite")


def test_a_report_covers_one_study(parley: Parley, runs: dict[str, Path], place: Path) -> None:
    (place / "own.py").write_text(
        "from parley.judging.malibu.study import Malibu\n\n\nclass Own(Malibu):\n    name = 'own'\n"
    )
    assert (
        parley("run", "own.py:Own", "--suite", "tiny", "--model", "sim/judge", "--quiet", "--out", "o.sqlite").status
        == 0
    )
    one_line(parley("report", runs["plain"], "o.sqlite"), 2, "a report covers one study", "malibu", "own")
    one_line(parley("compare", runs["plain"], "o.sqlite"), 2, "only runs of the same study can be compared")


# Comparisons that cannot be made


def test_runs_that_share_no_unit(parley: Parley, runs: dict[str, Path]) -> None:
    one_line(parley("compare", runs["singles"], runs["pairs"]), 2, "no unit in common")


def test_runs_without_parsed_replies(parley: Parley, runs: dict[str, Path]) -> None:
    one_line(parley("compare", runs["unread"], runs["unread"]), 2, "readable verdicts on both sides")


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (None, ("got 1", "choose with --models A,B")),
        ("sim/nobody,sim/judge", ("got 1",)),
        ("x,y", ("got 0",)),
    ],
)
def test_two_sides_are_needed(
    parley: Parley, runs: dict[str, Path], models: str | None, words: tuple[str, ...]
) -> None:
    chosen = () if models is None else ("--models", models)
    one_line(parley("compare", runs["plain"], *chosen), 2, "compare needs two models or runs", *words)


# Arguments


@pytest.mark.parametrize("option", [("--draws", "0"), ("--seed", "-1")])
def test_invalid_draws_and_seeds(parley: Parley, runs: dict[str, Path], option: tuple[str, str]) -> None:
    one_line(parley("report", runs["plain"], "--json", *option), 2, option[0])


def test_a_folder_that_cannot_be_written_to(parley: Parley, runs: dict[str, Path], place: Path) -> None:
    (place / "taken").write_text("a file")
    result = parley("report", runs["plain"], "--out", "taken", *FEW)
    one_line(result, 1, "the report cannot be written to taken")


# Untrusted names


@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_models_name_is_shown_literally_in_the_terminal(parley: Parley, place: Path) -> None:
    name = "sim/[red]x[/red]\x1b[31m$x_1$<b>"
    options = library.Options(cache=False, out="a.sqlite")
    library.run("malibu", model=name, suite="tiny", phases=[1], rounds=1, options=options, **ONE_CELL)
    result = parley("report", "a.sqlite", *FEW)
    assert result.status == 0
    assert "[red]x[/red]" in result.out
    assert "\x1b" not in result.out
    page = (place / "a-report" / "report.html").read_text("utf-8")
    assert "<b>" not in page
