"""A request as every provider gets it: the model's name and options, and the key of the reply cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import unquote

from autogen_core import Image
from autogen_core.models import LLMMessage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel, Field

from parley.agents.transcripts import PromptMessage
from parley.base.errors import ConfigError
from parley.base.text import without_surrogates

DEFAULT_MODEL = "local/smollm2"
THINK_TOKENS = 16_384
"""Tokens for thinking, in addition to the answer's limit, for a model that thinks."""
FLOOR = 0.01
"""Self-Debias's smallest factor, as in its authors' code: no token is ruled out entirely."""
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ClientOptions(BaseModel, extra="forbid", frozen=True):
    """Options after the `?` in a model's name, or keyword arguments of `model()` in Python."""

    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    top_p: float | None = Field(None, gt=0, le=1, description="nucleus sampling (default: the model's own)")
    max_tokens: int | None = Field(None, ge=1, description="maximum tokens of an answer (default: the model's own)")
    think_tokens: int | None = Field(
        None,
        ge=0,
        description=f"room to think, in tokens beyond max_tokens (default: {THINK_TOKENS:,} for a model that thinks)",
    )
    effort: Effort | None = Field(None, description="how much the model thinks (default: the model's own)")
    seed: int | None = Field(None, description="sampling seed (default in a run: one per request)")
    timeout: float = Field(120.0, gt=0, description="seconds after which a call counts as failed")
    max_connections: int = Field(256, ge=1, description="maximum number of concurrent calls")
    retries: int = Field(6, ge=0, description="how often a call is retried after a temporary failure")
    price_in: float | None = Field(None, ge=0, description="US dollars per million prompt tokens")
    price_out: float | None = Field(None, ge=0, description="US dollars per million reply tokens")
    price_cached: float | None = Field(
        None, ge=0, description="US dollars per million prompt tokens read from the vendor's prompt cache"
    )

    SAMPLING: ClassVar[tuple[str, ...]] = ("temperature", "top_p", "max_tokens", "think_tokens", "effort", "seed")

    def sampling(self) -> dict[str, Any]:
        """The sampling options that are set."""
        values = ((key, getattr(self, key)) for key in self.SAMPLING)
        return {key: value for key, value in values if value is not None}


Schema = type[BaseModel] | bool | None
SHARED = "parley_shared"
"""A key of `extra_create_args`: the prefixes, each as a number of messages, that other calls of the conversation share.
It becomes `Request.shared` and is neither sent to the server nor part of the reply cache's key."""
TYPED = "parley_typed"
"""Key of `extra_create_args` for `Request.typed`."""


class Request(NamedTuple):
    """All that `Client.send` needs for one call."""

    messages: tuple[LLMMessage, ...]
    """The prompt, as AutoGen messages."""
    schema: Schema = None
    """The pydantic model that the reply must match; True for any JSON, None for free text."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Sampling options of this call: `temperature`, `max_tokens`, `effort`, `seed`, `logprobs`, … For `Client.send`,
    `max_tokens` includes the room to think."""
    tools: tuple[Tool | ToolSchema, ...] = ()
    """Tools that the model may call."""
    tool_choice: Tool | Literal["auto", "required", "none"] = "auto"
    """Which tool the model must call, as in AutoGen."""
    shared: tuple[int, ...] = ()
    """Prefixes that other calls share, each as a number of messages: where a prompt cache should be marked."""
    typed: bool = False
    """Whether the reply is asked for once more if it does not have the form that was asked for."""

    def prompt(self) -> tuple[PromptMessage, ...]:
        """The messages as recorded in a `Call`."""
        return tuple(map(prompt_message, self.messages))


def prompt_message(message: LLMMessage) -> PromptMessage:
    """A message as recorded in a `Call`."""
    # Told by the field, since `isinstance` with a pydantic class runs Python code.
    if message.type == "UserMessage":
        role = "user"
    elif message.type == "AssistantMessage":
        role = "assistant"
    elif message.type == "SystemMessage":
        return PromptMessage("system", "", message.content)
    else:
        text = json.dumps([result.model_dump() for result in message.content], ensure_ascii=False)
        return PromptMessage("tool", "", text)
    content = message.content
    text = content if isinstance(content, str) else json.dumps([_part_text(part) for part in content])
    return PromptMessage(role, message.source, text)


def _part_text(part: Any) -> str:
    """The text of a part of a message; an image is recorded by its hash, also in the reply cache."""
    if isinstance(part, Image):
        return f"image {hashlib.sha256(part.to_base64().encode()).hexdigest()[:16]}"
    return str(part)


@lru_cache(maxsize=256)
def _schema_text(schema: Schema) -> str:
    if schema is None or isinstance(schema, bool):
        return str(schema)
    return json.dumps(schema.model_json_schema(), sort_keys=True)


def request_key(identity: str, request: Request, prompt: Sequence[PromptMessage]) -> bytes:
    """A hash of everything that determines the reply: server, model, options, messages, schema and tools."""
    head = [identity, _schema_text(request.schema), sorted(request.options.items())]
    if request.tools:
        tools = [tool.schema if isinstance(tool, Tool) else tool for tool in request.tools]
        choice = request.tool_choice
        head += [json.dumps(tools, sort_keys=True), choice.name if isinstance(choice, Tool) else choice]
    digest = hashlib.blake2b(repr(head).encode(), digest_size=20)
    if prompt:
        digest.update(("\x1f" + "\x1f".join(chain.from_iterable(prompt))).encode("utf-8", "surrogatepass"))
    return digest.digest()


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """`provider/model?a=1&b=2` split into the name and its options."""
    name = without_surrogates(name)  # bytes of a command line that are not UTF-8 come as such
    plain, _, query = name.partition("?")
    provider, slash, rest = plain.partition("/")
    if not slash or not provider or not rest:
        raise ConfigError(f"'{name}' is not a model name; write provider/model, for example {DEFAULT_MODEL}")
    return plain, read_query(f"'{name}'", query)


def read_query(name: str, query: str) -> dict[str, str]:
    """The options in `a=1&b=2`; a `ConfigError` begins with `name` if one has no value."""
    options: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{name}: option '{pair}' has no value; write {pair}=VALUE")
        options[unquote(key)] = unquote(value)
    return options


def estimate_tokens(text: str) -> int:
    """Tokens of a text at four characters each, rounded up."""
    return (len(text) + 3) // 4


def prompt_tokens(prompt: Sequence[PromptMessage]) -> int:
    """Tokens of a prompt at four characters each."""
    return sum(estimate_tokens(message.text) for message in prompt)
