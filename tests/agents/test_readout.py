"""Scores as expectations: what the model weighed at the place of each number, by hand arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents import Assessment, StructuredReply, scale, structured_reply
from parley.agents.models.compatible import ServerClient
from parley.agents.readout import numbers

ASK = [UserMessage(content="Score it.", source="user")]
Token = str | tuple[str, Mapping[str, float]]


class Opinion(BaseModel):
    score: scale(0, 10)  # type: ignore[valid-type]


class Continuing(ServerClient):
    """A server that goes on where the assistant's last message ends."""

    continues = True


def on_the_wire(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Tokens with what was weighed at each (the token itself where nothing is said), as servers send them."""
    entries = []
    for token in tokens:
        text, weighed = (token, {token: 1.0}) if isinstance(token, str) else token
        tops = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in weighed.items()]
        entries.append({"token": text, "logprob": math.log(weighed[text]), "top_logprobs": tops})
    return entries


async def read(server: Any, *tokens: Token, reply_type: type[BaseModel] = Opinion) -> StructuredReply[Any]:
    text = "".join(token if isinstance(token, str) else token[0] for token in tokens)
    server.says(text, logprobs=on_the_wire(tokens))
    return await structured_reply(server.client(), ASK, reply_type, readout="expected")


def test_paths_of_numbers_in_nested_json() -> None:
    text = 'Well: {"A": {"Accuracy": 7, "why": "1 of 2"}, "B": {"Accuracy": 8.5}, "n": -3, "ok": true} {"x": 9}'
    found = [(number.path, number.value) for number in numbers(text)]
    assert found == [("A.Accuracy", 7), ("B.Accuracy", 8.5), ("n", -3)]
    assert all(float(text[n.start :].split("}")[0].split(",")[0]) == n.value for n in numbers(text))


def test_text_without_an_object_has_no_numbers() -> None:
    assert list(numbers("no object")) == []


async def test_the_expectation_weighs_every_whole_number(server: Any) -> None:
    answer = await read(server, '{"score": ', ("7", {"7": 0.6, "8": 0.3, "6": 0.1}), "}")
    # 0.6 x 7 + 0.3 x 8 + 0.1 x 6 = 4.2 + 2.4 + 0.6 = 7.2
    assert answer.expected == {"score": pytest.approx(7.2)}
    assert answer.value == Opinion(score=7)
    assert (server.asked[0]["logprobs"], server.asked[0]["top_logprobs"]) == (True, 20)


async def test_weight_on_what_is_no_number_of_the_scale_is_left_out(server: Any) -> None:
    answer = await read(server, '{"score": ', ("7", {"7": 0.5, "8": 0.3, "null": 0.1, "75": 0.1}), "}")
    # (0.5 x 7 + 0.3 x 8) / 0.8 = 5.9 / 0.8 = 7.375
    assert answer.expected == {"score": pytest.approx(7.375)}


async def test_several_numbers_each_at_their_place(server: Any) -> None:
    class Sides(BaseModel):
        A: Opinion
        B: Opinion

    answer = await read(
        server,
        '{"A": {"score": ',
        ("5", {"5": 0.5, "6": 0.5}),
        '}, "B": {"score": ',
        ("3", {"3": 0.75, "4": 0.25}),
        "}}",
        reply_type=Sides,
    )
    # 0.5 x 5 + 0.5 x 6 = 5.5 and 0.75 x 3 + 0.25 x 4 = 3.25
    assert answer.expected == {"A.score": pytest.approx(5.5), "B.score": pytest.approx(3.25)}


async def test_ten_as_one_token(server: Any) -> None:
    answer = await read(server, '{"score": ', ("10", {"10": 0.5, "9": 0.4, "1": 0.1}), "}")
    # 0.5 x 10 + 0.4 x 9 + 0.1 x 1 = 5 + 3.6 + 0.1 = 8.7: where "10" is a token, "1" means 1
    assert answer.expected == {"score": pytest.approx(8.7)}


async def test_ten_as_two_tokens_said(server: Any) -> None:
    tokens = ('{"score": ', ("1", {"1": 0.6, "9": 0.4}), ("0", {"0": 0.5, "}": 0.5}), "}")
    answer = await read(server, *tokens)
    # Half of the 0.6 on "1" goes on to "10": 0.3 x 10 + 0.3 x 1 + 0.4 x 9 = 3 + 0.3 + 3.6 = 6.9
    assert answer.expected == {"score": pytest.approx(6.9)}
    assert answer.value == Opinion(score=10)


async def test_one_said_where_ten_was_possible(server: Any) -> None:
    tokens = ('{"score": ', ("1", {"1": 0.6, "9": 0.4}), ("}", {"0": 0.25, "}": 0.75}))
    answer = await read(server, *tokens)
    # A quarter of 0.6 is for 10: 0.15 x 10 + 0.45 x 1 + 0.4 x 9 = 1.5 + 0.45 + 3.6 = 5.55
    assert answer.expected == {"score": pytest.approx(5.55)}


async def test_ten_as_two_tokens_not_said_is_asked_for_where_the_model_continues(server: Any) -> None:
    server.says('{"score": 9}', logprobs=on_the_wire(['{"score": ', ("9", {"9": 0.6, "1": 0.4}), "}"]))
    server.says("0", logprobs=on_the_wire([("0", {"0": 0.75, "}": 0.25})]))
    client = Continuing("server/m", {"base_url": server.url})
    answer = await structured_reply(client, ASK, Opinion, readout="expected")
    await client.close()
    # Three quarters of the 0.4 on "1" are for 10: 0.3 x 10 + 0.1 x 1 + 0.6 x 9 = 3 + 0.1 + 5.4 = 8.5
    assert answer.expected == {"score": pytest.approx(8.5)}
    probe = server.asked[1]
    assert probe["messages"][-1] == {"role": "assistant", "content": '{"score": 1'}
    assert (probe["max_tokens"], probe["logprobs"]) == (1, True)
    assert "response_format" not in probe


async def test_without_a_model_that_continues_there_is_no_expectation(server: Any) -> None:
    answer = await read(server, '{"score": ', ("9", {"9": 0.6, "1": 0.4}), "}")
    assert (answer.value, answer.expected) == (Opinion(score=9), {})
    assert len(server.asked) == 1


async def test_a_negligible_one_needs_no_further_question(server: Any) -> None:
    answer = await read(server, '{"score": ', ("9", {"9": 0.999, "1": 0.001}), "}")
    # 0.999 x 9 + 0.001 x 1 = 8.992
    assert answer.expected == {"score": pytest.approx(8.992)}


@pytest.mark.parametrize(
    "tokens",
    [
        ('{"score":', (" 7", {" 7": 0.5, " 8": 0.5}), "}"),
        ('{"score', ('":7', {'":7': 0.5, '":8': 0.5}), "}"),
        ('{"score":', (" 7}", {" 7}": 0.5, " 8}": 0.5})),
        ('{"score":', (" 7", {" 7": 0.4, " 8": 0.4, '"9': 0.2}), "}"),
    ],
    ids=["a space before", "a quote before", "the end behind", "another beginning is another text"],
)
async def test_what_leads_a_token_belongs_to_it(server: Any, tokens: Sequence[Token]) -> None:
    answer = await read(server, *tokens)
    # 7 and 8 weigh the same: 7.5
    assert answer.expected == {"score": pytest.approx(7.5)}


async def test_a_number_in_quotes_has_no_expectation_but_a_value(server: Any) -> None:
    answer = await read(server, '{"score": "', ("7", {"7": 0.5, "8": 0.5}), '"}')
    assert (answer.value, answer.expected) == (Opinion(score=7), {})


async def test_log_probabilities_of_another_text_are_not_trusted(server: Any) -> None:
    server.says('{"score": 7}', logprobs=on_the_wire(['{"score":', ("7", {"7": 0.5, "8": 0.5}), "}"]))
    answer = await structured_reply(server.client(), ASK, Opinion, readout="expected")
    assert (answer.value, answer.expected) == (Opinion(score=7), {})


async def test_a_server_without_log_probabilities_gives_the_number_said(server: Any) -> None:
    server.says('{"score": 7}')
    answer = await structured_reply(server.client(), ASK, Opinion, readout="expected")
    assert (answer.value, answer.expected) == (Opinion(score=7), {})


async def test_paths_are_those_of_the_type_whatever_case_the_model_wrote(server: Any) -> None:
    answer = await read(server, '{"Score": ', ("7", {"7": 0.5, "8": 0.5}), "}")
    assert answer.value == Opinion(score=7)
    assert answer.expected == {"score": pytest.approx(7.5)}


async def test_the_expectation_is_of_the_object_that_was_read(server: Any) -> None:
    first = ('{"score": ', ("4", {"4": 0.5, "5": 0.5}), "0}")
    answer = await read(server, *first, ' {"score": ', ("7", {"7": 0.5, "8": 0.5}), "}")
    assert answer.value == Opinion(score=7)
    assert answer.expected.get("score", 7.5) == pytest.approx(7.5)


async def test_a_score_out_of_a_hundred_is_not_read_by_its_first_digit(server: Any) -> None:
    tokens = ('{"score": ', ("8", {"8": 0.5, "9": 0.5}), ("5", {"5": 1.0}), "}")
    answer = await read(server, *tokens, reply_type=Assessment)
    assert answer.value == Assessment(score=85)
    assert answer.expected.get("score", 85) == pytest.approx(85, abs=10)


# Choices


class Picked(BaseModel):
    why: str = ""
    answer: Literal["A", "B", "tie"]


async def test_a_choice_is_read_as_a_probability_for_each(server: Any) -> None:
    weighed = {"B": 0.5, "A": 0.25, "t": 0.05, "The": 0.2}
    answer = await read(server, '{"why": "A or B", "answer": "', ("B", weighed), '"}', reply_type=Picked)
    # "The" begins no choice; the others are 0.5, 0.25 and 0.05 of 0.8
    assert answer.expected == pytest.approx({"answer=A": 0.25 / 0.8, "answer=B": 0.5 / 0.8, "answer=tie": 0.05 / 0.8})


async def test_a_token_may_hold_the_quote_and_what_follows(server: Any) -> None:
    weighed = {' "A"}': 0.6, ' "B"}': 0.3, ' "C"}': 0.1}
    answer = await read(server, '{"answer":', (' "A"}', weighed), reply_type=Picked)
    assert answer.expected == pytest.approx({"answer=A": 0.6 / 0.9, "answer=B": 0.3 / 0.9, "answer=tie": 0.0})


async def test_a_token_that_could_begin_two_choices_belongs_to_neither(server: Any) -> None:
    class Size(BaseModel):
        answer: Literal["small", "smaller", "big"]

    weighed = {"small": 0.7, "big": 0.3}
    answer = await read(server, '{"answer": "', ("small", weighed), '"}', reply_type=Size)
    assert answer.expected == pytest.approx({"answer=small": 0.0, "answer=smaller": 0.0, "answer=big": 1.0})
