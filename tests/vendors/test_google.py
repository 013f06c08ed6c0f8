"""What is peculiar to the Gemini client; what all vendors share is in test_contract.py and test_trouble.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from autogen_core.models import SystemMessage

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
from tests.vendors.asking import COUNT, asked, client_of, result_of, streamed
from tests.vendors.google import Standin

THOUGHTS = {"thinkingConfig": {"include_thoughts": True}}


@pytest.fixture
def server():
    with Standin() as running:
        yield running


def candidate(*parts: Any, **fields: Any) -> dict[str, Any]:
    """A reply of these parts or texts."""
    listed = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"candidates": [{"content": {"role": "model", "parts": listed}, "index": 0, **fields}]}


def detail(kind: str, **fields: str) -> dict[str, Any]:
    info = {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}
    return {"error": {"code": 400, "message": "no", "status": "FAILED", "details": [info]}}


async def test_system_messages_are_joined_options_are_renamed_and_unknown_ones_named(server):
    talk = [SystemMessage(content="Be short."), *ASK, SystemMessage(content="Be kind.")]
    await asked(server, "temperature=0.5&top_p=0.9&max_tokens=64&seed=3", talk)
    first = server.asked[0]
    assert first.path.endswith("/models/gemini-3.8-flash:generateContent")
    assert "X-Server-Timeout" not in first.headers
    assert [part["text"] for part in first.body["systemInstruction"]["parts"]] == ["Be short.\n\nBe kind."]
    sampling = {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 64 + 16_384, "seed": 3}
    assert first.body["generationConfig"] == {**sampling, **THOUGHTS}
    await asked(server, json_output=True, extra_create_args={"logprobs": True})
    assert server.asked[1].body["generationConfig"] == {"responseMimeType": "application/json", **THOUGHTS}
    with pytest.raises(BadRequest, match="option 'wobble'"):
        await asked(server, extra_create_args={"wobble": 1})


BLOCKED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        *(({"candidates": [{"finishReason": finish, "index": 0}]}, "") for finish in BLOCKED),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "The prompt was blocked: PROHIBITED_CONTENT"),
    ],
)
async def test_a_blocked_reply_or_prompt_is_a_refusal(server, body, said):
    server.sends({**body, "usageMetadata": {"promptTokenCount": 4}})
    reply = await asked(server)
    assert (reply.refused, reply.content, reply.finish_reason) == (True, said, "content_filter")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (4, 0)


async def test_an_invalid_key_comes_as_400_and_the_other_variable_works_too(server, monkeypatch):
    server.sends(detail("ErrorInfo", reason="API_KEY_INVALID"), 400)
    with pytest.raises(AuthError, match="check GEMINI_API_KEY"):
        await asked(server)
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY + "\n")
    server.fails(401, "no")
    with pytest.raises(AuthError, match="check GOOGLE_API_KEY"):
        await asked(server)
    assert server.asked[1].headers["x-goog-api-key"] == KEY
    monkeypatch.delenv("GOOGLE_API_KEY")
    with pytest.raises(ConfigError, match="set GEMINI_API_KEY or GOOGLE_API_KEY in the environment"):
        model("google/gemini-3.8-flash")


@pytest.mark.parametrize("ask", [asked, streamed])
async def test_the_pause_may_be_in_the_body(server, ask):
    server.sends(detail("RetryInfo", retryDelay="37.5s"), 429)
    budget = Budget()
    with session(Session(sample="s", budget=budget)), pytest.raises(RateLimited) as caught:
        await ask(server)
    assert (caught.value.retry_after, budget.calls) == (37.5, 0)


@pytest.mark.parametrize(
    ("names", "efforts"),
    [
        ("gemini-4-argon gemini-3.8-flash gemini-3.7-flash", "low medium high"),
        ("gemini-3.1-pro-preview gemini-flash-latest", "low medium high"),
        ("gemini-3.6-flash gemini-3.5-flash-lite", "minimal low medium high"),
        ("gemini-3-pro-preview", "low high"),
        ("gemini-2.5-flash gemma-4-31b-it", ""),
    ],
)
def test_levels_of_thinking(names, efforts):
    assert {" ".join(model(f"google/{name}").efforts) for name in names.split()} == {efforts}


async def test_effort_is_a_level_and_no_limit_is_higher_than_the_models_accept():
    for name, effort in (("gemini-4-argon", "low"), ("gemini-3.5-flash-lite", "minimal")):
        with Standin(model=name) as standin:
            await asked(standin, f"retries=0&effort={effort}&max_tokens=100")
            await asked(standin, "retries=0&max_tokens=60000")
        settings = standin.requests[0].body["generationConfig"]
        assert settings["thinkingConfig"] == {"include_thoughts": True, "thinking_level": effort.upper()}
        assert settings["maxOutputTokens"] == 100 + 16_384
        assert standin.requests[1].body["generationConfig"]["maxOutputTokens"] == 65_536


async def test_a_call_without_an_id_gets_one_that_is_not_sent(server):
    server.sends(candidate({"functionCall": {"name": "count", "args": {"letters": "abc"}}}, finishReason="STOP"))
    server.sends(candidate("Three.", finishReason="STOP"))
    async with client_of(server) as client:
        (call,) = (await client.create(ASK, tools=[COUNT])).content
        assert (call.name, json.loads(call.arguments)) == ("count", {"letters": "abc"})
        await client.create(result_of(call, is_error=True))
    sent = {"functionResponse": {"name": "count", "response": {"error": "3"}}}
    assert server.asked[1].body["contents"][2]["parts"] == [sent]


async def test_several_replies_to_one_request_and_a_long_event(server):
    server.sends({"candidates": [*candidate("Six.")["candidates"], *candidate("Sev", "en.")["candidates"]]})
    assert (await asked(server, extra_create_args={"n": 2})).others == ("Seven.",)
    assert server.asked[0].body["generationConfig"] == {"candidateCount": 2, **THOUGHTS}
    server.sends_events(candidate("x" * 3 * 2**20, finishReason="STOP"))
    assert len((await streamed(server))[0]) == 3 * 2**20


@pytest.mark.parametrize("last", [{"error": {"code": 503, "message": "overloaded"}}, {}], ids=["error", "unreadable"])
async def test_a_stream_that_ends_in_an_error_is_billed_for_what_arrived(server, last):
    server.sends_events(candidate("Seven, I think."), last, closes=True)
    with record_calls() as calls, pytest.raises(ServerFault):
        await streamed(server)
    assert [(call.reply, call.prompt_tokens, call.completion_tokens) for call in calls] == [("Seven, I think.", 3, 4)]
