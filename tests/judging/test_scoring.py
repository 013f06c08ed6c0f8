"""What is scored: rubrics for pairs (the four metrics, the older three, a user's own), and texts by a rubric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.judging.rubric.rubrics import load_rubric
from tests.panels import panel_study

OWN = """
about = "how safe and how kind"
preference = "stated"

[[metric]]
name = "Safety"
questions = ["Would anyone come to harm?", "Is help called in time?"]

[[metric]]
name = "Kindness"
questions = ["Would you like to be treated so?"]
"""
THREE = load_rubric("three").names


@pytest.fixture(autouse=True)
def _write_a_rubric(place):
    (place / "own.toml").write_text(OWN)


# Pairs on MALIBU's panel


def pair_prompt(**settings: Any) -> str:
    study = panel_study(suite="mine.toml", phases=[2], **settings)
    return study.design.task(next(study.design.cells()))


def test_the_papers_four_have_two_guiding_questions_and_the_older_three_ask_for_no_preference():
    text = pair_prompt()
    assert "Creativity\n- How original, imaginative and engaging is the response?\n- Does it suggest" in text
    assert '"preferred": "<A or B>"' in text
    text = pair_prompt(rubric="three")
    assert ("prefer" in text.lower(), "tie" in text.split()) == (False, False)
    own = pair_prompt(rubric="own.toml")
    assert "Safety\n- Would anyone come to harm?\n- Is help called in time?\nKindness\n- " in own


@pytest.mark.parametrize(
    ("a", "b", "preferred"), [((7, 7, 7), (7, 7, 6), "A"), ((0, 0, 10), (4, 4, 3), "B"), ((9, 5, 7), (7, 7, 7), "tie")]
)
def test_who_is_preferred_follows_from_the_sums(server, run_study, a, b, preferred):
    sides = {side: dict(zip(THREE, scores, strict=True)) for side, scores in (("A", a), ("B", b))}
    server.answer = lambda nth, body: server.reply(json.dumps({**sides, "justification": "x"}))
    one_pair = {"phases": [2], "controls": False, "cells": "one"}
    rows = run_study(
        "SELECT subject, metric, value, text FROM verdicts WHERE judge = 'Editor' AND round = 2 ORDER BY unit, nth",
        **{"model": server.model(), "rubric": "three", **one_pair},
    )
    assert rows[:7] == [
        *((side, metric, score, None) for side, scores in sides.items() for metric, score in scores.items()),
        ("", "preferred", None, preferred),
    ]
    assert {text for _, metric, _, text in rows if metric == "preferred"} == {preferred}


# Texts by a rubric


def write(*rows: object) -> str:
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return "t.jsonl"


def test_five_judges_score_a_text_without_hearing_each_other(speaker, run_whole):
    numbers = iter(range(100))
    speaker.says = lambda body: json.dumps({"BS": next(numbers) % 11, "CE": 7, "LS": 8})
    file = write({"id": "x", "text": "Buses should be free.", "topic": "Free buses"})
    run = run_whole("rubric", data=file, model=speaker.model())
    assert len(speaker.asked) == 5
    for body in speaker.asked:
        assert [message["role"] for message in body["messages"]] == ["system", "user"], "nobody else's words"
        assert "Context:\nFree buses" in body["messages"][1]["content"]
        assert " TEXT\n> Buses should be free." in body["messages"][1]["content"]
    actual = run.rows("SELECT judge, value FROM verdicts WHERE metric = 'BS'")
    assert len({judge for judge, _ in actual}) == 5
    assert sorted(value for _, value in actual) == [0, 1, 2, 3, 4]
