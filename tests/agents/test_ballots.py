"""Silent ballots: what is read from a token's probabilities, and where they stand in a debate."""

from __future__ import annotations

import asyncio
import json
import math

import pytest
from autogen_agentchat.agents import UserProxyAgent
from autogen_core.models import RequestUsage, UserMessage
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import ConfigError, Debate, Persona, SilentBallot
from parley.agents.ballots import ask_ballot, read_answer, read_answers, read_token
from parley.agents.models.sim_judge import spread
from parley.agents.models.wire import READ_TOKENS, read_logprobs
from tests.servers import first_token

JUDGE = Persona("Judge", "You are a fair judge.")


def ballot(**options):
    return SilentBallot(question="How good is it, from 1 to 9? The number alone.", metric="Overall", **options)


def converse(model, judges=(JUDGE,), task=None, **options):
    debate = Debate(judges, model=model, **{"rounds": 0, "ballots": [ballot()], **options})
    return asyncio.run(debate.converse(task))


def token(**probabilities):
    return read_logprobs(first_token(probabilities))[0]


async def silent(server, name="vllm/m", given=None, **options):
    client = server.client(name, retries=0)
    return await ask_ballot(ballot(**options), client, [UserMessage(content="How good?", source="user")], given or {})


def test_answers_are_counted_whatever_is_around_them():
    tops = {"7": 0.3, " 7": 0.2, '"7': 0.1, "**8": 0.1, "70": 0.1, "seven": 0.1, "0": 0.05}
    found = read_answers(token(**tops), ballot())
    assert found["7"] == pytest.approx(0.6)
    assert found["8"] == pytest.approx(0.1)
    assert sum(found.values()) == pytest.approx(0.7)  # neither 70, a word, nor a number off the scale


@pytest.mark.parametrize("seven", ["７", "٧", "७", "７．"])
def test_the_digits_of_every_script_are_the_same_answers(seven):
    found = read_answers(token(**{seven: 0.9, "8": 0.08}), ballot())
    assert (found["7"], found["8"]) == pytest.approx((0.9, 0.08))
    assert read_answers(token(Ａ=0.9, B=0.1), ballot(choices=("A", "B")))["A"] == pytest.approx(0.9)


ALONE = """7 |  7. | **7** | Score: 7 | **Score:** 7 | Final score: 7/9 | Overall: 7 | 7/9 | 7 out of 9 | (7) | <7> | ７
    | ٧ | ７／９ | "7\""""
NOT_ALONE = """at least 5 | less than 7 | not 7 | −7 | -7 | 7½ | Step 1: read the | A 9 would mean perfect, so | 7²
    | On a scale of 1 to | <7 | >7 | ≥7 | ~7 | .7 | 7.5 | 7/10 | 7 or 8 | 7? | 7… | 70 | seven | | 7 (no) | 7% | 7, but
    | I cannot give it a 7 | Score: not 7"""


@pytest.mark.parametrize(("texts", "answer"), [(ALONE, "7"), (NOT_ALONE, None)])
def test_a_number_alone_is_a_ballot_and_with_anything_else_it_is_none(texts, answer):
    for text in texts.replace("\n    ", "").split("|"):
        assert read_answer(text.strip(), ballot()) == answer, text
    assert read_answer(" 7.\n", ballot()) == "7"


@pytest.mark.parametrize(("text", "first"), [("10", "1"), ("I cannot", "7"), ("", "7"), ("3", "7")])
async def test_a_ballot_whose_text_is_not_its_token_is_unread(server, text, first):
    server.says(text, logprobs=first_token({first: 0.99}))
    found = await silent(server)
    assert (found.value, found.status) == (None, "unparsed")
    assert found.raw == f"{text!r}, unread: its first token is {first!r}"


NO_LOGPROBS = [{"logprob": value} for value in (0.0, "-0.1", 1e308, None, 10**400, math.nan)]


@pytest.mark.parametrize("change", [*NO_LOGPROBS, *({"bytes": [byte]} for byte in (300, -1, "7"))], ids=str)
async def test_what_cannot_be_probabilities_is_unread_and_says_so(server, change):
    tops = [{"token": n, "logprob": math.log(0.1), "bytes": list(n.encode()), **change} for n in "123456789"]
    server.says("7", logprobs=[{"token": "7", "logprob": -1.0, "top_logprobs": tops}])
    found = await silent(server)
    assert (found.value, found.status) == (None, "unparsed")
    assert found.raw == "'7', unread: no usable log-probabilities"


@pytest.mark.parametrize("first", [" ", "\n", "<|begin_of_text|>", "<think>", "I"])
async def test_a_ballot_that_begins_with_something_else_is_unread_and_says_so(server, first):
    server.says(first, logprobs=first_token({first: 0.97, "3": 0.01, "4": 0.01}))
    found = await silent(server)
    assert (found.value, found.status) == (None, "unparsed")
    assert found.raw == f"{first!r}, unread: 2.0% of the probability is on 1 to 9"
    assert found.expected == {"Overall on scale": pytest.approx(0.02)}


async def test_a_ballot_is_begun_where_a_text_is_continued_and_says_how_it_could_be_read(server):
    server.says("7", logprobs=first_token({"7": 0.9, "8": 0.1}))
    found = await silent(server, prefill="I give it a ")
    assert server.asked[0]["messages"][-1] == {"role": "assistant", "content": "I give it a "}
    assert (found.status, found.raw, found.value.answer, found.value.score) == ("ok", "7", "7", pytest.approx(7.1))
    server._answers.clear()
    server.says("7")
    with pytest.raises(ConfigError, match=r"^vllm/m gives no log-probabilities, .*: write vllm/m\?silent=false \(or &"):
        await silent(server)
    assert server.asked[-1]["messages"][-1]["role"] == "user", "nothing is begun that is not given"
    server._answers.clear()
    server.says(refusal="No.")
    found = await silent(server)
    assert (found.value, found.status, found.raw, found.usage) == (None, "refused", "No.", RequestUsage(12, 3))


def test_a_score_that_rests_on_numbers_that_are_not_listed_is_unread():
    """7 and 8 have three quarters; each of the other numbers may have as much as the last word, 0.02, up to a tenth."""
    listed = {"7": 0.5, "8": 0.25, "I": 0.05, "The": 0.05, "A": 0.03, "This": 0.02}
    found = read_token(ballot(), token(**listed), "7", RequestUsage(0, 1))
    lowest = (7 * 0.5 + 8 * 0.25 + 0.02 * (1 + 2 + 3 + 4 + 5)) / 0.85
    highest = (7 * 0.5 + 8 * 0.25 + 0.02 * 9) / 0.77
    assert found.status == "unparsed"
    assert found.raw.endswith(f"are not listed among its 6 tokens could move it by {highest - lowest:.2f}")
    sure = read_token(ballot(), token(**{"7": 0.7, "8": 0.298, "I": 0.0005}), "7", RequestUsage(0, 1))
    assert sure.value.score == pytest.approx((0.7 * 7 + 0.298 * 8) / 0.998)


@pytest.mark.parametrize(
    ("listed", "odds"),
    [
        ({"A": 0.9, "The": 0.05, "I": 0.01}, 0.9 / 0.01),  # at most the last listed probability
        ({"A": 0.9}, 9),  # and at most what the listed ones leave
        ({"A": 0.9, "The": 0.095}, 0.9 / 0.005),
        ({"A": 0.6, "I": 0.4}, 0.6 / 1e-6),
        ({"A": 1.0}, 1e6),
        ({"B": 0.75}, 0.25 / 0.75),
        ({"B": 0.5, "A": 0.5}, 1),
    ],
)
def test_a_choice_that_is_not_listed_has_at_most_what_the_listed_ones_leave(listed, odds):
    pair = SilentBallot(question="A or B?", metric="preferred", choices=("A", "B"))
    found = read_token(pair, token(**listed), next(iter(listed)), RequestUsage(0, 1))
    assert found.expected["preferred log-odds"] == pytest.approx(math.log(odds))


@pytest.mark.parametrize(
    ("finish", "read"), [("stop", 7), ("length", 7), ("abort", None), ("safety", None), (None, None)]
)
async def test_a_ballot_is_read_only_if_it_is_known_how_it_ended(server, finish, read):
    server.says("7", logprobs=first_token({"7": 1.0}), finish=finish)
    assert (await silent(server)).expected.get("Overall") == read
    listed = [{"index": nth, "message": {"content": "7"}, "finish_reason": finish} for nth in range(3)]
    server._answers.clear()
    server.sends(json.dumps({"choices": listed}))
    server.says("7", finish=finish)
    assert (await silent(server, "vllm/m?silent=false", samples=3)).expected.get("Overall") == read


def test_a_rare_digit_is_kept_where_a_model_in_this_process_lists_many_tokens():
    names = ["7", *(f"word {n}" for n in range(READ_TOKENS - 2)), " 3"]
    tops = [{"token": name, "logprob": -float(place)} for place, name in enumerate(names)]
    (read,) = read_logprobs([{"token": "7", "logprob": 0.0, "top_logprobs": tops}])
    assert len(read.top_logprobs) == 21
    assert read.top_logprobs[-1].bytes == list(b" 3")


def choices(*texts):
    listed = [{"index": nth, "message": {"content": text}, "finish_reason": "stop"} for nth, text in enumerate(texts)]
    return json.dumps({"choices": listed, "usage": {"prompt_tokens": 12, "completion_tokens": 3}})


@pytest.mark.parametrize(
    ("first", "then", "asked", "read", "status", "raw"),
    [
        (choices("7", "<think>9?</think>8", "Hm."), "Hm.", [3, None], 7.5, "ok", "7, 8, Hm."),
        (choices("7", "8"), "Hm.", [2], 7.5, "ok", "7, 8"),
        (choices("7", "at least 5", "8"), "6", [3, None], 7, "repaired", "7, 6, 8"),
        (choices("2", "4"), "6", [3, None], 4, "ok", "2, 4, 6"),  # a server that gives fewer is asked for the rest
        (None, "6", [3, None, None, None], 6, "ok", "6, 6, 6"),  # one that refuses several is asked one by one
        (choices("1", "I cannot say", "I can't"), "No.", [3, None, None], None, "refused", "1, I cannot say, I can't"),
    ],
)
async def test_sampled_replies_are_asked_for_together_and_unread_ones_once_more(
    server, first, then, asked, read, status, raw
):
    if first is None:
        server.fails(400, "n must be 1")
    else:
        server.sends(first)
    server.says(then)
    given = {"temperature": 0.5, "top_p": 0.1, "max_tokens": 99}
    found = await silent(server, "vllm/m?silent=false", given, samples=raw.count(",") + 1)
    sent = {tuple(body.get(key) for key in given) for body in server.asked if "n" in body or len(server.asked) > 2}
    assert sent == {(0.5, None, 8)}
    assert [body.get("n") for body in server.asked] == asked
    assert (found.expected.get("Overall"), found.status, found.raw) == (read, status, raw)
    if raw == "7, 6, 8":
        said, complaint = (message["content"] for message in server.asked[-1]["messages"][-2:])
        assert said == "at least 5"
        assert complaint.startswith("Your reply could not be read: it must be one of 1 to 9.")
    if raw.endswith("Hm."):
        assert found.expected["Overall read"] == pytest.approx(2 / 3)
        assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (24, 6)


@given(st.floats(1, 9), st.integers(0, 1), st.integers(8, 9))
def test_simulated_probabilities_have_the_planted_mean_away_from_the_ends(mean, low, high):
    weights = spread(mean, low, high)
    assert sum(weights.values()) == pytest.approx(1)
    if low + 2 <= mean <= high - 2:
        assert sum(int(number) * p for number, p in weights.items()) == pytest.approx(mean)


def test_nobody_hears_or_remembers_a_silent_ballot():
    judges = [Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")]
    transcript = converse("sim/debate", rounds=2, judges=judges, task="Should buses be free?")
    prompts = [
        message.text for turn in transcript.spoken() if turn.round for call in turn.calls for message in call.prompt
    ]
    assert len(transcript.spoken(round=0)) == 2
    assert all("The number alone" not in text for text in prompts)
    assert not {turn.text for turn in transcript.spoken(round=0)} & set(prompts)


def test_a_ballot_needs_a_scale_and_a_persona():
    with pytest.raises(ValueError, match="at least two numbers"):
        SilentBallot(question="?", low=3, high=3)
    with pytest.raises(ConfigError, match="'Uma' cannot cast a silent ballot: only personas can"):
        converse("sim/judge", judges=[UserProxyAgent("Uma")])
