"""Claude, on the `anthropic` package: `anthropic/claude-sonnet-4-5`. The key is ANTHROPIC_API_KEY.

The API has no seed and no log-probabilities, so both are dropped. Since its version 2026-10-21, which the
package sends from 2.0 on, it refuses `temperature` and `top_p` too; a call that sets one is sent as version
2023-06-01, which takes them for the models that still know them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from anthropic import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncAnthropic
from autogen_core.models import FinishReasons, RequestUsage, SystemMessage
from pydantic import Field

from agents.errors import AuthError, BadRequest, ConfigError, ModelError, RateLimited, ServerFault
from agents.models.base import Client, Options, Reply, Request
from agents.models.compatible import _message, _seconds
from agents.models.wire import strict_schema, to_chat

KEY = "ANTHROPIC_API_KEY"
URL = "https://api.anthropic.com"
MAX_TOKENS = 1024
"""The API wants a limit with every call; this is ours where none is set."""
SAMPLED_VERSION = {"anthropic-version": "2023-06-01"}
DROPPED = frozenset({"max_tokens", "seed", "logprobs"})
TOOL = "reply"
FINISH: dict[str | None, FinishReasons] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicOptions(Options):
    base_url: str | None = Field(None, description="the server's address, without /v1")


class AnthropicClient(Client):
    """A schema is kept by a forced tool whose input is the reply. The SDK's own retries are off."""

    OptionsType: ClassVar[type[Options]] = AnthropicOptions
    options: AnthropicOptions
    native_schema = True
    context_tokens = 200_000

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self._key = os.environ.get(KEY, "").strip()
        if not self._key:
            raise ConfigError(f"{name} needs a key: set {KEY} in the environment")
        self.base_url = (self.options.base_url or os.environ.get("ANTHROPIC_BASE_URL") or URL).rstrip("/")
        if not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(f"{name}: base_url '{self.base_url}' must begin with http:// or https://")
        self.identity = f"{self.base_url} {name}"
        self._sdk = AsyncAnthropic(
            api_key=self._key, base_url=self.base_url, timeout=self.options.timeout, max_retries=0
        )

    def body(self, request: Request) -> dict[str, Any]:
        chat = to_chat([message for message in request.messages if not isinstance(message, SystemMessage)])
        if request.tools or any(turn["role"] == "tool" or "tool_calls" in turn for turn in chat):
            raise BadRequest(f"{self.name}: tools are not supported by this client yet; use an OpenAI-compatible one")
        if not chat:
            raise BadRequest(f"{self.name}: there is no message to answer")
        limit = request.options.get("max_tokens", MAX_TOKENS)
        body: dict[str, Any] = {"model": self.model, "messages": chat, "max_tokens": limit}
        system = [message.content for message in request.messages if isinstance(message, SystemMessage)]
        if system:
            body["system"] = "\n\n".join(system)
        if isinstance(request.schema, type):
            schema = strict_schema(request.schema.model_json_schema())
            body["tools"] = [{"name": TOOL, "description": "Give the reply.", "input_schema": schema}]
            body["tool_choice"] = {"type": "tool", "name": TOOL}
        extra = {key: value for key, value in request.options.items() if key not in DROPPED}
        if extra:
            body["extra_body"] = extra
        if extra.keys() & {"temperature", "top_p", "top_k"}:
            body["extra_headers"] = SAMPLED_VERSION
        return body

    async def send(self, request: Request) -> Reply:
        body = self.body(request)
        try:
            async with asyncio.timeout(self.options.timeout):
                message: Any = await self._sdk.messages.create(**body)
        except APIStatusError as error:
            raise self._error(error) from None
        except (APITimeoutError, TimeoutError):
            raise ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s") from None
        except APIConnectionError as error:
            # The cause is named and not quoted: for a malformed key, its text would hold the key.
            cause = type(error.__cause__ or error).__name__
            raise ServerFault(f"{self.name}: {self.base_url}: no connection ({cause})") from None
        except (APIError, ValueError):
            message = None
        try:
            return _read(message)
        except (AttributeError, TypeError, ValueError):
            raise ServerFault(f"{self.name}: {self.base_url} answered what is no reply") from None

    def _error(self, error: APIStatusError) -> ModelError:
        status = error.status_code
        where = f"{self.name}: {self.base_url} answered {status}"
        after = _seconds(error.response.headers.get("retry-after"))
        if status in (401, 403):
            return AuthError(f"{where}, the key was refused; check {KEY}")
        if status == 429:
            return RateLimited(f"{where}, too many requests", retry_after=after)
        said = _message(error.response.content.replace(self._key.encode(), b"***"))
        if 400 <= status < 500 and status != 408:
            return BadRequest(f"{where}{said}")
        return ServerFault(f"{where}{said}", retry_after=after)

    async def close(self) -> None:
        await self._sdk.close()


def _read(message: Any) -> Reply:
    """A message as a reply; raises AttributeError or TypeError on anything else: the SDK lets it through."""
    text = "".join(block.text for block in message.content if block.type == "text")
    for block in message.content:
        if block.type == "tool_use":
            text = json.dumps(block.input, ensure_ascii=False)
    usage = message.usage
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    return Reply(
        finish_reason=FINISH.get(message.stop_reason, "unknown"),
        content=text,
        usage=RequestUsage(usage.input_tokens + cached, usage.output_tokens),
        cached=False,
        refused=message.stop_reason == "refusal",
    )
