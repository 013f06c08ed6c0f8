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
from parley.agents.structured import NOT_ALONE, looks_like_refusal

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
        'Sure! Here is my **evaluation**:\n{"score": 7, "why": "clear"}',
        'Here is the JSON object:\n```json\n{"score": 7, "why": "clear"}\n```\n',
        '{"score": 7, "why": "clear",}',
        '{"Score": 7, "WHY": "clear"}',
        '{" score ": "7/10", "why": "clear"}',
        '{"score": "7 out of 10", "why": "clear"}',
        '{"score": "7", "why": "clear"}',
    ],
    ids=[
        "plain",
        "fenced",
        "after a preface",
        "fenced after a preface",
        "trailing comma",
        "other case",
        "7/10",
        "7 out of 10",
        "as text",
    ],
)
def test_the_object_alone_is_a_reply_however_it_is_spelled(text: str) -> None:
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
    "text",
    [
        '{"score": 8} no, 6',
        '{"score": 8}\nI hope it helps.',
        '{"score": 6} {"score": 6}',
        '[{"score": 6}, {"score": 2}]',
        '{"reason": "two"} {"reason": "say {"score": 1} no", "score": 9}',
        'First {"score": 6}, then\n```json\n{"score": 2}\n```\n',
        'On {this} scale: {"score": 4}',
        'The format is {"score": 5}',
        'I must decline. A placeholder: {"score": 0}',
        'Lo siento, no puedo. {"score": 0}',
        '<scratchpad>{"score": 3}</scratchpad> Eight.',
        '```thinking\n{"score": 3}\n```\nEight.',
        '> {"score": 3}\n\nEight.',
        'Here is my response: {"score": 3} Eight.',
        'I refuse. Here is my response: {"score": 0}',
        'I\'m sorry for the delay. {"score": 3}',
    ],
)
def test_an_object_beside_anything_else_is_no_verdict(text: str) -> None:
    assert parse(text, Opinion) == (None, NOT_ALONE)


@pytest.mark.parametrize(
    ("text", "score"),
    [('{"score": 2, "Score": 9}', None), ('{"score": 2, "score": 2}', None), ('{"score": 2, "A": "x", "a": "y"}', 2)],
)
def test_a_field_that_is_given_twice_is_unclear(text: str, score: float | None) -> None:
    assert score_in(text) == score


@pytest.mark.parametrize("more", [6, True, None, "6", "6/10", [6], {"score": 6}], ids=str)
def test_a_reason_that_was_not_asked_for_does_no_harm_and_a_second_number_does(more: Any) -> None:
    assert parse(json.dumps({"score": 8, "reason": "It has 3 steps."}), Opinion) == (Opinion(score=8), "")
    assert parse(json.dumps({"score": 8, "final": more}), Opinion) == (None, "final: it was not asked for")
    assert parse(json.dumps({"A": {"score": 8, "final": more}}), Sides) == (None, "final: it was not asked for")


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


@given(before=st.text(), after=st.text(), score=st.integers(0, 10), why=st.text())
def test_no_text_around_a_valid_object_changes_its_score(before: str, after: str, score: int, why: str) -> None:
    opinion = json.dumps({"score": score, "why": why})
    assert parse(opinion, Opinion) == (Opinion(score=score, why=why), "")
    assert score_in(before + opinion + after) in (score, None)
    if re.search(r"\w", after):
        assert score_in(before + opinion + after) is None


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


@pytest.mark.parametrize(
    ("refusal", "status"),
    [("I'm sorry, but I can't do that.", "refused"), ("Je dois refuser.", "unparsed"), ("I must decline.", "unparsed")],
)
async def test_a_refusal_is_not_the_asked_form_in_any_language(server: Any, refusal: str, status: str) -> None:
    server.says(refusal, refusal, '{"score": 0}')
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (None, status, refusal)
    assert len(server.asked) == 2


@pytest.mark.parametrize("finish", ["stop", "content_filter"])
async def test_what_the_vendor_refused_has_no_score(server: Any, finish: str) -> None:
    verdict = '{"score": 9}'
    message = {"content": verdict} if finish == "content_filter" else {"content": None, "refusal": verdict}
    server.sends(json.dumps({"choices": [{"finish_reason": finish, "message": message}], "usage": {}}))
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (None, "refused", verdict)
    assert len(server.asked) == 1


async def test_an_object_with_a_correction_is_asked_for_alone(server: Any) -> None:
    server.says('{"score": 8} No, 6.', '{"score": 6}')
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status) == (Opinion(score=6), "repaired")
    assert NOT_ALONE in server.asked[1]["messages"][-1]["content"]
