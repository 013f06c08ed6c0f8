"""Claude, with the `anthropic` package: `anthropic/claude-haiku-5-5`. The key is ANTHROPIC_API_KEY.

The API has neither a seed nor log-probabilities, so both options are dropped. API version 2026-10-21, which the package
sends from 2.0 on, also rejects `temperature` and `top_p`; a call that sets one is sent with API version 2023-06-01,
which accepts them for the models that still support them. `anthropic_messages` has what each model accepts.

Prompt prefixes that the calls of a conversation share are marked with `cache_control`. The API caches them for five
minutes if they have at least 1,024 tokens (512 to 4,096, depending on the model), and ignores marks on shorter ones.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import httpx2
from anthropic import (
    DEFAULT_CONNECTION_LIMITS,
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    DefaultAsyncHttpxClient,
    transform_schema,
)
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, FunctionExecutionResultMessage, LLMMessage, SystemMessage
from autogen_core.tools import Tool

from parley.agents.models.anthropic_messages import (
    SAMPLING,
    SAMPLING_VERSION,
    SHOWN,
    ArrivingMessage,
    billed_message,
    joined,
    read_message,
    rules_for,
    tool_declaration,
    tool_use,
)
from parley.agents.models.http import (
    CONNECT_SECONDS,
    MAX_BYTES,
    TooLong,
    load_certificates,
    not_connected,
    retry_seconds,
    server_message,
)
from parley.agents.models.remote import RemoteClient, SdkOptions
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions, Request, estimate_tokens
from parley.agents.models.streaming import Arriving, Streams
from parley.agents.models.wire import strict_schema, to_chat, to_tools
from parley.base.errors import BadRequest, ModelError, RateLimited, ServerFault

MIN_CACHED_TOKENS = 512
"""Minimum length of a prompt that any model caches; shorter ones are not marked."""
MAX_MARKS = 4
"""Maximum number of marks per request."""
NOT_SENT = frozenset({"max_tokens", "seed", "logprobs", "effort"})
TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicClient(Streams, RemoteClient):
    """Client for Claude. Structured replies use `output_config.format`; the SDK's own retries are off."""

    OptionsType: ClassVar[type[ClientOptions]] = SdkOptions
    native_schema = True
    key_variables = ("ANTHROPIC_API_KEY",)
    url_variable = "ANTHROPIC_BASE_URL"
    default_url = "https://api.anthropic.com"
    default_max_tokens = 8192
    written_factor = 1.25

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.rules = rules_for(name)
        self.efforts = self.rules.efforts
        self.context_tokens = self.rules.context
        # A model that thinks accepts no temperature; `effort` makes some older ones think.
        thinks = self.rules.thinking((options or {}).get("effort")) == SHOWN
        self.takes_temperature = self.rules.temperature and not thinks
        super().__init__(name, options)
        self.thinks = thinks
        self.sdk = AsyncAnthropic(
            api_key=self._key,
            base_url=self.base_url,
            timeout=httpx2.Timeout(self.options.timeout, connect=CONNECT_SECONDS),
            max_retries=0,
            # A redirect would send the key to another server: httpx drops `Authorization` then, but not `x-api-key`.
            # A transport of ours, since httpx would send calls to this machine through a proxy as well.
            http_client=DefaultAsyncHttpxClient(
                follow_redirects=False,
                event_hooks={"response": [_limit]},
                transport=httpx2.AsyncHTTPTransport(
                    verify=certificates(), proxy=self.proxy, limits=DEFAULT_CONNECTION_LIMITS
                ),
            ),
            default_headers={"Accept-Encoding": "identity"},
        )
        if self.base_url != self.default_url:  # ANTHROPIC_CUSTOM_HEADERS, which the SDK has read, may have a secret
            self.sdk._custom_headers = {"Accept-Encoding": "identity"}

    def model_list(self) -> tuple[str, dict[str, str]] | None:
        return f"{self.base_url}/v1/models?limit=1000", {"x-api-key": self._key, "anthropic-version": "2023-06-01"}

    def body(self, request: Request) -> dict[str, Any]:
        """The arguments of the SDK's `messages.create`."""
        chat = self._chat(request)
        if not chat:
            raise self.no_message()
        limit = min(request.options.get("max_tokens", self.default_max_tokens), self.rules.output)
        body: dict[str, Any] = {"model": self.model, "messages": chat, "max_tokens": limit}
        system = [message.content for message in request.messages if isinstance(message, SystemMessage)]
        if system:
            body["system"] = "\n\n".join(system)
        effort = self.effort_of(request)
        if thinking := self.rules.thinking(effort):
            body["thinking"] = thinking
        output: dict[str, Any] = {} if effort in (None, "none") else {"effort": effort}
        if isinstance(request.schema, type):
            # The limits of numbers and lengths, which the API does not accept, become part of the descriptions.
            schema = transform_schema(strict_schema(request.schema.model_json_schema(), lengths=True))
            output["format"] = {"type": "json_schema", "schema": schema}
        if output:
            body["output_config"] = output
        if request.tools:
            body["tools"] = [tool_declaration(tool["function"]) for tool in to_tools(request.tools)]
            body["tool_choice"] = self._tool_choice(request, thinks=thinking == SHOWN)
        extra = {key: value for key, value in request.options.items() if key not in NOT_SENT}
        if extra:
            body["extra_body"] = extra
        if extra.keys() & SAMPLING:
            body["extra_headers"] = SAMPLING_VERSION
        return body

    def _tool_choice(self, request: Request, *, thinks: bool) -> dict[str, str]:
        choice = request.tool_choice
        if (isinstance(choice, Tool) or choice == "required") and (thinks or not self.rules.forced_tools):
            hint = " or effort=none" if self.rules.forced_tools else ""
            raise BadRequest(f"{self.name} does not support forced tool calls; use tool_choice='auto'{hint}")
        return {"type": "tool", "name": choice.name} if isinstance(choice, Tool) else {"type": TOOL_CHOICES[choice]}

    def _chat(self, request: Request) -> list[dict[str, Any]]:
        """All messages except the system's. Consecutive messages of a role are joined, unless a prefix ends between
        them: the API caches whole blocks."""
        messages = [message for message in request.messages if not isinstance(message, SystemMessage)]
        system_count = len(request.messages) - len(messages)
        marked = sorted({count - system_count for count in request.shared if count > system_count})[-MAX_MARKS:]
        if estimate_tokens("".join(str(message.content) for message in request.messages)) < MIN_CACHED_TOKENS:
            marked = []
        chat: list[dict[str, Any]] = []
        for nth, message in enumerate(messages, 1):
            role, blocks = self._blocks(message)
            if not blocks:
                continue
            if nth in marked:
                blocks = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
            if not chat or chat[-1]["role"] != role:
                chat.append({"role": role, "content": blocks})
                continue
            if blocks[0]["type"] == "text":
                blocks = [{**blocks[0], "text": "\n\n" + blocks[0]["text"]}, *blocks[1:]]
            chat[-1]["content"] += blocks
        return [turn if marked else {**turn, "content": joined(turn["content"])} for turn in chat]

    def _blocks(self, message: LLMMessage) -> tuple[str, list[dict[str, Any]]]:
        """A message's role and blocks; an empty message has none, since the API rejects empty blocks."""
        if isinstance(message, FunctionExecutionResultMessage):
            return "user", [
                {
                    "type": "tool_result",
                    "tool_use_id": result.call_id,
                    "content": result.content,
                    "is_error": bool(result.is_error),
                }
                for result in message.content
            ]
        if isinstance(message, AssistantMessage) and not isinstance(message.content, str):
            calls = [call for call in message.content if isinstance(call, FunctionCall)]
            kept = self.turns.get(calls[0].id) if calls else None
            return "assistant", list(kept) if kept else [tool_use(call) for call in calls]
        turn = to_chat([message])[0]
        return turn["role"], [{"type": "text", "text": turn["content"]}] if turn["content"].strip() else []

    async def send(self, request: Request) -> Reply:
        body = self.body(request)
        message: Any = None
        try:
            async with asyncio.timeout(self.options.timeout):
                message = await self.sdk.messages.create(**body)
        except (APIError, TimeoutError) as error:
            if fault := self.error_for(error):
                raise fault from None
        except (ValueError, RecursionError):
            pass
        try:
            reply = read_message(message)
            self._keep(message)
        except (AttributeError, TypeError, ValueError, KeyError):
            raise self.unreadable(billed=billed_message(message)) from None
        return reply

    def _keep(self, message: Any) -> None:
        """Keep a turn that calls tools: its thinking must be sent back with it, unchanged."""
        first = next((block.id for block in message.content if block.type == "tool_use"), None)
        if first is not None:
            self.keep_turn(first, [block.to_dict(mode="json") for block in message.content])

    async def events(self, request: Request) -> AsyncGenerator[Any, None]:
        try:
            async with await self.sdk.messages.create(**self.body(request), stream=True) as stream:
                async for event in stream:
                    yield event
        except (APIError, TimeoutError, httpx2.HTTPError, TooLong, ValueError, TypeError, RecursionError) as error:
            raise self.error_for(error) or self.unreadable("streamed an unreadable event") from None

    def arriving(self) -> Arriving:
        return ArrivingMessage(self.where)

    def error_for(self, error: Exception) -> ModelError | None:
        """The error of a failed request, or None if there is none."""
        if isinstance(error, APIStatusError):
            return self._status_error(error)
        if isinstance(error.__cause__, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            return not_connected(self.name, self.base_url, error.__cause__, self.proxy)
        if isinstance(error, (APITimeoutError, TimeoutError)):
            return self.timed_out()
        if isinstance(error, (APIConnectionError, httpx2.HTTPError, TooLong)):
            cause = error.__cause__ or error
            # Else only its type is given: if the key is malformed, the cause's text contains it.
            text = str(cause) if isinstance(cause, TooLong) else f"no connection ({type(cause).__name__})"
            return ServerFault(f"{self.where}: {text}")
        return None

    def _status_error(self, error: APIStatusError) -> ModelError:
        after = retry_seconds(error.response.headers)
        if error.status_code == 200:  # an error within a stream
            kind = RateLimited if "rate_limit_error" in str(error.body) else ServerFault
            message = server_message(json.dumps(error.body).encode(), self._key)
            return kind(f"{self.where}{message}", retry_after=after)
        content = error.response.content
        no_credit = error.status_code == 429 and b"enforced_spend_limit_reached" in content
        message = server_message(content, self._key)
        return self.refused(error.status_code, message, retry_after=after, no_credit=no_credit)

    async def close(self) -> None:
        await self.sdk.close()


@lru_cache(maxsize=1)
def certificates() -> ssl.SSLContext:
    """The certificates that the SDK trusts, loaded once: for every client anew it would take 50 ms of CPU."""
    return load_certificates(httpx2.create_ssl_context)


async def _limit(response: httpx2.Response) -> None:
    """Limit the size of a response, which the SDK does not do. Called before the body is read."""
    assert isinstance(response.stream, httpx2.AsyncByteStream), "not a response to an asynchronous request"
    response.stream = _LimitedStream(response.stream)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_BYTES:
                raise TooLong(MAX_BYTES)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
