"""`parley import squad`: answers from a file, scored by the official rules in the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DATA = {
    "version": "v2.0",
    "data": [
        {
            "title": "Rhine",
            "paragraphs": [
                {
                    "context": "The Rhine rises in Switzerland.",
                    "qas": [
                        {"id": "q1", "question": "Where?", "answers": [{"text": "Switzerland", "answer_start": 19}]},
                        {"id": "q2", "question": "Who?", "answers": [{"text": "the Rhine", "answer_start": 0}]},
                        {"id": "q3", "question": "Why?", "answers": []},
                        {"id": "q4", "question": "When?", "answers": []},
                    ],
                }
            ],
        }
    ],
}


@pytest.fixture(autouse=True)
def _files(place):
    Path("dev.json").write_text(json.dumps(DATA))


def score(parley: Any, predictions: Any, *more: str) -> Any:
    Path("mine.json").write_text(predictions if isinstance(predictions, str) else json.dumps(predictions))
    Path("a.sqlite").unlink(missing_ok=True)
    return parley("import", "squad", "mine.json", "--data", "dev.json", "--out", "a.sqlite", *more)


def numbers(parley: Any) -> dict[tuple[str, str], float]:
    """The report's scores, by measure and questions: all, answerable or not."""
    rows = parley("report", "a.sqlite", "--json", "--draws", "50").json["scores"]
    return {(row["measure"], row["question"]): row["estimate"] for row in rows}


def test_the_numbers_of_the_official_script(parley):
    assert score(parley, {"q1": "Switzerland", "q2": "River Rhine", "q3": "", "q4": "1512"}).status == 0
    found = numbers(parley)
    assert found["exact", "all"] == 50
    assert found["f1", "all"] == pytest.approx(100 * (1 + 2 / 3 + 1) / 4)
    assert (found["exact", "answerable"], found["exact", "unanswerable"]) == (50, 50)
    assert found["f1", "answerable"] == pytest.approx(100 * (1 + 2 / 3) / 2)


def test_a_missing_prediction_is_counted_and_never_right(parley):
    """A missing answer, or null, is not an empty answer, which would be right for an unanswerable question."""
    told = score(parley, {"q1": "Switzerland", "q3": None, "other": "x"}, "--json").json
    assert told["units"] == 1
    assert told["notes"] == [
        "3 questions without a prediction, left out",
        "1 prediction for questions that are not in the data",
    ]
    assert numbers(parley)["exact", "all"] == 100
    assert "1 question without a prediction, left out\n" in score(parley, {"q1": "", "q2": "", "q3": ""}).out


def test_a_high_probability_of_no_answer_is_no_answer(parley):
    Path("na.json").write_text(json.dumps({"q1": 0.1, "q2": 0.2, "q3": 0.9, "q4": 0.8}))
    predictions = {"q1": "Switzerland", "q2": "Rhine", "q3": "x", "q4": "y"}
    assert score(parley, predictions, "--na-prob", "na.json", "--na-prob-thresh", "0.5").status == 0
    assert numbers(parley)["exact", "all"] == 100
    assert "--na-prob-thresh needs --na-prob" in score(parley, predictions, "--na-prob-thresh", "0.5").err
