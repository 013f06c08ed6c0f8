"""What a report prints first: at most 28 lines, the answer with its interval and a plot, and three commands."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.report import Report
from parley.analysis.stats.results import Line
from parley.cli.first_screen import MOST_LINES, first_screen
from parley.cli.terminal_forest import ASCII, BLOCKS, Axis, forest_lines

Parley = Callable[..., Any]
FOREST = Forest(
    "gaps",
    "Do labels move scores?",
    "points",
    (
        Line(label="a − b", estimate=0.5, low=0.25, high=0.75, p_adjusted=0.01),
        Line(label="a − c", estimate=-0.25, low=-0.5, high=0.0, p_adjusted=0.2),
    ),
)


def test_a_bar_spans_its_interval_and_the_reference_stands_in_every_line():
    axis = Axis.around(FOREST.lines, 0.0, 11)  # from -0.5 to 0.75: 8 columns a point
    assert axis.bar(FOREST.lines[0], ASCII) == "    | --#--"
    assert axis.bar(FOREST.lines[1], ASCII) == "--#-|      "
    assert axis.bar(Line(label="no interval", estimate=0.5), BLOCKS) == "    │   █  "


def test_a_heading_that_all_lines_share_is_left_out():
    groups = ("a model · open", "a model · fenced")
    lines = forest_lines(
        Forest("f", "?", "p", tuple(Line(label="all", estimate=1.0, group=g) for g in groups)), 80, ASCII, 9
    )
    assert [line.plain.split()[0:2] for line in lines[:2]] == [["open:", "all"], ["fenced:", "all"]]


def test_lines_that_have_no_room_are_counted_and_the_primary_ones_come_first():
    beside = Line(label="beside", estimate=9.0, low=8.0, high=10.0, secondary=True)
    *lines, axis = forest_lines(Forest("f", "?", "points", (beside, *FOREST.lines)), 80, ASCII, rows=2)
    assert [line.plain.split("  ")[1].strip()[:5] for line in lines] == ["a − b", "a − c"]
    assert axis.plain == "  | no difference, # points, with 95% intervals; 1 more line on the page"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_longest_report_has_28_lines_and_begins_with_what_invalidates_it(width, monkeypatch):
    monkeypatch.setattr("parley.cli.first_screen.find_example", lambda report, paths: None)
    many = Forest("f", "Do labels move scores?", "points", tuple(FOREST.lines[0] for _ in range(50)))
    report = Report("a run", cautions=("This invalidates. " * 20, "This too. " * 9, "And this."), forests=(many,))
    told = io.StringIO()
    console = Console(file=told, width=width)
    for line in first_screen(report, [Path("a.sqlite")], None, console):
        console.print(line, highlight=False, soft_wrap=True)
    lines = told.getvalue().splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= width
    assert lines[1].startswith("Caution: This invalidates.")
    assert sum("aution" in line for line in lines) <= 3
    assert "Do labels move scores?" in lines[5]
    assert not any(mark in told.getvalue() for mark in "━█│\x1b"), "a pipe gets plain text"


def test_a_terminal_gets_blocks_and_colours_unless_they_are_unwanted(monkeypatch):
    monkeypatch.setattr("parley.cli.first_screen.find_example", lambda report, paths: None)
    for unwanted in (False, True):
        told = io.StringIO()
        screen = Console(
            file=told, width=80, force_terminal=True, no_color=unwanted, _environ={"TERM": "xterm-256color"}
        )
        monkeypatch.setattr(type(screen), "encoding", "utf-8")
        for line in first_screen(Report("a run", forests=(FOREST,)), [Path("a.sqlite")], None, screen):
            screen.print(line, highlight=False, soft_wrap=True)
        assert ("█" in told.getvalue()) is not unwanted
        assert ("\x1b[1;32m" in told.getvalue()) is not unwanted


# What was said, and what to type next

LABELS = ("--suite", "wide", "--limit", "9", "--identities", "female,male,black,white")
TRY = ("run", "malibu", *LABELS, "--phases", "1", "--yardstick", "off", "--quiet", "--out", "a.sqlite")


@pytest.mark.parametrize("design", ["talk", "silent"])
def test_what_is_quoted_and_shown_is_behind_the_finding(parley, design):
    """They were the first debate's: of another model, on another label."""
    models = "sim/judge,sim/judge?black=-2"
    assert parley(*TRY, "--design", design, "--model", models).status == 0
    lines = parley("report", "a.sqlite", "--no-files", "--draws", "50").out.splitlines()
    assert "Yes: with sim/judge?black=-2, the same answers score" in " ".join(lines)
    command = next(line for line in lines if line.startswith("  parley show a.sqlite "))
    assert " ".join(command.split()) == "parley show a.sqlite --finding 1 what this answer rests on, the largest first"
    pairs = parley("show", "a.sqlite", "--finding", "1", "--json").json["units"]
    behind = [unit for pair in pairs for unit in pair["units"]]
    assert {unit["facets"]["identity"] for unit in behind} == {"black", "white"}
    assert all(unit["id"].endswith("/@sim/judge?black=-2") for unit in behind)
    quoted = [line.strip().partition(": “")[::2] for line in lines if "“" in line]
    assert len(quoted) == (0 if design == "silent" else 2), "a silent ballot says nothing"
    black, white = pairs[0]["units"]
    scores = f"  black: {black['score']:.2f}, white: {white['score']:.2f} ({black['id']})"
    assert (scores in lines) is (design == "silent"), "its two scores stand in their place"
    said = [parley("show", "a.sqlite", unit["id"], "--json").json["turns"] for unit in behind] if quoted else []
    for speaker, words in quoted:
        assert any(turn["speaker"] == speaker and words[:40] in turn["text"] for turns in said for turn in turns)


def test_next_commands_have_the_users_own_suite_and_identities(parley, place):
    """They were always `--suite wide`, whatever had been run."""
    assert parley("new", "scenarios", "mine.toml").status == 0
    (place / "own.toml").write_text('[categories]\nhand = ["left-handed", "right-handed"]\n')
    own = ("--suite", "mine.toml", "--identities", "own.toml", "--design", "silent", "--seed", "5")
    result = parley("run", "malibu", *own, "--model", "sim/judge", "--quiet", "--report", "--out", "a.sqlite")
    assert result.status == 0, result.err
    (command,) = [line for line in result.out.splitlines() if line.startswith("  parley run ")]
    assert command == (
        "  parley run malibu --suite mine.toml --design silent --identities own.toml --seed 5 --model openai/gpt-6-luna"
    )
    assert parley(*shlex.split(command)[1:], "--dry-run").status == 0
