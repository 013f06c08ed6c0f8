"""What is peculiar to the Claude client; what all providers share is in test_provider_contract.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel

from parley.agents import ServerFault
from tests.agents.providers import ANTHROPIC, KEY, AnthropicFormat, ProviderServer, serving

# The SDK warns about models near their end of life; which ones depends on its version.
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

ASK = [UserMessage(content="How many?", source="user")]
WIRE = AnthropicFormat()


class Score(BaseModel):
    points: int
    why: str


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProviderServer]:
    for variable in ANTHROPIC.variables:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(ANTHROPIC.key_variable, KEY)
    async with serving(ANTHROPIC) as server:
        yield server


async def test_system_messages_are_joined_and_a_limit_is_always_sent(server: ProviderServer) -> None:
    server.sends(WIRE.reply("Sev", "en."))
    reply = await server.client().create([SystemMessage(content="Be short."), *ASK, SystemMessage(content="Be kind.")])
    assert reply.content == "Seven."
    assert server.paths == ["/v1/messages"]
    assert server.asked == [
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 1024,
            "system": "Be short.\n\nBe kind.",
            "messages": [{"role": "user", "content": "How many?"}],
        }
    ]


async def test_sampling_is_sent_with_the_version_that_accepts_it(server: ProviderServer) -> None:
    server.replies("7")
    await server.client(temperature=0.5, top_p=0.9, max_tokens=64).create(ASK)
    body = server.asked[0]
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 64)
    headers: Any = server.headers[0]
    assert headers.getall("anthropic-version") == ["2023-06-01"]


async def test_seed_and_log_probabilities_are_dropped(server: ProviderServer) -> None:
    server.replies("7")
    client = server.client(seed=3)
    await client.create(ASK, extra_create_args={"logprobs": True, "stop_sequences": ["!"]})
    assert client.logprobs is False
    assert sorted(server.asked[0]) == ["max_tokens", "messages", "model", "stop_sequences"]


async def test_a_structured_reply_is_the_input_of_a_forced_tool(server: ProviderServer) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "reply", "input": {"points": 7, "why": "cäts"}}
    server.sends(WIRE.reply("Let me see.", call, finish="tool_use"))
    reply = await server.client().create(ASK, json_output=Score)
    assert reply.content == '{"points": 7, "why": "cäts"}'
    assert server.asked[0]["tool_choice"] == {"type": "tool", "name": "reply"}
    assert [tool["name"] for tool in server.asked[0]["tools"]] == ["reply"]


async def test_json_without_a_schema_is_left_to_the_prompt(server: ProviderServer) -> None:
    server.replies("{}")
    assert (await server.client().create(ASK, json_output=True)).content == "{}"
    assert sorted(server.asked[0]) == ["max_tokens", "messages", "model"]


@pytest.mark.parametrize("text", [[], ["I will not."]])
@pytest.mark.parametrize("schema", [None, Score])
async def test_a_refusal_with_and_without_text(server: ProviderServer, text: list[str], schema: Any) -> None:
    server.sends(WIRE.reply(*text, finish="refusal"))
    reply = await server.client().create(ASK, json_output=schema)
    assert (reply.refused, reply.content, reply.finish_reason) == (True, "".join(text), "content_filter")


async def test_unknown_blocks_and_stop_reasons_of_later_versions_are_harmless(server: ProviderServer) -> None:
    server.sends(WIRE.reply({"type": "novelty", "shape": "round"}, "7", finish="whim"))
    reply = await server.client().create(ASK)
    assert (reply.content, reply.finish_reason) == ("7", "unknown")


async def test_a_key_that_no_header_can_carry_is_not_shown(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\n{KEY}")
    with pytest.raises(ServerFault, match="no connection") as caught:
        await server.client(retries=0).create(ASK)
    assert KEY not in str(caught.value)
