"""OpenAI's Responses, as documented for its current models (openai-python 3.49; docs/models.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tests.vendors.base import CACHED_TOKENS, KEY, PROMPT_TOKENS, Answer, Received, Rejected, StrictServer, allow, names
from tests.vendors.chat import FORMATS, chunks
from tests.vendors.openai import EFFORTS, STRICT, check_effort

PARAMETERS = names(
    "access_programs background context_management conversation image include input instructions max_output_tokens "
    "max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream "
    "stream_options temperature text tool_choice tools top_logprobs top_p truncation user"
)
SUMMARIES = frozenset({"auto", "concise", "detailed"})


class Standin(StrictServer):
    provider, model, key_variable, path = "openai", "gpt-6.1-terra", "OPENAI_API_KEY", "/v1"
    options = "api=responses"
    spoilt = ({"status": "failed"},)
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS["gpt-6.1-terra"]}

    def check(self, received: Received) -> None:
        body = received.body
        if received.path != f"{self.path}/responses":
            raise Rejected(f"Invalid URL (POST {received.path})", 404)
        if received.headers.get("Authorization") != f"Bearer {KEY}":
            raise Rejected("Incorrect API key provided.", 401)
        allow(body, PARAMETERS)
        if body.get("model") != self.served:
            raise Rejected(f"The model `{body.get('model')}` does not exist.", 404, "model")
        allow(body.get("stream_options") or {}, {"include_obfuscation"}, "stream_options.")
        reasoning = body.get("reasoning") or {}
        allow(reasoning, {"context", "effort", "mode", "summary"}, "reasoning.")
        thinks = check_effort(self.served, reasoning.get("effort"), "reasoning.effort")
        if reasoning and not EFFORTS[self.served]:
            raise Rejected("Unsupported parameter: 'reasoning' is not supported with this model.", param="reasoning")
        if reasoning.get("summary", "auto") not in SUMMARIES:
            raise Rejected("Invalid value for 'reasoning.summary'.", param="reasoning.summary")
        sampling = [name for name in ("temperature", "top_p", "top_logprobs") if name in body]
        sampling += [name for name in body.get("include", []) if name == "message.output_text.logprobs"]
        if thinks and sampling:
            raise Rejected(f"Unsupported parameter: '{sampling[0]}' is not supported with this model.")
        form = (body.get("text") or {}).get("format")
        if form is not None:
            if form.get("type") not in FORMATS:
                raise Rejected("Invalid value for 'text.format.type'.", param="text.format.type")
            if form["type"] == "json_schema":
                allow(form, {"type", "name", "schema", "strict", "description"}, "text.format.")
                STRICT.check(form["schema"])
        for tool in body.get("tools", []):
            if tool.get("type") != "function" or not {"name", "parameters", "strict"} <= tool.keys():
                raise Rejected("Missing required parameter: 'tools[0].name'.", param="tools[0].name")
        self._check_input(body["input"])

    def _check_input(self, items: list[dict[str, Any]]) -> None:
        if not items:
            raise Rejected("Missing required parameter: 'input'.", param="input")
        calls: set[str] = set()
        thought = False
        for item in items:
            kind = item.get("type", "message")
            if kind == "message":
                allow(item, {"role", "content", "type"}, "input[].")
            elif kind == "reasoning":
                thought = bool(item["encrypted_content"])
            elif kind == "function_call":
                allow(item, {"type", "call_id", "name", "arguments", "id", "status"}, "input[].")
                calls.add(item["call_id"])
                if self.kind == "thinking" and not thought:
                    raise Rejected("Item of type 'function_call' was provided without its required 'reasoning' item.")
            elif kind == "function_call_output":
                if item["call_id"] not in calls:
                    raise Rejected(f"No tool call found for function call output with call_id {item['call_id']}.")
            else:
                raise Rejected(f"Invalid value: '{kind}'.", param="input[].type")

    def error(self, rejected: Rejected) -> Any:
        kind = "invalid_request_error" if rejected.status < 500 else "server_error"
        return {"error": {"message": rejected.message, "type": kind, "param": rejected.param, "code": None}}

    def turns(self, body: Mapping[str, Any]) -> list[tuple[str, str]]:
        turns = [("system", body["instructions"])] if body.get("instructions") else []
        for item in body["input"]:
            if item.get("type") == "function_call_output":
                turns.append(("tool", item["output"]))
            elif item.get("type", "message") == "message":
                turns.append((item["role"], item["content"]))
        return turns

    def schema(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        form = (body.get("text") or {}).get("format") or {}
        return form.get("schema")

    def tool_schemas(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        return [(tool["name"], tool["parameters"]) for tool in body.get("tools", [])]

    def effort(self, body: Mapping[str, Any]) -> Any:
        return (body.get("reasoning") or {}).get("effort")

    def thinks(self, body: Mapping[str, Any]) -> bool:
        return bool(EFFORTS[self.served]) and self.effort(body) != "none"

    def _output(self, answer: Answer, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        output: list[dict[str, Any]] = []
        if answer.thought:
            shown = (body.get("reasoning") or {}).get("summary")
            summary = [{"type": "summary_text", "text": answer.thought}] if shown else []
            output.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"})
        for nth, (name, arguments) in enumerate(answer.calls):
            call = {"call_id": f"call_{nth}", "name": name, "arguments": json.dumps(arguments), "status": "completed"}
            output.append({"type": "function_call", "id": f"fc_{nth}", **call})
        texts = [{"type": "output_text", "text": text, "annotations": []} for text in answer.pieces or (answer.text,)]
        content = [{"type": "refusal", "refusal": answer.text}] if answer.ending == "refused" else texts
        if answer.text:
            message = {"role": "assistant", "status": "completed", "content": content}
            output.append({"type": "message", "id": "msg_1", **message})
        return output

    def reply(self, answer: Answer, received: Received) -> Any:
        cut = answer.ending == "cut"
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "incomplete" if cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "model": self.served,
            "output": self._output(answer, received.body),
            "usage": {
                "input_tokens": PROMPT_TOKENS,
                "input_tokens_details": {"cached_tokens": CACHED_TOKENS, "cache_write_tokens": 30},
                "output_tokens": answer.completion_tokens,
                "output_tokens_details": {"reasoning_tokens": answer.thought_tokens},
                "total_tokens": PROMPT_TOKENS + answer.completion_tokens,
            },
        }

    def events(self, answer: Answer, received: Received) -> Iterable[tuple[str | None, Any]]:
        whole = self.reply(answer, received)
        listed: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": []}}]
        for item in whole["output"]:
            listed.append({"type": "response.output_item.added", "item": {"type": item["type"]}})
            for part in item.get("summary", []):
                deltas = chunks(part["text"])
                listed += [{"type": "response.reasoning_summary_text.delta", "delta": delta} for delta in deltas]
                listed.append({"type": "response.reasoning_summary_part.done", "part": part})
            for part in item.get("content", []):
                kind = "refusal" if part["type"] == "refusal" else "output_text"
                text = part.get("refusal") or part["text"]
                listed += [{"type": f"response.{kind}.delta", "delta": delta} for delta in chunks(text)]
            listed.append({"type": "response.output_item.done", "item": item})
        listed.append({"type": f"response.{whole['status']}", "response": whole})
        for nth, event in enumerate(listed):
            yield event["type"], {**event, "sequence_number": nth}
