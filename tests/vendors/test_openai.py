"""What is peculiar to OpenAI's models (two APIs, and what they accept depends on whether they think), and to vLLM."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel

from parley.agents import BadRequest, Budget, ServerFault, Session, model, record_calls, session
from parley.agents.models.openai import traits_of
from parley.agents.models.request import Request
from parley.agents.models.responses import from_response
from parley.base.errors import QuotaSpent
from tests.agents.common import ASK
from tests.vendors.asking import COUNT, asked, client_of, streamed
from tests.vendors.base import CACHED_TOKENS, PROMPT_TOKENS
from tests.vendors.compatible import CONTEXT, VLLM
from tests.vendors.openai import Standin as Chat
from tests.vendors.openai_responses import Standin as Responses

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


@pytest.mark.parametrize(
    ("details", "refused", "ends"),
    [({"reason": "content_filter"}, True, "content_filter"), (None, False, "unknown")],
)
def test_a_filtered_reply_is_refused_whatever_text_it_has(details, refused, ends):
    message = {"type": "message", "content": [{"type": "output_text", "text": "7"}]}
    reply = from_response({"output": [message], "status": "incomplete", "incomplete_details": details})
    assert (reply.content, reply.refused, reply.finish_reason) == ("7", refused, ends)


class Score(BaseModel):
    points: int


def test_a_request_to_responses():
    """Nothing is stored; what a model that thinks needs with tools' results is asked for."""
    talk = (SystemMessage(content="Be short."), *ASK, SystemMessage(content="Be kind."))
    options = {"max_tokens": 9, "effort": "low", "seed": 3, "top_p": 0.5}
    request = Request(talk, schema=Score, options=options, tools=(COUNT,), tool_choice=COUNT)
    schema = {"type": "object", "properties": {"points": {"type": "integer"}}}
    named = {
        "name": "Score",
        "strict": True,
        "schema": {**schema, "required": ["points"], "additionalProperties": False},
    }
    thinking = model("openai/gpt-6.1-terra?api=responses")
    assert thinking.body(request) == {  # type: ignore[attr-defined]
        "model": "gpt-6.1-terra",
        "input": [{"role": "user", "content": "How many?"}],
        "store": False,
        "instructions": "Be short.\n\nBe kind.",
        "max_output_tokens": 9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", **COUNT.schema, "strict": False}],
        "tool_choice": {"type": "function", "name": "count"},
        "text": {"format": {"type": "json_schema", **named}},
        "top_p": 0.5,
    }
    plain = model("openai/gpt-4.1?api=responses&summary=detailed")
    assert plain.body(Request(tuple(ASK), options={"logprobs": True})) == {  # type: ignore[attr-defined]
        "model": "gpt-4.1",
        "input": [{"role": "user", "content": "How many?"}],
        "store": False,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 20,
    }


class OnlyResponses(Responses):
    """Addressed as any model is, without `api=responses`."""

    options = ""


async def test_tools_go_to_responses_if_the_model_thinks():
    """And always, with models whose chat completions have no tools."""
    for server, options in (
        (OnlyResponses(model="gpt-6-luna"), "retries=0"),
        (OnlyResponses(model="gpt-6.1-terra"), "effort=none"),
        (Chat(model="gpt-6-luna"), "effort=none"),
        (Chat(model="gpt-4.1"), "retries=0"),
    ):
        with server:
            assert (await asked(server, options, tools=[COUNT])).finish_reason == "function_calls", server.rejected


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


async def test_a_stream_that_fails_counts_with_what_arrived():
    failed = {"status": "failed", "error": {"code": "server_error", "message": "out of luck"}}
    budget = Budget(max_calls=5)
    with Responses("thinking") as server, session(Session(budget=budget)):
        thought = {"type": "response.reasoning_summary_text.delta", "delta": "Hm."}
        server.sends_events(thought, {"type": "response.failed", "response": failed})
        with pytest.raises(ServerFault, match="out of luck"):
            await streamed(server)
    assert (budget.calls, budget.tokens > 0) == (1, True)


async def test_what_only_responses_say():
    top = {"token": "7", "logprob": -0.5, "top_logprobs": [{"token": "8", "logprob": -1.5, "bytes": [56]}]}
    part = {"type": "output_text", "text": "7", "logprobs": [top]}
    with Responses() as server:
        server.sends({"status": "completed", "output": [{"type": "message", "content": [part]}]})
        (token,) = (await asked(server)).logprobs
        assert (token.token, [(top.logprob, top.bytes) for top in token.top_logprobs]) == ("7", [(-1.5, [56])])
        server.sends_events({"type": "response.output_text.delta"})
        with pytest.raises(ServerFault, match=r"streamed an unreadable event$"):
            await streamed(server)
        server.sends_events({"type": "error", "message": "out of luck"})
        with pytest.raises(ServerFault, match=r": out of luck$"):
            await streamed(server)
        server.fails(400, "Your organization must be verified: reasoning.summary")
        with pytest.raises(BadRequest, match=r"reasoning\.summary; or append \?summary=none$"):
            await asked(server)


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
            assert len(server.rejected) == 1
            assert server.requests[-1].body["max_tokens"] == CONTEXT - 12_004
            with pytest.raises(BadRequest, match="maximum context length is 16384"):
                await client.create([UserMessage(content="x" * 30_000, source="user")])
