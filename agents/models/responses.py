"""OpenAI's Responses API: requests and replies in its format (`openai/…?api=responses`).

Unlike chat completions, it returns summaries of the thinking, and its thinking models can call tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import FinishReasons, FunctionExecutionResultMessage, LLMMessage, SystemMessage
from autogen_core.tools import Tool

from parley.agents.models.compatible import Arrived
from parley.agents.models.reply import Reply
from parley.agents.models.request import Request
from parley.agents.models.thoughts import join_thoughts, read_parts
from parley.agents.models.wire import read_logprobs, to_chat, to_tools, usage_fields

ENDINGS: dict[str | None, FinishReasons] = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Why a reply is incomplete."""


def thinking_before_calls(output: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """A reply's encrypted thinking before each of its tool calls, by the call's id: it is sent back with the result."""
    before: dict[str, list[dict[str, Any]]] = {}
    pending: list[dict[str, Any]] = []
    for item in output:
        if item.get("type") == "reasoning" and item.get("encrypted_content"):
            pending.append({key: item[key] for key in ("id", "type", "summary", "encrypted_content")})
        elif item.get("type") == "function_call":
            before[str(item["call_id"])] = pending
            pending = []
    return before


def to_input(messages: Sequence[LLMMessage], thinking: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The messages, without the system's, as input items."""
    items: list[dict[str, Any]] = []
    for turn in to_chat([message for message in messages if not isinstance(message, SystemMessage)], images=True):
        if turn["role"] == "tool":
            items.append({"type": "function_call_output", "call_id": turn["tool_call_id"], "output": turn["content"]})
        elif "tool_calls" in turn:
            for call in turn["tool_calls"]:
                items += (thinking or {}).get(call["id"], [])
                items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
        else:
            content = turn["content"]
            items.append({"role": turn["role"], "content": content if isinstance(content, str) else _parts(content)})
    return items


def _parts(content: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Texts and images, as Responses have them."""
    return [
        {"type": "input_text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "input_image", "image_url": part["image_url"]["url"]}
        for part in content
    ]


def uses_tools(request: Request) -> bool:
    """Whether the request offers tools, or has results of one."""
    return bool(request.tools) or any(isinstance(item, FunctionExecutionResultMessage) for item in request.messages)


def responses_body(
    model: str,
    request: Request,
    form: Mapping[str, Any] | None,
    *,
    thinking: Mapping[str, Any] | None,
    summary: str | None,
) -> dict[str, Any]:
    """The JSON body of a request. Nothing is stored at OpenAI.

    Args:
        model: its name.
        request: the request.
        form: how the reply is constrained, as chat completions say it.
        thinking: the thinking before earlier tool calls; None for a model that does not think.
        summary: the kind of summary of the thinking; None for none.
    """
    options = dict(request.options)
    body: dict[str, Any] = {"model": model, "input": to_input(request.messages, thinking), "store": False}
    if system := [message.content for message in request.messages if isinstance(message, SystemMessage)]:
        body["instructions"] = "\n\n".join(system)
    if "max_tokens" in options:
        body["max_output_tokens"] = options.pop("max_tokens")
    reasoning = {"effort": options.pop("effort", None), "summary": summary}
    if reasoning := {key: value for key, value in reasoning.items() if value}:
        body["reasoning"] = reasoning
    include = ["reasoning.encrypted_content"] if thinking is not None and uses_tools(request) else []
    if options.pop("logprobs", False):
        include.append("message.output_text.logprobs")
        body["top_logprobs"] = 20
    if include:
        body["include"] = include
    options.pop("seed", None)  # it has none
    if request.tools:
        body["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in to_tools(request.tools)]
        choice = request.tool_choice
        body["tool_choice"] = {"type": "function", "name": choice.name} if isinstance(choice, Tool) else choice
    if form is not None:
        body["text"] = {"format": {"type": form["type"], **form.get("json_schema", {})}}
    return {**body, **options}


def from_response(data: Mapping[str, Any]) -> Reply:
    """A response as a reply; raises KeyError, TypeError or the like on anything else."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[FunctionCall] = []
    logprobs: list[dict[str, Any]] = []
    refused = False
    for item in data["output"]:
        if item["type"] == "reasoning":
            thoughts.append(read_parts([*(item.get("summary") or ()), *(item.get("content") or ())])[0])
        elif item["type"] == "function_call":
            calls.append(FunctionCall(id=item["call_id"], name=item["name"], arguments=item["arguments"]))
        elif item["type"] == "message":
            for part in item["content"]:
                refused = refused or part["type"] == "refusal"
                texts.append(part["refusal"] if part["type"] == "refusal" else part["text"])
                logprobs += part.get("logprobs") or []
    finish: FinishReasons = "stop"
    if data["status"] == "incomplete":
        finish = ENDINGS.get((data.get("incomplete_details") or {}).get("reason"), "unknown")
    elif data["status"] != "completed":
        raise TypeError(f"the status is {data['status']}")
    return Reply(
        finish_reason="function_calls" if calls else finish,
        content=calls or "".join(texts),
        cached=False,
        logprobs=read_logprobs(logprobs),
        thought=join_thoughts(thoughts) or None,
        refused=refused or finish == "content_filter",
        **usage_fields(data.get("usage") or {}),
    )


def read_event(event: Mapping[str, Any], arrived: Arrived) -> str:
    """The text of one event of a stream; thinking, usage and ending are put into `arrived`. ValueError with the
    server's message, if the reply failed."""
    kind = event["type"]
    if kind == "response.output_text.delta":
        return str(event["delta"])
    if kind == "response.refusal.delta":
        arrived.refused = True
        return str(event["delta"])
    if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
        arrived.thoughts.append(str(event["delta"]))
    elif kind == "response.reasoning_summary_part.done":
        arrived.thoughts.append("\n\n")
    elif kind in ("response.completed", "response.incomplete"):
        whole = event["response"]
        arrived.usage = dict(whole.get("usage") or {})
        cut = ENDINGS.get((whole.get("incomplete_details") or {}).get("reason"), "unknown")
        arrived.finish = "stop" if kind == "response.completed" else cut
    elif kind in ("error", "response.failed"):
        error = event if kind == "error" else (event["response"].get("error") or {})
        raise ValueError(str(error.get("message") or "the reply failed"))
    return ""
