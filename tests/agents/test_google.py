"""What is peculiar to the Gemini client; what all providers share is in test_provider_contract.py."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
)

from parley.agents import (
    AuthError,
    BadRequest,
    Budget,
    ConfigError,
    RateLimited,
    ServerFault,
    Session,
    model,
    record_calls,
    session,
)
from tests.agents.common import ASK, KEY
from tests.agents.providers import COUNT, GOOGLE, GoogleFormat, ProviderServer, asked, serving, streamed
from tests.vendors.google import Standin

WIRE = GoogleFormat()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    GOOGLE.set_key(monkeypatch)


@pytest.fixture
async def server() -> AsyncIterator[ProviderServer]:
    async with serving(GOOGLE) as server:
        yield server


async def test_system_messages_are_joined_and_options_are_renamed(server: ProviderServer) -> None:
    server.replies("Seven.")
    client = server.client(temperature=0.5, top_p=0.9, max_tokens=64, seed=3)
    await client.create([SystemMessage(content="Be short."), *ASK, SystemMessage(content="Be kind.")])
    assert server.paths[0].endswith("/models/gemini-3.8-flash:generateContent")
    assert "X-Server-Timeout" not in server.headers[0]
    body = server.asked[0]
    assert [part["text"] for part in body["systemInstruction"]["parts"]] == ["Be short.\n\nBe kind."]
    assert body["generationConfig"] == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 64 + 16_384,
        "seed": 3,
        "thinkingConfig": {"include_thoughts": True},
    }


async def test_json_is_asked_for_log_probabilities_are_dropped_and_unknown_options_are_named(
    server: ProviderServer,
) -> None:
    server.replies("{}")
    client = server.client()
    await client.create(ASK, json_output=True, extra_create_args={"logprobs": True})
    thinking = {"thinkingConfig": {"include_thoughts": True}}
    assert server.asked[0]["generationConfig"] == {"responseMimeType": "application/json", **thinking}
    with pytest.raises(BadRequest, match="option 'wobble'"):
        await client.create(ASK, extra_create_args={"wobble": 1})


BLOCKED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        *(({"candidates": [{"finishReason": finish, "index": 0}]}, "") for finish in BLOCKED),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "The prompt was blocked: PROHIBITED_CONTENT"),
    ],
)
async def test_a_blocked_reply_or_prompt_is_a_refusal(server: ProviderServer, body: dict[str, Any], said: str) -> None:
    server.sends({**body, "usageMetadata": {"promptTokenCount": 4}})
    reply = await server.client().create(ASK)
    assert (reply.refused, reply.content, reply.finish_reason) == (True, said, "content_filter")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (4, 0)


async def test_a_reply_that_could_be_continued_is_cut(server: ProviderServer) -> None:
    """The SDK would ask on by itself, without our budget."""
    body = WIRE.reply("Sev", finish="CONTINUATION")
    body["candidates"][0]["continuationToken"] = "dG9rZW4="
    server.sends(body)
    reply = await server.client().create(ASK)
    assert (reply.content, reply.cut, len(server.asked)) == ("Sev", True, 1)


async def test_an_invalid_key_comes_as_400(server: ProviderServer) -> None:
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    server.sends(WIRE.error(400, "API key not valid. Please pass a valid API key.", [reason]), 400)
    with pytest.raises(AuthError, match="check GEMINI_API_KEY"):
        await server.client(retries=0).create(ASK)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_pause_may_be_in_the_body(server: ProviderServer, stream: bool) -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
    server.sends(WIRE.error(429, "quota", [delay]), 429)
    client, budget = server.client(retries=0), Budget()
    with session(Session(sample="s", budget=budget)), pytest.raises(RateLimited) as caught:
        await (streamed(client) if stream else client.create(ASK))
    assert (caught.value.retry_after, budget.calls) == (37.5, 0)


async def test_the_other_variable_works_too(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY + "\n")
    server.fails(401, "no")
    with pytest.raises(AuthError, match="check GOOGLE_API_KEY"):
        await server.client(retries=0).create(ASK)
    assert server.headers[0]["x-goog-api-key"] == KEY
    GOOGLE.set_key(monkeypatch, None)
    with pytest.raises(ConfigError, match="set GEMINI_API_KEY or GOOGLE_API_KEY in the environment"):
        model(GOOGLE.model)


@pytest.mark.parametrize(
    ("name", "efforts"),
    [
        ("gemini-4-argon", "low medium high"),
        ("gemini-3.8-flash", "low medium high"),
        ("gemini-3.7-flash", "low medium high"),
        ("gemini-3.6-flash", "minimal low medium high"),
        ("gemini-3.5-flash-lite", "minimal low medium high"),
        ("gemini-3.1-pro-preview", "low medium high"),
        ("gemini-3-pro-preview", "low high"),
        ("gemini-flash-latest", "low medium high"),
        ("gemini-2.5-flash", ""),
        ("gemma-4-31b-it", ""),
    ],
)
def test_levels_of_thinking(name: str, efforts: str) -> None:
    assert " ".join(model(f"google/{name}").efforts) == efforts


async def test_effort_is_a_level_and_no_limit_is_higher_than_the_models_accept() -> None:
    for name, effort in (("gemini-4-argon", "low"), ("gemini-3.5-flash-lite", "minimal")):
        with Standin(model=name) as standin:
            await asked(standin, f"retries=0&effort={effort}&max_tokens=100")
            await asked(standin, "retries=0&max_tokens=60000")
        settings = standin.requests[0].body["generationConfig"]
        assert settings["thinkingConfig"] == {"include_thoughts": True, "thinking_level": effort.upper()}
        assert settings["maxOutputTokens"] == 100 + 16_384
        assert standin.requests[1].body["generationConfig"]["maxOutputTokens"] == 65_536


async def test_a_tool_is_called_and_its_result_sent_back_with_the_signature() -> None:
    with Standin("thinking") as standin:
        client = model(standin.name())
        first = await client.create(ASK, tools=[COUNT], tool_choice="required")
        assert isinstance(first.content, list)
        (call,) = first.content
        assert (first.finish_reason, call.name) == ("function_calls", "count")
        assert first.thought is not None
        result = FunctionExecutionResult(content="3", name="count", call_id=call.id, is_error=False)
        called = AssistantMessage(content=first.content, source="a")
        history = [*ASK, called, FunctionExecutionResultMessage(content=[result])]
        second = await client.create(history, tools=[COUNT])
        await client.close()
        # Another client does not know the signature.
        await asked(standin, messages=history, tools=[COUNT], tool_choice=COUNT)
    assert isinstance(second.content, str)
    bodies = [received.body for received in standin.requests]
    assert [body["toolConfig"]["functionCallingConfig"]["mode"] for body in bodies] == ["ANY", "AUTO", "ANY"]
    sent = [bodies[nth]["contents"][1]["parts"][-1] for nth in (1, 2)]
    assert [part["functionCall"]["id"] for part in sent] == [call.id] * 2
    assert [base64.b64decode(part["thoughtSignature"]) for part in sent] == [
        b"signed",
        b"skip_thought_signature_validator",
    ]
    response = bodies[1]["contents"][2]["parts"][0]["functionResponse"]
    assert (response["name"], response["response"]) == ("count", {"output": "3"})


async def test_a_call_without_an_id_gets_one_that_is_not_sent(server: ProviderServer) -> None:
    body = WIRE.reply("")
    body["candidates"][0]["content"]["parts"] = [{"functionCall": {"name": "count", "args": {"letters": "abc"}}}]
    server.sends(body)
    client = server.client()
    reply = await client.create(ASK, tools=[COUNT])
    assert isinstance(reply.content, list)
    (call,) = reply.content
    assert (call.name, json.loads(call.arguments)) == ("count", {"letters": "abc"})
    result = FunctionExecutionResult(content="3", name="count", call_id=call.id, is_error=True)
    await client.create(
        [*ASK, AssistantMessage(content=[call], source="a"), FunctionExecutionResultMessage(content=[result])]
    )
    assert server.asked[1]["contents"][2]["parts"] == [
        {"functionResponse": {"name": "count", "response": {"error": "3"}}}
    ]


@pytest.mark.parametrize("last", [json.dumps(WIRE.error(503, "overloaded")), "{}"], ids=["error", "unreadable"])
async def test_a_stream_that_ends_in_an_error_is_billed_for_what_arrived(server: ProviderServer, last: str) -> None:
    chunk = WIRE.reply("Seven, I think.", finish="")
    del chunk["candidates"][0]["finishReason"], chunk["usageMetadata"]

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(f"data: {last}\n\n".encode())
        assert request.transport is not None
        request.transport.close()
        return response

    server._answers.append(handler)
    with record_calls() as calls, pytest.raises(ServerFault):
        await streamed(server.client())
    assert [(call.reply, call.prompt_tokens, call.completion_tokens) for call in calls] == [("Seven, I think.", 3, 4)]
