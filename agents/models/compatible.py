"""Clients for OpenAI-compatible servers, on aiohttp without a client library.

    model("server/my-model?base_url=http://localhost:8000/v1")
    model("ollama/llama3.2")

benchmarks/ compares its speed with AutoGen's client, which uses the `openai` package.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, ClassVar, Literal

import aiohttp
from autogen_core.tools import Tool
from pydantic import Field
from pydantic_core import from_json, to_json

from parley.agents.models.http import (
    MAX_BYTES,
    TRANSPORT,
    TooLong,
    close_with,
    open_session,
    read_body,
    retry_seconds,
    server_message,
)
from parley.agents.models.remote import RemoteClient, RemoteOptions
from parley.agents.models.reply import Reply, redact
from parley.agents.models.request import ClientOptions, Effort, Request
from parley.agents.models.streaming import Arriving, Streams
from parley.agents.models.thoughts import join_thoughts, read_parts
from parley.agents.models.wire import (
    FINISH,
    billed_reply,
    from_completion,
    refusal_in,
    schema_format,
    thought_in,
    to_chat,
    to_tools,
    usage_fields,
)
from parley.base.address import BaseUrl
from parley.base.errors import ModelError, ServerFault

FAILURES = (*TRANSPORT, ValueError, RecursionError)
"""Errors raised before or while a response is read; the last two mean that it is malformed."""


class ServerOptions(RemoteOptions):
    """The options of OpenAI-compatible servers."""

    base_url: BaseUrl | None = Field(None, description="the server's address, up to and including /v1")
    structured: Literal["schema", "json", "none"] | None = Field(
        None,
        description="how replies are constrained: to a JSON schema, to any JSON, or only by the prompt",
    )
    silent: bool = Field(
        True, description="whether silent ballots are read from log-probabilities; false: from sampled replies"
    )


class OwnServerOptions(ServerOptions):
    """The options of servers that you run yourself. They accept every call, but the last of a long queue times out."""

    max_connections: int = Field(64, ge=1, description="maximum number of concurrent calls")


class BatchingServerOptions(OwnServerOptions):
    """The options of servers that add a call to the running batch as soon as it arrives, and have room for many."""

    max_connections: int = Field(1024, ge=1, description="maximum number of concurrent calls")


class CompatibleClient(Streams, RemoteClient):
    """Base class of clients for OpenAI-compatible servers; a subclass sets the address and the key's variables."""

    OptionsType: ClassVar[type[ClientOptions]] = ServerOptions
    options: ServerOptions
    key_needed = False
    structured: ClassVar[Literal["schema", "json", "none"]] = "schema"
    """The default of the option `structured`."""
    token_limit_key: ClassVar[str] = "max_tokens"
    """What the server calls the option `max_tokens`."""
    lengths: ClassVar[bool] = False
    """Whether constrained decoding on the server supports `maxLength`."""
    max_bytes: ClassVar[int] = MAX_BYTES
    """Size limit of one response."""
    efforts: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    thought_key: str | None = None
    """The field for sending back the thinking before a tool call; None if the server wants none."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self.mode = self.options.structured or self.structured
        self.native_schema, self.json_mode = self.mode == "schema", self.mode != "none"
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def bearer(self) -> dict[str, str]:
        """The `Authorization` header, if there is a key."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def model_list(self) -> tuple[str, dict[str, str]] | None:
        return f"{self.base_url}/models", self.bearer()

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON body of a request."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": to_chat(request.messages, self.thought_key),
        }
        for key, value in request.options.items():
            if key == "max_tokens":
                body[self.token_limit_key] = value
            elif key == "effort":
                body |= self.effort_fields(value)
            elif key == "logprobs":
                body.update({"logprobs": True, "top_logprobs": 20} if value else {})
            else:
                body[key] = value
        if request.tools:
            body["tools"] = to_tools(request.tools)
            choice = request.tool_choice
            body["tool_choice"] = (
                {"type": "function", "function": {"name": choice.name}} if isinstance(choice, Tool) else choice
            )
        if request.schema and (form := self.response_format(request)):
            body["response_format"] = form
        return body

    def effort_fields(self, effort: Effort) -> dict[str, Any]:
        """The option `effort` in the server's words."""
        return {"reasoning_effort": effort}

    def response_format(self, request: Request) -> Mapping[str, Any] | None:
        """The `response_format` of chat completions; None if only the prompt constrains the reply."""
        if self.mode == "none":
            return None
        schema = request.schema
        if self.mode == "json" or not isinstance(schema, type):
            # OpenAI and DeepSeek reject JSON mode if the prompt does not speak of JSON.
            spoken_of = any("json" in str(message.content).lower() for message in request.messages)
            return {"type": "json_object"} if spoken_of else None
        return schema_format(schema, self.lengths)

    @property
    def reads_silently(self) -> bool:
        return self.options.silent and super().reads_silently

    async def _open_session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            await self.close()  # connections of an event loop that has ended are dead
            self._session = open_session(self.base_url, self.options.timeout)
            close_with(self, self._session)
            self._loop = loop
        return self._session

    async def _post(self, body: dict[str, Any]) -> aiohttp.ClientResponse:
        """Send a request. The response must be released; raises if its status is not 200."""
        try:
            payload = to_json(body, inf_nan_mode="constants")  # in a seventh of the time that json.dumps takes
        except ValueError:  # half a surrogate pair, which UTF-8 cannot encode, becomes `?`
            payload = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        session = await self._open_session()
        response = await session.post(
            self.base_url + "/chat/completions",
            data=aiohttp.BytesPayload(payload, content_type="application/json"),
            headers=self.bearer(),
            allow_redirects=False,
        )
        if response.status != 200:
            async with response:
                raise self.error_for(response.status, response.headers, await read_body(response, self.max_bytes))
        return response

    async def send(self, request: Request) -> Reply:
        response = None
        try:
            response = await self._post(self.body(request))
            try:
                raw = await read_body(response, self.max_bytes)
            finally:
                response.release()
        except FAILURES as error:
            raise self.transport_error(error, answered=response is not None) from None
        return self._read(raw)

    def _read(self, raw: bytes) -> Reply:
        data: Any = None
        try:
            try:
                data = from_json(raw)  # in a third of the time of `json.loads`
            except ValueError:  # half a surrogate pair, which UTF-8 cannot encode
                data = json.loads(raw)
            return from_completion(data)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            start = redact(raw.decode("utf-8", "replace"), self._key)[:60]
            raise self.unreadable(f"sent an unreadable reply: {start!r}", billed_reply(data)) from None

    def error_for(self, status: int, headers: Mapping[str, str], raw: bytes) -> ModelError:
        """The error for a response whose status is not 200; `raw` is its body."""
        no_credit = status == 429 and b"insufficient_quota" in raw
        return self.refused(
            status, server_message(raw, self._key), retry_after=retry_seconds(headers), no_credit=no_credit
        )

    def arriving(self) -> Arriving:
        return Arrived(self.event_text)

    def event_text(self, event: Mapping[str, Any], arrived: Arrived) -> str:
        """The text of one event; adds its usage, finish reason and thinking, if any, to `arrived`."""
        try:
            if event.get("usage"):
                arrived.usage = event["usage"]
            choice: dict[str, Any] = next(iter(event.get("choices") or ()), {})
            if isinstance(finish := choice.get("finish_reason"), str):
                arrived.finish = finish
            delta = choice.get("delta") or {}
            refusal = delta.get("refusal")
            arrived.refused = arrived.refused or bool(refusal)
            text = delta.get("content") or refusal or ""
            arrived.thoughts.append(thought_in(delta))
            if isinstance(text, list):
                refusal = refusal_in(text)
                arrived.refused = arrived.refused or bool(refusal)
                thought, text = read_parts(text)
                arrived.thoughts.append(thought)
                text = text or refusal
        except (TypeError, ValueError, AttributeError):
            text = None
        if not isinstance(text, str):
            raise self.unreadable("streamed an unreadable event")
        return text

    async def events(self, request: Request) -> AsyncGenerator[dict[str, Any], None]:
        """The server-sent events of one streamed reply; raises an error event."""
        size, answered = 0, False
        body = {**self.body(request), "stream": True, "stream_options": {"include_usage": True}}
        try:
            async with await self._post(body) as response:
                answered = True
                async for line in response.content:
                    size += len(line)
                    if size > self.max_bytes:
                        raise TooLong(self.max_bytes)
                    if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
                        continue
                    event = json.loads(line[5:])
                    if not isinstance(event, dict) or "error" in event:
                        message = f"{self.where}{server_message(line[5:], self._key)}"
                        raise ServerFault(message, billed=billed_reply(event))
                    yield event
        except FAILURES as error:
            raise self.transport_error(error, answered=answered) from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


class Arrived(Arriving):
    """The events of a streamed reply, put together.

    Args:
        read: `CompatibleClient.event_text`.
    """

    def __init__(self, read: Callable[[Mapping[str, Any], Arrived], str]) -> None:
        self._read = read
        self._texts: list[str] = []
        self.thoughts: list[str] = []
        self.usage: Any = None
        self.finish: str | None = None
        """Finish reason, as in chat completions."""
        self.refused = False

    def add(self, event: Mapping[str, Any]) -> str:
        text = self._read(event, self)
        self._texts.append(text)
        return text

    def reply(self) -> Reply:
        return Reply(
            finish_reason=FINISH.get(self.finish, "unknown"),
            content="".join(self._texts),
            cached=False,
            thought=join_thoughts(["".join(self.thoughts)]) or None,
            refused=self.refused or self.finish == "content_filter",
            **usage_fields(self.usage),
        )


class ServerClient(CompatibleClient):
    """Any server, by `?base_url=` or PARLEY_SERVER_URL. If it needs a key, the key comes from PARLEY_SERVER_KEY."""

    OptionsType: ClassVar[type[ClientOptions]] = OwnServerOptions
    url_variable, key_variables = "PARLEY_SERVER_URL", ("PARLEY_SERVER_KEY",)
