"""SQuAD's official JSON: read as it is, refused with the place that is wrong, and sampled fairly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.scenarios import ScenarioError
from parley.scenarios.squad import Question, load, sample

CALM = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])

DATA = Path(__file__).parents[3] / "shared" / "data" / "squad" / "cs224n_dev-v2.0_half.json"


def table(*paragraphs: tuple[str, ...]) -> str:
    """A file of one question per paragraph, with these golds."""
    listed = []
    for nth, golds in enumerate(paragraphs):
        answers = [{"text": gold, "answer_start": 0} for gold in golds]
        question = {"id": f"q{nth}", "question": f"What is {nth}?", "answers": answers, "is_impossible": not golds}
        listed.append({"context": f"Text {nth}.", "qas": [question]})
    return json.dumps({"version": "v2.0", "data": [{"title": "Rhine", "paragraphs": listed}]})


def test_questions_know_their_text_their_golds_and_whether_there_is_an_answer(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(table(("the Rhine", "Rhine"), ()))
    squad = load(path)
    assert squad.questions == (
        Question("q0", "Rhine", "Rhine/0", "Text 0.", "What is 0?", ("the Rhine", "Rhine")),
        Question("q1", "Rhine", "Rhine/1", "Text 1.", "What is 1?", ()),
    )
    assert [item.answerable for item in squad.questions] == [True, False]
    path.write_text(table(("Rhine",)))
    assert load(path).sources != squad.sources, "another file is another source"


def questions(answerable: int, unanswerable: int) -> list[Question]:
    golds = [("x",)] * answerable + [()] * unanswerable
    return [Question(str(n), "T", f"T/{n}", "c", "q", gold) for n, gold in enumerate(golds)]


@CALM
@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 130), st.integers(0, 9))
def test_a_sample_keeps_the_proportion_and_is_drawn_by_its_seed(yes, no, limit, seed):
    every = questions(yes, no)
    drawn = sample(every, limit, seed)
    assert drawn == sample(every, limit, seed)
    assert len(drawn) == len(set(drawn)) == min(limit, yes + no)
    if limit < yes + no:
        assert abs(sum(item.answerable for item in drawn) - limit * yes / (yes + no)) <= 1
    if yes and no and limit > 1:
        assert {item.answerable for item in drawn} == {True, False}


def test_another_seed_draws_others_and_kinds_are_mixed():
    every = questions(50, 50)
    assert sample(every, 20, 0) != sample(every, 20, 1)
    kinds = [item.answerable for item in sample(every, 20, 0)]
    assert all(True in kinds[at : at + 3] and False in kinds[at : at + 3] for at in range(18)), "evenly, not in blocks"
    assert sum(item.answerable for item in sample(questions(99, 1), 10, 0)) == 9, "one of the rare kind"
    with pytest.raises(ScenarioError, match="at least one question"):
        sample(every, 0, 0)


@pytest.mark.skipif(not DATA.exists(), reason="the real data is not here")
def test_the_real_file_is_read_whole():
    actual = load(DATA).questions
    assert len(actual) == 6078
    assert sum(item.answerable for item in actual) == 2910
