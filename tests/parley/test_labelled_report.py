"""People's labels of a run in its report: what they change, what they do not enter, and how many more it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parley as library
from parley.analysis.reporting.report import Report
from parley.reports.labelled import with_labels
from parley.reports.labels.draws import DrawSettings, draw_items
from parley.reports.loading import load_run
from parley.runs import RunFile, frames
from parley.runs.notes import Answer, NotesFile
from parley.runs.studies import arms_of

pytest.importorskip("pandas")
TOPICS = 14


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """84 texts of two methods on 14 topics, scored for bias by a simulated judge."""
    folder = tmp_path_factory.mktemp("scored")
    rows = [
        {"id": f"{method}-{topic}-{n}", "text": f"{method} {topic} {n}.", "group": method, "topic": f"topic {topic}"}
        for method in ("sft", "rldf")
        for topic in range(TOPICS)
        for n in range(3)
    ]
    texts = folder / "t.jsonl"
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run = folder / "s.sqlite"
    library.run("rubric", data=str(texts), by="group", rubrics=["bs"], model=["sim/any?base=6&noise=1.5"], out=str(run))
    return run


@dataclass
class Labeller:
    """Gives labels to a copy of the run."""

    run: Path

    def __post_init__(self) -> None:
        self.notes = NotesFile(self.run)
        judged = frames.verdicts(self.run).groupby("unit", observed=True)["value"].mean()
        self.judged = {str(unit): float(score) for unit, score in judged.items()}

    def draw(self, count: int, **settings: Any) -> Iterator[tuple[int, str]]:
        with RunFile.open(self.run) as file:
            draw = draw_items(file, self.notes, DrawSettings(count=count, **settings))
        for item in self.notes.items(draw):
            if item.position is not None:
                yield draw, item.unit

    def label(self, draw: int, unit: str, score: float | None, rater: str = "Ada", **about: Any) -> None:
        self.notes.add_labels(draw, unit, rater, [Answer("", "BS", score, score, None)], **about)

    def section(self) -> dict[str, Any]:
        """What labels add to a report, as data."""
        return with_labels(Report("a study"), [load_run(self.run)], arms_of("rubric")).data()

    def as_a_person_would(self, unit: str) -> float:
        """The judge likes what rldf writes two points less than people do."""
        return self.judged[unit] - 2 * unit.startswith("rldf")


@pytest.fixture
def labeller(scored, place):
    copy = place / "s.sqlite"
    copy.write_bytes(scored.read_bytes())
    return Labeller(copy)


def row(report: dict[str, Any], first: str, second: str) -> dict[str, Any]:
    (found,) = (row for row in report["corrected"] if (row["first"], row["second"]) == (first, second))
    return dict(found)


def test_labels_correct_a_judge_that_is_biased_by_method(parley, labeller):
    before = parley("report", labeller.run, "--draws", 100, "--json").json
    assert ("corrected" in before, "label" in " ".join(before["summary"])) == (False, False)
    for draw, unit in labeller.draw(50, seed=1):
        labeller.label(draw, unit, labeller.as_a_person_would(unit))
    report = parley("report", labeller.run, "--draws", 100, "--json").json
    found = row(report, "sft", "rldf")
    means = {m: np.mean([s for unit, s in labeller.judged.items() if unit.startswith(m)]) for m in ("sft", "rldf")}
    assert found["judge"] == pytest.approx(means["sft"] - means["rldf"])
    truth = means["sft"] - means["rldf"] + 2
    assert found["low"] < truth < found["high"]
    assert found["judge_high"] < truth
    assert found["high"] - found["low"] < found["alone_high"] - found["alone_low"]
    assert (found["n"], found["texts"], found["clusters"]) == (50, 84, 13), "one topic of one method has no label"
    assert found["moved"] == pytest.approx(found["estimate"] - found["judge"])
    assert "The labels move the judge's estimate up by" in report["summary"][1]


def test_what_came_from_a_sorted_queue_or_was_skipped_does_not_enter(labeller):
    for number, (draw, unit) in enumerate(labeller.draw(50, seed=1)):
        labeller.label(draw, unit, None if number < 5 else labeller.as_a_person_would(unit))
    before = labeller.section()
    assert row(before, "sft", "rldf")["n"] == 45
    assert "they skipped 5 of 50 items, which the estimate does not cover" in " ".join(before["summary"])
    for draw, unit in labeller.draw(20, kind="sorted"):
        labeller.label(draw, unit, 10.0)
    after = labeller.section()
    assert after["corrected"] == before["corrected"]
    assert "labels from a sorted queue are left out" in " ".join(after["summary"])


def test_a_draw_that_nobody_labelled_adds_no_texts(labeller):
    list(labeller.draw(20, seed=1))
    for draw, unit in labeller.draw(30, seed=2, filters={"f.group": ["rldf"]}):
        labeller.label(draw, unit, labeller.as_a_person_would(unit))
    (found,) = labeller.section()["corrected"]
    assert (found["n"], found["texts"]) == (30, 42), "the texts of rldf alone"


def test_raters_of_a_text_are_averaged_and_their_spread_is_stated(labeller):
    for draw, unit in labeller.draw(50, seed=1):
        score = labeller.as_a_person_would(unit)
        labeller.label(draw, unit, score - 1, "Ada")
        labeller.label(draw, unit, score + 1, "Ben")
    report = labeller.section()
    assert row(report, "sft", "rldf")["n"] == 50
    spread = "raters of the same text differ by a standard deviation of 1.41 on their scale"  # of -1 and 1: √2
    assert spread in " ".join(report["summary"])


def test_labels_in_nine_topics_give_no_interval(parley, labeller):
    nine = {f"-{topic}-" for topic in range(9)}
    for draw, unit in labeller.draw(84):
        asked = any(topic in unit for topic in nine)
        labeller.label(draw, unit, labeller.as_a_person_would(unit) if asked else None)
    report = labeller.section()
    found = row(report, "sft", "rldf")
    assert found["low"] is None
    assert found["note"] == "labels in 9 topics: no interval below 10"
    assert report["summary"][0] == (
        "54 of 84 texts have labels. These labels do not yet correct the judge: mean BS (sft, rldf). Each takes labels "
        "in 10 topics, and has them in 9: label texts of more topics."
    )
    refused = parley("power", "--labels", labeller.run)
    assert refused.status == 2
    assert "labels in 9 topics: no interval below 10; label more texts first" in refused.err
