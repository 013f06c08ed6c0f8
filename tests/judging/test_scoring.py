"""Scores by a rubric: several judges who do not hear each other, BS the right way round."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.agents import ConfigError
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import RubricScores, ScoringConfig
from tests.agents.test_readout import as_logprobs

pytestmark = pytest.mark.usefixtures("place")


def write(*rows: object) -> str:
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return "t.jsonl"


def test_more_bias_is_a_higher_bs() -> None:
    (metric,) = load_rubric("bs").metric
    bands = {line.partition(":")[0]: line for line in metric.questions}
    assert "significant" in bands["7 to 9"]
    assert "stereotypes or prejudices" in bands["7 to 9"]
    assert "minimal" in bands["1 to 3"]
    assert "MORE biased" in metric.questions[0]


@pytest.mark.parametrize("name", ["ce", "ls"])
def test_better_is_higher_elsewhere(name: str) -> None:
    (metric,) = load_rubric(name).metric
    assert "BETTER" in metric.questions[0]
    assert any(line.startswith("7 to 9: high") for line in metric.questions)


def test_five_judges_score_a_text_without_hearing_each_other(speaker: Any) -> None:
    numbers = iter(range(100))
    speaker.says = lambda body: json.dumps({"BS": next(numbers) % 11, "CE": 7, "LS": 8})
    file = write({"id": "x", "text": "Buses should be free.", "topic": "Free buses"})
    assert parley.run("rubric", data=file, model=speaker.model(), out="s.sqlite").complete
    assert len(speaker.asked) == 5
    for body in speaker.asked:
        assert [message["role"] for message in body["messages"]] == ["system", "user"], "nobody else's words"
        assert "Context:\nFree buses" in body["messages"][1]["content"]
        assert " TEXT\n> Buses should be free." in body["messages"][1]["content"]
    with closing(sqlite3.connect("s.sqlite")) as db:
        actual = db.execute("SELECT judge, value FROM verdicts WHERE metric = 'BS'").fetchall()
    assert len({judge for judge, _ in actual}) == 5
    assert sorted(value for _, value in actual) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("readout", "value"), [("expected", 7.5), ("sampled", 7.0)])
def test_scores_are_expected_or_as_they_were_written(server: Any, readout: str, value: float) -> None:
    tokens = as_logprobs(['{"BS": ', ("7", {"7": 0.5, "8": 0.5}), "}"])
    server.answer = lambda nth, body: server.reply('{"BS": 7}', tokens)
    settings = {"data": write({"text": "Buses."}), "rubrics": ["bs"], "readout": readout}
    assert parley.run("rubric", model=server.model(), out="s.sqlite", **settings).complete
    with closing(sqlite3.connect("s.sqlite")) as db:
        assert db.execute("SELECT DISTINCT value, sampled FROM verdicts").fetchall() == [(value, 7.0)]


def test_several_models_judge_the_same_texts() -> None:
    study = RubricScores(ScoringConfig(data=write({"text": "a"}, {"text": "b"}), model=["sim/a", "sim/b"]))
    assert [unit.id for unit in study.plan()] == [
        "line-1/@sim/a",
        "line-1/@sim/b",
        "line-2/@sim/a",
        "line-2/@sim/b",
    ]


def test_a_plain_text_file_has_a_text_a_line() -> None:
    Path("t.txt").write_text("One.\n\nTwo.\n", "utf-8")
    study = RubricScores(ScoringConfig(data="t.txt"))
    assert [unit.facets["item"] for unit in study.plan()] == ["line-1", "line-3"]


def test_examples_of_scores_are_an_option_and_bs_is_the_right_way_round() -> None:
    file = write({"text": "a"})
    plain, shown = (RubricScores(ScoringConfig(data=file, examples=examples)) for examples in (False, True))
    unit = next(plain.plan())
    assert "Examples for" not in plain.task(unit)
    task = shown.task(unit)
    for metric in ("BS", "CE", "LS"):
        _, _, examples = task.partition(f"Examples for {metric}")
        assert [int(line[9]) for line in examples.splitlines()[1:4]] in ([8, 5, 2], [2, 5, 8])
    assert "Around 8, strong bias" in task
    Path("own.toml").write_text('[[metric]]\nname = "Own"\nquestions = ["Is it good?"]\n')
    with pytest.raises(ConfigError, match="examples: there are none for Own"):
        RubricScores(ScoringConfig(data=file, examples=True, rubrics=["own.toml"]))
