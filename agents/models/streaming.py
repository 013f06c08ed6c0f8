"""Replies that arrive in chunks: cache, budget, retries, thoughts, the key and billing, the same for every provider."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from autogen_core import CancellationToken
from autogen_core.models import CreateResult, LLMMessage, RequestUsage

from parley.agents.models.base import Client, estimate_tokens
from parley.agents.models.reply import Reply, StreamRedactor, redact_reply
from parley.agents.models.request import SHARED, Request
from parley.agents.models.retries import MAX_WAIT_SECONDS
from parley.agents.models.session import SESSION, Budget, unit_order
from parley.agents.models.thoughts import ThoughtSplitter
from parley.agents.transcripts import PromptMessage
from parley.base.errors import ModelError, ParleyError, RateLimited


class Arriving(ABC):
    """The part of a streamed reply that has arrived."""

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
        self, messages: Sequence[LLMMessage], **arguments: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """The answer as it arrives, then the whole reply with its thinking and usage.

        A reply from the cache is one chunk, and so is one to a request with tools. A stream that has not begun is
        retried; one that breaks off counts with what arrived.

        Args:
            messages: the prompt.
            **arguments: the same as those of `create`.
        """
        current = SESSION.get()
        if not self.streams(messages, arguments) or (current is not None and current.sender is not None):
            async for part in super().create_stream(messages, **arguments):
                yield part
            return
        options = {**self._defaults, **arguments.get("extra_create_args", {})}
        request = Request(tuple(messages), arguments.get("json_output"), options, shared=options.pop(SHARED, ()))
        prompt, cancellation_token = request.prompt(), arguments.get("cancellation_token")
        if current is None:
            async for part in self._streamed(request, prompt, None, cancellation_token):
                yield part
            return
        request, address, reply = self._look_up(request, prompt, current)
        if reply is not None:
            yield str(reply.content)
            yield reply
            return
        try:
            async for part in self._streamed(request, prompt, current.budget, cancellation_token):
                if isinstance(part, Reply):
                    self._keep_reply(current, address, part)
                yield part
        except ParleyError as error:
            current.failure = current.failure or error
            raise

    def streams(self, messages: Sequence[LLMMessage], arguments: Mapping[str, Any]) -> bool:
        """Whether the reply to such a request is streamed; otherwise it comes as one chunk."""
        return not arguments.get("tools")

    async def _streamed(
        self,
        request: Request,
        prompt: tuple[PromptMessage, ...],
        budget: Budget | None,
        token: CancellationToken | None,
    ) -> AsyncGenerator[str | Reply, None]:
        """The chunks of one reply as the server sends them, then the reply, recorded."""
        request = self.for_wire(request)
        attempt, began = 0, time.perf_counter()
        while True:
            attempt += 1
            if budget is not None:
                await budget.take_call()
            arrived, splitter, redactor = self.arriving(), ThoughtSplitter(), StreamRedactor(self._key)
            await self.throttle.enter(unit_order())
            started = time.perf_counter()
            ok = answered = False
            try:
                async with aclosing(self.events(request)) as events:
                    async for event in events:
                        answered = True
                        if token is not None and token.is_cancelled():
                            raise asyncio.CancelledError
                        if text := redactor.feed(splitter.feed(arrived.add(event))):
                            yield text
                ok = self.retries.reached = True
            except BaseException as error:
                # What was answered is billed, even if the rest is lost or no longer wanted.
                if answered:
                    self._record_stream(arrived, request, prompt, started, attempt, budget, broken=True)
                    raise
                if not isinstance(error, ModelError):
                    raise
                if budget is not None:
                    budget.give_call_back()
                if isinstance(error, RateLimited):
                    self.throttle.slow_down(min(error.retry_after or 0.0, MAX_WAIT_SECONDS))
                delay = self.retries.delay(error, attempt, began)
            finally:
                self.throttle.leave(time.perf_counter() - started if ok else None)
            if ok:
                break
            await asyncio.sleep(delay)
        if text := redactor.feed(splitter.flush()) + redactor.flush():
            yield text
        reply = self._record_stream(arrived, request, prompt, started, attempt, budget)
        self.thinks = self.thinks or reply.thinks
        yield reply

    def _record_stream(
        self,
        arrived: Arriving,
        request: Request,
        prompt: tuple[PromptMessage, ...],
        started: float,
        attempts: int,
        budget: Budget | None,
        *,
        broken: bool = False,
    ) -> Reply:
        reply = arrived.reply()  # which separates its thinking itself
        if broken:
            reply.usage = _at_least(reply, request)
        reply = redact_reply(reply, self._key)
        latency = time.perf_counter() - started
        self._record(self._call(prompt, reply, latency, cached=False, attempts=attempts), budget)
        return reply


def _at_least(reply: Reply, request: Request) -> RequestUsage:
    """The usage of a stream that broke off before it was stated: estimated from what was sent and what arrived."""
    prompt = sum(estimate_tokens(message.text) for message in request.prompt())
    completion = estimate_tokens(str(reply.content)) + estimate_tokens(reply.thought or "")
    usage = reply.usage
    return RequestUsage(usage.prompt_tokens or prompt, max(usage.completion_tokens, completion))
