"""What is peculiar to the Gemini client; what all providers share is in test_provider_contract.py."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from autogen_core.models import SystemMessage, UserMessage
from pydantic import BaseModel

from parley.agents import AuthError, BadRequest, ConfigError, RateLimited, model
from tests.agents.providers import GOOGLE, KEY, GoogleFormat, ProviderServer, serving

ASK = [UserMessage(content="How many?", source="user")]
WIRE = GoogleFormat()


class Score(BaseModel):
    points: int


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProviderServer]:
    for variable in GOOGLE.variables:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(GOOGLE.key_variable, KEY)
    async with serving(GOOGLE) as server:
        yield server


async def test_system_messages_are_joined_and_options_are_renamed(server: ProviderServer) -> None:
    server.replies("Seven.")
    client = server.client(temperature=0.5, top_p=0.9, max_tokens=64, seed=3)
    await client.create([SystemMessage(content="Be short."), *ASK, SystemMessage(content="Be kind.")])
    assert server.paths[0].endswith("/models/gemini-2.5-flash:generateContent")
    assert "X-Server-Timeout" not in server.headers[0]
    body = server.asked[0]
    assert [part["text"] for part in body["systemInstruction"]["parts"]] == ["Be short.\n\nBe kind."]
    assert body["generationConfig"] == {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 64, "seed": 3}


async def test_thinking_counts_as_reply_tokens(server: ProviderServer) -> None:
    body = WIRE.reply("Seven.")
    body["usageMetadata"] = {"promptTokenCount": 11, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    server.sends(body)
    usage = (await server.client().create(ASK)).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (11, 12)


async def test_json_with_and_without_a_schema(server: ProviderServer) -> None:
    server.replies("{}")
    await server.client().create(ASK, json_output=Score)
    await server.client().create(ASK, json_output=True)
    with_schema, without = (body["generationConfig"] for body in server.asked)
    assert with_schema["responseMimeType"] == "application/json"
    assert without == {"responseMimeType": "application/json"}


async def test_log_probabilities_are_dropped_and_unknown_options_are_named(server: ProviderServer) -> None:
    server.replies("7")
    client = server.client()
    await client.create(ASK, extra_create_args={"logprobs": True})
    assert not server.asked[0].get("generationConfig")
    with pytest.raises(BadRequest, match="option 'wobble'"):
        await client.create(ASK, extra_create_args={"wobble": 1})


@pytest.mark.parametrize("finish", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"])
async def test_a_blocked_reply_is_a_refusal(server: ProviderServer, finish: str) -> None:
    server.sends({"candidates": [{"finishReason": finish, "index": 0}], "usageMetadata": {"promptTokenCount": 4}})
    reply = await server.client().create(ASK)
    assert (reply.refused, reply.content, reply.finish_reason) == (True, "", "content_filter")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (4, 0)


async def test_a_blocked_prompt_is_a_refusal(server: ProviderServer) -> None:
    server.sends({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}})
    reply = await server.client().create(ASK)
    assert (reply.refused, reply.content, reply.finish_reason) == (True, "", "content_filter")


async def test_an_invalid_key_comes_as_400(server: ProviderServer) -> None:
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    server.sends(WIRE.error(400, "API key not valid. Please pass a valid API key.", [reason]), 400)
    with pytest.raises(AuthError, match="check GEMINI_API_KEY"):
        await server.client(retries=0).create(ASK)


async def test_the_pause_may_be_in_the_body(server: ProviderServer) -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
    server.sends(WIRE.error(429, "quota", [delay]), 429)
    with pytest.raises(RateLimited) as caught:
        await server.client(retries=0).create(ASK)
    assert caught.value.retry_after == 37.5


def test_both_variables_are_named_if_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in GOOGLE.variables:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match="set GEMINI_API_KEY or GOOGLE_API_KEY in the environment"):
        model(GOOGLE.model)


async def test_the_other_variable_works_too(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY + "\n")
    server.fails(401, "no")
    with pytest.raises(AuthError, match="check GOOGLE_API_KEY"):
        await server.client(retries=0).create(ASK)
    assert server.headers[0]["x-goog-api-key"] == KEY
