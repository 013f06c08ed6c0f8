"""Servers that speak OpenAI's chat completions: what the stand-ins of those vendors share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tests.vendors.base import (
    CACHED_TOKENS,
    KEY,
    PROMPT_TOKENS,
    Answer,
    Received,
    Rejected,
    SchemaRules,
    StrictServer,
    allow,
)

ENDINGS = {"stop": "stop", "cut": "length", "refused": "stop", "calls": "tool_calls"}
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


class ChatServer(StrictServer):
    """Chat completions; a subclass says which parameters its vendor knows, and what it rejects besides."""

    path: ClassVar[str] = "/v1"
    parameters: ClassVar[frozenset[str] | None] = None
    """The parameters of a request; None if unknown ones are ignored."""
    message_fields: ClassVar[frozenset[str]] = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
    formats: ClassVar[frozenset[str]] = frozenset({"text", "json_object", "json_schema"})
    rules: ClassVar[SchemaRules | None] = None
    """What constrained decoding accepts; None if it accepts any schema."""
    thought_field: ClassVar[str] = ""
    """The field of a message that has the thinking; "" if it stays in the content, between tags."""
    marks_refusals: ClassVar[bool] = False
    unreadable = ('{"choices": []}', '{"choices": [{"message": {"content": null}}]}')
    spoilt = ({"choices": [{"message": {"content": 7}, "finish_reason": "stop"}]},)

    def check(self, received: Received) -> None:
        body = received.body
        if received.path != f"{self.path}/chat/completions":
            raise Rejected(f"Invalid URL (POST {received.path})", 404)
        if self.key_variable and received.headers.get("Authorization") != f"Bearer {KEY}":
            raise Rejected("Incorrect API key provided.", 401)
        if self.parameters is not None:
            allow(body, self.parameters)
        if body.get("model") != self.served:
            raise Rejected(f"The model `{body.get('model')}` does not exist.", 404, "model")
        if body.get("stream_options") is not None and not body.get("stream"):
            raise Rejected("'stream_options' is only allowed when 'stream' is enabled.", param="stream_options")
        if body.get("top_logprobs") is not None and not body.get("logprobs"):
            raise Rejected("'top_logprobs' needs 'logprobs'.", param="top_logprobs")
        self._check_messages(body["messages"])
        self._check_format(body)

    def _check_messages(self, messages: list[dict[str, Any]]) -> None:
        if not messages:
            raise Rejected("Invalid 'messages': empty array.", param="messages")
        pending: set[str] = set()
        for nth, message in enumerate(messages):
            if message["role"] not in ROLES:
                raise Rejected(f"Invalid value: '{message['role']}'.", param=f"messages[{nth}].role")
            allow(message, self.message_fields, f"messages[{nth}].")
            if message["role"] == "tool":
                if message["tool_call_id"] not in pending:
                    raise Rejected("messages with role 'tool' must be a response to a preceding 'tool_calls'.")
                pending.discard(message["tool_call_id"])
            elif pending:
                raise Rejected("An assistant message with 'tool_calls' must be followed by tool messages.")
            elif message.get("tool_calls"):
                pending = {call["id"] for call in message["tool_calls"]}
            elif not isinstance(message.get("content"), str):
                raise Rejected(f"Invalid type for 'messages[{nth}].content': expected a string.")

    def _check_format(self, body: Mapping[str, Any]) -> None:
        form = body.get("response_format")
        if form is None:
            return
        if form.get("type") not in self.formats:
            raise Rejected(f"Invalid value: '{form.get('type')}'.", param="response_format.type")
        if form["type"] == "json_schema":
            allow(form, {"type", "json_schema"}, "response_format.")
            named = form["json_schema"]
            allow(named, {"name", "schema", "strict", "description"}, "response_format.json_schema.")
            if self.rules is not None and named.get("strict"):
                self.rules.check(named["schema"])

    def error(self, rejected: Rejected) -> Any:
        kind = "invalid_request_error" if rejected.status < 500 else "server_error"
        return {"error": {"message": rejected.message, "type": kind, "param": rejected.param, "code": None}}

    def turns(self, body: Mapping[str, Any]) -> list[tuple[str, str]]:
        roles = {"developer": "system"}
        return [(roles.get(turn["role"], turn["role"]), turn.get("content") or "") for turn in body["messages"]]

    def schema(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        form = body.get("response_format") or {}
        return form["json_schema"]["schema"] if form.get("type") == "json_schema" else None

    def wants_json(self, body: Mapping[str, Any]) -> bool:
        return (body.get("response_format") or {}).get("type") == "json_object"

    def tool_schemas(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        return [(tool["function"]["name"], tool["function"]["parameters"]) for tool in body.get("tools", [])]

    def effort(self, body: Mapping[str, Any]) -> Any:
        return body.get("reasoning_effort")

    def thinks(self, body: Mapping[str, Any]) -> bool:
        return self.effort(body) != "none"

    def usage(self, answer: Answer) -> dict[str, Any]:
        return {
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": answer.completion_tokens,
            "total_tokens": PROMPT_TOKENS + answer.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
            "completion_tokens_details": {"reasoning_tokens": answer.thought_tokens},
        }

    def message(self, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
        if answer.pieces:
            message["content"] = [{"type": "text", "text": piece} for piece in answer.pieces]
        if answer.calls:
            message["tool_calls"] = [
                {"id": f"call_{nth}", "type": "function", "function": {"name": name, "arguments": json.dumps(values)}}
                for nth, (name, values) in enumerate(answer.calls)
            ]
        if answer.thought and self.thought_field:
            message[self.thought_field] = answer.thought
        elif answer.thought and self.shows_thoughts:
            inline = f"<think>{answer.thought}" + ("" if answer.ending == "cut" else "</think>\n\n")
            if answer.pieces:
                message["content"].insert(0, {"type": "text", "text": inline})
            else:
                message["content"] = inline + answer.text
        if answer.ending == "refused" and self.marks_refusals:
            message |= {"content": None, "refusal": answer.text}
        return message

    def reply(self, answer: Answer, received: Received) -> Any:
        choice = {
            "index": 0,
            "message": self.message(answer),
            "finish_reason": ENDINGS[answer.ending],
            "logprobs": None,
        }
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.served}
        several = [{**choice, "index": nth} for nth in range(received.body.get("n") or 1)]
        return {**head, "choices": several, "usage": self.usage(answer)}

    def events(self, answer: Answer, received: Received) -> Iterable[tuple[str | None, Any]]:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.served}
        message = self.message(answer)
        content, thought = message.pop("content"), message.pop(self.thought_field or "-", "")
        refusal = message.pop("refusal", "")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{self.thought_field: piece} for piece in chunks(thought)]
        deltas += [{"refusal": piece} for piece in chunks(refusal)]
        if isinstance(content, list):
            deltas += [{"content": [part]} for part in content]
        else:
            deltas += [{"content": piece} for piece in chunks(content or "")]
        for delta in deltas:
            yield None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield None, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": ENDINGS[answer.ending]}]}
        if (received.body.get("stream_options") or {}).get("include_usage"):
            yield None, {**head, "choices": [], "usage": self.usage(answer)}
        yield None, "[DONE]"


def chunks(text: str, size: int = 7) -> list[str]:
    """The text in pieces, so that tags and words are torn apart."""
    return [text[start : start + size] for start in range(0, len(text), size)]
