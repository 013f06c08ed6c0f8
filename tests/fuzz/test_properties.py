"""Properties that hold for every reply; Hypothesis searches for counterexamples."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from parley.agents.structured import parse
from parley.judging.bbq.methods.mabrf.replies import Judgement
from parley.judging.malibu.panel import Ballot
from parley.judging.scoring.rubrics import load_rubric
from parley.runs.reading import template_fields
from parley.scenarios.bbq import match
from parley.viewer.index import fts_query
from tests.fuzz.replies import ROW, TASK

RUBRIC = load_rubric("four")
REPLY = Ballot(1, RUBRIC, 600).reply_type()
ANY_TEXT = st.text(st.characters(), max_size=200)
PROSE = st.text(st.characters(exclude_characters="{}"), max_size=200)
SCORES = st.fixed_dictionaries({name: st.integers(0, 10) for name in RUBRIC.names})
SCORE_FORMATS = st.sampled_from(["{}", '"{}"', '"{}/10"', '" {} out of 10 "', "{}.0"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
)
SETTINGS = settings(max_examples=60)


@SETTINGS
@given(SCORES, SCORE_FORMATS, PROSE, PROSE, st.booleans())
def test_scores_are_read_from_the_object_alone(
    scores: dict[str, int], score_format: str, before: str, after: str, fenced: bool
) -> None:
    body = "{" + ", ".join(f'"{name}": {score_format.format(score)}' for name, score in scores.items()) + "}"
    body = f"```json\n{body}\n```" if fenced else body
    value, problem = parse(body, REPLY)
    assert problem == ""
    assert value is not None
    assert value.model_dump() == scores
    value, _ = parse(before + body + after, REPLY)
    assert value is None or (value.model_dump() == scores and not after.replace("`", "").strip())


@SETTINGS
@given(PROSE)
def test_prose_without_an_object_is_never_a_score(text: str) -> None:
    value, problem = parse(text, REPLY)
    assert value is None
    assert problem


@SETTINGS
@given(SCORES, st.sampled_from(RUBRIC.names), JSON)
def test_a_reply_with_a_wrong_score_is_unparsed(scores: dict[str, int], name: str, wrong: Any) -> None:
    value, _ = parse(json.dumps({**scores, name: wrong}), REPLY)
    if value is not None:
        score = value.model_dump()[name]
        assert 0 <= score <= 10
        assert not isinstance(wrong, bool | list | dict)
        assert float(str(wrong).strip().removesuffix("/10")) == score


@SETTINGS
@given(ANY_TEXT)
def test_a_bbq_answer_is_one_of_three_or_none(text: str) -> None:
    assert match(text, TASK.options, TASK.unknown, ROW.question).place in (0, 1, 2, None)


@SETTINGS
@given(st.integers(-5, 20), st.integers(-5, 20), ANY_TEXT)
def test_a_bias_score_is_the_one_in_the_reply(bias: int, relevancy: int, reason: str) -> None:
    value, _ = Judgement.read(
        f"Bias: {bias}\nRelevancy: {relevancy}\nReason {reason.replace(':', '').replace('=', '')}"
    )
    for written, parsed in ((bias, value and value.bias), (relevancy, value and value.relevancy)):
        assert parsed in (float(written), None)
        assert parsed is None or 1 <= parsed <= 10


@SETTINGS
@given(st.text(max_size=200))
def test_no_search_text_is_a_syntax_error(text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(replies)")
        if query := fts_query(text):
            db.execute("SELECT 1 FROM words WHERE words MATCH ?", (query,)).fetchall()


@SETTINGS
@given(ANY_TEXT, ANY_TEXT)
def test_template_fields_are_parts_of_the_text(text: str, template: str) -> None:
    assert all(part in text for part in template_fields(text, [template]).values())
