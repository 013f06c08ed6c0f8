"""What every client of ours shares: an AutoGen `ChatCompletionClient` that caches, paces, retries and records.

A provider writes one method, `send(request)`. Everything around a call happens here, once: the reply cache, the
run's budget, the pace the server allows, retries with jittered back-off, and the `Call` that is written down.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
    SystemMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parley.agents.calls import Call, PromptMessage, seed_from
from parley.agents.errors import ConfigError, ModelError, RateLimited
from parley.agents.models.budget import Budget
from parley.agents.models.prices import Price, price_of
from parley.agents.models.reply import Reply, hide_key
from parley.agents.models.session import SESSION, Session, report_call
from parley.agents.models.throttle import Throttle

Schema = type[BaseModel] | bool | None
SHARED = "parley_shared"
"""Among a call's options: how many messages, from the first, other calls of the conversation begin with too. Several
such places may be named. It is taken out before anything is sent or kept."""
LONGEST_WAIT = 300.0
"""Seconds: a server that asks for more has failed the call; the run goes on later."""


class ClientOptions(BaseModel):
    """What may stand behind the `?` of a model's name; the same keys work in Python."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    seed: int | None = None
    timeout: float = Field(120.0, gt=0, description="seconds until a call counts as failed")
    max_connections: int = Field(256, ge=1, description="calls under way at once, at most")
    retries: int = Field(6, ge=0, description="further tries after a failure that may pass")
    price_in: float | None = Field(None, ge=0, description="US dollars a million prompt tokens")
    price_out: float | None = Field(None, ge=0, description="US dollars a million reply tokens")
    price_cached: float | None = Field(None, ge=0, description="the same for prompt tokens from the vendor's cache")

    SAMPLING: ClassVar[tuple[str, ...]] = ("temperature", "top_p", "max_tokens", "seed")

    def sampling(self) -> dict[str, Any]:
        values = ((key, getattr(self, key)) for key in self.SAMPLING)
        return {key: value for key, value in values if value is not None}


class Request(NamedTuple):
    """One question to a model, in full."""

    messages: tuple[LLMMessage, ...]
    schema: Schema = None
    options: Mapping[str, Any] = MappingProxyType({})
    tools: tuple[Tool | ToolSchema, ...] = ()
    tool_choice: Tool | Literal["auto", "required", "none"] = "auto"
    shared: tuple[int, ...] = ()
    """Where a prompt cache should keep the beginning: after so many messages."""

    def pieces(self) -> tuple[PromptMessage, ...]:
        return tuple(_piece(message) for message in self.messages)


def _piece(message: LLMMessage) -> PromptMessage:
    if isinstance(message, SystemMessage):
        return PromptMessage("system", "", message.content)
    if isinstance(message, FunctionExecutionResultMessage):
        text = json.dumps([result.model_dump() for result in message.content], ensure_ascii=False)
        return PromptMessage("tool", "", text)
    content = message.content
    text = content if isinstance(content, str) else json.dumps([str(part) for part in content])
    return PromptMessage("assistant" if isinstance(message, AssistantMessage) else "user", message.source, text)


def schema_name(schema: Schema) -> str:
    if schema is None or isinstance(schema, bool):
        return str(schema)
    return json.dumps(schema.model_json_schema(), sort_keys=True)


_SCHEMA_KEYS: dict[Any, str] = {}


def request_key(identity: str, request: Request, pieces: Sequence[PromptMessage]) -> bytes:
    """The address of a request by its content: server, model, parameters, messages, schema and tools."""
    schema = _SCHEMA_KEYS.get(request.schema)
    if schema is None:
        schema = _SCHEMA_KEYS[request.schema] = schema_name(request.schema)
    head = [identity, schema, sorted(request.options.items())]
    if request.tools:
        names = [tool.schema if isinstance(tool, Tool) else tool for tool in request.tools]
        choice = request.tool_choice
        head += [json.dumps(names, sort_keys=True), choice.name if isinstance(choice, Tool) else choice]
    digest = hashlib.blake2b(repr(head).encode(), digest_size=20)
    for piece in pieces:
        digest.update("\x1f".join(("", *piece)).encode("utf-8", "surrogatepass"))
    return digest.digest()


class Client(ChatCompletionClient):
    """Base of all clients. `name` is the full `provider/model`; `identity` also tells servers apart."""

    component_type = "model"
    OptionsType: ClassVar[type[ClientOptions]] = ClientOptions
    _key: str = ""
    """What must never be written down."""
    simulated: ClassVar[bool] = False
    cacheable: ClassVar[bool] = True
    native_schema: bool = False
    """Whether the provider itself can be held to a JSON schema."""
    logprobs: bool = False
    """Whether replies can carry log-probabilities."""
    next_tokens: ClassVar[bool] = False
    """Whether every next token's probability is available, as `parley.agents.self_debias` needs."""
    context_tokens: int = 128_000
    cache_minimum: ClassVar[int | None] = None
    """Tokens of the shortest shared beginning that the vendor bills as cached; None where nothing is billed so."""
    cache_step: ClassVar[int] = 1
    """Tokens by which the cached beginning grows beyond that."""
    written_factor: ClassVar[float] = 1.0
    """What a prompt token costs that is put into the vendor's cache, as a multiple of one that is not."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.provider, _, self.model = name.partition("/")
        self.options = self.parse_options(name, options or {})
        self.identity = name
        self.price = self.price_for(name, options or {})
        self.throttle = Throttle(self.options.max_connections)
        self._defaults = self.options.sampling()
        self._spent = RequestUsage(0, 0)
        self._jitter = random.Random()

    @classmethod
    def parse_options(cls, name: str, options: Mapping[str, Any]) -> ClientOptions:
        try:
            return cls.OptionsType.model_validate(dict(options))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                known = ", ".join(cls.OptionsType.model_fields)
                raise ConfigError(f"{name}: unknown option '{key}' (known: {known})") from None
            what = f"option '{key}': " if key else ""
            raise ConfigError(f"{name}: {what}{first['msg'].removeprefix('Value error, ')}") from None

    @classmethod
    def price_for(cls, name: str, options: Mapping[str, Any]) -> Price:
        """What calls will cost; needs no key, so a dry run can ask."""
        chosen = cls.parse_options(name, options)
        return price_of(name, chosen.price_in, chosen.price_out, chosen.price_cached, cls.written_factor)

    @classmethod
    def billed_as_cached(cls, shared: int) -> int:
        """Of a beginning of so many tokens that an earlier call had too: how many a vendor's cache can give back."""
        if cls.cache_minimum is None or shared < cls.cache_minimum:
            return 0
        return shared - shared % cls.cache_step

    @abstractmethod
    async def send(self, request: Request) -> Reply:
        """One try: a reply, or a `ModelError` that says whether another try may help."""

    async def prepare(self) -> None:
        """Made once before a run's first call: load weights, open what must be open."""

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = [],
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> Reply:
        options = {**self._defaults, **extra_create_args} if extra_create_args else self._defaults
        shared = options.pop(SHARED, ()) if SHARED in options else ()
        request = Request(tuple(messages), json_output, options, tuple(tools), tool_choice, shared)
        if cancellation_token is None:
            return await self._answer(request)
        task = asyncio.ensure_future(self._answer(request))
        cancellation_token.link_future(task)
        return await task

    async def _answer(self, request: Request) -> Reply:
        """Cache, budget, tries, record: the one path of every call."""
        pieces = request.pieces()
        current = SESSION.get()
        if current is None:
            return await self._try(request, pieces, None)
        key = request_key(self.identity, request, pieces)
        nth = current.occurrence(key)
        if "seed" not in request.options:
            seeded = {**request.options, "seed": seed_from(current.sample, key.hex(), nth)}
            request = request._replace(options=seeded)
        address = hashlib.blake2b(key + f"\x1f{current.sample}\x1f{nth}".encode(), digest_size=20).digest()
        cache = current.cache if self.cacheable else None
        if cache is not None and (kept := cache.get(address)) is not None:
            report_call(self._call(pieces, kept, 0.0, cached=True, attempts=0))
            return kept
        ask = self._try if current.post is None else self._post
        reply = await ask(request, pieces, current, address)
        if cache is not None:
            cache.put(address, self.name, reply)
        return reply

    async def _post(
        self, request: Request, pieces: tuple[PromptMessage, ...], current: Session, address: bytes = b""
    ) -> Reply:
        """By the session's own post instead of `send`: it answers when it answers, and does its own trying again."""
        assert current.post is not None, "there is no post"
        if current.budget is not None:
            await current.budget.take_call()
        started = time.perf_counter()
        try:
            reply = await current.post(self, address, request)
        except ModelError:
            if current.budget is not None:
                current.budget.give_call_back()
            raise
        latency = time.perf_counter() - started
        self._record(self._call(pieces, reply, latency, cached=False, attempts=1), current.budget)
        return reply

    async def _try(
        self, request: Request, pieces: tuple[PromptMessage, ...], current: Session | None, address: bytes = b""
    ) -> Reply:
        budget = current.budget if current else None
        attempt = 0
        while True:
            attempt += 1
            if budget is not None:
                await budget.take_call()
            await self.throttle.enter()
            started = time.perf_counter()
            try:
                reply = await self.send(request)
            except ModelError as error:
                if budget is not None:
                    budget.give_call_back()
                if isinstance(error, RateLimited):
                    self.throttle.slow_down(min(error.retry_after or 0.0, LONGEST_WAIT))
                self.throttle.leave()
                if not error.retryable or attempt > self.options.retries:
                    raise
                if (error.retry_after or 0.0) > LONGEST_WAIT:
                    raise type(error)(f"{error}; it asks to wait {error.retry_after:.0f} s") from None
                await asyncio.sleep(self._pause(attempt, error.retry_after))
            except BaseException:
                self.throttle.leave()
                raise
            else:
                latency = time.perf_counter() - started
                self.throttle.leave(ok=True)
                reply = hide_key(reply, self._key)
                self._record(self._call(pieces, reply, latency, cached=False, attempts=attempt), budget)
                return reply

    def _record(self, call: Call, budget: Budget | None) -> None:
        self._spent.prompt_tokens += call.prompt_tokens
        self._spent.completion_tokens += call.completion_tokens
        if budget is not None:
            budget.spend(call)
        report_call(call)

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        backoff = min(30.0, 0.5 * float(2 ** (attempt - 1))) * (0.5 + self._jitter.random())
        return max(backoff, retry_after or 0.0)

    def _call(
        self, pieces: tuple[PromptMessage, ...], reply: Reply, latency: float, *, cached: bool, attempts: int
    ) -> Call:
        usage = reply.usage
        tokens = (usage.prompt_tokens, usage.completion_tokens, reply.cached_tokens or 0, reply.written_tokens)
        text = reply.content if isinstance(reply.content, str) else json.dumps([str(c) for c in reply.content])
        return Call(
            model=self.name,
            prompt=pieces,
            reply=text,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            latency=latency,
            cost=0.0 if cached else self.price.cost(*tokens),
            cached=cached,
            attempts=attempts,
            cached_tokens=reply.cached_tokens,
            written_tokens=reply.written_tokens,
        )

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
        """The whole reply as one chunk; a provider that can do better overrides this."""
        reply = await self.create(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args,
            cancellation_token=cancellation_token,
        )
        if isinstance(reply.content, str):
            yield reply.content
        yield reply

    async def close(self) -> None:
        """Nothing to let go of, unless a provider says so."""

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(self._spent.prompt_tokens, self._spent.completion_tokens)

    def total_usage(self) -> RequestUsage:
        return self.actual_usage()

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        """An estimate, four characters a token: exact counts would need each vendor's vocabulary."""
        return sum(4 + estimate_tokens(_piece(message).text) for message in messages)

    def remaining_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        return self.context_tokens - self.count_tokens(messages, tools=tools)

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=False,
            json_output=True,
            family=ModelFamily.UNKNOWN,
            structured_output=self.native_schema,
            multiple_system_messages=False,
        )

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info


def estimate_tokens(text: str) -> int:
    return (len(text) + 3) // 4
