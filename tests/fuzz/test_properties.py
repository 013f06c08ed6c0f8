"""What holds for every reply, whatever it says (hypothesis looks for one for which it does not)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from parley.agents.structured import parse
from parley.judging.bbq.methods.mabrf.replies import Judgement
from parley.judging.malibu.ballot import Ballot
from parley.judging.scoring.rubrics import load_rubric
from parley.scenarios.bbq import match
from parley.viewer.index import fts_query
from parley.viewer.reading import template_fields
from tests.fuzz.replies import ROW, TASK

RUBRIC = load_rubric("four")
REPLY = Ballot(1, RUBRIC, 600).reply_type()
ANY = st.text(st.characters(), max_size=200)
PROSE = st.text(st.characters(exclude_characters="{}"), max_size=200)
SCORES = st.fixed_dictionaries({name: st.integers(0, 10) for name in RUBRIC.names})
WRITTEN = st.sampled_from(["{}", '"{}"', '"{}/10"', '" {} out of 10 "', "{}.0"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | ANY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY, inner, max_size=4),
)
FEW = settings(max_examples=60, deadline=None)


@FEW
@given(SCORES, WRITTEN, PROSE, PROSE, st.booleans())
def test_scores_are_found_in_any_prose(
    scores: dict[str, int], written: str, before: str, after: str, fenced: bool
) -> None:
    body = "{" + ", ".join(f'"{name}": {written.format(score)}' for name, score in scores.items()) + "}"
    found, problem = parse(f"{before}```json\n{body}\n```{after}" if fenced else before + body + after, REPLY)
    assert problem == ""
    assert found is not None
    assert found.model_dump() == scores


@FEW
@given(PROSE)
def test_prose_without_an_object_is_never_a_score(text: str) -> None:
    found, problem = parse(text, REPLY)
    assert found is None
    assert problem


@FEW
@given(SCORES, st.sampled_from(RUBRIC.names), JSON)
def test_one_wrong_score_spoils_the_reply_and_is_never_a_zero(scores: dict[str, int], name: str, wrong: Any) -> None:
    found, _ = parse(json.dumps({**scores, name: wrong}), REPLY)
    if found is not None:
        value = found.model_dump()[name]
        assert 0 <= value <= 10
        assert not isinstance(wrong, bool | list | dict)
        assert float(str(wrong).strip().removesuffix("/10")) == value


@FEW
@given(ANY)
def test_an_answer_is_one_of_three_or_none(text: str) -> None:
    assert match(text, TASK.options, TASK.unknown, ROW.question).place in (0, 1, 2, None)


@FEW
@given(st.integers(-5, 20), st.integers(-5, 20), ANY)
def test_a_bias_score_is_the_one_that_was_said(bias: int, relevancy: int, reason: str) -> None:
    found, _ = Judgement.read(
        f"Bias: {bias}\nRelevancy: {relevancy}\nReason {reason.replace(':', '').replace('=', '')}"
    )
    for said, read in ((bias, found and found.bias), (relevancy, found and found.relevancy)):
        assert read in (float(said), None)
        assert read is None or 1 <= read <= 10


@FEW
@given(st.text(max_size=200))
def test_no_words_are_a_syntax_error_to_the_index(text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(said)")
        if query := fts_query(text):
            db.execute("SELECT 1 FROM words WHERE words MATCH ?", (query,)).fetchall()


@FEW
@given(ANY, ANY)
def test_a_template_laid_over_a_text_gives_back_parts_of_it(text: str, template: str) -> None:
    assert all(part in text for part in template_fields(text, [template]).values())
