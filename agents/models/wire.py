"""AutoGen's messages in the format of chat servers, and their completions as replies.

Speakers' names are written into the text ("Ada: …"), since most servers ignore AutoGen's `source`. Consecutive messages
of one role are joined, since many local models require alternating roles.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionTokenLogprob,
    FinishReasons,
    LLMMessage,
    RequestUsage,
    TopLogprob,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from parley.agents.models.reply import Reply
from parley.agents.models.thoughts import join_thoughts, read_parts
from parley.base.errors import BadRequest

TOP_TOKENS, READ_TOKENS = 20, 200
"""How many of the most probable tokens a reply lists, and how many a model in this process looks at for a ballot: few
digits have so little probability that they are not among these, and rarer ones can be neglected."""
NARRATOR = "user"
"""Source of messages that come from no agent: the task, the instructions of a round."""
UNREAD = "Your reply could not be read"
"""The beginning of a request to send a reply again."""

FINISH: dict[str | None, FinishReasons] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "tool_calls": "function_calls",
    "function_call": "function_calls",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
}
"""Finish reasons of servers. Any other word, or none, is `unknown`: such a reply gives no verdict."""


def to_chat(messages: Sequence[LLMMessage], thought_key: str | None = None) -> list[dict[str, Any]]:
    """The messages as a list of `{"role": …, "content": …}`.

    Args:
        messages: the prompt.
        thought_key: the field for sending back the thinking before a tool call, even if empty; None if the server wants
            none.
    """
    chat: list[dict[str, Any]] = []
    for message in messages:
        if message.type == "UserMessage":  # by the field, as in `prompt_message`
            role = "user"
            if not isinstance(message.content, str):
                raise BadRequest("this client accepts text only, but a message contains an image")
            # Small models begin their turn with their name; "Forty: Forty: …" is then copied by all who read it.
            named = message.source == NARRATOR or message.content.startswith(f"{message.source}:")
            text = message.content if named else f"{message.source}: {message.content}"
        elif message.type == "AssistantMessage":
            if not isinstance(message.content, str):
                chat.append(_tool_calls(message, thought_key))
                continue
            role, text = "assistant", message.content
        elif message.type == "SystemMessage":
            role, text = "system", message.content
        else:
            chat.extend(
                {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
                for result in message.content
            )
            continue
        if chat and chat[-1]["role"] == role and isinstance(chat[-1]["content"], str):
            chat[-1]["content"] += "\n\n" + text
        else:
            chat.append({"role": role, "content": text})
    return chat


def _tool_calls(message: AssistantMessage, thought_key: str | None) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.content
        if not isinstance(call, str)
    ]
    turn = {"role": "assistant", "content": None, "tool_calls": calls}
    return turn if thought_key is None else {**turn, thought_key: message.thought or ""}


def to_tools(tools: Sequence[Tool | ToolSchema]) -> list[dict[str, Any]]:
    schemas = [tool.schema if isinstance(tool, Tool) else tool for tool in tools]
    return [{"type": "function", "function": dict(schema)} for schema in schemas]


def strict_schema(schema: dict[str, Any], *, lengths: bool = False) -> dict[str, Any]:
    """A pydantic schema as providers' strict modes require it: no references, no additional properties, all required.

    Args:
        schema: what `model_json_schema()` returns.
        lengths: whether to keep `minLength` and `maxLength`, which not every vendor's strict mode accepts.
    """
    definitions = schema.get("$defs", {})
    dropped = {"$defs", "title", "default"} | (set() if lengths else {"minLength", "maxLength"})

    def close(node: Any) -> Any:
        if isinstance(node, list):
            return [close(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return close(definitions[node["$ref"].rsplit("/", 1)[-1]])
        closed = {key: close(value) for key, value in node.items() if key not in dropped}
        if "properties" in node:
            closed["properties"] = {key: close(value) for key, value in node["properties"].items()}
        if closed.get("type") == "object" and "properties" in closed:
            closed["required"] = list(closed["properties"])
            closed["additionalProperties"] = False
        return closed

    result = close(json.loads(json.dumps(schema)))
    assert isinstance(result, dict)
    return result


@lru_cache(maxsize=256)
def schema_format(schema: type[BaseModel], lengths: bool = False) -> Mapping[str, Any]:
    """The `response_format` of chat completions for a type; `lengths` as in `strict_schema`."""
    named = {
        "name": schema.__name__,
        "schema": strict_schema(schema.model_json_schema(), lengths=lengths),
        "strict": True,
    }
    return {"type": "json_schema", "json_schema": named}


def decoding_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """A schema for llguidance, with fixed white space: free white space costs a third of a reply's tokens."""
    spacing = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    return {**strict_schema(schema.model_json_schema(), lengths=True), "x-guidance": spacing}


def from_completion(data: dict[str, Any]) -> Reply:
    """Convert a chat completion in OpenAI's format to a reply; raises KeyError, TypeError or similar if it is
    malformed.
    """
    choice = data["choices"][0]
    message = choice["message"]
    content, refusal, calls = message.get("content"), message.get("refusal"), message.get("tool_calls")
    thought, ending = thought_in(message), choice.get("finish_reason")
    if content is None and not (calls or refusal or thought or ending):
        raise TypeError("no content")
    if isinstance(content, list):
        refusal = refusal or refusal_in(content)
        inner, content = read_parts(content)
        thought = join_thoughts([thought, inner])
    finish = FINISH.get(ending, "unknown")
    return Reply(
        finish_reason="function_calls" if calls else finish,
        content=[_function_call(call) for call in calls] if calls else (content or refusal or ""),
        cached=False,
        logprobs=read_logprobs((choice.get("logprobs") or {}).get("content")),
        thought=thought or None,
        refused=bool(refusal) or finish == "content_filter",
        others=tuple(map(_text_of, data["choices"][1:])),
        **usage_fields(data.get("usage")),
    )


def _text_of(choice: dict[str, Any]) -> str:
    """The text of a further reply; "" if it was refused or may be incomplete."""
    content, refusal = choice["message"].get("content"), choice["message"].get("refusal")
    if isinstance(content, list):
        refusal = refusal or refusal_in(content)
        content = read_parts(content)[1]
    ended = FINISH.get(choice.get("finish_reason")) in ("stop", "length")
    return (content or "") if ended and not refusal else ""


def refusal_in(parts: Sequence[Any]) -> str:
    """The text of a content's refusal parts; "" if there are none."""
    refusals = (part for part in parts if isinstance(part, dict) and part.get("type") == "refusal")
    return "".join(str(part.get("refusal") or part.get("text") or "refused") for part in refusals)


def without_prefill(reply: Reply, messages: Sequence[LLMMessage]) -> Reply:
    """The reply without the prefill, which llama.cpp repeats."""
    given = messages[-1].content if isinstance(messages[-1], AssistantMessage) else None
    if isinstance(given, str) and isinstance(reply.content, str):
        reply.content = reply.content.removeprefix(given)
    return reply


def thought_in(message: dict[str, Any]) -> str:
    """The thinking in a message or a streamed delta: DeepSeek's and llama.cpp's field, or vLLM's and OpenRouter's."""
    for field in ("reasoning_content", "reasoning"):
        if isinstance(thought := message.get(field), str) and thought:
            return thought
    return ""


def billed_reply(data: Any) -> Reply:
    """An empty reply with the usage of an unreadable completion."""
    usage = data.get("usage") if isinstance(data, dict) else None
    return Reply(finish_reason="unknown", content="", cached=False, **usage_fields(usage))


def usage_fields(usage: Any) -> dict[str, Any]:
    """The usage fields of a reply, from a chat completion's usage.

    A count that the server does not state, or that is impossible, is left unknown. Cached tokens are OpenAI's field,
    which vLLM and llama.cpp use too, or DeepSeek's. OpenAI charges for tokens written to its cache from GPT-5.6 on.
    """
    usage = usage if isinstance(usage, dict) else {}
    prompt_tokens = usage.get("prompt_tokens") or 0
    details, thinking = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    if not isinstance(details, dict):
        details = {}
    cached = details.get("cached_tokens")
    thought = thinking.get("reasoning_tokens") if isinstance(thinking, dict) else None
    return {
        "usage": RequestUsage(prompt_tokens, usage.get("completion_tokens") or 0),
        "cached_tokens": valid_cached_count(
            usage.get("prompt_cache_hit_tokens") if cached is None else cached, prompt_tokens
        ),
        "written_tokens": valid_cached_count(details.get("cache_write_tokens"), prompt_tokens) or 0,
        "thought_tokens": thought if type(thought) is int else None,
    }


def valid_cached_count(cached: Any, prompt: Any) -> int | None:
    """The count of cached tokens, if valid and not more than the prompt's."""
    return cached if type(cached) is int and type(prompt) is int and 0 <= cached <= prompt else None


def _function_call(call: dict[str, Any]) -> FunctionCall:
    function = call["function"]
    return FunctionCall(id=call.get("id") or "", name=function["name"], arguments=function["arguments"])


def read_logprobs(entries: Sequence[dict[str, Any]] | None) -> list[ChatCompletionTokenLogprob] | None:
    """Log-probabilities of a reply's tokens, with NaN for invalid numbers; None if there are none."""
    if not entries:
        return None
    return [
        ChatCompletionTokenLogprob(
            token=entry["token"],
            logprob=_number(entry.get("logprob")),
            top_logprobs=[
                TopLogprob(
                    logprob=_number(top.get("logprob")),
                    bytes=top.get("bytes") or list(top["token"].encode("utf-8", "replace")),
                )
                for rank, top in enumerate(entry.get("top_logprobs") or [])
                if rank < TOP_TOKENS or may_answer(str(top.get("token")))
            ],
        )
        for entry in entries
    ]


def may_answer(token: str) -> bool:
    """Whether a ballot may ask for a token: a digit or a letter."""
    return len(token.strip()) == 1


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    with suppress(OverflowError):  # JSON's integers have no limit
        return float(value) if type(value) is int else math.nan
    return math.nan
