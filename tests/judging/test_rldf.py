"""RLDF's debates: the debaters, their prompts, and the verdicts that are stored."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

import parley
from parley.judging import Unit
from parley.judging.rldf.roles import load_bias
from parley.judging.rldf.study import Rldf, RldfConfig
from parley.scenarios import BIASES

pytestmark = pytest.mark.usefixtures("place")


def planned(**settings: Any) -> list[Unit]:
    return list(Rldf(RldfConfig(**settings)).plan())


def whole(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def is_report(body: dict[str, Any]) -> bool:
    return "response_format" in body


def reports(*rounds: dict[str, Any]) -> Any:
    """A model whose debaters number what they say, and whose referee gives these reports in turn."""
    given = iter(rounds)
    replies = iter(range(1, 1000))

    def says(body: dict[str, Any]) -> str:
        return json.dumps(next(given)) if is_report(body) else f"Statement {next(replies)}."

    return says


def even(score: int) -> dict[str, Any]:
    return {
        "scores": {"Sixty": score, "Twenty": score, "Forty": score},
        "ranks": {"Sixty": 1, "Twenty": 2, "Forty": 3},
    }


def asked(sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect("a.sqlite")) as db:
        return db.execute(sql).fetchall()


def run_study(speaker: Any, sql: str, **settings: Any) -> list[tuple[Any, ...]]:
    """Hold one debate, and ask its file."""
    settings = {"topics": 1, "rounds": 1, "design": "paper", "check": False, "model": speaker.model(), **settings}
    result = parley.run("rldf", out="a.sqlite", **settings)
    assert result.complete, result
    return asked(sql)


# The plan


def test_a_unit_is_a_topic_and_keeps_its_id_when_more_are_requested():
    twenty, fifty = planned(topics=20), planned(topics=50)
    assert len(twenty) == len({unit.id for unit in twenty}) == 20
    assert [unit.id for unit in fifty[:20]] == [unit.id for unit in twenty]
    assert all(re.fullmatch(r"age/[a-z0-9-]+-[0-9a-f]{6}/r0", unit.id) for unit in twenty)


FIRSTS = {
    "age": "Sixty Forty Twenty",
    "nationality": "Asian Western African",
    "institution": "Company Government Nonprofit",
    "beauty": "Attractive Average Unattractive",
    "profession": "Doctor Lawyer Engineer",
}


@pytest.mark.parametrize("bias", BIASES)
def test_each_bias_type_seats_two_to_five_people_and_the_first_three_are_the_papers(bias):
    assert set(Rldf(RldfConfig(bias=bias)).names) == set(FIRSTS[bias].split())
    assert [len(Rldf(RldfConfig(bias=bias, roles=roles)).names) for roles in (2, 4, 5)] == [2, 4, 5]
    texts = Rldf(RldfConfig(bias=bias, roles=5)).prompts().values()
    assert not [text for text in texts if re.search(r"\bagents?\b", text, re.IGNORECASE)], "no debater is an agent"


def test_your_own_bias_type(place, speaker):
    (place / "height.toml").write_text(
        'trait = "height"\n[[role]]\nname = "Tall"\nlabel = "a tall person"\n'
        '[[role]]\nname = "Short"\nlabel = "a short person"\nabout = "You are short, and glad of it."\n'
    )
    (place / "shelves.txt").write_text("Should shelves be lower?\n")
    speaker.says = reports({"scores": {"Tall": 5, "Short": 1}, "ranks": {"Tall": 1, "Short": 2}})
    settings = {"bias": "height.toml", "topics_from": "shelves.txt", "roles": 2}
    actual = run_study(speaker, "SELECT subject, value FROM verdicts WHERE metric = 'bias'", **settings)
    assert actual == [("Tall", 5.0), ("Short", 1.0)]
    assert "You are a tall person. At this table you are called Tall." in whole(speaker.asked[0])
    assert "You are short, and glad of it." in whole(speaker.asked[1])
    assert "biases about height" in whole(speaker.asked[2])


# The table


def test_the_round_goes_round_the_table_and_the_referees_scores_are_stored_and_heard(speaker):
    report = {"scores": {"Sixty": 3, "Twenty": 7, "Forty": 0}, "ranks": {"Sixty": 2, "Twenty": 1, "Forty": 3}}
    speaker.says = reports(report, even(2))
    sql = "SELECT round, metric, subject, value FROM verdicts WHERE judge = 'Referee' ORDER BY nth"
    actual = run_study(speaker, sql, rounds=2)
    assert actual[:7] == [
        *((1, "bias", name, score) for name, score in (("Sixty", 3.0), ("Twenty", 7.0), ("Forty", 0.0))),
        *((1, "rank", name, rank) for name, rank in (("Sixty", 2.0), ("Twenty", 1.0), ("Forty", 3.0))),
        (1, "discordant", "", 0.0),
    ]
    spoken = asked("SELECT speaker, role, round FROM transcript WHERE role != 'narrator' ORDER BY seq")
    turns = (("Sixty", "debater"), ("Twenty", "debater"), ("Forty", "debater"), ("Referee", "referee"))
    assert spoken == [(name, role, round) for round in (1, 2) for name, role in turns]
    assert len(speaker.asked) == 8
    first, second = whole(speaker.asked[0]), whole(speaker.asked[4])
    assert "lower bias score" not in first
    assert '"Sixty": 3' in second
    assert "try to get a lower bias score" in second


def test_without_feedback_the_debaters_never_hear_the_referee(speaker):
    speaker.says = reports(even(4), even(2))
    run_study(speaker, "SELECT 1", rounds=2, feedback=False)
    texts = [whole(body) for body in speaker.asked if not is_report(body)]
    assert not any("scores" in text or "bias score" in text for text in texts)
    assert "Statement 1." in texts[-1], "they hear each other all the same"
    assert '"Sixty": 4' in whole(speaker.asked[-1]), "the referee knows what it said"


# Teachers


@pytest.mark.parametrize(
    ("settings", "models"),
    [
        ({"mode": "teacher-student", "teacher": "teacher"}, ["teacher"] * 4),
        ({"referee": "judge"}, ["speaker"] * 3 + ["judge"]),
    ],
)
def test_a_teacher_plays_or_another_model_referees(speaker, settings, models):
    speaker.says = reports(even(4))
    given = {key: speaker.model(value) if key in ("teacher", "referee") else value for key, value in settings.items()}
    (student,) = run_study(speaker, "SELECT facets ->> 'student' FROM units", **given)
    assert student == (speaker.model(),)
    assert [body["model"] for body in speaker.asked] == models


def test_a_teacher_who_guides_referees_and_its_advice_reaches_the_student(speaker):
    advice = {"advice": {"Sixty": "Leave age out.", "Twenty": "Fine.", "Forty": "Fine."}}
    speaker.says = reports({**even(4), **advice}, {**even(2), **advice})
    settings = {"mode": "teacher-guides", "teacher": speaker.model("teacher"), "model": speaker.model("student")}
    run_study(speaker, "SELECT 1", rounds=2, **settings)
    assert [body["model"] for body in speaker.asked] == [*["student"] * 3, "teacher"] * 2
    assert "advise each speaker" in whole(speaker.asked[3])
    assert "Leave age out." in whole(speaker.asked[4])
    assert "Take the advice meant for you" in whole(speaker.asked[4])


# Verdicts


def test_a_report_that_cannot_be_read_gives_no_scores(speaker):
    speaker.says = lambda body: "Everyone did well." if is_report(body) else "So I think."
    actual = run_study(speaker, "SELECT metric, value, status FROM verdicts WHERE judge = 'Referee'")
    assert len(actual) == 7
    assert {(value, status) for _, value, status in actual} == {(None, "unparsed")}


def test_what_breaks_role_or_gives_it_away_is_flagged(speaker):
    replies = iter(["As a 60-year-old I disagree.", "I am an AI, so I have no view.", "Buses are useful."])
    speaker.says = lambda body: json.dumps(even(1)) if is_report(body) else next(replies)
    actual = run_study(
        speaker, "SELECT subject, metric, text FROM verdicts WHERE judge = 'Rules' AND value = 1 ORDER BY nth"
    )
    assert actual == [("Sixty", "leak", "60-year-old"), ("Twenty", "role_break", "i am an ai")]


def test_the_second_referee_knows_neither_round_nor_first_scores(speaker):
    speaker.says = reports(even(9), even(9), even(2), even(3))
    actual = run_study(
        speaker,
        "SELECT judge, round, value FROM verdicts WHERE metric = 'bias' AND subject = 'Sixty' ORDER BY nth",
        rounds=2,
        rereferee=1,
    )
    assert actual == [("Referee", 1, 9), ("Referee", 2, 9), ("Referee_again", 1, 2), ("Referee_again", 2, 3)]
    for body in speaker.asked[-2:]:
        assert "round" not in whole(body).lower()
        assert '"Sixty": 9' not in whole(body)
    assert "Statement 1." in whole(speaker.asked[-2])
    assert "Statement 4." in whole(speaker.asked[-1])
    assert "Statement 4." not in whole(speaker.asked[-2])


@pytest.mark.parametrize("seed", range(4))
def test_of_six_debates_at_least_one_is_scored_a_second_time(seed):
    def drawn(share: float) -> set[str]:
        study = Rldf(RldfConfig(topics=6, rereferee=share, seed=seed))
        return {unit.id for unit in study.plan() if unit.facets["again"]}

    assert drawn(0.0) == set()
    assert len(drawn(0.001)) == 1
    assert drawn(0.001) <= drawn(0.25) <= drawn(1.0)
    assert len(drawn(1.0)) == 6


# Roles


def test_a_role_is_given_away_by_its_own_marks_only():
    sixty, twenty, _, *_ = load_bias("age").role
    marks = sixty.gives_away("At my age one learns; as someone who is a 60-year-old, I know.")
    assert marks == ["at my age", "as someone who", "60-year-old"]
    assert twenty.gives_away("Sixty-year-olds and 60-year-old people differ, as a result.") == []


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"design": "paper"}, True),
        ({"design": "paper", "examples": False}, False),
        ({"design": "silent"}, False),
        ({"design": "silent", "examples": True}, True),
        ({"model": "sim/debate"}, False),
    ],
)
def test_the_papers_design_shows_its_examples_unless_told_not_to(settings, shown):
    study, plain = Rldf(RldfConfig(**settings)), Rldf(RldfConfig(**{**settings, "examples": False}))
    opening, task = (each.task(next(each.plan())) for each in (plain, study))
    assert task.startswith(opening)
    assert len(re.findall(r"^A \d\d-year-old on ", task, re.MULTILINE)) == 4 * shown, "as many as the paper's prompt"
    assert ("rldf/examples" in study.prompts()) is study.config.examples is shown, "a run file has what was done"
