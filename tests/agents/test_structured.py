"""Replies parsed as types: what counts as a score, what is repaired, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest
from autogen_core.models import UserMessage
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from parley.agents import Assessment, parse, scale, structured_reply
from parley.agents.structured import looks_like_refusal

ASK = [UserMessage(content="Score it.", source="user")]


class Opinion(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]
    why: str = ""


class Sides(BaseModel):
    A: Opinion
    B: Opinion
    preferred: Literal["A", "B", "tie"]


def score_in(text: str) -> float | None:
    value, problem = parse(text, Opinion)
    assert (value is None) == bool(problem)
    return None if value is None else value.score


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 7, "why": "clear"}',
        '```json\n{"score": 7, "why": "clear"}\n```',
        'Here is my view:\n{"score": 7, "why": "clear"}\nI hope it helps.',
        '{"score": 7, "why": "clear",}',
        '{"Score": 7, "WHY": "clear"}',
        '{" score ": "7/10", "why": "clear"}',
        '{"score": "7 out of 10", "why": "clear"}',
        '{"score": "7", "why": "clear"}',
    ],
    ids=["plain", "fenced", "with text around", "trailing comma", "other case", "7/10", "7 out of 10", "as text"],
)
def test_a_reply_is_parsed_whatever_surrounds_it(text: str) -> None:
    assert parse(text, Opinion) == (Opinion(score=7, why="clear"), "")


@pytest.mark.parametrize(("written", "score"), [('"8"', 8), ("7.5", 7.5), ('"7.5/10"', 7.5), ("0", 0), ("10", 10)])
def test_scores_on_the_scale(written: str, score: float) -> None:
    assert score_in(f'{{"score": {written}}}') == score


@pytest.mark.parametrize(
    "written",
    [
        "11",
        "-1",
        '"70/100"',
        "true",
        "false",
        "null",
        '"high"',
        "[7]",
        "NaN",
        "Infinity",
        '"3/5"',
        '"1_0"',
        '"1e1"',
        '"+7"',
    ],
)
def test_something_that_is_not_a_score_on_the_scale_is_never_a_number(written: str) -> None:
    assert score_in(f'{{"score": {written}}}') is None


@pytest.mark.parametrize(("written", "reply_type"), [("7/100", Opinion), ("8/10", Assessment)])
def test_a_fraction_of_another_scale_is_not_a_score(written: str, reply_type: type[BaseModel]) -> None:
    assert parse(json.dumps({"score": written}), reply_type)[0] is None


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('On {this} scale: {"score": 40} or rather {"score": 4}', 4),
        ('{"thought": "hm"} {"score": 6} {"score": 2}', 2),
        ('First {"score": 6}, then\n```json\n{"score": 2}\n```\n', 2),
        ('{"score": 6} and again {"score": 6}, as I said', 6),
        ('{"score": 6} or {"score": 2}, who knows', None),
        ('[{"score": 6}, {"score": 2}]', None),
        ('{"reason": "say {"score": 1} no", "score": 9}', None),
        ('{"reason": "say } or {"score": 1} no", "score": 9}', None),
        ('{"reason": "say {"score": 1', None),
        ('{"reason": "say {"score": 1} no", "score": 9} So: {"score": 9}', 9),
        ('{"score": N} means {"score": 4}', 4),
        ('{"score": 2, "Score": 9}', None),
        ('{"score": 2, "score": 2}', None),
        ('{"score": 2, "Other": 1, "other": 2}', 2),
    ],
)
def test_objects_that_fit_agree_or_the_last_ends_the_reply(text: str, score: float | None) -> None:
    assert score_in(text) == score


@pytest.mark.parametrize("text", ['{"count": "1_0"}', '{"count": "1e1"}', '{"count": true}'])
def test_a_count_is_a_number_or_plain_digits(text: str) -> None:
    class Count(BaseModel):
        count: int

    assert parse(text, Count)[0] is None
    assert parse('{"count": " 10 "}', Count)[0] == Count(count=10)


def test_a_nested_reply_with_keys_in_other_case() -> None:
    text = '{"a": {"SCORE": "8/10"}, "b": {"Score": 6, "why": "short"}, "Preferred": "A"}'
    value, _ = parse(text, Sides)
    assert value == Sides(A=Opinion(score=8), B=Opinion(score=6, why="short"), preferred="A")


def test_the_problem_names_the_field() -> None:
    assert parse("I would say seven.", Opinion) == (None, "it holds no JSON object")
    assert parse('{"A": {"score": 70}, "B": {"score": 6}, "preferred": "A"}', Sides)[1].startswith("A.score: ")


def test_a_valid_object_is_not_changed() -> None:
    value, _ = parse('{"score": 7, "why": "lists [a, b,] as given"}', Opinion)
    assert value == Opinion(score=7, why="lists [a, b,] as given")


without_braces = st.text().filter(lambda text: not set("{}") & set(text))
no_comma_before_a_bracket = st.text().filter(lambda text: not re.search(r",\s*[}\]]", text))


@given(before=without_braces, after=without_braces, score=st.integers(0, 10), why=no_comma_before_a_bracket)
def test_a_valid_object_survives_any_text_around_it(before: str, after: str, score: int, why: str) -> None:
    opinion = json.dumps({"score": score, "why": why})
    assert parse(before + opinion + after, Opinion) == (Opinion(score=score, why=why), "")


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't compare people in this way.",
        "I cannot help with that.",
        "  “As an AI, I hold no opinions.”",
        "I won’t rank them.",
        "It would not be appropriate to choose.",
    ],
)
def test_refusals_are_recognised(text: str) -> None:
    assert looks_like_refusal(text)


@pytest.mark.parametrize("text", ['{"score": 7}', "I can see merit in both.", "The plan is sorry work.", ""])
def test_an_opinion_is_not_a_refusal(text: str) -> None:
    assert not looks_like_refusal(text)


async def test_a_readable_reply_takes_one_request(server: Any) -> None:
    server.says('{"score": 7, "why": "clear"}')
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status) == (Opinion(score=7, why="clear"), "ok")
    assert len(server.asked) == 1


async def test_an_unreadable_reply_is_repaired_once(server: Any) -> None:
    server.says("Seven, I think.", '{"score": 7}')
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (Opinion(score=7), "repaired", '{"score": 7}')
    _, first_reply, repair = server.asked[1]["messages"]
    assert first_reply == {"role": "assistant", "content": "Seven, I think."}
    assert "it holds no JSON object" in repair["content"]


async def test_a_reply_that_stays_unreadable_is_given_up_after_two_requests(server: Any) -> None:
    server.says("Seven.", "As I said, seven.", '{"score": 7}')
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (None, "unparsed", "Seven.")
    assert len(server.asked) == 2


async def test_no_repair_is_requested_after_a_refusal(server: Any) -> None:
    server.says("I'm sorry, but I can't do that.")
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status) == (None, "refused")
    assert len(server.asked) == 1


@pytest.mark.parametrize("finish", ["stop", "content_filter"])
async def test_what_the_vendor_refused_has_no_score(server: Any, finish: str) -> None:
    verdict = '{"score": 9}'
    message = {"content": verdict} if finish == "content_filter" else {"content": None, "refusal": verdict}
    server.sends(json.dumps({"choices": [{"finish_reason": finish, "message": message}], "usage": {}}))
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (None, "refused", verdict)
    assert len(server.asked) == 1


async def test_a_reply_after_an_apology_still_counts(server: Any) -> None:
    server.says('I\'m sorry for the delay. {"score": 3}')
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status) == (Opinion(score=3), "ok")
