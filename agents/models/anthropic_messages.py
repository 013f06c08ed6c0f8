"""Anthropic's Messages API: what each Claude model accepts, AutoGen's messages as blocks, and messages as replies.

The API refuses what a model does not accept with an error 400. The rules were looked up on 16 November 2026;
docs/models.md says where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import FinishReasons, RequestUsage

from parley.agents.models.reply import Reply
from parley.agents.models.request import Effort
from parley.agents.models.streaming import Arriving
from parley.agents.models.thoughts import join_thoughts
from parley.base.errors import ServerFault

SAMPLING = frozenset({"temperature", "top_p", "top_k"})
SAMPLING_VERSION = {"anthropic-version": "2023-06-01"}
FINISH: dict[str | None, FinishReasons] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "function_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_NAME = re.compile(r"(opus|sonnet|haiku|fable|mythos)-(\d+)(?:[-.](\d)(?!\d))?")
NEWEST = (5, 5)
"""What a name without a known version is taken for."""
SHOWN = {"type": "adaptive", "display": "summarized"}
"""The model decides how much it thinks; without `display`, current models return no text of it."""


@dataclass(frozen=True, kw_only=True)
class ClaudeRules:
    """What a model accepts.

    Args:
        efforts: the values of the option `effort`.
        thinks: whether it thinks if nothing is said about it.
        off: how thinking is turned off: {} if by omission, None if it cannot be.
        adaptive: whether it can decide how much it thinks. Older models think only with a budget, which is not used.
        temperature: whether it accepts `temperature` and `top_p`, while it does not think.
        forced_tools: whether it can be made to call a tool, while it does not think.
        context: its context window, in tokens.
        output: the highest limit of a reply that it accepts, in tokens, thinking included.
    """

    efforts: tuple[Effort, ...]
    thinks: bool
    off: dict[str, Any] | None
    adaptive: bool
    temperature: bool
    forced_tools: bool
    context: int
    output: int

    def thinking(self, effort: Effort | None) -> dict[str, Any]:
        """The parameter `thinking` of a request; {} if there is none."""
        if effort == "none":
            return self.off or {}
        return SHOWN if self.thinks or (self.adaptive and effort is not None) else {}


def rules_for(model: str) -> ClaudeRules:
    """The rules of a model: `claude-haiku-5-5`, `claude-opus-4-5-20251101`."""
    found = _NAME.search(model)
    line = found.group(1) if found else ""
    version = (int(found.group(2)), int(found.group(3) or 0)) if found else NEWEST
    always = line in ("", "fable", "mythos") or (line == "opus" and version >= (5, 5))
    off: dict[str, Any] | None = {}
    if always:
        off = None
    elif version >= (5, 0):
        off = {"type": "between_tools" if line == "sonnet" and version >= (5, 5) else "disabled"}
    first = {"opus": (4, 5), "sonnet": (4, 6), "haiku": (5, 0)}.get(line, (0, 0))
    levels: tuple[Effort, ...] = ()
    if version >= first:
        levels = ("low", "medium", "high")
        levels += ("xhigh",) if version >= (4, 7) else ()
        levels += ("max",) if version >= (4, 6) else ()
    return ClaudeRules(
        efforts=levels if off is None else ("none", *levels),
        thinks=version >= (5, 0),
        off=off,
        adaptive=version >= (4, 6),
        temperature=version < (4, 7),
        forced_tools=not always and (line == "haiku" or version < (5, 5)),
        context=1_000_000 if version >= (4, 6) else 200_000,
        output=128_000 if version >= (4, 6) else 64_000,
    )


def joined(blocks: list[dict[str, Any]]) -> Any:
    """Blocks that are all text as one text."""
    return "".join(block["text"] for block in blocks) if all(block["type"] == "text" for block in blocks) else blocks


def picture_block(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    kind, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def tool_declaration(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def tool_use(call: FunctionCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = {}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def read_message(message: Any) -> Reply:
    """A message as a reply; raises AttributeError or TypeError on anything else, which the SDK does not check."""
    # Thinking that was withheld (`redacted_thinking`, or a block without text) counts in the tokens only.
    thought = join_thoughts(block.thinking for block in message.content if block.type == "thinking")
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [
        FunctionCall(id=block.id, name=block.name, arguments=json.dumps(block.input, ensure_ascii=False))
        for block in message.content
        if block.type == "tool_use"
    ]
    if calls:
        thought = join_thoughts([thought, text])
    refused = message.stop_reason == "refusal"
    if refused and not text:
        text = getattr(message.stop_details, "explanation", None) or ""
    return Reply(
        finish_reason=FINISH.get(message.stop_reason, "unknown"),
        content=calls or text,
        cached=False,
        thought=thought or None,
        refused=refused,
        **_usage(message.usage),
    )


def _usage(usage: Any) -> dict[str, Any]:
    """A reply's usage fields."""
    written, read = usage.cache_creation_input_tokens or 0, usage.cache_read_input_tokens or 0
    return {
        "usage": RequestUsage(usage.input_tokens + written + read, usage.output_tokens),
        "cached_tokens": read,
        "written_tokens": written,
        "thought_tokens": getattr(usage.output_tokens_details, "thinking_tokens", None),
    }


def billed_message(message: Any) -> Reply | None:
    """An empty reply with the usage of one that is otherwise unreadable; None if it states none."""
    try:
        return Reply(finish_reason="unknown", content="", cached=False, **_usage(message.usage))
    except (AttributeError, TypeError, ValueError):
        return None


class ArrivingMessage(Arriving):
    """The events of a streamed message, put together."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._fields: dict[str, Any] = {"usage": RequestUsage(0, 0)}
        self._ending: str | None = None
        self._explanation = ""

    def add(self, event: Any) -> str:
        try:
            return self._text(event)
        except (AttributeError, TypeError, ValueError):
            raise ServerFault(f"{self._where} streamed an unreadable event") from None

    def _text(self, event: Any) -> str:
        if event.type == "message_start":
            self._fields = _usage(event.message.usage)
        elif event.type == "message_delta":
            self._ending = event.delta.stop_reason
            self._explanation = getattr(event.delta.stop_details, "explanation", None) or ""
            usage = event.usage
            if usage.input_tokens is None:  # then only the completion's tokens are stated again
                prompt_tokens = self._fields["usage"].prompt_tokens
                self._fields["usage"] = RequestUsage(prompt_tokens, usage.output_tokens)
                self._fields["thought_tokens"] = getattr(usage.output_tokens_details, "thinking_tokens", None)
            else:
                self._fields = _usage(usage)
        elif event.type == "content_block_start" and event.content_block.type == "thinking" and self._thoughts:
            self._thoughts.append("\n\n")
        elif event.type == "content_block_delta":
            if event.delta.type == "thinking_delta":
                self._thoughts.append(event.delta.thinking)
            elif event.delta.type == "text_delta":
                self._texts.append(event.delta.text)
                return str(event.delta.text)
        return ""

    def reply(self) -> Reply:
        text = "".join(self._texts)
        refused = self._ending == "refusal"
        return Reply(
            finish_reason=FINISH.get(self._ending, "unknown"),
            content=text or (self._explanation if refused else ""),
            cached=False,
            thought="".join(self._thoughts).strip() or None,
            refused=refused,
            **self._fields,
        )
