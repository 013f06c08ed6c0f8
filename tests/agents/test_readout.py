"""Expected scores from token probabilities, checked by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents import Assessment, StructuredReply, structured_reply
from parley.agents.readout import values
from tests.agents.common import Opinion

ASK = [UserMessage(content="Score it.", source="user")]
Token = str | tuple[str, Mapping[str, float]]


def as_logprobs(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Tokens with the alternatives at each (by default the token alone), as servers send them."""
    entries = []
    for token in tokens:
        text, alternatives = (token, {token: 1.0}) if isinstance(token, str) else token
        tops = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in alternatives.items()]
        entries.append({"token": text, "logprob": math.log(alternatives[text]), "top_logprobs": tops})
    return entries


async def read(server: Any, *tokens: Token, reply_type: type[BaseModel] = Opinion) -> StructuredReply[Any]:
    text = "".join(token if isinstance(token, str) else token[0] for token in tokens)
    server.says(text, logprobs=as_logprobs(tokens))
    return await structured_reply(server.client(), ASK, reply_type, readout="expected")


def test_paths_of_values_in_nested_json():
    text = 'Well: {"A": {"Accuracy": 7, "why": "1 of 2"}, "B": {"Accuracy": 8.5}, "n": -3, "ok": true} {"x": 9}'
    found = [(path, literal) for path, _, literal in values(text)]
    assert found == [("A.Accuracy", "7"), ("A.why", '"1 of 2"'), ("B.Accuracy", "8.5"), ("n", "-3")]
    assert all(text[start:].startswith(literal) for _, start, literal in values(text))
    assert list(values("no object")) == []


class Sides(BaseModel):
    A: Opinion
    B: Opinion


class Picked(BaseModel):
    why: str = ""
    answer: Literal["A", "B", "tie"]


class Size(BaseModel):
    answer: Literal["small", "smaller", "big"]


EVEN = {"7": 0.5, "8": 0.5}
LEANS = {"B": 0.5, "A": 0.25, "t": 0.05, "The": 0.2}
CASES: dict[str, tuple[type[BaseModel], tuple[Token, ...], dict[str, float]]] = {
    # 0.6 x 7 + 0.3 x 8 + 0.1 x 6
    "every integer of the scale": (Opinion, ('{"score": ', ("7", {"7": 0.6, "8": 0.3, "6": 0.1}), "}"), {"score": 7.2}),
    # (0.5 x 7 + 0.3 x 8) / 0.8
    "other tokens are left out": (
        Opinion,
        ('{"score": ', ("7", {"7": 0.5, "8": 0.3, "null": 0.1, "75": 0.1}), "}"),
        {"score": 7.375},
    ),
    # 0.5 x 5 + 0.5 x 6 and 0.75 x 3 + 0.25 x 4
    "several numbers": (
        Sides,
        ('{"A": {"score": ', ("5", {"5": 0.5, "6": 0.5}), '}, "B": {"score": ', ("3", {"3": 0.75, "4": 0.25}), "}}"),
        {"A.score": 5.5, "B.score": 3.25},
    ),
    # 0.5 x 10 + 0.4 x 9 + 0.1 x 1: where "10" is a token, "1" means 1
    "ten as one token": (Opinion, ('{"score": ', ("10", {"10": 0.5, "9": 0.4, "1": 0.1}), "}"), {"score": 8.7}),
    # Half of the 0.6 on "1" continues as "10": 0.3 x 10 + 0.3 x 1 + 0.4 x 9
    "ten as two tokens": (
        Opinion,
        ('{"score": ', ("1", {"1": 0.6, "9": 0.4}), ("0", {"0": 0.5, "}": 0.5}), "}"),
        {"score": 6.9},
    ),
    # A quarter of 0.6 is for 10: 0.15 x 10 + 0.45 x 1 + 0.4 x 9
    "one where ten was possible": (
        Opinion,
        ('{"score": ', ("1", {"1": 0.6, "9": 0.4}), ("}", {"0": 0.25, "}": 0.75})),
        {"score": 5.55},
    ),
    "ten was possible, and nobody can say how much": (Opinion, ('{"score": ', ("9", {"9": 0.6, "1": 0.4}), "}"), {}),
    # 0.999 x 9 + 0.001 x 1
    "a negligible one": (Opinion, ('{"score": ', ("9", {"9": 0.999, "1": 0.001}), "}"), {"score": 8.992}),
    "a space before": (Opinion, ('{"score":', (" 7", {" 7": 0.5, " 8": 0.5}), "}"), {"score": 7.5}),
    "a quote before": (Opinion, ('{"score', ('":7', {'":7': 0.5, '":8': 0.5}), "}"), {"score": 7.5}),
    "a brace after": (Opinion, ('{"score":', (" 7}", {" 7}": 0.5, " 8}": 0.5})), {"score": 7.5}),
    "another lead": (Opinion, ('{"score":', (" 7", {" 7": 0.4, " 8": 0.4, '"9': 0.2}), "}"), {"score": 7.5}),
    "in quotes": (Opinion, ('{"score": "', ("7", EVEN), '"}'), {}),
    "the spelling of the type": (Opinion, ('{"Score": ', ("7", EVEN), "}"), {"score": 7.5}),
    "rarely a number": (Opinion, ('{"score": ', ("7", {"null": 0.6, "7": 0.3, "1": 0.1}), "}"), {}),
    # "The" begins no choice; the others are 0.5, 0.25 and 0.05 of 0.8
    "a choice": (
        Picked,
        ('{"why": "A or B", "answer": "', ("B", LEANS), '"}'),
        {"answer=A": 0.25 / 0.8, "answer=B": 0.5 / 0.8, "answer=tie": 0.05 / 0.8},
    ),
    "a choice with its quotes": (
        Picked,
        ('{"answer":', (' "A"}', {' "A"}': 0.6, ' "B"}': 0.3, ' "C"}': 0.1})),
        {"answer=A": 0.6 / 0.9, "answer=B": 0.3 / 0.9, "answer=tie": 0.0},
    ),
    "a token that could begin two choices counts for neither": (
        Size,
        ('{"answer": "', ("big", {"small": 0.2, "big": 0.8}), '"}'),
        {"answer=small": 0.0, "answer=smaller": 0.0, "answer=big": 1.0},
    ),
    "where that is most of the probability, nothing is certain": (
        Size,
        ('{"answer": "', ("big", {"small": 0.7, "big": 0.3}), '"}'),
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_expectation_is_over_what_could_have_been_written(server, case):
    reply_type, tokens, expected = CASES[case]
    reply = await read(server, *tokens, reply_type=reply_type)
    assert reply.value is not None
    assert reply.expected == pytest.approx(expected)
    (asked,) = server.asked
    assert (asked["logprobs"], asked["top_logprobs"]) == (True, 20)


async def test_ten_as_two_tokens_not_written_is_requested_if_the_model_can_continue_a_text(server):
    server.says('{"score": 9}', logprobs=as_logprobs(['{"score": ', ("9", {"9": 0.6, "1": 0.4}), "}"]))
    server.says("0", logprobs=as_logprobs([("0", {"0": 0.75, "}": 0.25})]))
    client = server.client()
    client.continues = True
    reply = await structured_reply(client, ASK, Opinion, readout="expected")
    await client.close()
    # Three quarters of the 0.4 on "1" are for 10: 0.3 x 10 + 0.1 x 1 + 0.6 x 9 = 3 + 0.1 + 5.4 = 8.5
    assert reply.expected == {"score": pytest.approx(8.5)}
    probe = server.asked[1]
    assert probe["messages"][-1] == {"role": "assistant", "content": '{"score": 1'}
    assert (probe["max_tokens"], probe["logprobs"]) == (1, True)
    assert "response_format" not in probe


async def test_ten_is_not_read_as_one_where_the_next_token_is_not_known(server):
    tokens = as_logprobs(['{"score": ', ("1", {"1": 0.6, "9": 0.4}), "0", "}"])
    del tokens[2]["top_logprobs"]
    server.says('{"score": 10}', logprobs=tokens)
    reply = await structured_reply(server.client(), ASK, Opinion, readout="expected")
    assert (reply.value, reply.expected) == (Opinion(score=10), {})


@pytest.mark.parametrize("logprobs", [None, as_logprobs(['{"score":', ("7", EVEN), "}"])], ids=["none", "another text"])
async def test_log_probabilities_of_another_text_are_not_trusted(server, logprobs):
    server.says('{"score": 7}', logprobs=logprobs)
    reply = await structured_reply(server.client(), ASK, Opinion, readout="expected")
    assert (reply.value, reply.expected) == (Opinion(score=7), {})


async def test_a_score_out_of_a_hundred_is_not_read_by_its_first_digit(server):
    tokens = ('{"score": ', ("8", {"8": 0.5, "9": 0.5}), ("5", {"5": 1.0}), "}")
    reply = await read(server, *tokens, reply_type=Assessment)
    assert reply.value == Assessment(score=85)
    assert reply.expected.get("score", 85) == pytest.approx(85, abs=10)
