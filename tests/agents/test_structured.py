"""Replies parsed as types: what counts as a score, what is repaired, what is refused; and expected scores."""

from __future__ import annotations

import json
import re
from typing import Literal

import pytest
from autogen_core.models import CreateResult, RequestUsage, UserMessage
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from parley.agents import Assessment, StructuredReply, free_text, parse, scale, structured_reply
from parley.agents.structured import NOT_ALONE, answer_in, looks_like_refusal

ASK = [UserMessage(content="Score it.", source="user")]


class Opinion(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]
    why: str = ""


class Sides(BaseModel):
    A: Opinion
    B: Opinion
    preferred: Literal["A", "B", "tie"]


class Reason(BaseModel):
    reason: free_text(24)  # type: ignore[valid-type]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It fits. It is fluent, b", "It fits."),
        ("It has 3.5 points, no mo", "It has 3.5 points, no mo"),
        ('He said "No!" and then w', 'He said "No!"'),
        ("It fits. It is too long to have been cut.", "It fits. It is too long to have been cut."),
        ("It fits. It is flu", "It fits. It is flu"),
    ],
)
def test_a_text_that_constrained_decoding_ended_is_read_to_its_last_whole_sentence(written, read):
    value, _ = parse(json.dumps({"reason": written}), Reason)
    assert value is not None
    assert value.reason == read


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
    assert score_in('{"score": 2, "Score": 9}') is score_in('{"score": 2, "score": 2}') is None, "given twice"
    assert score_in('{"score": 2, "comment": "x", "Comment": "y"}') == 2


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


BESIDE_A_CHOICE = """"final": "B" | "winner": "B" | "answer_2": "B" | "second": "A" | "unit": "out of 5" | "error": "x"
| "reason": "B is better" | "comment": "none" | "explanation": "B" | "note": "B" | "not": "A" | "valid": "no"
| "confidence": "low" | "status": "draft" | "": "B" | "Answer ": "B" | "reasoning": "It is B." """.replace("\n", "")
BESIDE_A_SCORE = """"unit": "out of 5" | "scale": "1 to 5" | "error": "not found" | "final": "six" | "max": "five"
| "of": "hundred" | "Score of B": "two" | "status": "placeholder" | "verdict": "no" | "reason": "6" | "comment": "6/10"
| "reason": 6 | "explanation": {"score": 6} | "justification": null | "comment": ["6"] | "reason2": "x" """.replace(
    "\n", ""
)


class Winner(BaseModel):
    preferred: Literal["A", "B"]


@pytest.mark.parametrize(
    ("verdict", "kind", "more"),
    [
        *(('"preferred": "A"', Winner, more) for more in BESIDE_A_CHOICE.split(" | ")),
        *(('"score": 8', Opinion, more) for more in BESIDE_A_SCORE.split(" | ")),
        ('"A": {"score": 8}, "B": {"score": 6}, "preferred": "A"', Sides, '"reason": "clear"'),
    ],
)
def test_what_else_an_object_says_could_be_its_verdict(verdict, kind, more):
    assert parse(f"{{{verdict}}}", kind)[1] == ""
    assert parse(f"{{{verdict}, {more}}}", kind)[0] is None


@pytest.mark.parametrize("more", [6, True, None, "6", "6/10", [6], {"score": 6}], ids=str)
def test_a_reason_that_was_not_asked_for_does_no_harm_and_a_second_number_does(more):
    assert parse(json.dumps({"score": 8, "reason": "It has 3 steps."}), Opinion) == (Opinion(score=8), "")
    assert parse(json.dumps({"score": 8, "final": more}), Opinion) == (None, "final: it was not asked for")
    assert parse(json.dumps({"A": {"score": 8, "final": more}}), Sides) == (None, "final: it was not asked for")


def test_a_count_is_a_number_or_plain_digits():
    class Count(BaseModel):
        count: int

    read = [parse(f'{{"count": {written}}}', Count)[0] for written in ('" 10 "', '"1_0"', '"1e1"', "true")]
    assert read == [Count(count=10), None, None, None]


def test_a_nested_reply_with_keys_in_other_case_and_the_field_that_is_wrong():
    text = '{"a": {"SCORE": "8/10"}, "b": {"Score": 6, "why": "short"}, "Preferred": "A"}'
    value, _ = parse(text, Sides)
    assert value == Sides(A=Opinion(score=8), B=Opinion(score=6, why="short"), preferred="A")
    assert parse("I would say seven.", Opinion) == (None, "it holds no JSON object")
    assert parse('{"A": {"score": 70}, "B": {"score": 6}, "preferred": "A"}', Sides)[1].startswith("A.score: ")


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
    client, typed = server.client(), []
    send = client.send
    client.send = lambda request: typed.append(request.typed) or send(request)  # type: ignore[method-assign,func-returns-value]
    reply = await structured_reply(client, ASK, Opinion)
    asked = min(2, len(replies))
    assert typed == [True, False][:asked], "the first may be asked for once more"
    assert (reply.value, reply.status, reply.raw) == (read, status, replies[raw])
    assert (len(server.asked), reply.usage) == (asked, RequestUsage(12 * asked, 3 * asked))
    if len(replies) > 1:
        _, first, repair = server.asked[1]["messages"]
        assert first == {"role": "assistant", "content": replies[0]}
        assert (NOT_ALONE if "{" in replies[0] else "it holds no JSON object") in repair["content"]


ENDED = {"stop": 9, "length": 9, "eos_token": 9, "end_turn": 9}
NOT_ENDED = [
    "insufficient_system_resource",
    "abort",
    "cancelled",
    "error",
    "pause_turn",
    "other",
    "repetition",
    "image_safety",
]
WITHHELD = ["content_filter", "sensitive", "safety", "recitation"]


@pytest.mark.parametrize("finish", [*ENDED, *NOT_ENDED, *WITHHELD, "", None])
async def test_only_a_reply_that_is_known_to_be_complete_has_a_score(server, finish):
    server.says('{"score": 9}', finish=finish)
    server.says('{"score": 9}', finish=finish)
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value and reply.value.score) == ENDED.get(finish)
    assert reply.status == ("ok" if finish in ENDED else "refused" if finish in WITHHELD else "cut")


@pytest.mark.parametrize("part", [{"type": "refusal", "refusal": "No."}, {"type": "refusal"}])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_part_of_the_content_that_refuses_withholds_the_score(server, part, streamed):
    content = [{"type": "text", "text": '{"score": 9}'}, part]
    if streamed:
        server.streams({"choices": [{"delta": {"content": content}, "finish_reason": "stop"}]})
    else:
        server.says(content)
    reply = await structured_reply(server.client(), ASK, Opinion, on_text=(lambda text: None) if streamed else None)
    assert (reply.value, reply.status) == (None, "refused")


@pytest.mark.parametrize("finish", ["stop", "content_filter"])
async def test_what_the_vendor_refused_has_no_score(server, finish):
    verdict = '{"score": 9}'
    server.says(finish=finish, **{"content" if finish == "content_filter" else "refusal": verdict})
    reply = await structured_reply(server.client(), ASK, Opinion)
    assert (reply.value, reply.status, reply.raw) == (None, "refused", verdict)
    assert len(server.asked) == 1


def test_a_reply_of_any_autogen_client_is_cut_where_it_says_so():
    for finish in ("stop", "length"):
        usage, cut = RequestUsage(1, 2), finish == "length"
        reply = CreateResult(finish_reason=finish, content="Sev", usage=usage, cached=False, thought="Hm.")
        assert answer_in(reply) == StructuredReply(None, None, "Sev", usage, thought="Hm.", cut=cut)
        assert answer_in(reply.model_copy(update={"finish_reason": "content_filter"})).status == "refused"
