"""Google's Gemini API (generateContent), as documented on 16 November 2026 (docs/models.md says where).

Messages of errors are the vendor's own where they are quoted in issues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tests.vendors.base import (
    CACHED_TOKENS,
    KEY,
    PROMPT_TOKENS,
    TEXT_TOKENS,
    Answer,
    Received,
    Rejected,
    SchemaRules,
    StrictServer,
    allow,
    names,
)

NAMES = frozenset({"contents", "systemInstruction", "generationConfig", "tools", "toolConfig", "safetySettings"})
SETTINGS = names(
    "temperature topP topK seed maxOutputTokens stopSequences thinkingConfig responseMimeType responseJsonSchema "
    "responseSchema candidateCount"
)
LEVELS: dict[str, tuple[str, ...]] = {
    "gemini-4-argon": ("LOW", "MEDIUM", "HIGH"),
    "gemini-3.8-flash": ("LOW", "MEDIUM", "HIGH"),
    "gemini-3.5-flash-lite": ("MINIMAL", "LOW", "MEDIUM", "HIGH"),
}
STATUSES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
FINISHES = {"stop": "STOP", "calls": "STOP", "cut": "MAX_TOKENS", "refused": "PROHIBITED_CONTENT"}
RULES = SchemaRules(
    names(
        "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum "
        "anyOf oneOf properties additionalProperties required propertyOrdering"
    )
)


class Standin(StrictServer):
    provider = "google"
    model = "gemini-3.8-flash"
    key_variable = "GEMINI_API_KEY"
    spoilt = ({"candidates": []}, {"candidates": [{"finishReason": "MALFORMED_RESPONSE"}]})
    size_limit = "parley.agents.models.google_messages.MAX_BYTES"
    efforts: ClassVar[Mapping[str, Any]] = {"low": "LOW", "medium": "MEDIUM", "high": "HIGH"}
    takes_temperature = True

    def check(self, received: Received) -> None:
        headers = {key.lower(): value for key, value in received.headers.items()}
        if headers.get("x-goog-api-key") != KEY:
            raise Rejected("API key not valid. Please pass a valid API key.")
        called = re.fullmatch(r"/v1(?:beta)?/models/(.+):(generateContent|streamGenerateContent)", received.path)
        if not called or called.group(1) != self.served:
            raise Rejected(f"{received.path} is not found", 404)
        body = received.body
        allow(body, NAMES)
        settings = body.get("generationConfig", {})
        allow(settings, SETTINGS, "generation_config.")
        self._check_thinking(_thinking(body))
        if "responseJsonSchema" in settings:
            if settings.get("responseMimeType") != "application/json" or "responseSchema" in settings:
                raise Rejected("response_json_schema is only supported with response_mime_type application/json")
            RULES.check(settings["responseJsonSchema"])
        self._check_contents(body.get("contents") or [])

    def _check_thinking(self, config: Mapping[str, Any]) -> None:
        allow(config, {"thinkingLevel", "thinkingBudget", "includeThoughts"}, "generation_config.thinking_config.")
        if "thinkingBudget" in config:
            raise Rejected("You can only set one of thinking budget and thinking level.")
        level = config.get("thinkingLevel")
        if level is not None and level not in LEVELS[self.served]:
            message = f"Thinking level {level} is not supported for this model. Please retry with other thinking level."
            raise Rejected(message)

    def _check_contents(self, contents: list[dict[str, Any]]) -> None:
        if not contents:
            raise Rejected("contents are required")
        for nth, content in enumerate(contents):
            if content.get("role") not in ("user", "model"):
                raise Rejected("Please use a valid role: user, model.")
            if not content.get("parts"):
                raise Rejected(f"* GenerateContentRequest.contents[{nth}].parts: contents.parts must not be empty.")
            for part in content["parts"]:
                if not {"text", "functionCall", "functionResponse"} & part.keys() or part.get("text") == "":
                    raise Rejected(f"* GenerateContentRequest.contents[{nth}].parts[0].data: required oneof field")
            calls = [part for part in content["parts"] if "functionCall" in part]
            if calls and not calls[0].get("thoughtSignature"):
                raise Rejected(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                    "work correctly, and missing thought_signature may lead to degraded model performance."
                )

    def error(self, rejected: Rejected) -> Any:
        status = STATUSES.get(rejected.status, "UNKNOWN")
        return {"error": {"code": rejected.status, "message": rejected.message, "status": status, "details": []}}

    def turns(self, body: Mapping[str, Any]) -> list[tuple[str, str]]:
        turns = [("system", _text(body["systemInstruction"]))] if "systemInstruction" in body else []
        for content in body["contents"]:
            role = "assistant" if content["role"] == "model" else "user"
            called = any("functionResponse" in part for part in content["parts"])
            turns.append(("tool" if called else role, _text(content)))
        return turns

    def schema(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        schema: Mapping[str, Any] | None = body.get("generationConfig", {}).get("responseJsonSchema")
        return schema

    def wants_stream(self, received: Received) -> bool:
        return received.path.endswith(":streamGenerateContent")

    def tool_schemas(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        declared = [tool for tools in body.get("tools", ()) for tool in tools["functionDeclarations"]]
        return [(tool["name"], tool.get("parametersJsonSchema", {"type": "object"})) for tool in declared]

    def effort(self, body: Mapping[str, Any]) -> Any:
        return _thinking(body).get("thinkingLevel")

    def _parts(self, answer: Answer, received: Received) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        if answer.thought and _thinking(received.body).get("includeThoughts"):
            parts.append({"text": answer.thought, "thought": True})
        parts += [{"text": text} for text in answer.pieces or (answer.text,) if text and answer.ending != "refused"]
        for nth, (name, arguments) in enumerate(answer.calls):
            call = {"id": f"call-{len(self.requests)}-{nth}", "name": name, "args": arguments}
            parts.append({"functionCall": call, "thoughtSignature": "c2lnbmVk"})
        return parts

    def _chunk(self, answer: Answer, parts: list[dict[str, Any]], *, last: bool = True) -> dict[str, Any]:
        candidate: dict[str, Any] = {"index": 0}
        if parts:
            candidate["content"] = {"role": "model", "parts": parts}
        elif answer.ending != "refused":  # everything was spent on thinking
            candidate["content"] = {"role": "model"}
        if last:
            candidate["finishReason"] = FINISHES[answer.ending]
        usage = {
            "promptTokenCount": PROMPT_TOKENS,
            "cachedContentTokenCount": CACHED_TOKENS,
            "thoughtsTokenCount": answer.thought_tokens,
            "candidatesTokenCount": answer.completion_tokens - answer.thought_tokens,
            "totalTokenCount": PROMPT_TOKENS + answer.completion_tokens,
        }
        return {
            "candidates": [candidate],
            "usageMetadata": usage if last else {**usage, "candidatesTokenCount": min(1, TEXT_TOKENS)},
            "modelVersion": self.served,
            "responseId": f"r{len(self.requests)}",
        }

    def reply(self, answer: Answer, received: Received) -> Any:
        return self._chunk(answer, self._parts(answer, received))

    def events(self, answer: Answer, received: Received) -> Iterable[tuple[str | None, Any]]:
        for part in self._parts(answer, received):
            if "text" not in part:
                yield None, self._chunk(answer, [part], last=False)
                continue
            for at in range(0, len(part["text"]), 9):
                yield None, self._chunk(answer, [{**part, "text": part["text"][at : at + 9]}], last=False)
        yield None, self._chunk(answer, [])


def _thinking(body: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of thinking. The API accepts names of fields in both forms; the SDK sends these as in Python."""
    settings = body.get("generationConfig", {}).get("thinkingConfig", {})
    return {re.sub(r"_(.)", lambda match: match.group(1).upper(), key): value for key, value in settings.items()}


def _text(content: Mapping[str, Any]) -> str:
    """The text of a content, or what a tool returned; thoughts are not part of it."""
    said = [part.get("text", "") for part in content["parts"] if not part.get("thought")]
    given = [part["functionResponse"]["response"] for part in content["parts"] if "functionResponse" in part]
    return "".join([*said, *(str(value) for response in given for value in response.values())])
