"""What is peculiar to OpenAI's models (what they accept depends on whether they think), and to vLLM."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from autogen_core.models import UserMessage

from parley.agents import BadRequest, model, record_calls
from parley.agents.models.openai import traits_of
from parley.base.errors import QuotaSpent
from tests.agents.common import ASK
from tests.vendors.asking import asked, client_of
from tests.vendors.base import CACHED_TOKENS, PROMPT_TOKENS
from tests.vendors.compatible import CONTEXT, VLLM
from tests.vendors.openai import Standin as Chat

ALL = "none minimal low medium high xhigh max"


@pytest.mark.parametrize(
    ("names", "efforts", "thinks"),
    [
        ("gpt-6-astra gpt-6.1-sol", "low medium high xhigh max", True),
        ("gpt-6.1-terra gpt-6-luna", "none low medium high xhigh max", True),
        ("gpt-5-mini", "minimal low medium high", True),
        ("o3", "low medium high", True),
        ("gpt-5.2 ft:gpt-4.1:me", ALL, False),
        ("gpt-4.1-mini", "", False),
    ],
)
def test_what_is_known_of_a_model(names, efforts, thinks):
    for name in names.split():
        assert " ".join(traits_of(name).efforts) == efforts
        client = model(f"openai/{name}")
        assert (client.thinks, client.takes_temperature, client.logprobs) == (thinks, not thinks, not thinks)
        assert "none" not in efforts or model(f"openai/{name}?effort=none&temperature=0.5").logprobs


def test_tools_need_a_model_that_does_not_think():
    """And some have none in chat completions at all."""
    can = {name: model(f"openai/{name}").calls_tools for name in (
        "gpt-4.1", "gpt-5.2", "gpt-6-luna", "gpt-6-luna?effort=none", "gpt-6.1-terra?effort=none"
    )}  # fmt: skip
    assert list(can.values()) == [True, True, False, True, False]


async def test_writing_to_the_prompt_cache_is_paid_for():
    """gpt-6-luna: 30 of 100 tokens written at 1.25 times the price, 40 read at the cached one."""
    with Chat() as server, record_calls() as calls:
        async with client_of(server) as client:
            reply = await client.create(ASK)
    price = client.price
    assert (reply.cached_tokens, reply.written_tokens) == (CACHED_TOKENS, 30)
    rates = (price.prompt or 0, price.cached or 0, price.completion or 0)
    tokens = (PROMPT_TOKENS - CACHED_TOKENS + 30 * 0.25, CACHED_TOKENS, 20)
    assert min(rates) > 0
    assert calls[0].cost == pytest.approx(sum(map(operator.mul, rates, tokens)) / 1e6)


@pytest.mark.parametrize(("status", "error"), [(429, QuotaSpent), (400, BadRequest)])
async def test_spent_credit_comes_as_429(status, error):
    with Chat() as server:
        server.fails(status, "insufficient_quota")
        with pytest.raises(error):
            await asked(server, "retries=3")
    assert len(server.asked) == 1


# vLLM; the real llama.cpp server is in tests/agents/test_servers.py


async def test_a_prompt_of_more_tokens_than_were_estimated_gets_the_room_that_is_left():
    """As in languages with fewer than four characters per token; only a prompt that is too long itself is rejected."""

    class Dense(VLLM):
        def turns(self, body: Any) -> Any:
            return [(role, text * 3) for role, text in super().turns(body)]

    with Dense("thinking") as server:
        async with client_of(server) as client:
            await client.prepare()
            message = UserMessage(content="x" * 16_000, source="user")
            await client.create([message], extra_create_args={"max_tokens": 400})
            assert len(server.rejected) == 2
            assert (CONTEXT - 12_004) // 2 < server.requests[-1].body["max_tokens"] < CONTEXT - 12_004
            with pytest.raises(BadRequest, match="maximum context length is 16384"):
                await client.create([UserMessage(content="x" * 30_000, source="user")])
