"""Claude, with the `anthropic` package: `anthropic/claude-haiku-5-5`. The key is ANTHROPIC_API_KEY.

The API has neither a seed nor log-probabilities, so both options are dropped. API version 2026-10-21, which the package
sends from 2.0 on, also rejects `temperature` and `top_p`; a call that sets one is sent with API version 2023-06-01,
which accepts them for the models that still support them. `anthropic_models` has what each model accepts.

Prompt prefixes that the calls of a conversation share are marked with `cache_control`. The API caches them for five
minutes if they have at least 1,024 tokens (512 to 4,096, depending on the model), and ignores marks on shorter ones.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, ClassVar

import httpx2
from anthropic import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    DefaultAsyncHttpxClient,
    transform_schema,
)
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FinishReasons,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
    SystemMessage,
)
from autogen_core.tools import Tool
from pydantic import Field

from parley.agents.models.anthropic_models import SHOWN, rules_for
from parley.agents.models.base import estimate_tokens
from parley.agents.models.batches import MAX_ANSWER_BYTES, BatchEndpoint
from parley.agents.models.http import MAX_BYTES, TooLong
from parley.agents.models.options import ClientOptions
from parley.agents.models.reply import Reply
from parley.agents.models.request import Request
from parley.agents.models.streaming import Arriving, StreamingClient
from parley.agents.models.thoughts import join_thoughts
from parley.agents.models.wire import retry_seconds, server_message, strict_schema, to_chat, to_tools
from parley.base.address import INSECURE, INSECURE_HINT, BaseUrl, from_environment, require_https
from parley.base.errors import AuthError, BadRequest, ConfigError, ModelError, QuotaSpent, RateLimited, ServerFault

KEY = "ANTHROPIC_API_KEY"
URL = "https://api.anthropic.com"
MIN_CACHED_TOKENS = 512
"""No model caches a shorter prompt, so shorter ones are not marked."""
MAX_MARKS = 4
"""The API accepts no more marks per request."""
MAX_TURNS = 1000
"""How many turns with tool calls are kept to be sent back with their thinking."""
SAMPLING = frozenset({"temperature", "top_p", "top_k"})
SAMPLING_VERSION = {"anthropic-version": "2023-06-01"}
NOT_SENT = frozenset({"max_tokens", "seed", "logprobs", "effort"})
TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
FINISH: dict[str | None, FinishReasons] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "function_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicOptions(ClientOptions):
    """The options of Anthropic's models."""

    timeout: float = Field(600.0, gt=0, description="seconds after which a call counts as failed")
    base_url: BaseUrl | None = Field(None, description="the server's address, without /v1")
    insecure: bool = Field(False, description=INSECURE)


class AnthropicClient(StreamingClient):
    """A structured reply is requested with `output_config.format`. The SDK's own retries are off."""

    OptionsType: ClassVar[type[ClientOptions]] = AnthropicOptions
    options: AnthropicOptions
    native_schema = True
    vision = True
    default_max_tokens = 8192
    cache_minimum = 1024
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
        self._key = os.environ.get(KEY, "").strip()
        if not self._key:
            raise ConfigError(f"{name} needs a key: set {KEY} in the environment")
        self.base_url = self.options.base_url or from_environment(name, "ANTHROPIC_BASE_URL") or URL
        if not self.options.insecure:
            require_https(name, self.base_url, INSECURE_HINT)
        self.identity = f"{self.base_url} {name}"
        self._turns: dict[str, list[dict[str, Any]]] = {}
        self.sdk = AsyncAnthropic(
            api_key=self._key,
            base_url=self.base_url,
            timeout=self.options.timeout,
            max_retries=0,
            # A redirect would send the key to another server: httpx drops `Authorization` then, but not `x-api-key`.
            http_client=_LimitedHttp(follow_redirects=False),
            default_headers={"Accept-Encoding": "identity"},
        )

    def model_list(self) -> tuple[str, dict[str, str]] | None:
        return f"{self.base_url}/v1/models?limit=1000", {"x-api-key": self._key, "anthropic-version": "2023-06-01"}

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=self.vision,
            function_calling=True,
            json_output=True,
            family=ModelFamily.UNKNOWN,
            structured_output=True,
            multiple_system_messages=False,
        )

    def body(self, request: Request) -> dict[str, Any]:
        """The arguments of the SDK's `messages.create`."""
        chat = self._chat(request)
        if not chat:
            raise BadRequest(f"{self.name}: there is no message to answer")
        limit = min(request.options.get("max_tokens", self.default_max_tokens), self.rules.output)
        body: dict[str, Any] = {"model": self.model, "messages": chat, "max_tokens": limit}
        system = [message.content for message in request.messages if isinstance(message, SystemMessage)]
        if system:
            body["system"] = "\n\n".join(system)
        effort = request.options.get("effort")
        if effort is not None and effort not in self.efforts:
            raise BadRequest(f"{self.name}: effort={effort} is not possible (it has {', '.join(self.efforts)})")
        if thinking := self.rules.thinking(effort):
            body["thinking"] = thinking
        output = {} if effort in (None, "none") else {"effort": effort}
        if isinstance(request.schema, type):
            # The limits of numbers and lengths, which the API does not accept, become part of the descriptions.
            schema = transform_schema(strict_schema(request.schema.model_json_schema(), lengths=True))
            output["format"] = {"type": "json_schema", "schema": schema}
        if output:
            body["output_config"] = output
        if request.tools:
            body["tools"] = [_tool(tool["function"]) for tool in to_tools(request.tools)]
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
            raise BadRequest(f"{self.name} cannot be made to call a tool; use tool_choice='auto'{hint}")
        return {"type": "tool", "name": choice.name} if isinstance(choice, Tool) else {"type": TOOL_CHOICES[choice]}

    def _chat(self, request: Request) -> list[dict[str, Any]]:
        """The messages without the system's. Each is a block of its own where a prefix is marked, since the API caches
        whole blocks; otherwise consecutive ones of one role are joined."""
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
        return [turn if marked else {**turn, "content": _joined(turn["content"])} for turn in chat]

    def _blocks(self, message: LLMMessage) -> tuple[str, list[dict[str, Any]]]:
        """A message's role and blocks; no block if it is empty, which the API does not accept."""
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
            kept = self._turns.get(calls[0].id) if calls else None
            return "assistant", list(kept) if kept else [_tool_use(call) for call in calls]
        turn = to_chat([message], images=True)[0]
        if not isinstance(turn["content"], str):
            return turn["role"], [_picture_block(part) for part in turn["content"]]
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
            billed = billed_message(message)
            raise ServerFault(f"{self.name}: {self.base_url} sent an unreadable reply", billed=billed) from None
        return reply

    def _keep(self, message: Any) -> None:
        """Keep a turn that calls tools as it came: its thinking must be sent back with it, unchanged."""
        first = next((block.id for block in message.content if block.type == "tool_use"), None)
        if first is not None:
            self._turns[first] = [block.to_dict(mode="json") for block in message.content]
            while len(self._turns) > MAX_TURNS:
                del self._turns[next(iter(self._turns))]

    async def events(self, request: Request) -> AsyncGenerator[Any, None]:
        try:
            async with await self.sdk.messages.create(**self.body(request), stream=True) as stream:
                async for event in stream:
                    yield event
        except (APIError, TimeoutError, httpx2.HTTPError, TooLong, ValueError, TypeError, RecursionError) as error:
            fault = self.error_for(error)
            raise fault or ServerFault(f"{self.name}: {self.base_url} streamed an unreadable event") from None

    def arriving(self) -> Arriving:
        return _Message(f"{self.name}: {self.base_url}")

    def error_for(self, error: Exception) -> ModelError | None:
        """The error of a failed request; None if there was a reply that is not one."""
        if isinstance(error, APIStatusError):
            return self._refused(error)
        if isinstance(error, (APITimeoutError, TimeoutError)):
            return ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s")
        if isinstance(error, (APIConnectionError, httpx2.HTTPError, TooLong)):
            cause = error.__cause__ or error
            # Else only its type is given: if the key is malformed, the cause's text contains it.
            text = str(cause) if isinstance(cause, TooLong) else f"no connection ({type(cause).__name__})"
            return ServerFault(f"{self.name}: {self.base_url}: {text}")
        return None

    def _refused(self, error: APIStatusError) -> ModelError:
        status = error.status_code
        where = f"{self.name}: {self.base_url} answered {status}"
        after = retry_seconds(error.response.headers)
        if status == 200:  # an error within a stream
            detail = server_message(json.dumps(error.body).encode(), self._key)
            kind = RateLimited if "rate_limit_error" in str(error.body) else ServerFault
            return kind(f"{self.name}: {self.base_url}{detail}", retry_after=after)
        if status in (401, 403):
            return AuthError(f"{where}, the key was refused; check {KEY}")
        detail = server_message(error.response.content, self._key)
        if status == 402 or (status == 429 and b"enforced_spend_limit_reached" in error.response.content):
            return QuotaSpent(f"{where}, the account has no credit left{detail}")
        if status == 429:
            return RateLimited(f"{where}, too many requests", retry_after=after)
        if 300 <= status < 500 and status != 408:
            return BadRequest(f"{where}{detail}")
        return ServerFault(f"{where}{detail}", retry_after=after)

    def batch_endpoint(self) -> BatchEndpoint:
        from parley.agents.models.anthropic_batches import MessageBatches

        return MessageBatches(self)

    async def close(self) -> None:
        await self.sdk.close()


class _LimitedHttp(DefaultAsyncHttpxClient):
    """Limits the size of a response, which the SDK does not."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        response = await super().send(request, stream=True, **options)
        assert isinstance(response.stream, httpx2.AsyncByteStream), "not a response to an asynchronous request"
        limit = MAX_ANSWER_BYTES if request.url.path.endswith("/results") else MAX_BYTES
        response.stream = _LimitedStream(response.stream, limit)
        if not stream:
            await response.aread()
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._limit:
                raise TooLong(self._limit)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _joined(blocks: list[dict[str, Any]]) -> Any:
    """Blocks that are all text as one text."""
    return "".join(block["text"] for block in blocks) if all(block["type"] == "text" for block in blocks) else blocks


def _picture_block(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    kind, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def _tool_use(call: FunctionCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = {}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def read_message(message: Any) -> Reply:
    """A message as a reply; raises AttributeError or TypeError on anything else, which the SDK does not check."""
    # Thinking that was withheld (`redacted_thinking`, or a block without text) counts in the tokens only.
    thought = join_thoughts(block.thinking for block in message.content if block.type == "thinking")
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [
        FunctionCall(id=block.id, name=block.name, arguments=json.dumps(block.input, ensure_ascii=False))
        for block in message.content
        if block.type == "tool_use"
    ]
    if calls:
        thought = join_thoughts([thought, text])
    refused = message.stop_reason == "refusal"
    if refused and not text:
        text = getattr(message.stop_details, "explanation", None) or ""
    return Reply(
        finish_reason=FINISH.get(message.stop_reason, "unknown"),
        content=calls or text,
        cached=False,
        thought=thought or None,
        refused=refused,
        **_usage(message.usage),
    )


def _usage(usage: Any) -> dict[str, Any]:
    """The fields of a reply that are about its usage."""
    written, read = usage.cache_creation_input_tokens or 0, usage.cache_read_input_tokens or 0
    return {
        "usage": RequestUsage(usage.input_tokens + written + read, usage.output_tokens),
        "cached_tokens": read,
        "written_tokens": written,
        "thought_tokens": getattr(usage.output_tokens_details, "thinking_tokens", None),
    }


def billed_message(message: Any) -> Reply | None:
    """An empty reply with the usage of one that is otherwise unreadable; None if it states none."""
    try:
        return Reply(finish_reason="unknown", content="", cached=False, **_usage(message.usage))
    except (AttributeError, TypeError, ValueError):
        return None


class _Message(Arriving):
    """The events of a streamed message, put together."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._fields: dict[str, Any] = {"usage": RequestUsage(0, 0)}
        self._ending: str | None = None
        self._explanation = ""

    def add(self, event: Any) -> str:
        self.anything = True
        try:
            return self._text(event)
        except (AttributeError, TypeError, ValueError):
            raise ServerFault(f"{self._where} streamed an unreadable event") from None

    def _text(self, event: Any) -> str:
        if event.type == "message_start":
            self._fields = _usage(event.message.usage)
        elif event.type == "message_delta":
            self._ending = event.delta.stop_reason
            self._explanation = getattr(event.delta.stop_details, "explanation", None) or ""
            usage = event.usage
            if usage.input_tokens is None:  # then only the completion's tokens are stated again
                prompt_tokens = self._fields["usage"].prompt_tokens
                self._fields["usage"] = RequestUsage(prompt_tokens, usage.output_tokens)
                self._fields["thought_tokens"] = getattr(usage.output_tokens_details, "thinking_tokens", None)
            else:
                self._fields = _usage(usage)
        elif event.type == "content_block_start" and event.content_block.type == "thinking" and self._thoughts:
            self._thoughts.append("\n\n")
        elif event.type == "content_block_delta":
            if event.delta.type == "thinking_delta":
                self._thoughts.append(event.delta.thinking)
            elif event.delta.type == "text_delta":
                self._texts.append(event.delta.text)
                return str(event.delta.text)
        return ""

    def reply(self) -> Reply:
        text = "".join(self._texts)
        refused = self._ending == "refusal"
        return Reply(
            finish_reason=FINISH.get(self._ending, "unknown"),
            content=text or (self._explanation if refused else ""),
            cached=False,
            thought="".join(self._thoughts).strip() or None,
            refused=refused,
            **self._fields,
        )
