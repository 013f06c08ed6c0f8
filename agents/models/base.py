"""The base class of all clients: an AutoGen `ChatCompletionClient` that caches, throttles, retries and records.

A provider implements one method, `send(request)`, and to stream also those of `Streams`. Everything around a call
happens here, streamed or not: the reply cache, the run's budget, the throttle, retries with jittered back-off, and the
`Call` that is recorded. `traits` has what is known about the model before any call.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

from autogen_core import CancellationToken, ComponentModel
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, RequestUsage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from parley.agents.models.reply import MAX_TOKENS, Reply, redact_reply, stored_reply
from parley.agents.models.request import (
    SHARED,
    THINK_TOKENS,
    TYPED,
    Request,
    estimate_tokens,
    prompt_tokens,
    request_key,
)
from parley.agents.models.session import SESSION, Estimate, Session, Used
from parley.agents.models.streaming import OnText, ReplyStream, Streams
from parley.agents.models.throttle import MAX_WAIT_SECONDS, Retries, Throttle, most_connections
from parley.agents.models.traits import ModelTraits
from parley.agents.transcripts import Call, PromptMessage, record_call, seed_from, tool_calls_as_text
from parley.base.errors import ModelError, ParleyError, RateLimited, ServerFault
from parley.base.tasks import streamed

REPLY_TOKENS = 1000
"""Expected length of the first reply without its thinking, for the budget, if no limit is set."""
UNLIMITED = Estimate((), 0, 0.0)
"""For budgets in calls."""


class UnlinkedToken(CancellationToken):
    """The default token of a conversation: nobody cancels it, so calls need no task for it."""


class Client(ModelTraits, ChatCompletionClient):
    """Base class of all model clients. A provider subclasses it, implements `send`, and is added with `register()`.

    Args:
        name: the full name, `provider/model`, without options.
        options: values for `OptionsType`, from the `?…` of the name or from Python.
    """

    _key: str = ""
    """The API key: redacted from everything that is recorded or raised."""
    preparing: str = ""
    """Progress message during `prepare`: loading weights takes seconds."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self.throttle = self.make_throttle()
        self.retries = Retries(self.options.retries)
        self._spent = RequestUsage(0, 0)

    def dump_component(self) -> ComponentModel:
        """AutoGen's description of this client, as part of an agent's or team's."""
        options = self.options.model_dump(mode="json", exclude_unset=True)
        return ComponentModel(provider="parley.agents.model", config={"name": self.name, **options})

    @property
    def concurrency(self) -> int:
        """Default number of units that a run with this model has in progress."""
        return self._connections()

    def _connections(self) -> int:
        """Maximum number of concurrent calls, limited by the connections that this process may open."""
        return min(self.options.max_connections, most_connections() or self.options.max_connections)

    def make_throttle(
        self,
        share: Callable[[int], int] = lambda total: total,
        step: float = 1.0,
        on_slow: Callable[[float], None] | None = None,
    ) -> Throttle:
        """A throttle for this client, or for one of several workers.

        Args:
            share: a worker's share of a number of calls.
            step: a worker's share of one call.
            on_slow: called with the server's pause after each 429.
        """
        return Throttle(share(self._connections()), step, on_slow)

    @abstractmethod
    async def send(self, request: Request) -> Reply:
        """One attempt: returns the reply, or raises a `ModelError` whose `retryable` says whether to try again."""

    def streams(self, request: Request) -> bool:
        """Whether the reply to this request is streamed if somebody listens; otherwise it is one chunk."""
        return isinstance(self, Streams) and not request.tools

    def model_list(self) -> tuple[str, dict[str, str]] | None:
        """Address and headers of the provider's free list of models; None if it has no such list."""
        return None

    async def prepare(self) -> None:
        """Called once before the first call of a run: load weights, check that the server is there."""

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = [],
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """AutoGen's method for one call.

        Args:
            messages: the prompt.
            tools: tools that the model may call.
            tool_choice: which of them it must call.
            json_output: a pydantic model that the reply must match; True for any JSON.
            extra_create_args: sampling options of this call; they override the client's.
            cancellation_token: cancels the call.
            on_text: gets the answer as it arrives; a reply that is not streamed is one chunk.
        """
        options = {**self._defaults, **extra_create_args} if extra_create_args else self._defaults
        shared = options.pop(SHARED, ()) if SHARED in options else ()
        typed = options.pop(TYPED, False) if TYPED in options else False
        request = Request(
            messages=tuple(messages),
            schema=json_output,
            options=options,
            tools=tuple(tools),
            tool_choice=tool_choice,
            shared=shared,
            typed=typed,
        )
        if cancellation_token is None or type(cancellation_token) is UnlinkedToken:
            return await self._reply(request, on_text)
        task = asyncio.ensure_future(self._reply(request, on_text))
        cancellation_token.link_future(task)
        return await task

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
        async with aclosing(streamed(lambda on_text: self.create(messages, on_text=on_text, **arguments))) as parts:
            async for part in parts:
                yield part

    async def _reply(self, request: Request, on_text: OnText | None) -> Reply:
        """Get the reply from the cache, or else from the server."""
        prompt, current, address = request.prompt(), SESSION.get(), b""
        reply = None
        streams = on_text is not None and self.streams(request) and (current is None or current.sender is None)
        if current is not None:
            request, address, reply = await self._look_up(request, prompt, current)
        if reply is None:
            try:
                reply = await self._ask(request, prompt, current, on_text if streams else None)
            except ParleyError as error:
                if current is not None:
                    current.failure = current.failure or error
                raise
            # A reply that was cut before it said anything is asked for again when there is more room. One token may be
            # a space, but then its log-probabilities were asked for.
            if current is not None and self.cacheable and not (reply.cut and reply.empty and not reply.logprobs):
                current.put(address, self.name, reply)
        if on_text is not None and isinstance(reply.content, str) and not (streams and not reply.cached):
            on_text(reply.content)
        return reply

    async def _look_up(
        self, request: Request, prompt: tuple[PromptMessage, ...], current: Session
    ) -> tuple[Request, bytes, Reply | None]:
        """The request with its seed, its address in the reply cache, and the cached reply if there is one (which is
        recorded).
        """
        key = request_key(self.identity, request, prompt)
        nth = current.occurrence(key)
        if "seed" not in request.options:
            seeded = {**request.options, "seed": seed_from(current.sample, key.hex(), nth)}
            request = request._replace(options=seeded)
        address = hashlib.blake2b(key + f"\x1f{current.sample}\x1f{nth}".encode(), digest_size=20).digest()
        cached = await current.read(address, stored_reply) if self.cacheable else None
        if cached is not None:
            self._record(cached, prompt, current, latency=0.0, attempts=0)
        return request, address, cached

    async def _ask(
        self,
        request: Request,
        prompt: tuple[PromptMessage, ...],
        current: Session | None,
        on_text: OnText | None,
    ) -> Reply:
        """Get the server's reply, with retries.

        Args:
            request: what to send; `for_wire` makes it what the model accepts.
            prompt: its messages, as they are recorded.
            current: the unit, with its budget and, in a rehearsal, the function that sends its requests.
            on_text: gets the chunks of a streamed reply; None if it is not streamed.
        """
        sent, attempt, began = self.for_wire(request), 1, time.perf_counter()
        while True:
            stream = ReplyStream(self, on_text, self._key) if on_text and isinstance(self, Streams) else None
            try:
                reply = await self._attempt(sent, prompt, current, stream, attempt)
            except ModelError as error:
                if stream is not None and stream.began:
                    raise
                await asyncio.sleep(self.retries.delay(error, attempt, began))
                attempt += 1
                continue
            # If only this cut reply shows that the model thinks within its answer's limit, it is asked with more room.
            wider = self.for_wire(request) if reply.cut and reply.thinks and stream is None else sent
            if wider.options == sent.options:
                return reply
            sent, attempt = wider, 1

    async def _attempt(
        self,
        sent: Request,
        prompt: tuple[PromptMessage, ...],
        current: Session | None,
        stream: ReplyStream | None,
        attempt: int,
    ) -> Reply:
        """Count, throttle, send and record one request."""
        budget, sender, order = (None, None, 0) if current is None else (current.budget, current.sender, current.order)
        estimate, used = UNLIMITED, Used()
        if budget is not None:
            estimate = self._estimate(sent, prompt) if budget.measured else UNLIMITED
            await budget.take_call(estimate)
        try:
            if not self.throttle.take():
                await self.throttle.enter(order)
            started, latency = time.perf_counter(), None
            try:
                if sender is not None:
                    reply = await sender(self, sent)
                elif stream is not None:
                    reply = await stream.receive(sent)
                else:
                    reply = await self.send(sent)
                latency = time.perf_counter() - started
            except BaseException as error:
                used = self._count_failure(error, prompt, current, stream, time.perf_counter() - started, attempt)
                raise
            finally:
                self.throttle.leave(succeeded=latency is not None)
            self.retries.reached = True
            # A server may send any number of choices: hundreds of thousands would hold up every other call.
            reply.others = reply.others[: (sent.options.get("n") or 1) - 1]
            reply = redact_reply(reply, self._key)
            used = self._record(reply, prompt, current, latency, attempt)
        finally:
            if budget is not None:
                budget.release(estimate, used)
        self.thinks = self.thinks or reply.thinks
        return reply

    def _count_failure(
        self,
        error: BaseException,
        prompt: tuple[PromptMessage, ...],
        current: Session | None,
        stream: ReplyStream | None,
        seconds: float,
        attempt: int,
    ) -> Used:
        """Record the usage billed for a failed request; if none was billed, do not count the call."""
        used = Used(unknown=not isinstance(error, ModelError))
        began = stream is not None and stream.began
        billed = error.billed if isinstance(error, ModelError) else None
        if stream is not None and began:  # what arrived is billed, even if the rest is lost
            billed = redact_reply(stream.so_far(prompt), self._key)
        if billed is not None:
            used = self._record(billed, prompt, current, seconds, attempt)
        elif isinstance(error, ModelError) and current is not None and current.budget is not None:
            current.budget.give_call_back()
        if isinstance(error, RateLimited) and not began:
            # A longer pause is not waited out: the call fails, and so do the others, each at once.
            pause = error.retry_after or 0.0
            self.throttle.slow_down(pause if pause <= MAX_WAIT_SECONDS else 0.0)
        return used

    def _estimate(self, request: Request, prompt: tuple[PromptMessage, ...]) -> Estimate:
        """Expected usage of a request: its prompt, and a first reply of this form and limit, thinking included."""
        options = request.options
        limit, replies, tokens = options.get("max_tokens"), options.get("n") or 1, prompt_tokens(prompt)
        thinks = self.thinks and options.get("effort") != "none"
        reply = replies * min(REPLY_TOKENS + (THINK_TOKENS if thinks else 0), limit or MAX_TOKENS)
        kind = (self.name, limit, replies, bool(request.schema), bool(request.tools))
        cost = self.price.cost_of_call(tokens, 0) or 0.0
        return Estimate(kind, tokens, cost, reply, (self.price.cost_of_call(tokens, reply) or 0.0) - cost)

    def _record(
        self, reply: Reply, prompt: tuple[PromptMessage, ...], current: Session | None, latency: float, attempts: int
    ) -> Used:
        """Record a call. One without any attempt was answered from the reply cache, and is not billed again."""
        billed, content = attempts > 0, reply.content
        text = content if isinstance(content, str) else tool_calls_as_text(content)
        # A server may send no usable count: a budget would never end.
        read = reply.usage.prompt_tokens or prompt_tokens(prompt)
        written = reply.usage.completion_tokens or estimate_tokens("".join((text, reply.thought or "", *reply.others)))
        tokens = (read, written, reply.cached_tokens or 0, reply.written_tokens)
        call = Call(
            model=self.name,
            prompt=prompt,
            reply=text,
            prompt_tokens=read,
            completion_tokens=written,
            latency=latency,
            cost=self.price.cost_of_call(*tokens) if billed else 0.0,
            cached=not billed,
            attempts=attempts,
            cached_tokens=reply.cached_tokens,
            written_tokens=reply.written_tokens,
            thought=reply.thought or "",
            thought_tokens=reply.thought_tokens,
            cut=reply.cut,
            whole=reply.whole,
        )
        if billed:
            self._spent.prompt_tokens += call.prompt_tokens
            self._spent.completion_tokens += call.completion_tokens
        if current is not None:
            if billed and current.budget is not None:
                current.budget.spend(call)
            if current.on_call is not None:
                current.on_call(call)
        record_call(call)
        return Used(call.prompt_tokens + call.completion_tokens, call.cost or 0.0)

    def timed_out(self) -> ServerFault:
        """The error of a call that took longer than the option `timeout`."""
        return ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s")

    async def close(self) -> None:
        """Release connections and memory; nothing to do unless a provider overrides it."""

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(self._spent.prompt_tokens, self._spent.completion_tokens)

    def total_usage(self) -> RequestUsage:
        return self.actual_usage()
