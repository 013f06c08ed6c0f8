"""The providers' servers, played on loopback: how each is addressed, what its replies and errors look like."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.agents.conftest import Server

KEY = "sk-a-secret-that-must-not-show"
PROMPT_TOKENS, COMPLETION_TOKENS = 11, 5


class OpenAIFormat:
    """Replies and errors as the vendor sends them, and how to read its requests. Other formats have the same API."""

    path = "/v1"
    """What a base address ends with."""
    unreadable: tuple[str, ...] = ('{"choices": []}', '{"choices": [{"message": {"content": null}}]}')
    """Bodies that look like replies but are not."""

    def reply(self, text: str, finish: str = "stop") -> dict[str, Any]:
        """`finish` is "stop", "length" or "refusal"."""
        refused = {"content": None, "refusal": text} if finish == "refusal" else {"content": text}
        choice = {"message": refused, "finish_reason": "stop" if finish == "refusal" else finish}
        usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
        return {"choices": [choice], "usage": usage}

    def structured(self, value: dict[str, Any]) -> dict[str, Any]:
        return self.reply(json.dumps(value))

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"message": message}}

    def prompt(self, body: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
        """The system message, and the turns as role and text."""
        system, *turns = body["messages"]
        assert system["role"] == "system"
        return system["content"], [(turn["role"], turn["content"]) for turn in turns]

    def schema(self, body: Mapping[str, Any]) -> Any:
        return body["response_format"]["json_schema"]["schema"]

    def key(self, headers: Mapping[str, str]) -> str | None:
        return headers["Authorization"].removeprefix("Bearer ")


class AnthropicFormat:
    path = ""
    unreadable: tuple[str, ...] = (
        '{"content": "text"}',
        '{"content": null, "usage": null}',
        '{"content": [1], "usage": {}}',
    )
    stops = MappingProxyType({"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"})

    def reply(self, *content: Any, finish: str = "stop") -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": part} if isinstance(part, str) else part for part in content],
            "stop_reason": self.stops.get(finish, finish),
            "stop_sequence": None,
            "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS},
        }

    def structured(self, value: dict[str, Any]) -> dict[str, Any]:
        return self.reply({"type": "tool_use", "id": "t1", "name": "reply", "input": value}, finish="tool_use")

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "some_error", "message": message}}

    def prompt(self, body: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
        return body["system"], [(turn["role"], turn["content"]) for turn in body["messages"]]

    def schema(self, body: Mapping[str, Any]) -> Any:
        return body["tools"][0]["input_schema"]

    def key(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("X-Api-Key") or headers.get("Authorization", "").removeprefix("Bearer ")


class GoogleFormat:
    path = ""
    unreadable: tuple[str, ...] = ()
    finishes = MappingProxyType({"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"})
    roles = MappingProxyType({"user": "user", "model": "assistant"})

    def reply(self, text: str, finish: str = "stop") -> dict[str, Any]:
        content = {"role": "model", "parts": [{"text": text}]}
        usage = {"promptTokenCount": PROMPT_TOKENS, "candidatesTokenCount": COMPLETION_TOKENS}
        candidate = {"content": content, "finishReason": self.finishes.get(finish, finish), "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}

    def structured(self, value: dict[str, Any]) -> dict[str, Any]:
        return self.reply(json.dumps(value))

    def error(self, status: int, message: str, details: Any = ()) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": "FAILED", "details": list(details)}}

    def prompt(self, body: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
        turns = [(self.roles[turn["role"]], turn["parts"][0]["text"]) for turn in body["contents"]]
        return body["systemInstruction"]["parts"][0]["text"], turns

    def schema(self, body: Mapping[str, Any]) -> Any:
        return body["generationConfig"]["responseJsonSchema"]

    def key(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-goog-api-key")


@dataclass(frozen=True, kw_only=True)
class ProviderCase:
    """A provider as the tests see it."""

    model: str
    wire: OpenAIFormat | AnthropicFormat | GoogleFormat
    key_variable: str
    key_needed: bool = True
    url_variable: str | None
    default_url: str | None
    other_variables: tuple[str, ...] = ()
    """Further variables that its client reads."""
    schemas: bool = True
    tools: bool = True

    def __str__(self) -> str:
        return self.model.partition("/")[0]

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.key_variable, *filter(None, [self.url_variable]), *self.other_variables)


ANTHROPIC = ProviderCase(
    model="anthropic/claude-sonnet-4-5",
    wire=AnthropicFormat(),
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    default_url="https://api.anthropic.com",
    other_variables=("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    tools=False,
)
GOOGLE = ProviderCase(
    model="google/gemini-2.5-flash",
    wire=GoogleFormat(),
    key_variable="GEMINI_API_KEY",
    url_variable="GOOGLE_GEMINI_BASE_URL",
    default_url="https://generativelanguage.googleapis.com",
    other_variables=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"),
    tools=False,
)
OPENAI = ProviderCase(
    model="openai/gpt-4o-mini",
    wire=OpenAIFormat(),
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    default_url="https://api.openai.com/v1",
)
DEEPSEEK = ProviderCase(
    model="deepseek/deepseek-flash",
    wire=OpenAIFormat(),
    key_variable="DEEPSEEK_API_KEY",
    url_variable="DEEPSEEK_BASE_URL",
    default_url="https://api.deepseek.com",
    schemas=False,
)
VLLM = ProviderCase(
    model="vllm/Qwen/Qwen3-4B",
    wire=OpenAIFormat(),
    key_variable="VLLM_API_KEY",
    key_needed=False,
    url_variable="VLLM_BASE_URL",
    default_url="http://localhost:8000/v1",
)
SERVER = ProviderCase(
    model="server/m",
    wire=OpenAIFormat(),
    key_variable="PARLEY_SERVER_KEY",
    key_needed=False,
    url_variable=None,
    default_url=None,
)
PROVIDERS = (ANTHROPIC, GOOGLE, OPENAI, DEEPSEEK, VLLM, SERVER)


class ProviderServer(Server):
    """The loopback server of the other tests, in a provider's format."""

    def __init__(self, provider: ProviderCase) -> None:
        super().__init__()
        self.provider, self.wire = provider, provider.wire
        self.paths: list[str] = []

    @property
    def name(self) -> str:
        return f"{self.provider.model}?base_url={self.url}"

    def replies(self, text: str, finish: str = "stop") -> None:
        self.sends(self.wire.reply(text, finish=finish))

    def fails(self, status: int, message: str = "no", headers: Mapping[str, str] | None = None) -> None:
        self.sends(self.wire.error(status, message), status, headers)

    def sends(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        kind = "application/json" if text.startswith(("{", "[")) else "text/html"
        super().sends(text, status, {"Content-Type": kind, **(headers or {})})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        return await super().answer(request)


@asynccontextmanager
async def serving(provider: ProviderCase) -> AsyncIterator[ProviderServer]:
    server = ProviderServer(provider)
    app = web.Application()
    app.router.add_post("/{path:.*}", server.answer)
    listening = TestServer(app)
    await listening.start_server()
    server.url = str(listening.make_url(provider.wire.path)).rstrip("/")
    yield server
    await server.close()
    await listening.close()
