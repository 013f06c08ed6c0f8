"""The Gemini client against a server on loopback that speaks the vendor's wire format."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, SystemMessage, UserMessage
from pydantic import BaseModel, Field

from parley.agents.errors import AuthError, BadRequest, ConfigError, ModelError, RateLimited, ServerFault
from parley.agents.models.google import GoogleClient
from parley.agents.models.registry import model

KEY = "AIzaSy-a-secret-that-must-not-show"
NAME = "google/gemini-2.5-flash"
ASK = [UserMessage(content="How many?", source="user")]


class Score(BaseModel):
    points: int = Field(ge=0, le=10)
    why: str


@dataclass
class Vendor:
    """Gives its answers in turn, the last one again and again, and keeps what it was asked."""

    url: str = ""
    answers: list[dict[str, Any]] = field(default_factory=list)
    delay: float = 0.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)

    def says(self, body: Any, status: int = 200, headers: Any = None) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        kind = "application/json" if text.startswith(("{", "[")) else "text/html"
        self.answers.append({"text": text, "status": status, "content_type": kind, "headers": headers})

    def fails(self, status: int, message: str, details: Any = (), headers: Any = None) -> None:
        error = {"code": status, "message": message, "status": "FAILED", "details": list(details)}
        self.says({"error": error}, status, headers)

    async def answer(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        self.headers.append(request.headers)
        self.asked.append(await request.json())
        await asyncio.sleep(self.delay)
        return web.Response(**(self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)))


def reply(text: str, finish: str = "STOP") -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": finish, "index": 0}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5, "thoughtsTokenCount": 7},
        "modelVersion": "gemini-2.5-flash",
    }


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    vendor = Vendor()
    app = web.Application()
    app.router.add_post("/{path:.*}", vendor.answer)
    server = TestServer(app)
    await server.start_server()
    vendor.url = str(server.make_url("")).rstrip("/")
    yield vendor
    await server.close()


async def ask(vendor: Vendor, messages: Any = ASK, /, json_output: Any = None, **options: Any) -> Any:
    client = model(NAME, base_url=vendor.url, **{"retries": 0, **options})
    try:
        return await client.create(messages, json_output=json_output)
    finally:
        await client.close()


async def test_plain_reply_with_usage(vendor: Vendor) -> None:
    vendor.says(reply("Seven."))
    messages = [
        SystemMessage(content="Be short."),
        *ASK,
        AssistantMessage(content="Of what?", source="ada"),
        UserMessage(content="Of cats.", source="bob"),
        SystemMessage(content="Be kind."),
    ]
    found = await ask(vendor, messages, temperature=0.5, top_p=0.9, max_tokens=64, seed=3)
    assert (found.content, found.finish_reason, found.refused) == ("Seven.", "stop", False)
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (11, 12)
    assert vendor.paths[0].endswith("/models/gemini-2.5-flash:generateContent")
    assert vendor.headers[0]["x-goog-api-key"] == KEY
    assert "X-Server-Timeout" not in vendor.headers[0]
    asked = vendor.asked[0]
    assert [part["text"] for part in asked["systemInstruction"]["parts"]] == ["Be short.\n\nBe kind."]
    assert [(turn["role"], turn["parts"][0]["text"]) for turn in asked["contents"]] == [
        ("user", "How many?"),
        ("model", "Of what?"),
        ("user", "bob: Of cats."),
    ]
    assert asked["generationConfig"] == {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 64, "seed": 3}


async def test_structured_reply(vendor: Vendor) -> None:
    vendor.says(reply('{"points": 7, "why": "cats"}'))
    found = await ask(vendor, json_output=Score)
    assert Score.model_validate_json(found.content).points == 7
    config = vendor.asked[0]["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    schema = config["responseJsonSchema"]
    assert schema["properties"]["points"] == {"type": "integer", "minimum": 0, "maximum": 10}
    assert schema["required"] == ["points", "why"]
    assert schema["additionalProperties"] is False


async def test_json_without_a_schema(vendor: Vendor) -> None:
    vendor.says(reply("{}"))
    await ask(vendor, json_output=True)
    assert vendor.asked[0]["generationConfig"] == {"responseMimeType": "application/json"}


async def test_log_probabilities_are_dropped_and_unknown_options_are_named(vendor: Vendor) -> None:
    vendor.says(reply("7"))
    client = model(NAME, base_url=vendor.url)
    await client.create(ASK, extra_create_args={"logprobs": True})
    assert not vendor.asked[0].get("generationConfig")
    with pytest.raises(BadRequest, match="option 'wobble'"):
        await client.create(ASK, extra_create_args={"wobble": 1})
    await client.close()


@pytest.mark.parametrize("finish", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"])
async def test_a_blocked_reply_is_a_refusal(vendor: Vendor, finish: str) -> None:
    vendor.says({"candidates": [{"finishReason": finish, "index": 0}], "usageMetadata": {"promptTokenCount": 4}})
    found = await ask(vendor)
    assert (found.refused, found.content, found.finish_reason) == (True, "", "content_filter")
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (4, 0)


async def test_a_blocked_prompt_is_a_refusal(vendor: Vendor) -> None:
    vendor.says({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}})
    found = await ask(vendor)
    assert (found.refused, found.content, found.finish_reason) == (True, "", "content_filter")


async def test_a_cut_reply(vendor: Vendor) -> None:
    vendor.says(reply("Sev", "MAX_TOKENS"))
    found = await ask(vendor)
    assert (found.content, found.finish_reason, found.refused) == ("Sev", "length", False)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key(vendor: Vendor, status: int) -> None:
    vendor.fails(status, f"no such key: {KEY}")
    with pytest.raises(AuthError, match="check GEMINI_API_KEY") as caught:
        await ask(vendor, retries=3)
    assert KEY not in str(caught.value)
    assert len(vendor.asked) == 1


async def test_an_invalid_key_comes_as_400(vendor: Vendor) -> None:
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    vendor.fails(400, "API key not valid. Please pass a valid API key.", [reason])
    with pytest.raises(AuthError, match="check GEMINI_API_KEY"):
        await ask(vendor)


async def test_a_bad_request_is_not_tried_again(vendor: Vendor) -> None:
    vendor.fails(400, f"no model\nof that name, {KEY}")
    with pytest.raises(BadRequest, match="answered 400: no model of that name") as caught:
        await ask(vendor, retries=3)
    assert KEY not in str(caught.value)
    assert len(vendor.asked) == 1


async def test_a_rate_limit_is_waited_out(vendor: Vendor) -> None:
    vendor.fails(429, "slow down", headers={"Retry-After": "1"})
    vendor.says(reply("Seven."))
    started = time.monotonic()
    found = await ask(vendor, retries=2)
    assert found.content == "Seven."
    assert len(vendor.asked) == 2
    assert time.monotonic() - started >= 1


async def test_the_pause_may_stand_in_the_body(vendor: Vendor) -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
    vendor.fails(429, "quota", [delay])
    with pytest.raises(RateLimited) as caught:
        await ask(vendor)
    assert caught.value.retry_after == 37.5


@pytest.mark.parametrize("status", [408, 500, 503])
async def test_a_server_fault_is_asked_once_by_the_sdk(vendor: Vendor, status: int) -> None:
    vendor.fails(status, f"oh no {KEY}")
    with pytest.raises(ServerFault, match=f"answered {status}: oh no") as caught:
        await ask(vendor)
    assert caught.value.retryable
    assert KEY not in str(caught.value)
    assert len(vendor.asked) == 1


async def test_a_server_fault_is_tried_again_by_us(vendor: Vendor) -> None:
    vendor.fails(500, "oh no")
    vendor.says(reply("Seven."))
    assert (await ask(vendor, retries=1)).content == "Seven."


@pytest.mark.parametrize("body", ["<html>hello</html>", "{broken", "[]", "[1, 2]", '{"a": 1}', "", "{}"])
async def test_a_body_that_is_no_reply(vendor: Vendor, body: str) -> None:
    vendor.says(body)
    with pytest.raises(ServerFault, match="what is no reply"):
        await ask(vendor)


@pytest.mark.parametrize("body", ["<html>hello</html>", "{broken", '{"error": "text"}'])
async def test_an_error_with_an_odd_body(vendor: Vendor, body: str) -> None:
    vendor.says(body, 502)
    with pytest.raises(ServerFault):
        await ask(vendor)


async def test_no_connection_fails_at_once() -> None:
    started = time.monotonic()
    with pytest.raises(ServerFault) as caught:
        await ask(Vendor(f"http://127.0.0.1:{unused_port()}"))
    assert time.monotonic() - started < 1
    assert KEY not in str(caught.value)


async def test_a_timeout(vendor: Vendor) -> None:
    vendor.says(reply("late"))
    vendor.delay = 1
    with pytest.raises(ServerFault, match=r"no answer within 0\.1 s"):
        await ask(vendor, timeout=0.1)


async def test_tools_are_refused(vendor: Vendor) -> None:
    client = model(NAME, base_url=vendor.url)
    with pytest.raises(BadRequest, match="tools are not supported"):
        await client.create(ASK, tools=[{"name": "look", "description": "", "parameters": {}}])  # type: ignore
    call = AssistantMessage(content=[FunctionCall(id="1", name="look", arguments="{}")], source="ada")
    with pytest.raises(BadRequest, match="tools are not supported"):
        await client.create([*ASK, call])
    with pytest.raises(BadRequest, match="no message to answer"):
        await client.create([SystemMessage(content="Be short.")])
    assert vendor.asked == []
    await client.close()


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("GEMINI_API_KEY") if value is None else monkeypatch.setenv("GEMINI_API_KEY", value)
    with pytest.raises(ConfigError, match="set GEMINI_API_KEY or GOOGLE_API_KEY in the environment"):
        GoogleClient(NAME)


async def test_the_other_variable_works_too(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY + "\n")
    vendor.fails(401, "no")
    with pytest.raises(AuthError, match="check GOOGLE_API_KEY"):
        await ask(vendor)
    assert vendor.headers[0]["x-goog-api-key"] == KEY


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert GoogleClient(NAME).identity == f"https://generativelanguage.googleapis.com {NAME}"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://proxy/")
    assert GoogleClient(NAME).base_url == "https://proxy"
    with pytest.raises(ConfigError, match="must begin with http"):
        GoogleClient(NAME, {"base_url": "proxy"})


async def test_no_error_shows_the_key(vendor: Vendor) -> None:
    for status in (400, 401, 403, 404, 429, 500):
        vendor.answers.clear()
        vendor.fails(status, "x" * 190 + KEY)
        with pytest.raises(ModelError) as caught:
            await ask(vendor)
        assert KEY[:8] not in str(caught.value)
