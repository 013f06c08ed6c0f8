"""The Claude client against a server on loopback that speaks the vendor's wire format."""

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
from parley.agents.models.anthropic import AnthropicClient
from parley.agents.models.registry import model

# The SDK warns of models near their end; which ones, changes with its version.
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

KEY = "sk-ant-a-secret-that-must-not-show"
NAME = "anthropic/claude-sonnet-4-5"
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

    def fails(self, status: int, message: str, headers: Any = None) -> None:
        error = {"type": "error", "error": {"type": "some_error", "message": message}}
        self.says(error, status, headers)

    async def answer(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        self.headers.append(request.headers)
        self.asked.append(await request.json())
        await asyncio.sleep(self.delay)
        return web.Response(**(self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)))


def reply(*content: Any, stop: str = "end_turn") -> dict[str, Any]:
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 5},
    }


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


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
    vendor.says(reply("Sev", "en."))
    messages = [
        SystemMessage(content="Be short."),
        *ASK,
        AssistantMessage(content="Of what?", source="ada"),
        UserMessage(content="Of cats.", source="bob"),
        SystemMessage(content="Be kind."),
    ]
    found = await ask(vendor, messages)
    assert (found.content, found.finish_reason, found.refused) == ("Seven.", "stop", False)
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (11, 5)
    assert vendor.paths == ["/v1/messages"]
    sent = (vendor.headers[0].get("Authorization"), vendor.headers[0].get("X-Api-Key"))
    assert sent in {(f"Bearer {KEY}", None), (None, KEY)}
    assert vendor.asked == [
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 1024,
            "system": "Be short.\n\nBe kind.",
            "messages": [
                {"role": "user", "content": "How many?"},
                {"role": "assistant", "content": "Of what?"},
                {"role": "user", "content": "bob: Of cats."},
            ],
        }
    ]


async def test_sampling_is_sent_under_the_version_that_takes_it(vendor: Vendor) -> None:
    vendor.says(reply("7"))
    await ask(vendor, temperature=0.5, top_p=0.9, max_tokens=64)
    asked = vendor.asked[0]
    assert (asked["temperature"], asked["top_p"], asked["max_tokens"]) == (0.5, 0.9, 64)
    assert vendor.headers[0].getall("anthropic-version") == ["2023-06-01"]


async def test_seed_and_log_probabilities_are_dropped(vendor: Vendor) -> None:
    vendor.says(reply("7"))
    client = model(NAME, base_url=vendor.url, seed=3)
    await client.create(ASK, extra_create_args={"logprobs": True, "stop_sequences": ["!"]})
    await client.close()
    assert client.logprobs is False
    assert sorted(vendor.asked[0]) == ["max_tokens", "messages", "model", "stop_sequences"]


async def test_structured_reply(vendor: Vendor) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "reply", "input": {"points": 7, "why": "cäts"}}
    vendor.says(reply("Let me see.", call, stop="tool_use"))
    found = await ask(vendor, json_output=Score)
    assert found.content == '{"points": 7, "why": "cäts"}'
    assert (found.finish_reason, found.refused) == ("stop", False)
    assert vendor.asked[0]["tool_choice"] == {"type": "tool", "name": "reply"}
    [tool] = vendor.asked[0]["tools"]
    assert tool["name"] == "reply"
    assert tool["input_schema"] == {
        "type": "object",
        "properties": {
            "points": {"type": "integer", "minimum": 0, "maximum": 10},
            "why": {"type": "string"},
        },
        "required": ["points", "why"],
        "additionalProperties": False,
    }


async def test_json_without_a_schema_is_left_to_the_prompt(vendor: Vendor) -> None:
    vendor.says(reply("{}"))
    assert (await ask(vendor, json_output=True)).content == "{}"
    assert sorted(vendor.asked[0]) == ["max_tokens", "messages", "model"]


@pytest.mark.parametrize("text", [[], ["I will not."]])
@pytest.mark.parametrize("schema", [None, Score])
async def test_a_refusal(vendor: Vendor, text: list[str], schema: Any) -> None:
    vendor.says(reply(*text, stop="refusal"))
    found = await ask(vendor, json_output=schema)
    assert (found.refused, found.content, found.finish_reason) == (True, "".join(text), "content_filter")


async def test_a_cut_reply(vendor: Vendor) -> None:
    vendor.says(reply("Sev", stop="max_tokens"))
    found = await ask(vendor)
    assert (found.content, found.finish_reason, found.refused) == ("Sev", "length", False)


async def test_blocks_and_stops_of_later_versions_do_no_harm(vendor: Vendor) -> None:
    vendor.says(reply({"type": "novelty", "shape": "round"}, "7", stop="whim"))
    found = await ask(vendor)
    assert (found.content, found.finish_reason) == ("7", "unknown")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key(vendor: Vendor, status: int) -> None:
    vendor.fails(status, f"invalid x-api-key {KEY}")
    with pytest.raises(AuthError, match="check ANTHROPIC_API_KEY") as caught:
        await ask(vendor, retries=3)
    assert KEY not in str(caught.value)
    assert len(vendor.asked) == 1


async def test_a_bad_request_is_not_tried_again(vendor: Vendor) -> None:
    vendor.fails(400, f"temperature is deprecated\nfor this model, {KEY}")
    with pytest.raises(BadRequest, match="answered 400: temperature is deprecated for this model") as caught:
        await ask(vendor, retries=3)
    assert KEY not in str(caught.value)
    assert len(vendor.asked) == 1


async def test_a_rate_limit_is_waited_out(vendor: Vendor) -> None:
    vendor.fails(429, "slow down", {"Retry-After": "1"})
    vendor.says(reply("Seven."))
    started = time.monotonic()
    found = await ask(vendor, retries=2)
    assert found.content == "Seven."
    assert len(vendor.asked) == 2
    assert time.monotonic() - started >= 1


async def test_the_pause_is_passed_on(vendor: Vendor) -> None:
    vendor.fails(429, "slow down", {"retry-after": "37.5"})
    with pytest.raises(RateLimited) as caught:
        await ask(vendor)
    assert caught.value.retry_after == 37.5
    assert len(vendor.asked) == 1


@pytest.mark.parametrize("status", [408, 500, 503, 529])
async def test_a_server_fault_is_asked_once_by_the_sdk(vendor: Vendor, status: int) -> None:
    vendor.fails(status, f"oh no {KEY}", {"retry-after": "2"})
    with pytest.raises(ServerFault, match=f"answered {status}: oh no") as caught:
        await ask(vendor)
    assert (caught.value.retryable, caught.value.retry_after) == (True, 2)
    assert KEY not in str(caught.value)
    assert len(vendor.asked) == 1


async def test_a_server_fault_is_tried_again_by_us(vendor: Vendor) -> None:
    vendor.fails(500, "oh no")
    vendor.says(reply("Seven."))
    assert (await ask(vendor, retries=1)).content == "Seven."


BODIES = ["<html>hello</html>", "{broken", "[]", "[1, 2]", '{"a": 1}', "", "{}", '{"content": "text"}']


@pytest.mark.parametrize("body", [*BODIES, '{"content": null, "usage": null}', '{"content": [1], "usage": {}}'])
async def test_a_body_that_is_no_reply(vendor: Vendor, body: str) -> None:
    vendor.says(body)
    with pytest.raises(ServerFault, match="what is no reply"):
        await ask(vendor)


@pytest.mark.parametrize("body", ["<html>hello</html>", "{broken", '{"error": "text"}', "[]"])
async def test_an_error_with_an_odd_body(vendor: Vendor, body: str) -> None:
    vendor.says(body, 502)
    with pytest.raises(ServerFault, match="answered 502"):
        await ask(vendor)


async def test_no_connection_fails_at_once() -> None:
    started = time.monotonic()
    with pytest.raises(ServerFault, match="no connection") as caught:
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
    monkeypatch.delenv("ANTHROPIC_API_KEY") if value is None else monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    with pytest.raises(ConfigError, match="set ANTHROPIC_API_KEY in the environment"):
        AnthropicClient(NAME)


async def test_a_key_that_no_header_can_hold_does_not_show(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\n{KEY}")
    with pytest.raises(ServerFault, match="no connection") as caught:
        await ask(vendor)
    assert KEY not in str(caught.value)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AnthropicClient(NAME).identity == f"https://api.anthropic.com {NAME}"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy/")
    assert AnthropicClient(NAME).base_url == "https://proxy"
    with pytest.raises(ConfigError, match="must begin with http"):
        AnthropicClient(NAME, {"base_url": "proxy"})


async def test_no_error_shows_the_key(vendor: Vendor) -> None:
    for status in (400, 401, 403, 404, 429, 500):
        vendor.answers.clear()
        vendor.fails(status, "x" * 190 + KEY)
        with pytest.raises(ModelError) as caught:
            await ask(vendor)
        assert KEY[:8] not in str(caught.value)
