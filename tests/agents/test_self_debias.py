"""Self-Debias decoding: the arithmetic checked by hand, λ = 0 as plain decoding, and the embedded model."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import ConfigError, SelfDebiasAgent, model
from parley.agents.models.local import FLOOR, DebiasSettings, NextTokens, debiased, decode, sample

PLAIN = {1: 0.5, 2: 0.3, 3: 0.2}
BIASED = {1: 0.6, 2: 0.1, 3: 0.3}


def test_the_arithmetic_by_hand():
    """Δ = −0.1, +0.2, −0.1. With λ = 10, tokens 1 and 3 are scaled by e^−1, token 2 is left alone."""
    shrunk = math.exp(-1)
    weights = {1: 0.5 * shrunk, 2: 0.3, 3: 0.2 * shrunk}
    total = 0.5 * shrunk + 0.3 + 0.2 * shrunk
    result = debiased(PLAIN, BIASED, 10)
    assert result == pytest.approx({token: weight / total for token, weight in weights.items()})
    assert result[2] == pytest.approx(0.5381, abs=1e-4)  # 0.3 / (0.7 · 0.36788 + 0.3)


def test_no_token_is_ruled_out_and_one_missing_from_the_biased_list_is_unchanged():
    result = debiased({1: 0.5, 2: 0.5}, {1: 1.0, 2: 0.0}, 1e6)
    assert result[1] / result[2] == pytest.approx(FLOOR)
    assert debiased({1: 0.5, 2: 0.5}, {2: 0.5}, 50) == {1: 0.5, 2: 0.5}


weights = st.lists(st.floats(0.001, 1), min_size=2, max_size=8)


@given(weights, weights, st.floats(0, 1000))
def test_it_is_a_distribution_and_the_plain_one_at_lambda_0(first, second, decay):
    plain = {token: weight / sum(first) for token, weight in enumerate(first)}
    biased = {token: weight / sum(second) for token, weight in enumerate(second)}
    assert sum(debiased(plain, biased, decay).values()) == pytest.approx(1)
    assert debiased(plain, biased, 0) == pytest.approx(plain)


def test_tokens_are_drawn_in_proportion_to_their_weights():
    rng = random.Random(1)
    seen = Counter(sample(PLAIN, 1.0, rng) for _ in range(20_000))
    assert {token: count / 20_000 for token, count in seen.items()} == pytest.approx(PLAIN, abs=0.015)
    assert sample(PLAIN, 0, rng) == 1


def test_decoding_ends_at_an_empty_token_or_at_the_limit():
    spelling = {1: b"caf", 2: "é".encode()[:1], 3: "é".encode()[1:], 4: b""}
    order = [1, 2, 3, 4]

    def step(drawn: list[int]) -> NextTokens:
        return NextTokens({order[len(drawn)]: 1.0}, {}, spelling)

    how = DebiasSettings(50, 10, 9, 1.0, 0)
    assert decode(step, how) == ("café", 3, True)
    assert decode(step, how._replace(max_tokens=2)) == ("caf", 2, False)


def test_models_without_next_token_probabilities_are_refused_in_one_line():
    with pytest.raises(ConfigError) as caught:
        SelfDebiasAgent("Writer", model("sim/any"), against="Rude: {text}")
    assert "needs the log-probabilities of every next token, but sim/any does not give them" in str(caught.value)


@pytest.fixture(scope="module")
def client():
    client = model("local/smollm2?max_connections=2&context=256")
    yield client
    asyncio.run(client.close())


async def test_the_embedded_model_avoids_what_the_biased_prompt_calls_for(client):
    """The biased prompt repeats the greedy continuation three times, which makes another one more probable."""
    beginning = "My neighbour opened the window because"

    async def continuation(decay: float, against: str = "{text}") -> str:
        options = {"max_tokens": 1, "temperature": 0.0}
        writer = SelfDebiasAgent("Writer", client, against=against, decay=decay, keep=50, options=options)
        text = TextMessage(content=beginning, source="user")
        return str((await writer.on_messages([text], CancellationToken())).chat_message.to_model_text())

    plain = await continuation(0)
    repeated = f"{beginning}{plain}.\n" * 3 + "{text}"
    assert await continuation(0, repeated) == plain  # λ = 0: the biased prompt has no effect
    assert await continuation(5000, repeated) != plain
