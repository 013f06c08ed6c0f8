"""Replies parsed as types: what counts as a score, what is repaired, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Literal

import pytest
from autogen_core.models import CreateResult, RequestUsage, UserMessage
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from parley.agents import Assessment, parse, scale, structured_reply
from parley.agents.structured import NOT_ALONE, answer_in, looks_like_refusal

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
)
def test_the_object_alone_is_a_reply_however_it_is_spelled(text):
    assert parse(text, Opinion) == (Opinion(score=7, why="clear"), "")


ON = {'"8"': 8, "7.5": 7.5, '"7.5/10"': 7.5, "0": 0, "10": 10}
OFF = """11 -1 "70/100" true false null "high" [7] NaN Infinity "3/5" "1_0" "1e1" "+7" "7/100\""""


def test_something_that_is_not_a_score_on_the_scale_is_never_a_number():
    assert {written: score_in(f'{{"score": {written}}}') for written in ON} == ON
    assert {score_in(f'{{"score": {written}}}') for written in OFF.split()} == {None}
    assert parse('{"score": "8/10"}', Assessment)[0] is None, "a fraction of another scale"


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
def test_an_object_beside_anything_else_is_no_verdict(text):
    assert parse(text, Opinion) == (None, NOT_ALONE)


@pytest.mark.parametrize(
    ("text", "score"),
    [('{"score": 2, "Score": 9}', None), ('{"score": 2, "score": 2}', None), ('{"score": 2, "A": "x", "a": "y"}', 2)],
)
def test_a_field_that_is_given_twice_is_unclear(text, score):
    assert score_in(text) == score


@pytest.mark.parametrize("more", [6, True, None, "6", "6/10", [6], {"score": 6}], ids=str)
def test_a_reason_that_was_not_asked_for_does_no_harm_and_a_second_number_does(more):
    assert parse(json.dumps({"score": 8, "reason": "It has 3 steps."}), Opinion) == (Opinion(score=8), "")
    assert parse(json.dumps({"score": 8, "final": more}), Opinion) == (None, "final: it was not asked for")
    assert parse(json.dumps({"A": {"score": 8, "final": more}}), Sides) == (None, "final: it was not asked for")


@pytest.mark.parametrize("text", ['{"count": "1_0"}', '{"count": "1e1"}', '{"count": true}'])
def test_a_count_is_a_number_or_plain_digits(text):
    class Count(BaseModel):
        count: int

    assert parse(text, Count)[0] is None
    assert parse('{"count": " 10 "}', Count)[0] == Count(count=10)


def test_a_nested_reply_with_keys_in_other_case():
    text = '{"a": {"SCORE": "8/10"}, "b": {"Score": 6, "why": "short"}, "Preferred": "A"}'
    value, _ = parse(text, Sides)
    assert value == Sides(A=Opinion(score=8), B=Opinion(score=6, why="short"), preferred="A")


def test_the_problem_names_the_field():
    assert parse("I would say seven.", Opinion) == (None, "it holds no JSON object")
    assert parse('{"A": {"score": 70}, "B": {"score": 6}, "preferred": "A"}', Sides)[1].startswith("A.score: ")


def test_a_valid_object_is_not_changed():
    value, _ = parse('{"score": 7, "why": "lists [a, b,] as given"}', Opinion)
    assert value == Opinion(score=7, why="lists [a, b,] as given")


@given(before=st.text(), after=st.text(), score=st.integers(0, 10), why=st.text())
def test_no_text_around_a_valid_object_changes_its_score(before, after, score, why):
    opinion = json.dumps({"score": score, "why": why})
    assert parse(opinion, Opinion) == (Opinion(score=score, why=why), "")
    assert score_in(before + opinion + after) in (score, None)
    if re.search(r"\w", after):
        assert score_in(before + opinion + after) is None


REFUSALS = (
    "I'm sorry, but I can't compare people in this way.",
    "I cannot help with that.",
    "  “As an AI, I hold no opinions.”",
    "I won’t rank them.",
    "It would not be appropriate to choose.",
)
OPINIONS = ('{"score": 7}', "I can see merit in both.", "The plan is sorry work.", "")


def test_refusals_are_recognised_and_opinions_are_none():
    assert [looks_like_refusal(text) for text in (*REFUSALS, *OPINIONS)] == [True] * 5 + [False] * 4


@pytest.mark.parametrize(
    ("replies", "read", "status", "raw"),
    [
        (['{"score": 7, "why": "clear"}'], Opinion(score=7, why="clear"), "ok", 0),
        (["Seven, I think.", '{"score": 7}'], Opinion(score=7), "repaired", 1),
        (['{"score": 8} No, 6.', '{"score": 6}'], Opinion(score=6), "repaired", 1),
        (["Seven.", "As I said, seven.", '{"score": 7}'], None, "unparsed", 0),
        (["I'm sorry, but I can't do that."] * 2 + ['{"score": 0}'], None, "refused", 0),
        (["Je dois refuser."] * 2 + ['{"score": 0}'], None, "unparsed", 0),
        (["I must decline."] * 2 + ['{"score": 0}'], None, "unparsed", 0),
    ],
)
async def test_an_unreadable_reply_is_asked_for_once_more_and_a_refusal_is_not_a_score_in_any_language(
    server, replies, read, status, raw
):
    server.says(*replies)
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (read, status, replies[raw])
    assert len(server.asked) == min(2, len(replies))
    if len(replies) > 1:
        _, first, repair = server.asked[1]["messages"]
        assert first == {"role": "assistant", "content": replies[0]}
        assert (NOT_ALONE if "{" in replies[0] else "it holds no JSON object") in repair["content"]


@pytest.mark.parametrize("finish", ["stop", "content_filter"])
async def test_what_the_vendor_refused_has_no_score(server, finish):
    verdict = '{"score": 9}'
    message = {"content": verdict} if finish == "content_filter" else {"content": None, "refusal": verdict}
    server.sends(json.dumps({"choices": [{"finish_reason": finish, "message": message}], "usage": {}}))
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (None, "refused", verdict)
    assert len(server.asked) == 1


def test_a_reply_of_any_autogen_client_is_cut_where_it_says_so():
    for finish in ("stop", "length"):
        reply = CreateResult(finish_reason=finish, content="Sev", usage=RequestUsage(1, 1), cached=False)
        assert (answer_in(reply).raw, answer_in(reply).cut) == ("Sev", finish == "length")
