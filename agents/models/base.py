"""The base class of all clients: an AutoGen `ChatCompletionClient` that caches, throttles, retries and records.

A provider implements one method, `send(request)`, and to stream also `events` and `arriving`. Everything around a call
happens here, streamed or not: the reply cache, the run's budget, the throttle, retries with jittered back-off, and the
`Call` that is recorded.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Literal, Self

from autogen_core import CancellationToken, Component
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel, ValidationError

from parley.agents.models.prices import Price, price_of
from parley.agents.models.reply import Reply, redact_reply, stored_reply
from parley.agents.models.request import (
    SHARED,
    THINK_TOKENS,
    ClientConfig,
    ClientOptions,
    Effort,
    Request,
    estimate_tokens,
    prompt_message,
    request_key,
)
from parley.agents.models.retries import MAX_WAIT_SECONDS, Retries
from parley.agents.models.session import SESSION, Budget, Session, report_call, unit_order
from parley.agents.models.streaming import Arriving, OnText, ReplyStream
from parley.agents.models.thoughts import known_to_think
from parley.agents.models.throttle import Throttle, most_connections
from parley.agents.providers import provider_of
from parley.agents.transcripts import Call, PromptMessage, seed_from, tool_calls_as_text
from parley.base.errors import ConfigError, ModelError, ParleyError, RateLimited, ServerFault
from parley.base.home import say
from parley.base.tasks import streamed


class UnlinkedToken(CancellationToken):
    """The token of a conversation that was given none: nobody cancels it, so that no call needs a task for it."""


class Client(ChatCompletionClient, Component[ClientConfig]):
    """Base class of all model clients. A provider subclasses it, implements `send`, and is added with `register()`.

    Args:
        name: the full name, `provider/model`, without options.
        options: values for `OptionsType`, from the `?…` of the name or from Python.
    """

    component_type = "model"
    component_config_schema = ClientConfig
    OptionsType: ClassVar[type[ClientOptions]] = ClientOptions
    """The options that the provider accepts."""
    _key: str = ""
    """The API key: redacted from everything that is recorded or raised."""
    cacheable: bool = True
    """Whether replies are stored in the reply cache."""
    native_schema: bool = False
    """Whether the provider supports constrained decoding to a JSON schema."""
    next_tokens: ClassVar[bool] = False
    """Whether every next token's probability is available, as `parley.agents.self_debias_agent` needs."""
    efforts: tuple[Effort, ...] = ()
    """The values of the option `effort` that the provider or this model supports; `send` maps them."""
    takes_temperature: bool = True
    """Whether the model accepts `temperature` and `top_p`. If not, a study's defaults are dropped, and the user's own
    are refused."""
    sampling_effort: Effort | None = None
    """The effort at which the model accepts a temperature and gives log-probabilities, if it otherwise does neither."""
    default_max_tokens: ClassVar[int | None] = None
    """The limit of an answer, where the provider needs one and none is set."""
    vision: bool = False
    """Whether messages may contain images."""
    calls_tools: ClassVar[bool] = False
    """Whether the model can call tools."""
    json_mode: bool = True
    """Whether a reply can be requested as JSON without a schema."""
    context_tokens: int = 128_000
    """The model's context window."""
    cache_minimum: ClassVar[int | None] = None
    """Tokens of the shortest prefix that the vendor bills as cached; None if the vendor has no such price."""
    cache_step: ClassVar[int] = 1
    """Beyond `cache_minimum`, cached prefixes grow in steps of this many tokens."""
    preparing: str = ""
    """What `prepare` is doing, for people who wait: loading weights takes seconds."""
    caches_by_slot: ClassVar[bool] = False
    """Whether each slot has a prompt cache of its own, as llama.cpp's have: concurrent calls then share no prefix."""
    written_factor: ClassVar[float] = 1.0
    """Price of a prompt token that is written to the vendor's prompt cache, as a multiple of the normal price."""

    at_once: int = 1
    """How many replies one request may ask for, by the option `n`; the vendor then bills its prompt once."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.provider, _, self.model = name.partition("/")
        self.options = self.parse_options(name, options or {})
        kind = provider_of(name)
        self.logprobs, self.continues, self.batches = kind.logprobs, kind.continues, kind.batches
        """What `Provider` says of all its models; a client may know better of its own."""
        self.identity = name
        """The name, and whatever else tells two models of one name apart (server, weights): part of the cache's key."""
        self.price = self.price_for(name, options or {})
        self.throttle = self.make_throttle()
        self.retries = Retries(self.options.retries)
        self.thinks = known_to_think(self.model)
        """Whether the model is known, or was seen, to think before it answers."""
        self._defaults = self.options.sampling()
        self._spent = RequestUsage(0, 0)
        self._dropped = False
        self.gave_logprobs = False
        """True once a reply to a silent ballot had log-probabilities."""
        self._check_capabilities()

    def _to_config(self) -> ClientConfig:
        return ClientConfig(name=self.name, options=self.options.model_dump(mode="json", exclude_unset=True))

    @classmethod
    def _from_config(cls, config: ClientConfig) -> Self:
        return cls(config.name, config.options)

    @property
    def concurrency(self) -> int:
        """How many units a run with this model has in progress, unless the user says otherwise."""
        return self._connections()

    def _connections(self) -> int:
        """How many calls there may be at once: no more than the connections that this process may open."""
        return min(self.options.max_connections, most_connections() or self.options.max_connections)

    @property
    def reads_silently(self) -> bool:
        """Whether silent ballots are read from probabilities: the model gives them, and does not think before."""
        return self.logprobs and not self.thinks

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

    def _check_capabilities(self) -> None:
        """ConfigError if an option was set that this model does not have."""
        options, plain = self.options, self.name
        if options.effort is not None and options.effort not in self.efforts:
            known = f"supported: {', '.join(self.efforts)}" if self.efforts else "this model has no such option"
            raise ConfigError(f"{plain}: effort={options.effort} is not supported ({known})")
        if not self.takes_temperature:
            for key in ("temperature", "top_p"):
                if getattr(options, key) is not None:
                    raise ConfigError(f"{plain} accepts no {key}; leave ?{key}= out{self.or_effort}")

    @property
    def or_effort(self) -> str:
        """How a message about `takes_temperature` or `logprobs` ends: with the effort that would allow it."""
        return f", or append ?effort={self.sampling_effort}" if self.sampling_effort else ""

    def for_wire(self, request: Request) -> Request:
        """The request as it is sent: with room to think, and without what the model does not accept."""
        if not (
            self.thinks
            or "think_tokens" in request.options
            or (self.default_max_tokens is not None and "max_tokens" not in request.options)
            or not self.takes_temperature
        ):
            return request
        options = dict(request.options)
        room = options.pop("think_tokens", None)
        if room is None:
            room = THINK_TOKENS if self.thinks and options.get("effort") != "none" else 0
        limit = options.get("max_tokens", self.default_max_tokens)
        if limit is not None:
            if room:
                # Prompts are counted at four characters per token, which may be too few: hence a third more. Not by a
                # wrapped client's own count, for which it may have to load a vocabulary.
                left = self.context_tokens - Client.count_tokens(self, request.messages) * 4 // 3 - limit
                limit += max(0, min(room, left))
            options["max_tokens"] = limit
        if not self.takes_temperature and options.keys() & {"temperature", "top_p"}:
            options = {key: value for key, value in options.items() if key not in ("temperature", "top_p")}
            if not self._dropped:
                self._dropped = True
                say(f"{self.name} accepts no temperature, so the study's is not sent")
        return request._replace(options=options)

    @classmethod
    def parse_options(cls, name: str, options: Mapping[str, Any]) -> ClientOptions:
        """The options, validated; a `ConfigError` names the first one that is wrong."""
        try:
            return cls.OptionsType.model_validate(dict(options))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                known = ", ".join(cls.OptionsType.model_fields)
                raise ConfigError(f"{name}: unknown option '{key}' (known: {known})") from None
            which = f"option '{key}': " if key else ""
            raise ConfigError(
                f"{name}: {which}{first['msg'].removeprefix('Value error, ').replace('Input should be', 'must be')}"
            ) from None

    @classmethod
    def price_for(cls, name: str, options: Mapping[str, Any]) -> Price:
        """The model's price. A class method, so that a dry run needs no key."""
        parsed = cls.parse_options(name, options)
        return price_of(name, parsed.price_in, parsed.price_out, parsed.price_cached, cls.written_factor)

    @classmethod
    def billed_as_cached(cls, shared: int) -> int:
        """How many of the `shared` tokens of a repeated prefix the vendor can bill as cached."""
        if cls.cache_minimum is None or shared < cls.cache_minimum:
            return 0
        return shared - shared % cls.cache_step

    @abstractmethod
    async def send(self, request: Request) -> Reply:
        """One attempt: returns the reply, or raises a `ModelError` whose `retryable` says whether to try again."""

    def streams(self, request: Request) -> bool:
        """Whether the reply to this request arrives in chunks if somebody listens; otherwise it is one chunk."""
        return type(self).events is not Client.events and not request.tools

    def events(self, request: Request) -> AsyncGenerator[Any, None]:
        """The events of one streamed reply; raises a `ModelError` if there is an error among them."""
        raise NotImplementedError

    def arriving(self) -> Arriving:
        """What collects the events of one reply."""
        raise NotImplementedError

    def model_list(self) -> tuple[str, dict[str, str]] | None:
        """Address and headers of the provider's free list of models; None if it has none, as embedded ones."""
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
        request = Request(
            messages=tuple(messages),
            schema=json_output,
            options=options,
            tools=tuple(tools),
            tool_choice=tool_choice,
            shared=shared,
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
        """The reply from the cache, or else from the server."""
        prompt, current, address = request.prompt(), SESSION.get(), b""
        reply = None
        streams = on_text is not None and self.streams(request) and (current is None or current.sender is None)
        if current is not None:
            request, address, reply = self._look_up(request, prompt, current)
        if reply is None:
            try:
                reply = await self._ask(request, prompt, current, address, on_text if streams else None)
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

    def _look_up(
        self, request: Request, prompt: tuple[PromptMessage, ...], current: Session
    ) -> tuple[Request, bytes, Reply | None]:
        """The request with its seed, its address in the reply cache, and the reply if that has one (it is recorded)."""
        key = request_key(self.identity, request, prompt)
        nth = current.occurrence(key)
        if "seed" not in request.options:
            seeded = {**request.options, "seed": seed_from(current.sample, key.hex(), nth)}
            request = request._replace(options=seeded)
        address = hashlib.blake2b(key + f"\x1f{current.sample}\x1f{nth}".encode(), digest_size=20).digest()
        cached = current.read(address, stored_reply) if self.cacheable else None
        if cached is not None:
            report_call(self._call(prompt, cached, 0.0, cached=True, attempts=0))
        return request, address, cached

    async def _ask(
        self,
        request: Request,
        prompt: tuple[PromptMessage, ...],
        current: Session | None,
        address: bytes,
        on_text: OnText | None,
    ) -> Reply:
        """The server's reply: counted, throttled, requested again where that may help, and recorded.

        Args:
            request: what to send; `for_wire` makes it what the model accepts.
            prompt: its messages, as they are recorded.
            current: the unit, with its budget; its sender, if it has one, has a queue and retries of its own.
            address: the reply's address in the cache, by which a sender names the request.
            on_text: gets the chunks of a streamed reply; None for a reply that comes whole.
        """
        budget, sender = (None, None) if current is None else (current.budget, current.sender)
        throttle = self.throttle if sender is None else None
        sent, attempt, began = self.for_wire(request), 0, time.perf_counter()
        while True:
            attempt += 1
            if budget is not None:
                await budget.take_call()
            if throttle is not None:
                await throttle.enter(unit_order())
            stream = None if on_text is None else ReplyStream(self.arriving(), on_text, self._key)
            started, latency, delay = time.perf_counter(), None, 0.0
            try:
                if sender is not None:
                    reply = await sender(self, address, sent)
                elif stream is not None:
                    reply = await stream.receive(self.events(sent))
                else:
                    reply = await self.send(sent)
                latency = time.perf_counter() - started
            except BaseException as error:
                billed = error.billed if isinstance(error, ModelError) else None
                if stream is not None and stream.began:  # what arrived is billed, even if the rest is lost
                    billed = redact_reply(stream.so_far(prompt), self._key)
                if billed is not None:
                    took = time.perf_counter() - started
                    self._record(self._call(prompt, billed, took, cached=False, attempts=attempt), budget)
                elif budget is not None and isinstance(error, ModelError):
                    budget.give_call_back()
                if throttle is None or not isinstance(error, ModelError) or (stream is not None and stream.began):
                    raise
                if isinstance(error, RateLimited):
                    throttle.slow_down(min(error.retry_after or 0.0, MAX_WAIT_SECONDS))
                delay = self.retries.delay(error, attempt, began)
            finally:
                if throttle is not None:
                    throttle.leave(succeeded=latency is not None)
            if latency is None:
                await asyncio.sleep(delay)
                continue
            self.retries.reached = True
            reply = redact_reply(reply, self._key)
            self._record(self._call(prompt, reply, latency, cached=False, attempts=attempt), budget)
            wider = self._with_more_room(reply, request, sent)
            if wider is None or stream is not None:
                return reply
            sent, attempt, address = wider, 0, hashlib.blake2b(address, digest_size=20).digest()

    def _with_more_room(self, reply: Reply, request: Request, sent: Request) -> Request | None:
        """The request with more room, if only its cut reply showed that the model thinks within its answer's limit.
        None otherwise: room is added only once.
        """
        self.thinks = self.thinks or reply.thinks
        if not (reply.cut and reply.thinks):
            return None
        wider = self.for_wire(request)
        return wider if wider.options != sent.options else None

    def _record(self, call: Call, budget: Budget | None) -> None:
        self._spent.prompt_tokens += call.prompt_tokens
        self._spent.completion_tokens += call.completion_tokens
        if budget is not None:
            budget.spend(call)
        report_call(call)

    def _call(
        self, prompt: tuple[PromptMessage, ...], reply: Reply, latency: float, *, cached: bool, attempts: int
    ) -> Call:
        usage = reply.usage
        tokens = (usage.prompt_tokens, usage.completion_tokens, reply.cached_tokens or 0, reply.written_tokens)
        return Call(
            model=self.name,
            prompt=prompt,
            reply=reply.content if isinstance(reply.content, str) else tool_calls_as_text(reply.content),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            latency=latency,
            cost=0.0 if cached else self.price.cost_of_call(*tokens),
            cached=cached,
            attempts=attempts,
            cached_tokens=reply.cached_tokens,
            written_tokens=reply.written_tokens,
            thought=reply.thought or "",
            thought_tokens=reply.thought_tokens,
            cut=reply.cut,
        )

    def timed_out(self, seconds: float | None = None) -> ServerFault:
        """The error of a call that took too long: longer than the option `timeout`, or than this many seconds."""
        return ServerFault(f"{self.name}: no answer within {seconds or self.options.timeout:g} s")

    async def close(self) -> None:
        """Release connections and memory; nothing to do unless a provider overrides it."""

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(self._spent.prompt_tokens, self._spent.completion_tokens)

    def total_usage(self) -> RequestUsage:
        return self.actual_usage()

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        """An estimate at four characters per token: exact counts would need each vendor's vocabulary."""
        return sum(4 + estimate_tokens(prompt_message(message).text) for message in messages)

    def remaining_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        return self.context_tokens - self.count_tokens(messages, tools=tools)

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=self.vision,
            function_calling=self.calls_tools,
            json_output=self.json_mode,
            family=ModelFamily.UNKNOWN,
            structured_output=self.native_schema,
            multiple_system_messages=False,
        )

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info
