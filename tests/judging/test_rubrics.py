"""What is scored: the paper's four metrics, the older three with a preference inferred, and a user's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.judging.scoring.rubrics import load_rubric
from tests.panels import panel_study

RunStudy = Callable[..., list[tuple[Any, ...]]]
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

ONE_PAIR: dict[str, Any] = {"controls": False, "cells": "one"}


@pytest.fixture
def own(place: Path) -> Path:
    path = place / "own.toml"
    path.write_text(OWN)
    return path


def pair_prompt(**settings: Any) -> str:
    study = panel_study(suite="mine.toml", phases=[2], **settings)
    return study.task(next(study.plan()))


# Shipped


def test_the_papers_four_have_two_guiding_questions_each() -> None:
    four = load_rubric("four")
    assert four.names == ("Creativity", "Accuracy", "Efficiency", "Reliability")
    assert [len(metric.questions) for metric in four.metric] == [2, 2, 2, 2]
    assert four.preference == "stated"
    text = pair_prompt()
    assert "Creativity\n- How original, engaging, and imaginative is the response?\n- Does it propose" in text


def test_the_older_three_ask_for_no_preference() -> None:
    assert load_rubric("three").names == ("Creativity", "Efficiency", "Quality")
    text = pair_prompt(rubric="three")
    assert "prefer" not in text.lower()
    assert "tie" not in text.split()
    assert text.endswith(
        '{"A": {"Creativity": <score>, "Efficiency": <score>, "Quality": <score>}, '
        '"B": {"Creativity": <score>, "Efficiency": <score>, "Quality": <score>}, '
        '"justification": "<strengths, weaknesses, and why>"}'
    )
    assert '"preferred": "<A or B>"' in pair_prompt(), "as the four do"
    assert '"preferred": "<A, B or tie>"' in pair_prompt(ties=True)


@pytest.mark.parametrize(
    ("a", "b", "preferred"),
    [
        ((7, 7, 7), (7, 7, 6), "A"),
        ((0, 0, 10), (4, 4, 3), "B"),
        ((9, 5, 7), (7, 7, 7), "tie"),
    ],
)
def test_who_is_preferred_follows_from_the_sums(
    server: Any, run_study: RunStudy, a: tuple[float, ...], b: tuple[float, ...], preferred: str
) -> None:
    metrics = load_rubric("three").names
    reply = {"A": dict(zip(metrics, a, strict=True)), "B": dict(zip(metrics, b, strict=True)), "justification": "x"}
    server.answer = lambda nth, body: server.reply(json.dumps(reply))
    rows = run_study(
        "SELECT subject, metric, value, text FROM verdicts WHERE judge = 'Editor' AND round = 2 ORDER BY unit, nth",
        model=server.model(),
        rubric="three",
        phases=[2],
        **ONE_PAIR,
    )
    assert rows[:7] == [
        *(("A", metric, score, None) for metric, score in zip(metrics, a, strict=True)),
        *(("B", metric, score, None) for metric, score in zip(metrics, b, strict=True)),
        ("", "preferred", None, preferred),
    ]
    assert {text for _, metric, _, text in rows if metric == "preferred"} == {preferred}


def test_a_preference_that_was_not_requested_does_not_count(server: Any, run_study: RunStudy) -> None:
    high, low = (dict.fromkeys(load_rubric("three").names, score) for score in (9, 2))
    reply = {"A": high, "B": low, "justification": "B is dull.", "preferred": "B"}
    server.answer = lambda nth, body: server.reply(json.dumps(reply))
    rows = run_study(
        "SELECT DISTINCT text FROM verdicts WHERE metric = 'preferred'",
        model=server.model(),
        rubric="three",
        phases=[2],
        **ONE_PAIR,
    )
    assert rows == [("A",)]


# One's own


def test_your_own_rubric(own: Path, run_study: RunStudy) -> None:
    assert "Safety\n- Would anyone come to harm?\n- Is help called in time?\nKindness\n- " in pair_prompt(
        rubric="own.toml"
    )
    rows = run_study("SELECT metric, count(*) FROM verdicts GROUP BY metric", rubric="own.toml", phases=[1])
    assert rows == [("Kindness", 3 * 8), ("Safety", 3 * 8)]
