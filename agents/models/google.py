"""Gemini, with the `google-genai` package: `google/gemini-3.8-flash`.

The key is GEMINI_API_KEY or, if that is not set, GOOGLE_API_KEY. `google-genai` replaces `google-generativeai`, whose
support ended on 30 November 2025.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

import aiohttp
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, FunctionExecutionResultMessage, LLMMessage, SystemMessage
from autogen_core.tools import Tool
from google.genai import Client as GenaiClient
from google.genai import errors, types
from google.genai.client import AsyncClient
from pydantic import ValidationError

from parley.agents.models.google_messages import (
    FAILURES,
    ArrivingChunks,
    call_part,
    certificates,
    declaration,
    efforts_of,
    open_sdk,
    read_answer,
    retry_after,
    sent_id,
)
from parley.agents.models.http import TRANSPORT, close_with, error_ending
from parley.agents.models.remote import RemoteClient, SdkOptions
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions, Request
from parley.agents.models.streaming import Arriving, Streams
from parley.agents.models.wire import strict_schema, to_chat, to_tools
from parley.base.errors import BadRequest, ModelError

ROLES = {"user": "user", "assistant": "model"}
TOOL_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
UNSIGNED = b"skip_thought_signature_validator"
"""Google's placeholder for the unknown signature of a tool call by another model or of an earlier run."""
MAX_OUTPUT = 65_536
"""The longest reply of a Gemini model, in tokens, thinking included."""


class GoogleClient(Streams, RemoteClient):
    """Client for Gemini. The SDK's retries and timeouts are off; `Client` has its own."""

    OptionsType: ClassVar[type[ClientOptions]] = SdkOptions
    native_schema = True
    key_variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    url_variable = "GOOGLE_GEMINI_BASE_URL"
    default_url = "https://generativelanguage.googleapis.com"
    context_tokens = 1_048_576
    at_once = 8

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.efforts = efforts_of(name)
        # Gemini 4 silently ignores it, so a run would claim a temperature that it did not have.
        self.takes_temperature = re.search(r"gemini-([4-9]|\d\d)", name) is None
        super().__init__(name, options)
        self.thinks = self.thinks or bool(self.efforts)
        certificates()  # a file that is not there is reported before the run
        self._session: aiohttp.ClientSession | None = None
        self._sdk: GenaiClient | None = None

    def model_list(self) -> tuple[str, dict[str, str]] | None:
        return f"{self.base_url}/v1beta/models?pageSize=1000", {"x-goog-api-key": self._key}

    def _open(self) -> AsyncClient:
        """Open the SDK at the first call, since its session belongs to an event loop."""
        if self._sdk is None or self._session is None or self._session.closed:
            self._session, self._sdk = open_sdk(self.base_url, self._key)
            close_with(self, self._session)
        return self._sdk.aio

    def body(self, request: Request) -> dict[str, Any]:
        """The arguments of the SDK's `generate_content`, without the model."""
        return {"contents": self.contents(request), "config": self.config(request)}

    def config(self, request: Request) -> types.GenerateContentConfig:
        """The SDK's config: options, system messages, schema, thinking and tools."""
        fields = {key: value for key, value in request.options.items() if key != "logprobs"}
        if "max_tokens" in fields:
            fields["max_output_tokens"] = min(fields.pop("max_tokens"), MAX_OUTPUT)
        if "n" in fields:
            fields["candidate_count"] = fields.pop("n")
        fields.pop("effort", None)
        effort = self.effort_of(request)
        if self.efforts:
            level = {"thinking_level": effort.upper()} if effort else {}
            fields["thinking_config"] = {"include_thoughts": True, **level}
        system = [message.content for message in request.messages if isinstance(message, SystemMessage)]
        if system:
            fields["system_instruction"] = "\n\n".join(system)
        if request.schema:
            fields["response_mime_type"] = "application/json"
        if isinstance(request.schema, type):
            fields["response_json_schema"] = strict_schema(request.schema.model_json_schema())
        if request.tools:
            fields["tools"] = [{"function_declarations": [declaration(tool) for tool in to_tools(request.tools)]}]
            choice = request.tool_choice
            called = {"mode": "ANY", "allowed_function_names": [choice.name]} if isinstance(choice, Tool) else None
            fields["tool_config"] = {"function_calling_config": called or {"mode": TOOL_MODES[str(choice)]}}
        # The SDK would call tools and continue cut replies by itself, outside our budget.
        fields |= {"automatic_function_calling": {"disable": True}, "automatic_continuation": False}
        try:
            return types.GenerateContentConfig(**fields)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise BadRequest(f"{self.name}: option '{key}': {first['msg']}") from None

    def contents(self, request: Request) -> list[types.Content]:
        contents: list[types.Content] = []
        for message in request.messages:
            if isinstance(message, SystemMessage):
                continue
            content = self._content(message)
            if content is None:
                continue
            last = contents[-1] if contents else None
            if last is None or last.role != content.role:
                contents.append(content)
            elif last.parts and content.parts and last.parts[-1].text is not None and content.parts[0].text is not None:
                joined = types.Part(text=f"{last.parts[-1].text}\n\n{content.parts[0].text}")
                contents[-1] = types.Content(role=last.role, parts=[*last.parts[:-1], joined, *content.parts[1:]])
            else:
                contents[-1] = types.Content(role=last.role, parts=[*(last.parts or ()), *(content.parts or ())])
        if not contents:
            raise self.no_message()
        return contents

    def _content(self, message: LLMMessage) -> types.Content | None:
        """A message in Google's format; None if it is empty, since the API rejects empty messages."""
        if isinstance(message, FunctionExecutionResultMessage):
            parts = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=sent_id(result.call_id),
                        name=result.name,
                        response={"error" if result.is_error else "output": result.content},
                    )
                )
                for result in message.content
            ]
            return types.Content(role="user", parts=parts)
        if isinstance(message, AssistantMessage) and not isinstance(message.content, str):
            calls = [call for call in message.content if isinstance(call, FunctionCall)]
            if calls and isinstance(kept := self.turns.get(calls[0].id), types.Content):
                return kept
            signatures = [UNSIGNED, *[None] * len(calls)]
            return types.Content(role="model", parts=list(map(call_part, calls, signatures)))
        turn = to_chat([message])[0]
        if not turn["content"].strip():
            return None
        return types.Content(role=ROLES[turn["role"]], parts=[types.Part(text=turn["content"])])

    async def send(self, request: Request) -> Reply:
        body = self.body(request)
        try:
            async with asyncio.timeout(self.options.timeout):
                answer = await self._open().models.generate_content(model=self.model, **body)
        except FAILURES as error:
            raise self.error_for(error) or self.unreadable() from None
        reply = read_answer(self.where, answer)
        if not isinstance(reply.content, str):
            self.keep_turn(reply.content[0].id, answer.candidates[0].content)
        return reply

    async def events(self, request: Request) -> AsyncGenerator[Any, None]:
        body = self.body(request)
        try:
            async with asyncio.timeout(self.options.timeout):
                stream = await self._open().models.generate_content_stream(model=self.model, **body)
            async for chunk in stream:
                yield chunk
        except FAILURES as error:
            raise self.error_for(error) or self.unreadable("streamed an unreadable event") from None

    def arriving(self) -> Arriving:
        return ArrivingChunks(self.where)

    def error_for(self, error: Exception) -> ModelError | None:
        if isinstance(error, TRANSPORT):  # a TimeoutError is an OSError
            return self.transport_error(error)
        if not isinstance(error, errors.APIError):
            return None
        details = str(error.details)
        return self.refused(
            error.code,
            error_ending(error.message or error.status or "", self._key),
            retry_after=retry_after(error, details),
            key_refused="API_KEY_INVALID" in details or "API key not valid" in details,
        )

    async def close(self) -> None:
        if self._sdk is not None:
            await self._sdk.aio.aclose()
            self._sdk.close()
        if self._session is not None:
            await self._session.close()
