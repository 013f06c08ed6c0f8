"""Claude, with the `anthropic` package: `anthropic/claude-haiku-5-5`. The key is ANTHROPIC_API_KEY.

The API has neither a seed nor log-probabilities, so both options are dropped. API version 2026-10-21, which the package
sends from 2.0 on, also rejects `temperature` and `top_p`; a call that sets one is sent with API version 2023-06-01,
which accepts them for the models that still support them.

Prompt prefixes that the calls of a conversation share are marked with `cache_control`. The API caches them for five
minutes if they have at least 1,024 tokens (512 to 4,096, depending on the model), and ignores marks on shorter ones.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from anthropic import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    DefaultAsyncHttpxClient,
)
from autogen_core.models import FinishReasons, RequestUsage, SystemMessage
from pydantic import Field

from parley.agents.address import INSECURE, INSECURE_HINT, BaseUrl, from_environment, require_https
from parley.agents.errors import AuthError, BadRequest, ConfigError, ModelError, QuotaSpent, RateLimited, ServerFault
from parley.agents.models.base import Client, ClientOptions, Request, estimate_tokens
from parley.agents.models.reply import Reply
from parley.agents.models.wire import retry_seconds, server_message, strict_schema, to_chat

KEY = "ANTHROPIC_API_KEY"
URL = "https://api.anthropic.com"
DEFAULT_MAX_TOKENS = 1024
"""The API requires a limit with every call; this one is sent if the user sets none."""
MIN_CACHED_TOKENS = 512
"""No model caches a shorter prompt, so shorter ones are not marked."""
SAMPLING_VERSION = {"anthropic-version": "2023-06-01"}
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


class AnthropicOptions(ClientOptions):
    """The options of Anthropic's models."""

    base_url: BaseUrl | None = Field(None, description="the server's address, without /v1")
    insecure: bool = Field(False, description=INSECURE)


class AnthropicClient(Client):
    """A structured reply is the input of a tool that the model is forced to call. The SDK's own retries are off."""

    OptionsType: ClassVar[type[ClientOptions]] = AnthropicOptions
    options: AnthropicOptions
    native_schema = True
    context_tokens = 200_000
    cache_minimum = 1024
    written_factor = 1.25

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self._key = os.environ.get(KEY, "").strip()
        if not self._key:
            raise ConfigError(f"{name} needs a key: set {KEY} in the environment")
        self.base_url = self.options.base_url or from_environment(name, "ANTHROPIC_BASE_URL") or URL
        if not self.options.insecure:
            require_https(name, self.base_url, INSECURE_HINT)
        self.identity = f"{self.base_url} {name}"
        # A redirect would send the key to another server: httpx drops `Authorization` then, but not `x-api-key`.
        http = DefaultAsyncHttpxClient(follow_redirects=False)
        self._sdk = AsyncAnthropic(
            api_key=self._key, base_url=self.base_url, timeout=self.options.timeout, max_retries=0, http_client=http
        )

    def body(self, request: Request) -> dict[str, Any]:
        """The arguments of the SDK's `messages.create`."""
        chat = self._chat(request)
        if request.tools or any(turn["role"] == "tool" or "tool_calls" in turn for turn in chat):
            raise BadRequest(f"{self.name}: tools are not supported by this client yet; use an OpenAI-compatible one")
        if not chat:
            raise BadRequest(f"{self.name}: there is no message to answer")
        limit = request.options.get("max_tokens", DEFAULT_MAX_TOKENS)
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
            body["extra_headers"] = SAMPLING_VERSION
        return body

    def _chat(self, request: Request) -> list[dict[str, Any]]:
        """The messages without the system's. If a prefix is shared, each message is a block of its own, since the API
        caches whole blocks."""
        messages = [message for message in request.messages if not isinstance(message, SystemMessage)]
        system_count = len(request.messages) - len(messages)
        marked = {count - system_count for count in request.shared if count > system_count}
        length = estimate_tokens("".join(str(message.content) for message in request.messages))
        if not marked or length < MIN_CACHED_TOKENS:
            return to_chat(messages)
        chat: list[dict[str, Any]] = []
        for nth, message in enumerate(messages, 1):
            turn = to_chat([message])[0]
            block: dict[str, Any] = {"type": "text", "text": turn["content"]}
            if chat and chat[-1]["role"] == turn["role"]:
                block["text"] = "\n\n" + block["text"]
                chat[-1]["content"].append(block)
            else:
                chat.append({"role": turn["role"], "content": [block]})
            if nth in marked:
                block["cache_control"] = {"type": "ephemeral"}
        return chat

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
            # Only the type of the cause is given: if the key is malformed, the cause's text contains it.
            cause = type(error.__cause__ or error).__name__
            raise ServerFault(f"{self.name}: {self.base_url}: no connection ({cause})") from None
        except (APIError, ValueError):
            message = None
        try:
            return _read(message)
        except (AttributeError, TypeError, ValueError):
            raise ServerFault(f"{self.name}: {self.base_url} sent an unreadable reply") from None

    def _error(self, error: APIStatusError) -> ModelError:
        status = error.status_code
        where = f"{self.name}: {self.base_url} answered {status}"
        after = retry_seconds(error.response.headers)
        if status in (401, 403):
            return AuthError(f"{where}, the key was refused; check {KEY}")
        if status == 429:
            return RateLimited(f"{where}, too many requests", retry_after=after)
        detail = server_message(error.response.content, self._key)
        if status == 402:
            return QuotaSpent(f"{where}, the account has no credit left{detail}")
        if 300 <= status < 500 and status != 408:
            return BadRequest(f"{where}{detail}")
        return ServerFault(f"{where}{detail}", retry_after=after)

    async def close(self) -> None:
        await self._sdk.close()


def _read(message: Any) -> Reply:
    """A message as a reply; raises AttributeError or TypeError on anything else, which the SDK does not check."""
    text = "".join(block.text for block in message.content if block.type == "text")
    for block in message.content:
        if block.type == "tool_use":
            text = json.dumps(block.input, ensure_ascii=False)
    usage = message.usage
    written, read = usage.cache_creation_input_tokens or 0, usage.cache_read_input_tokens or 0
    return Reply(
        finish_reason=FINISH.get(message.stop_reason, "unknown"),
        content=text,
        usage=RequestUsage(usage.input_tokens + written + read, usage.output_tokens),
        cached=False,
        cached_tokens=read,
        written_tokens=written,
        refused=message.stop_reason == "refusal",
    )
