"""One call's request, as every provider gets it, and the key under which its reply is cached."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from autogen_core import Image
from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from parley.agents.transcripts import PromptMessage

Schema = type[BaseModel] | bool | None
SHARED = "parley_shared"
"""A key of `extra_create_args`: the prefixes, each as a number of messages, that other calls of the conversation share.
It becomes `Request.shared` and is neither sent to the server nor part of the reply cache's key."""


class Request(NamedTuple):
    """Everything that `Client.send` needs for one call."""

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

    def prompt(self) -> tuple[PromptMessage, ...]:
        """The messages as they are recorded in a `Call`."""
        return tuple(prompt_message(message) for message in self.messages)


def prompt_message(message: LLMMessage) -> PromptMessage:
    """A message as it is recorded in a `Call`."""
    # The most frequent first: `isinstance` with another class of pydantic's runs Python code.
    if isinstance(message, UserMessage):
        role = "user"
    elif isinstance(message, AssistantMessage):
        role = "assistant"
    elif isinstance(message, SystemMessage):
        return PromptMessage("system", "", message.content)
    else:
        text = json.dumps([result.model_dump() for result in message.content], ensure_ascii=False)
        return PromptMessage("tool", "", text)
    content = message.content
    text = content if isinstance(content, str) else json.dumps([_part_text(part) for part in content])
    return PromptMessage(role, message.source, text)


def _part_text(part: Any) -> str:
    """An image is recorded by its hash, which tells it apart in the reply cache too."""
    if isinstance(part, Image):
        return f"image {hashlib.sha256(part.to_base64().encode()).hexdigest()[:16]}"
    return str(part)


def _schema_text(schema: Schema) -> str:
    if schema is None or isinstance(schema, bool):
        return str(schema)
    return json.dumps(schema.model_json_schema(), sort_keys=True)


_SCHEMA_TEXTS: dict[Any, str] = {}


def request_key(identity: str, request: Request, prompt: Sequence[PromptMessage]) -> bytes:
    """A hash of everything that determines the reply: server, model, options, messages, schema and tools."""
    schema = _SCHEMA_TEXTS.get(request.schema)
    if schema is None:
        schema = _SCHEMA_TEXTS[request.schema] = _schema_text(request.schema)
    head = [identity, schema, sorted(request.options.items())]
    if request.tools:
        tools = [tool.schema if isinstance(tool, Tool) else tool for tool in request.tools]
        choice = request.tool_choice
        head += [json.dumps(tools, sort_keys=True), choice.name if isinstance(choice, Tool) else choice]
    digest = hashlib.blake2b(repr(head).encode(), digest_size=20)
    if prompt:
        digest.update(("\x1f" + "\x1f".join(chain.from_iterable(prompt))).encode("utf-8", "surrogatepass"))
    return digest.digest()
