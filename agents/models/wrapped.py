"""Wraps any AutoGen client, so that its calls are cached, budgeted and recorded.

    client = model(OpenAIChatCompletionClient(model="gpt-4o-mini"))

An AutoGen client given where a model is expected is wrapped automatically. The wrapped client decides what is sent, and
has its own retries: Parley does not retry calls that it has given up, unless `retries` is set here.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from autogen_core import ComponentModel
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, ModelInfo, RequestUsage
from autogen_core.tools import Tool, ToolSchema
from pydantic import SecretStr

from parley.agents.models.base import Client
from parley.agents.models.http import error_ending, retry_seconds, status_error
from parley.agents.models.openai import traits_of
from parley.agents.models.reply import Reply, redact
from parley.agents.models.request import Request
from parley.agents.models.streaming import Arriving, Streams
from parley.agents.models.wire import schema_format
from parley.base.errors import BadRequest, ConfigError, ModelError, ServerFault

UNREACHABLE = ("Connection", "Timeout", "ConnectError", "ReadError", "RemoteProtocolError")
"""Parts of the names of exceptions that mean that the server could not be reached for now."""


def described(client: ChatCompletionClient) -> tuple[str, dict[str, Any], str]:
    """An AutoGen client's name, its settings without secrets, and its key ("" if none is found).

    The name is `vendor/model`, as in the price list: the vendor is that of the client's package
    (`autogen_ext.models.openai`), else its class.
    """
    try:
        config = client.dump_component().config
    except Exception:  # a client of the user's own need not be a component
        config = {}
    secrets = [value.get_secret_value() for value in config.values() if isinstance(value, SecretStr)]
    settings = {key: value for key, value in config.items() if not isinstance(value, SecretStr)}
    package = re.match(r"autogen_ext\.models\.(\w+)", type(client).__module__)
    model = next((str(settings[key]) for key in ("model", "azure_deployment", "model_path") if settings.get(key)), "")
    kind = type(client).__name__
    vendor = package.group(1) if package and model else "autogen"
    return f"{vendor}/{model or kind}", {"class": kind, **settings}, max(secrets, key=len, default="")


class WrappedClient(Streams, Client):
    """An AutoGen client whose calls are cached, budgeted and recorded.

    Args:
        inner: the client. Closing this one closes it.
        name: the name in records and in the price list; by default `vendor/model`, as the client says itself. Without
            one, the replies of a client that does not save its settings are not cached.
        options: values for `ClientOptions`: prices, sampling options, `max_connections`. `retries` is 0 by default, and
            other numbers are for a client that does not retry by itself.
    """

    def __init__(
        self, inner: ChatCompletionClient, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        class_name, settings, self._key = described(inner)
        self.inner = inner
        self.speaks_openai = type(inner).__module__.startswith("autogen_ext.models.openai")
        self.speaks_ollama = type(inner).__module__.startswith("autogen_ext.models.ollama")
        super().__init__(name or class_name, {"retries": 0, **(options or {})})
        # Its name may be like one of our providers', but only what AutoGen's client can do counts.
        self.logprobs, self.continues = self.speaks_openai, False
        client_retries = getattr(getattr(inner, "_client", None), "max_retries", 0)  # as the vendors' packages call it
        if self.options.retries and isinstance(client_retries, int) and client_retries > 0:
            raise ConfigError(
                f"{self.name}: retries={self.options.retries} would multiply with the client's own ({client_retries}); "
                f"create the client with max_retries=0, or leave retries out"
            )
        self.native_schema = bool(inner.model_info.get("structured_output"))
        self.identity = f"{self.name} {json.dumps(settings, sort_keys=True, default=str)}"
        self.cacheable = name is not None or len(settings) > 1  # the class alone cannot distinguish two clients

    def _check_capabilities(self) -> None:
        """Refuse only `effort` where it cannot be sent; the server rejects other options that the model does not
        accept.
        """
        if self.options.effort is not None and not self.speaks_openai:
            raise ConfigError(f"{self.name}: effort= works with OpenAI's client only; use this client's own setting")

    @property
    def model_info(self) -> ModelInfo:
        return self.inner.model_info

    def _arguments(self, request: Request) -> dict[str, Any]:
        options = dict(request.options)
        if self.speaks_openai:
            if options.pop("logprobs", False):
                options |= {"logprobs": True, "top_logprobs": 20}
            if "effort" in options:
                options["reasoning_effort"] = options.pop("effort")
            if "max_tokens" in options and traits_of(self.model).effort != "none":
                options["max_completion_tokens"] = options.pop("max_tokens")
        else:  # not every vendor has these
            for name in ("logprobs", "effort") if self.speaks_ollama else ("logprobs", "effort", "seed"):
                options.pop(name, None)
            if self.speaks_ollama and "max_tokens" in options:
                options["num_predict"] = options.pop("max_tokens")
        schema = request.schema
        if self.speaks_openai and isinstance(schema, type) and self.native_schema:
            # With `json_output`, the client would parse the reply itself, and raise where Parley records "unparsed".
            options["response_format"], schema = schema_format(schema), None
        arguments: dict[str, Any] = {"json_output": schema, "extra_create_args": options}
        if request.tools:
            arguments |= {"tools": request.tools, "tool_choice": request.tool_choice}
        return arguments

    async def send(self, request: Request) -> Reply:
        try:
            return as_reply(await self.inner.create(request.messages, **self._arguments(request)))
        except Exception as error:
            raise model_error(error, self.name, self._key) from error

    async def events(self, request: Request) -> AsyncGenerator[str | CreateResult, None]:
        arguments = self._arguments(request)
        if self.speaks_openai:
            arguments["extra_create_args"].setdefault("stream_options", {"include_usage": True})
        try:
            async with aclosing(self.inner.create_stream(request.messages, **arguments)) as parts:
                async for part in parts:
                    yield part
        except Exception as error:
            raise model_error(error, self.name, self._key) from error

    def arriving(self) -> Arriving:
        return _Parts()

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        return self.inner.count_tokens(messages, tools=tools)

    def remaining_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        return self.inner.remaining_tokens(messages, tools=tools)

    def dump_component(self) -> ComponentModel:
        return self.inner.dump_component()

    async def close(self) -> None:
        await self.inner.close()


_WRAPPED: WeakValueDictionary[int, WrappedClient] = WeakValueDictionary()
"""The wrapper of each client, by its id, so that its agents share one throttle and one token count."""


def wrap(client: ChatCompletionClient, name: str | None = None, **options: Any) -> WrappedClient:
    """Wrap a client; returns the same wrapper each time, unless a name or options are given."""
    if not isinstance(client, ChatCompletionClient):
        raise ConfigError(f"{client!r} is not a model: write provider/model, or give an AutoGen client")
    wrapper = _WRAPPED.get(id(client)) if name is None and not options else None
    if wrapper is None:
        wrapper = _WRAPPED[id(client)] = WrappedClient(client, name, options)
    return wrapper


@lru_cache(maxsize=64)
def client_from(make: Callable[[str], ChatCompletionClient]) -> type[Client]:
    """Make a client class for `register` from a function that makes AutoGen's client for a model's name."""

    class MadeClient(WrappedClient):
        def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
            super().__init__(make(name.partition("/")[2]), name, options)

    return MadeClient


def model_error(error: Exception, name: str, key: str) -> ModelError:
    """Convert another library's error to ours, by its HTTP status or name.

    Args:
        error: The client's exception.
        name: The model's name, with which the message begins.
        key: The API key, which is redacted from the message.
    """
    if isinstance(error, ModelError):
        return error
    kind = type(error).__name__
    text = error_ending(redact(str(error), key) or kind, "")
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        unreachable = isinstance(error, OSError) or any(part in kind for part in UNREACHABLE)
        return (ServerFault if unreachable else BadRequest)(f"{name}{text}")
    return status_error(
        f"{name}: the server",
        status,
        text,
        key_variable=None,
        retry_after=retry_seconds(getattr(getattr(error, "response", None), "headers", {})),
        no_credit=status == 429 and "insufficient_quota" in str(error),
    )


def as_reply(result: CreateResult) -> Reply:
    """AutoGen's result as a reply, not marked as cached."""
    if isinstance(result, Reply):
        return result
    return Reply(
        finish_reason=result.finish_reason,
        content=result.content,
        usage=result.usage,
        cached=False,
        logprobs=result.logprobs,
        thought=result.thought,
        refused=result.finish_reason == "content_filter",
    )


class _Parts(Arriving):
    """The parts of a streamed reply: texts, and at the end the whole result."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._result: CreateResult | None = None

    def add(self, event: str | CreateResult) -> str:
        if isinstance(event, CreateResult):
            self._result = event
            return ""
        self._texts.append(event)
        return event

    def reply(self) -> Reply:
        if self._result is not None:
            return as_reply(self._result)
        return Reply(finish_reason="unknown", content="".join(self._texts), usage=RequestUsage(0, 0), cached=False)
