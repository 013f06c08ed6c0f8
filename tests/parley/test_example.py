"""What a user sees first: the example that ships with the package, and the first screen of a report."""

from __future__ import annotations

import hashlib
import io
import json
from importlib.resources import files
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from rich.console import Console

from parley.analysis.page.report import Report
from parley.analysis.say import Forest
from parley.analysis.stats.results import Estimate, Line
from parley.cli.first_screen import MOST_LINES, first_screen
from parley.cli.terminal_forest import ASCII, BLOCKS, Axis, forest_lines
from parley.runs import RunFile, example
from parley.runs.diagnosis import find_damage
from parley.viewer.open_run import OpenRun
from parley.viewer.reporter import Reporter
from parley.viewer.server import make_app


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    return example.example_runs()


def test_the_example_is_small_and_has_two_sound_real_runs(runs):
    packed = files("parley.runs").joinpath("examples")
    assert sum(len(part.read_bytes()) for part in packed.iterdir()) <= 1_500_000
    assert list(runs) == ["silent", "talking"]
    rounds = {}
    for name, path in runs.items():
        assert find_damage(path) is None
        with RunFile.open(path) as file:
            assert not any(model.startswith("sim/") for model in file.info()["models"])
            assert file.counts()["done"] > 100
            rounds[name] = file.rows("SELECT max(round) FROM messages")[1][0][0]
    assert rounds["talking"] > rounds["silent"], "judges hear each other in one of them"


def test_a_copy_that_was_changed_is_replaced(runs):
    path = runs["talking"]
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.stat().st_mode & 0o222 == 0, "nobody adds to it by mistake"
    path.unlink()
    path.write_bytes(b"something else")
    assert hashlib.sha256(example.example_runs()["talking"].read_bytes()).hexdigest() == before


def test_the_report_of_the_example_says_that_it_is_one(parley, place, runs):
    result = parley("report", "--example", "--no-files", "--draws", "50")
    assert result.out.lstrip().startswith("Example that ships with Parley: malibu")
    assert [path.name for path in place.iterdir()] == ["home"], "nothing is written among one's own files"


def test_the_examples_first_page_is_there_at_once_and_says_what_the_report_says(runs, monkeypatch):
    monkeypatch.setattr(Reporter, "request", lambda *arguments, **options: None)  # nothing is computed
    run = OpenRun(runs["silent"])
    found = run.report(reporter=Reporter())
    golden = json.loads((Path(__file__).parents[1] / "golden" / "results" / "example.json").read_text("utf-8"))
    numbers, sentences = golden["numbers"]["report · headline"], golden["sentences"]
    now = "the report has changed: python -m docs.example"
    assert found["headline"]["answer"] == numbers["answer"], now
    assert [*found["cautions"], *found["sentences"]] == sentences["report · summary"], now
    assert OpenRun(runs["talking"]).report(reporter=Reporter())["pending"], "a report takes seconds"


async def test_every_page_of_the_example_has_a_banner_and_others_have_none(runs, tmp_path):
    for folder, banners in ((runs["silent"].parent, 1), (tmp_path, 0)):
        async with TestClient(TestServer(make_app(folder))) as client:
            for page in ("/", "/run?run=silent.sqlite", "/compare"):
                text = await (await client.get(page)).text()
                assert text.count(example.MARK) == banners


def test_without_runs_the_viewer_offers_the_example(parley, place):
    assert "parley view --example" in parley("view").complaints[0]


FOREST = Forest(
    "gaps",
    "Do labels move scores?",
    "points",
    (
        Line.of(Estimate(estimate=0.5, low=0.25, high=0.75), label="a − b", p_adjusted=0.01),
        Line.of(Estimate(estimate=-0.25, low=-0.5, high=0.0), label="a − c", p_adjusted=0.2),
    ),
)


def test_a_bar_spans_its_interval_and_the_reference_stands_in_every_line():
    axis = Axis.around(FOREST.lines, 0.0, 11)  # from -0.5 to 0.75: 8 columns a point
    assert axis.bar(FOREST.lines[0], ASCII) == "    | --#--"
    assert axis.bar(FOREST.lines[1], ASCII) == "--#-|      "
    assert axis.bar(Line.of(Estimate(estimate=0.5), label="no interval"), BLOCKS) == "    │   █  "


def test_lines_that_have_no_room_are_counted_and_the_primary_ones_come_first():
    beside = Line.of(Estimate(estimate=9.0, low=8.0, high=10.0), label="beside", secondary=True)
    *lines, axis = forest_lines(Forest("f", "?", "points", (beside, *FOREST.lines)), 80, ASCII, rows=2)
    assert [line.plain.split("  ")[1].strip()[:5] for line in lines] == ["a − b", "a − c"]
    assert axis.plain == "  | no difference, # points, with 95% intervals; 1 more line on the page"


@pytest.mark.parametrize("width", [60, 200])
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
    whole = " ".join(line.strip() for line in lines).replace("Caution: ", "")
    assert "This invalidates. " * 20 + "This too. " * 9 + "And this. " in whole, "no caution is cut off or hidden"
    assert not any(mark in told.getvalue() for mark in "━█│\x1b"), "a pipe gets plain text"


LABELS = ("--suite", "wide", "--limit", "9", "--identities", "female,male,black,white")
TRY = ("run", "malibu", *LABELS, "--phases", "1", "--yardstick", "off", "--quiet", "--out", "a.sqlite")


def test_what_is_quoted_and_shown_is_behind_the_finding(parley):
    """They were the first debate's: of another model, on another label."""
    models = "sim/judge,sim/judge?black=-2"
    assert parley(*TRY, "--design", "talk", "--model", models).status == 0
    lines = parley("report", "a.sqlite", "--no-files", "--draws", "50").out.splitlines()
    assert "Yes: with sim/judge?black=-2, the same answers score" in " ".join(lines)
    command = next(line for line in lines if line.startswith("  parley show a.sqlite "))
    assert " ".join(command.split()) == "parley show a.sqlite --finding 1 what this answer rests on, the largest first"
    pairs = parley("show", "a.sqlite", "--finding", "1", "--json").json["units"]
    behind = [unit for pair in pairs for unit in pair["units"]]
    assert {unit["facets"]["identity"] for unit in behind} == {"black", "white"}
    assert all(unit["id"].endswith("/@sim/judge?black=-2") for unit in behind)
    quoted = [line.strip().partition(": “")[::2] for line in lines if "“" in line]
    assert len(quoted) == 2
    said = [parley("show", "a.sqlite", unit["id"], "--json").json["turns"] for unit in behind]
    for speaker, words in quoted:
        assert any(turn["speaker"] == speaker and words[:40] in turn["text"] for turns in said for turn in turns)
