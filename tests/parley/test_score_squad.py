"""`parley score squad`: answers from a file, scored under the official names."""

from __future__ import annotations

import json
import subprocess
import sys
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
def _files(place: Path) -> None:
    Path("dev.json").write_text(json.dumps(DATA))


def score(parley: Any, predictions: Any, *more: str) -> Any:
    Path("mine.json").write_text(predictions if isinstance(predictions, str) else json.dumps(predictions))
    return parley("score", "squad", "--data", "dev.json", "--predictions", "mine.json", *more)


def test_the_official_names_and_numbers(parley: Any) -> None:
    result = score(parley, {"q1": "Switzerland", "q2": "River Rhine", "q3": "", "q4": "1512"}, "--json")
    assert result.status == 0
    assert result.json == {
        "exact": 50.0, "f1": pytest.approx(100 * (1 + 2 / 3 + 1) / 4), "total": 4,
        "HasAns_exact": 50.0, "HasAns_f1": pytest.approx(100 * (1 + 2 / 3) / 2), "HasAns_total": 2,
        "NoAns_exact": 50.0, "NoAns_f1": 50.0, "NoAns_total": 2,
        "missing": 0, "missing_ids": [], "unknown_ids": 0,
    }  # fmt: skip


def test_a_missing_prediction_is_counted_and_never_right(parley: Any) -> None:
    """A missing answer, or null, is not an empty answer, which would be right for an unanswerable question."""
    result = score(parley, {"q1": "Switzerland", "q3": None, "other": "x"}, "--json")
    assert result.json["total"] == 1
    assert result.json["missing_ids"] == ["q2", "q3", "q4"]
    assert result.json["unknown_ids"] == 1
    assert "NoAns_total" not in result.json
    result = score(parley, {"q1": "Switzerland", "other": "x"})
    assert "3 questions have no prediction and are left out: q2, q3, q4\n" in result.out
    assert "1 prediction is for a question that is not in the data\n" in result.out
    result = score(parley, {"q1": "Switzerland", "q2": "", "q3": "", "one": "x", "two": "x"})
    assert "1 question has no prediction and is left out: q4\n" in result.out
    assert "2 predictions are for questions that are not in the data\n" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_probabilities_of_no_answer_give_the_best_thresholds(parley: Any) -> None:
    Path("na.json").write_text(json.dumps({"q1": 0.1, "q2": 0.2, "q3": 0.9, "q4": 0.8}))
    predictions = {"q1": "Switzerland", "q2": "Rhine", "q3": "x", "q4": "y"}
    result = score(parley, predictions, "--json", "--na-prob", "na.json", "--na-prob-thresh", "0.5")
    assert result.json["exact"] == 100.0
    assert (result.json["best_exact"], result.json["best_exact_thresh"]) == (100.0, 0.2)
    assert (result.json["best_f1"], result.json["best_f1_thresh"]) == (100.0, 0.2)
    assert [result.json[f"pr_{name}_ap"] for name in ("exact", "f1", "oracle")] == [100.0, 100.0, 100.0]


def test_the_precision_recall_curves_are_written_as_csv(parley: Any) -> None:
    Path("na.json").write_text(json.dumps({"q1": 0.1, "q2": 0.2, "q3": 0.15, "q4": 0.8}))
    predictions = {"q1": "Switzerland", "q2": "Rhine", "q3": "x", "q4": "y"}
    result = score(parley, predictions, "--json", "--na-prob", "na.json", "--pr-curves", "curves.csv")
    assert result.json["pr_exact_ap"] == pytest.approx(100 * (1 / 2 + 2 / 3 * 1 / 2))
    lines = Path("curves.csv").read_text().splitlines()
    assert lines[:3] == ["measure,threshold,recall,precision", "exact,,0.0,1.0", "exact,0.1,0.5,1.0"]
    assert len(lines) == 1 + 3 * 5
    refused = score(parley, predictions, "--pr-curves", "curves.csv")
    assert (refused.status, "--pr-curves needs --na-prob" in refused.complaints[0]) == (2, True)


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ("{", "mine.json, line 1, column 2: not JSON"),
        ("[]", "expected an object with question ids as keys"),
        ({"q1": 7}, "the prediction for 'q1' must be a text"),
        ({"x": "y"}, "no prediction for any question"),
    ],
)
def test_a_file_that_cannot_be_scored_gives_one_line(parley: Any, predictions: Any, message: str) -> None:
    result = score(parley, predictions)
    assert result.status == 2
    assert len(result.complaints) == 1
    assert message in result.complaints[0]


def test_missing_files_and_probabilities_are_named(parley: Any) -> None:
    assert "nowhere.json: No such file" in parley("score", "squad", "--data", "nowhere.json", "--predictions", "x").err
    Path("na.json").write_text('{"q1": true}')
    assert "na.json: no probability for 'q1'" in score(parley, {"q1": "x"}, "--na-prob", "na.json").err


def test_scoring_imports_neither_agents_nor_numpy(place: Path) -> None:
    Path("mine.json").write_text('{"q1": "Switzerland"}')
    code = (
        "import sys; from parley.cli import main\n"
        "main(['score', 'squad', '--data', 'dev.json', '--predictions', 'mine.json'])\n"
        "print(sorted({'parley.agents', 'autogen_core', 'pandas', 'numpy', 'rich'} & set(sys.modules)))"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
