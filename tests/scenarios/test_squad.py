"""SQuAD's official JSON: read as it is, refused with the place that is wrong, and sampled fairly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.scenarios import ScenarioError
from parley.scenarios.squad import Question, load, sample

CALM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

DATA = Path(__file__).parents[3] / "shared" / "data" / "squad" / "cs224n_dev-v2.0_half.json"


def row(key: str, *golds: str) -> dict[str, Any]:
    answers = [{"text": gold, "answer_start": 0} for gold in golds]
    return {"id": key, "question": f"What is {key}?", "answers": answers, "is_impossible": not golds}


def table(*paragraphs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "version": "v2.0",
        "data": [
            {"title": "Rhine", "paragraphs": [{"context": f"Text {n}.", "qas": x} for n, x in enumerate(paragraphs)]}
        ],
    }


def test_questions_know_their_text_their_golds_and_whether_there_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(table([row("a", "the Rhine", "Rhine")], [row("b")])))
    squad = load(path)
    assert squad.questions == (
        Question("a", "Rhine", "Rhine/0", "Text 0.", "What is a?", ("the Rhine", "Rhine")),
        Question("b", "Rhine", "Rhine/1", "Text 1.", "What is b?", ()),
    )
    assert [item.answerable for item in squad.questions] == [True, False]
    before = squad.sources
    path.write_text(json.dumps(table([row("a", "Rhine")])))
    assert load(path).sources != before, "another file is another source"


def paragraph(data: Any) -> Any:
    return data["data"][0]["paragraphs"][0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("data"), "data is missing"),
        (lambda d: d.update(data={}), "data must be a list"),
        (lambda d: d["data"][0].pop("title"), r"data\[0\]\.title is missing"),
        (lambda d: paragraph(d).update(context=1), r"data\[0\]\.paragraphs\[0\]\.context must be a string"),
        (lambda d: paragraph(d)["qas"][1].pop("answers"), r"paragraphs\[0\]\.qas\[1\]\.answers is missing"),
        (lambda d: paragraph(d)["qas"][0]["answers"].append("x"), r"qas\[0\]\.answers\[1\]\.text is missing"),
        (lambda d: paragraph(d)["qas"].append(row("a")), r"qas\[2\]\.id: 'a' is already the id of .*qas\[0\]"),
        (lambda d: d["data"].clear(), "contains no question"),
    ],
)
def test_a_malformed_file_is_an_error_that_names_the_field(tmp_path: Path, change: Any, says: str) -> None:
    data = table([row("a", "x"), row("b")])
    change(data)
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ScenarioError, match=says):
        load(path)


@pytest.mark.parametrize(
    ("content", "says"), [(b'{"data":\n [,]}', "line 2, column 3"), (b'{"\xff"}', "UTF-8"), (b"[" * 99_999, "not JSON")]
)
def test_what_is_not_json_is_refused_with_its_line(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "dev.json").write_bytes(content)
    with pytest.raises(ScenarioError, match=says):
        load(tmp_path / "dev.json")


def questions(answerable: int, unanswerable: int) -> list[Question]:
    golds = [("x",)] * answerable + [()] * unanswerable
    return [Question(str(n), "T", f"T/{n}", "c", "q", gold) for n, gold in enumerate(golds)]


@CALM
@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 130), st.integers(0, 9))
def test_a_sample_keeps_the_proportion_and_is_drawn_by_its_seed(yes: int, no: int, limit: int, seed: int) -> None:
    every = questions(yes, no)
    drawn = sample(every, limit, seed)
    assert drawn == sample(every, limit, seed)
    assert len(drawn) == len(set(drawn)) == min(limit, yes + no)
    if limit < yes + no:
        assert abs(sum(item.answerable for item in drawn) - limit * yes / (yes + no)) <= 1
    if yes and no and limit > 1:
        assert {item.answerable for item in drawn} == {True, False}


def test_another_seed_draws_others() -> None:
    every = questions(50, 50)
    assert sample(every, 20, 0) != sample(every, 20, 1)


@pytest.mark.skipif(not DATA.exists(), reason="the real data is not here")
def test_the_real_file_is_read_whole() -> None:
    actual = load(DATA).questions
    assert len(actual) == 6078
    assert sum(item.answerable for item in actual) == 2910
