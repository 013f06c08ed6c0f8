"""Replies that arrive in chunks: budget, limits, thoughts, the key and billing are the same for every provider."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

from autogen_core import CancellationToken
from autogen_core.models import CreateResult, LLMMessage, RequestUsage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from parley.agents.errors import ModelError
from parley.agents.models.base import SHARED, Client, Request, estimate_tokens
from parley.agents.models.reply import Reply, StreamRedactor, redact_reply
from parley.agents.models.session import SESSION
from parley.agents.models.thoughts import ThoughtSplitter


class Arriving(ABC):
    """What has arrived of a streamed reply."""

    anything = False
    """Whether anything has."""

    @abstractmethod
    def add(self, event: Any) -> str:
        """Take one event of the stream; returns the text of the answer in it."""

    @abstractmethod
    def reply(self) -> Reply:
        """The reply so far."""


class StreamingClient(Client):
    """A client whose replies can be streamed. A provider implements `send`, `events` and `arriving`."""

    @abstractmethod
    def events(self, request: Request) -> AsyncGenerator[Any, None]:
        """The events of one streamed reply; raises a `ModelError` if there is an error among them."""

    @abstractmethod
    def arriving(self) -> Arriving:
        """What collects the events of one reply."""

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = [],
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """The answer as it arrives, then the whole reply with its thinking and usage; neither cached nor retried.

        A request with tools is not streamed: the reply is one chunk. A stream that breaks off counts with what arrived.
        """
        if tools:
            async for part in super().create_stream(
                messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                extra_create_args=extra_create_args,
                cancellation_token=cancellation_token,
            ):
                yield part
            return
        options = {**self._defaults, **extra_create_args}
        request = self.for_wire(Request(tuple(messages), json_output, options, shared=options.pop(SHARED, ())))
        current = SESSION.get()
        budget = current.budget if current else None
        if budget is not None:
            await budget.take_call()
        arrived, splitter, redactor = self.arriving(), ThoughtSplitter(), StreamRedactor(self._key)
        started = time.perf_counter()

        def finished(*, broken: bool = False) -> Reply:
            reply = arrived.reply()  # which tells its thinking apart by itself
            if broken:
                reply.usage = _at_least(reply, request)
            reply = redact_reply(reply, self._key)
            latency = time.perf_counter() - started
            self._record(self._call(request.prompt(), reply, latency, cached=False, attempts=1), budget)
            return reply

        await self.throttle.enter()
        try:
            async with aclosing(self.events(request)) as events:
                async for event in events:
                    if cancellation_token is not None and cancellation_token.is_cancelled():
                        raise asyncio.CancelledError
                    if text := redactor.feed(splitter.feed(arrived.add(event))):
                        yield text
        except BaseException as error:
            # What was answered is billed, even if the rest is lost or no longer wanted.
            if arrived.anything:
                finished(broken=True)
            elif budget is not None and isinstance(error, ModelError):
                budget.give_call_back()
            raise
        finally:
            self.throttle.leave()
        if text := redactor.feed(splitter.flush()) + redactor.flush():
            yield text
        reply = finished()
        self.thinks = self.thinks or reply.thinks
        yield reply


def _at_least(reply: Reply, request: Request) -> RequestUsage:
    """The usage of a stream that broke off before it was stated: estimated from what was sent and what arrived."""
    prompt = sum(estimate_tokens(message.text) for message in request.prompt())
    completion = estimate_tokens(str(reply.content)) + estimate_tokens(reply.thought or "")
    usage = reply.usage
    return RequestUsage(usage.prompt_tokens or prompt, max(usage.completion_tokens, completion))
