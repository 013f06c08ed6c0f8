"""What is peculiar to OpenAI-compatible servers, and the throttle; what all providers share is in
test_provider_contract.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from pydantic import BaseModel, Field

from parley.agents import ConfigError, RateLimited, model, record_calls
from tests.agents.common import ASK, KEY


class Score(BaseModel):
    points: int = Field(ge=0, le=10)
    why: str = Field("", max_length=80)


class Verdict(BaseModel):
    A: Score
    B: Score


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "PARLEY_SERVER_KEY", "PARLEY_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)


async def test_a_request_and_its_record(server: Any) -> None:
    server.says("Seven.")
    client = server.client(temperature=0.2, max_tokens=9, price_in=1, price_out=10)
    with record_calls() as calls:
        reply = await client.create(ASK)
    assert (reply.content, reply.finish_reason, reply.cached, reply.refused) == ("Seven.", "stop", False, False)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (12, 3)
    assert server.asked == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "How many?"}],
            "temperature": 0.2,
            "max_tokens": 9,
        }
    ]
    (call,) = calls
    assert (call.model, call.reply, call.attempts, call.cached) == ("server/m", "Seven.", 1, False)
    assert [tuple(message) for message in call.prompt] == [("user", "user", "How many?")]
    # 12 tokens at 1 dollar and 3 at 10 dollars per million
    assert call.cost == pytest.approx(42e-6)
    assert client.total_usage().prompt_tokens == 12


async def test_names_are_written_into_the_text_and_messages_of_one_role_are_joined(server: Any) -> None:
    server.says("Seven.")
    messages = [
        SystemMessage(content="You are Cy."),
        UserMessage(content="How many?", source="user"),
        UserMessage(content="Six.", source="Ada"),
        UserMessage(content="Eight.", source="Ben"),
        AssistantMessage(content="Seven.", source="Cy"),
        UserMessage(content="Why?", source="Ada"),
    ]
    await server.client().create(messages)
    assert server.asked[0]["messages"] == [
        {"role": "system", "content": "You are Cy."},
        {"role": "user", "content": "How many?\n\nAda: Six.\n\nBen: Eight."},
        {"role": "assistant", "content": "Seven."},
        {"role": "user", "content": "Ada: Why?"},
    ]


async def test_a_nested_schema_is_sent_closed_and_without_references(server: Any) -> None:
    server.says("{}")
    await server.client().create(ASK, json_output=Verdict)
    response_format = server.asked[0]["response_format"]
    score = {
        "type": "object",
        "properties": {"points": {"type": "integer", "minimum": 0, "maximum": 10}, "why": {"type": "string"}},
        "required": ["points", "why"],
        "additionalProperties": False,
    }
    assert response_format == {
        "type": "json_schema",
        "json_schema": {
            "name": "Verdict",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {"A": score, "B": score},
                "required": ["A", "B"],
                "additionalProperties": False,
            },
        },
    }


async def test_json_mode_and_no_mode_at_all(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    server.says("{}")
    ask = [UserMessage(content="How many? Answer as JSON.", source="user")]
    await server.client(structured="json").create(ask, json_output=Score)
    await server.client().create(ask, json_output=True)
    await server.client(structured="none").create(ask, json_output=Score)
    deepseek = model("deepseek/deepseek-flash", base_url=server.url)
    await deepseek.create(ask, json_output=Score)
    await deepseek.create(ASK, json_output=Score)  # whose prompt does not speak of JSON: it would be rejected
    await deepseek.close()
    formats = [body.get("response_format") for body in server.asked]
    assert formats == [{"type": "json_object"}, {"type": "json_object"}, None, {"type": "json_object"}, None]


async def test_tool_calls_and_their_results(server: Any) -> None:
    async def count(what: str) -> int:
        return len(what)

    sent = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"what": "cats"}'}}
    server.says(tool_calls=[sent])
    server.says("Four.")
    client = server.client()
    tool = FunctionTool(count, "Counts letters.")
    reply = await client.create(ASK, tools=[tool], tool_choice=tool)
    call = FunctionCall(id="c1", name="count", arguments='{"what": "cats"}')
    assert (reply.content, reply.finish_reason) == ([call], "function_calls")
    assert server.asked[0]["tools"][0]["function"]["name"] == "count"
    assert server.asked[0]["tool_choice"] == {"type": "function", "function": {"name": "count"}}

    result = FunctionExecutionResult(content="4", name="count", call_id="c1", is_error=False)
    history = [*ASK, AssistantMessage(content=[call], source="Cy"), FunctionExecutionResultMessage(content=[result])]
    assert (await client.create(history, tools=[tool])).content == "Four."
    assert server.asked[1]["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [sent]},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
    ]
    assert server.asked[1]["tool_choice"] == "auto"


async def test_log_probabilities_can_be_declined(server: Any) -> None:
    server.says("Seven.")
    await server.client().create(ASK, extra_create_args={"logprobs": False})
    assert not server.asked[0].get("logprobs")


def test_a_missing_address_is_reported_before_any_work() -> None:
    with pytest.raises(ConfigError, match=r"server/m needs an address: write server/m\?base_url="):
        model("server/m")


def test_a_server_without_a_key_may_be_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://gpu:11434/v1/")
    assert model("ollama/llama3.2").identity == "http://gpu:11434/v1 ollama/llama3.2"


def test_wrong_options_are_reported_before_any_work() -> None:
    with pytest.raises(ConfigError, match="ollama/m: unknown option 'temprature'"):
        model("ollama/m?temprature=1")
    with pytest.raises(ConfigError, match="ollama/m: option 'temperature': "):
        model("ollama/m?temperature=warm")
    with pytest.raises(ConfigError, match="ollama/m: option 'retries': "):
        model("ollama/m", retries=-1)


async def test_openai_gets_its_own_name_for_the_token_limit(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.says("Seven.")
    client = model("openai/gpt-4o-mini", base_url=server.url, max_tokens=9)
    await client.create(ASK)
    await client.close()
    assert server.asked[0]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.asked[0]


async def test_no_more_concurrent_calls_than_allowed(server: Any) -> None:
    server.says("Seven.")
    client = server.client(max_connections=3)
    replies = await asyncio.gather(*(client.create(ASK) for _ in range(12)))
    assert [reply.content for reply in replies] == ["Seven."] * 12
    assert server.most_under_way == 3


async def test_a_429_lowers_the_limit_and_successes_raise_it_again(server: Any) -> None:
    server.fails(429)
    server.says("Seven.")
    client = server.client(max_connections=8)
    replies = await asyncio.gather(*(client.create(ASK) for _ in range(8)))
    assert [reply.content for reply in replies] == ["Seven."] * 8
    assert client.throttle.slowed == 1
    assert client.throttle.limit < 8
    for _ in range(40):
        await client.create(ASK)
    assert client.throttle.limit == 8


async def test_429s_of_concurrent_calls_lower_the_limit_once(server: Any) -> None:
    for _ in range(5):
        server.fails(429, headers={"Retry-After": "60"})
    server.says("Seven.")
    client = server.client(max_connections=8, retries=0)
    replies = await asyncio.gather(*(client.create(ASK) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(reply, RateLimited) for reply in replies) == 5
    assert client.throttle.slowed == 5
    assert 8 * 0.67 <= client.throttle.limit < 8


async def test_the_limit_never_drops_below_one_call(server: Any) -> None:
    for _ in range(3):
        server.fails(429)
    server.says("Seven.")
    client = server.client(max_connections=2, retries=0)
    for _ in range(3):
        with pytest.raises(RateLimited):
            await client.create(ASK)
    assert client.throttle.limit == 1
    assert (await client.create(ASK)).content == "Seven."


async def test_calls_that_wait_for_a_slot_respect_the_servers_pause(server: Any) -> None:
    server.fails(429, headers={"Retry-After": "60"})
    server.says("Seven.")
    client = server.client(max_connections=1, retries=0)
    first, second = (asyncio.ensure_future(client.create(ASK)) for _ in range(2))
    with pytest.raises(RateLimited):
        await first
    await asyncio.wait([second], timeout=0.2)
    second.cancel()
    assert len(server.asked) == 1
