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


def test_paths_of_values_in_nested_json() -> None:
    text = 'Well: {"A": {"Accuracy": 7, "why": "1 of 2"}, "B": {"Accuracy": 8.5}, "n": -3, "ok": true} {"x": 9}'
    found = [(path, literal) for path, _, literal in values(text)]
    assert found == [("A.Accuracy", "7"), ("A.why", '"1 of 2"'), ("B.Accuracy", "8.5"), ("n", "-3")]
    assert all(text[start:].startswith(literal) for _, start, literal in values(text))


def test_text_without_an_object_has_no_values() -> None:
    assert list(values("no object")) == []


async def test_the_expectation_is_over_every_integer_of_the_scale(server: Any) -> None:
    reply = await read(server, '{"score": ', ("7", {"7": 0.6, "8": 0.3, "6": 0.1}), "}")
    # 0.6 x 7 + 0.3 x 8 + 0.1 x 6 = 4.2 + 2.4 + 0.6 = 7.2
    assert reply.expected == {"score": pytest.approx(7.2)}
    assert reply.value == Opinion(score=7)
    assert (server.asked[0]["logprobs"], server.asked[0]["top_logprobs"]) == (True, 20)


async def test_probability_of_other_tokens_is_left_out(server: Any) -> None:
    reply = await read(server, '{"score": ', ("7", {"7": 0.5, "8": 0.3, "null": 0.1, "75": 0.1}), "}")
    # (0.5 x 7 + 0.3 x 8) / 0.8 = 5.9 / 0.8 = 7.375
    assert reply.expected == {"score": pytest.approx(7.375)}


async def test_several_numbers_have_their_own_expectations(server: Any) -> None:
    class Sides(BaseModel):
        A: Opinion
        B: Opinion

    reply = await read(
        server,
        '{"A": {"score": ',
        ("5", {"5": 0.5, "6": 0.5}),
        '}, "B": {"score": ',
        ("3", {"3": 0.75, "4": 0.25}),
        "}}",
        reply_type=Sides,
    )
    # 0.5 x 5 + 0.5 x 6 = 5.5 and 0.75 x 3 + 0.25 x 4 = 3.25
    assert reply.expected == {"A.score": pytest.approx(5.5), "B.score": pytest.approx(3.25)}


async def test_ten_as_one_token(server: Any) -> None:
    reply = await read(server, '{"score": ', ("10", {"10": 0.5, "9": 0.4, "1": 0.1}), "}")
    # 0.5 x 10 + 0.4 x 9 + 0.1 x 1 = 5 + 3.6 + 0.1 = 8.7: where "10" is a token, "1" means 1
    assert reply.expected == {"score": pytest.approx(8.7)}


async def test_ten_written_as_two_tokens(server: Any) -> None:
    tokens = ('{"score": ', ("1", {"1": 0.6, "9": 0.4}), ("0", {"0": 0.5, "}": 0.5}), "}")
    reply = await read(server, *tokens)
    # Half of the 0.6 on "1" continues as "10": 0.3 x 10 + 0.3 x 1 + 0.4 x 9 = 3 + 0.3 + 3.6 = 6.9
    assert reply.expected == {"score": pytest.approx(6.9)}
    assert reply.value == Opinion(score=10)


async def test_one_written_where_ten_was_possible(server: Any) -> None:
    tokens = ('{"score": ', ("1", {"1": 0.6, "9": 0.4}), ("}", {"0": 0.25, "}": 0.75}))
    reply = await read(server, *tokens)
    # A quarter of 0.6 is for 10: 0.15 x 10 + 0.45 x 1 + 0.4 x 9 = 1.5 + 0.45 + 3.6 = 5.55
    assert reply.expected == {"score": pytest.approx(5.55)}


async def test_ten_as_two_tokens_not_written_is_requested_if_the_model_can_continue_a_text(server: Any) -> None:
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


async def test_if_the_model_cannot_continue_a_text_there_is_no_expectation(server: Any) -> None:
    reply = await read(server, '{"score": ', ("9", {"9": 0.6, "1": 0.4}), "}")
    assert (reply.value, reply.expected) == (Opinion(score=9), {})
    assert len(server.asked) == 1


async def test_a_negligible_probability_of_one_needs_no_further_call(server: Any) -> None:
    reply = await read(server, '{"score": ', ("9", {"9": 0.999, "1": 0.001}), "}")
    # 0.999 x 9 + 0.001 x 1 = 8.992
    assert reply.expected == {"score": pytest.approx(8.992)}


@pytest.mark.parametrize(
    "tokens",
    [
        ('{"score":', (" 7", {" 7": 0.5, " 8": 0.5}), "}"),
        ('{"score', ('":7', {'":7': 0.5, '":8': 0.5}), "}"),
        ('{"score":', (" 7}", {" 7}": 0.5, " 8}": 0.5})),
        ('{"score":', (" 7", {" 7": 0.4, " 8": 0.4, '"9': 0.2}), "}"),
    ],
    ids=["a space before", "a quote before", "a brace after", "another lead is left out"],
)
async def test_characters_before_the_number_belong_to_its_token(server: Any, tokens: Sequence[Token]) -> None:
    reply = await read(server, *tokens)
    # 7 and 8 are equally probable: 7.5
    assert reply.expected == {"score": pytest.approx(7.5)}


async def test_a_number_in_quotes_has_no_expectation_but_a_value(server: Any) -> None:
    reply = await read(server, '{"score": "', ("7", {"7": 0.5, "8": 0.5}), '"}')
    assert (reply.value, reply.expected) == (Opinion(score=7), {})


async def test_log_probabilities_of_another_text_are_not_trusted(server: Any) -> None:
    server.says('{"score": 7}', logprobs=as_logprobs(['{"score":', ("7", {"7": 0.5, "8": 0.5}), "}"]))
    reply = await structured_reply(server.client(), ASK, Opinion, readout="expected")
    assert (reply.value, reply.expected) == (Opinion(score=7), {})


async def test_a_server_without_log_probabilities_gives_the_written_number(server: Any) -> None:
    server.says('{"score": 7}')
    reply = await structured_reply(server.client(), ASK, Opinion, readout="expected")
    assert (reply.value, reply.expected) == (Opinion(score=7), {})


async def test_paths_have_the_spelling_of_the_type(server: Any) -> None:
    reply = await read(server, '{"Score": ', ("7", {"7": 0.5, "8": 0.5}), "}")
    assert reply.value == Opinion(score=7)
    assert reply.expected == {"score": pytest.approx(7.5)}


async def test_ten_is_not_read_as_one_where_the_next_token_is_not_known(server: Any) -> None:
    tokens = as_logprobs(['{"score": ', ("1", {"1": 0.6, "9": 0.4}), "0", "}"])
    del tokens[2]["top_logprobs"]
    server.says('{"score": 10}', logprobs=tokens)
    reply = await structured_reply(server.client(), ASK, Opinion, readout="expected")
    assert (reply.value, reply.expected) == (Opinion(score=10), {})


async def test_a_score_out_of_a_hundred_is_not_read_by_its_first_digit(server: Any) -> None:
    tokens = ('{"score": ', ("8", {"8": 0.5, "9": 0.5}), ("5", {"5": 1.0}), "}")
    reply = await read(server, *tokens, reply_type=Assessment)
    assert reply.value == Assessment(score=85)
    assert reply.expected.get("score", 85) == pytest.approx(85, abs=10)


# Choices


class Picked(BaseModel):
    why: str = ""
    answer: Literal["A", "B", "tie"]


async def test_a_choice_is_read_as_the_probability_of_each_option(server: Any) -> None:
    alternatives = {"B": 0.5, "A": 0.25, "t": 0.05, "The": 0.2}
    reply = await read(server, '{"why": "A or B", "answer": "', ("B", alternatives), '"}', reply_type=Picked)
    # "The" begins no choice; the others are 0.5, 0.25 and 0.05 of 0.8
    assert reply.expected == pytest.approx({"answer=A": 0.25 / 0.8, "answer=B": 0.5 / 0.8, "answer=tie": 0.05 / 0.8})


async def test_a_token_may_contain_the_quotes_and_more(server: Any) -> None:
    alternatives = {' "A"}': 0.6, ' "B"}': 0.3, ' "C"}': 0.1}
    reply = await read(server, '{"answer":', (' "A"}', alternatives), reply_type=Picked)
    assert reply.expected == pytest.approx({"answer=A": 0.6 / 0.9, "answer=B": 0.3 / 0.9, "answer=tie": 0.0})


@pytest.mark.parametrize(("unclear", "expected"), [(0.2, {"small": 0.0, "smaller": 0.0, "big": 1.0}), (0.7, {})])
async def test_a_token_that_could_begin_two_choices_counts_for_neither(
    server: Any, unclear: float, expected: dict[str, float]
) -> None:
    class Size(BaseModel):
        answer: Literal["small", "smaller", "big"]

    alternatives = {"small": unclear, "big": 1 - unclear}
    reply = await read(server, '{"answer": "', ("big", alternatives), '"}', reply_type=Size)
    # Where that is most of the probability, "big" would be called certain.
    assert reply.expected == pytest.approx({f"answer={choice}": share for choice, share in expected.items()})


async def test_a_number_that_the_model_would_rarely_write_has_no_expectation(server: Any) -> None:
    reply = await read(server, '{"score": ', ("7", {"null": 0.6, "7": 0.3, "1": 0.1}), "}")
    assert (reply.value, reply.expected) == (Opinion(score=7), {})
