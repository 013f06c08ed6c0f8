"""Gemini, with the `google-genai` package: `google/gemini-3.8-flash`.

The key is GEMINI_API_KEY or, if that is not set, GOOGLE_API_KEY. `google-genai` replaces `google-generativeai`, whose
support ended on 30 November 2025.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

import aiohttp
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FinishReasons,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
    SystemMessage,
)
from autogen_core.tools import Tool
from google.genai import Client as GenaiClient
from google.genai import errors, types
from pydantic import Field, ValidationError

from parley.agents.models.batches import BatchEndpoint
from parley.agents.models.http import MAX_BYTES, TooLong, read_body
from parley.agents.models.options import ClientOptions, Effort
from parley.agents.models.reply import Reply
from parley.agents.models.request import Request
from parley.agents.models.streaming import Arriving, StreamingClient
from parley.agents.models.thoughts import join_thoughts
from parley.agents.models.wire import retry_seconds, strict_schema, to_chat, to_tools, valid_cached_count
from parley.base.address import INSECURE, INSECURE_HINT, BaseUrl, from_environment, require_https
from parley.base.errors import AuthError, BadRequest, ConfigError, ModelError, RateLimited, ServerFault

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
URL = "https://generativelanguage.googleapis.com"
ROLES = {"user": "user", "assistant": "model"}
BLOCKED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"})
FINISH: dict[str, FinishReasons] = {"STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "length"}
TOOL_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
UNSIGNED = b"skip_thought_signature_validator"
"""Google's word for a tool call whose signature is not known: one of another model, or of an earlier run."""
MAX_TURNS = 1000
"""How many turns with tool calls are kept to be sent back with their signatures."""
MAX_OUTPUT = 65_536
"""The longest reply of a Gemini model, in tokens, thinking included."""
_NAME = re.compile(r"gemini-(\d+)(?:\.(\d+))?-?(.*)")


def efforts_of(model: str) -> tuple[Effort, ...]:
    """The thinking levels of a model; () if it has none. Google refuses others; thinking cannot be turned off.

    Looked up on 16 November 2026; docs/models.md says where.
    """
    found = _NAME.search(model)
    if found is None:
        return ("low", "medium", "high") if re.search(r"gemini-(pro|flash).*latest", model) else ()
    version, kind = (int(found.group(1)), int(found.group(2) or 0)), found.group(3)
    if version < (3, 0):
        return ()
    if version == (3, 0) and kind.startswith("pro"):
        return ("low", "high")
    minimal = kind.startswith("flash") and (version < (3, 7) or kind.startswith("flash-lite"))
    return ("minimal", "low", "medium", "high") if minimal else ("low", "medium", "high")


class GoogleOptions(ClientOptions):
    """The options of Google's models."""

    timeout: float = Field(600.0, gt=0, description="seconds after which a call counts as failed")
    base_url: BaseUrl | None = Field(None, description="the server's address, without the API's version")
    insecure: bool = Field(False, description=INSECURE)


class GoogleClient(StreamingClient):
    """The SDK's own retries and timeouts are off; `Client` has its own."""

    OptionsType: ClassVar[type[ClientOptions]] = GoogleOptions
    options: GoogleOptions
    native_schema = True
    vision = True
    context_tokens = 1_048_576
    cache_minimum = 4096

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.efforts = efforts_of(name)
        # Gemini 4 ignores it without a word, so that a run would claim a temperature that it did not have.
        self.takes_temperature = re.search(r"gemini-([4-9]|\d\d)", name) is None
        super().__init__(name, options)
        self.thinks = self.thinks or bool(self.efforts)
        keys = {variable: os.environ.get(variable, "").strip() for variable in KEYS}
        self._key_variable = next((variable for variable in KEYS if keys[variable]), "")
        if not self._key_variable:
            raise ConfigError(f"{name} needs a key: set {' or '.join(KEYS)} in the environment")
        self._key = keys[self._key_variable]
        self.base_url = self.options.base_url or from_environment(name, "GOOGLE_GEMINI_BASE_URL") or URL
        if not self.options.insecure:
            require_https(name, self.base_url, INSECURE_HINT)
        self.identity = f"{self.base_url} {name}"
        self._turns: dict[str, types.Content] = {}
        self._session: aiohttp.ClientSession | None = None
        self._sdk: GenaiClient | None = None

    def model_list(self) -> tuple[str, dict[str, str]] | None:
        return f"{self.base_url}/v1beta/models?pageSize=1000", {"x-goog-api-key": self._key}

    def _models(self) -> Any:
        """The SDK's methods for models. It is made at the first call: its session belongs to an event loop."""
        if self._sdk is None or self._session is None or self._session.closed:
            self._session, self._sdk = self.open_sdk(LimitedResponse)
        return self._sdk.aio.models

    def open_sdk(self, response_class: type[aiohttp.ClientResponse]) -> tuple[aiohttp.ClientSession, GenaiClient]:
        """The SDK, with a session that limits the size of responses. Both must be closed."""
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            trust_env=True,
            response_class=response_class,
            read_bufsize=2**22,
        )
        http = types.HttpOptions(
            base_url=self.base_url,
            # Without retry options the SDK still retries for up to ten seconds after a broken connection. Its timeout
            # is not set because it is sent as the server's deadline, and Google rejects deadlines below ten seconds.
            retry_options=types.HttpRetryOptions(attempts=1),
            # A redirect would send the key to another server: aiohttp forwards the header that contains it.
            async_client_args={"allow_redirects": False},
            aiohttp_client=session,
        )
        return session, GenaiClient(vertexai=False, api_key=self._key, http_options=http)

    def batch_endpoint(self) -> BatchEndpoint:
        from parley.agents.models.google_batches import GeminiBatches

        return GeminiBatches(self)

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=self.vision,
            function_calling=True,
            json_output=True,
            family=ModelFamily.UNKNOWN,
            structured_output=True,
            multiple_system_messages=False,
        )

    def config(self, request: Request) -> types.GenerateContentConfig:
        """The SDK's config: options, system messages, schema, thinking and tools."""
        fields = {key: value for key, value in request.options.items() if key != "logprobs"}
        if "max_tokens" in fields:
            fields["max_output_tokens"] = min(fields.pop("max_tokens"), MAX_OUTPUT)
        effort = fields.pop("effort", None)
        if effort is not None and effort not in self.efforts:
            raise BadRequest(f"{self.name}: effort={effort} is not possible (it has {', '.join(self.efforts)})")
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
            fields["tools"] = [{"function_declarations": [_declaration(tool) for tool in to_tools(request.tools)]}]
            choice = request.tool_choice
            called = {"mode": "ANY", "allowed_function_names": [choice.name]} if isinstance(choice, Tool) else None
            fields["tool_config"] = {"function_calling_config": called or {"mode": TOOL_MODES[str(choice)]}}
        # The SDK would call tools itself, and ask on if a reply was cut; both without our budget.
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
            raise BadRequest(f"{self.name}: there is no message to answer")
        return contents

    def _content(self, message: LLMMessage) -> types.Content | None:
        """A message in Google's format; None if it is empty, which the API does not accept."""
        if isinstance(message, FunctionExecutionResultMessage):
            parts = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=_sent_id(result.call_id),
                        name=result.name,
                        response={"error" if result.is_error else "output": result.content},
                    )
                )
                for result in message.content
            ]
            return types.Content(role="user", parts=parts)
        if isinstance(message, AssistantMessage) and not isinstance(message.content, str):
            calls = [call for call in message.content if isinstance(call, FunctionCall)]
            if calls and calls[0].id in self._turns:
                return self._turns[calls[0].id]
            signatures = [UNSIGNED, *[None] * len(calls)]
            return types.Content(role="model", parts=list(map(_call_part, calls, signatures)))
        turn = to_chat([message], images=True)[0]
        if not isinstance(turn["content"], str):
            return types.Content(role="user", parts=[_picture_part(part) for part in turn["content"]])
        if not turn["content"].strip():
            return None
        return types.Content(role=ROLES[turn["role"]], parts=[types.Part(text=turn["content"])])

    async def send(self, request: Request) -> Reply:
        contents, config = self.contents(request), self.config(request)
        try:
            async with asyncio.timeout(self.options.timeout):
                answer = await self._models().generate_content(model=self.model, contents=contents, config=config)
        except (errors.APIError, TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self.error_for(error) from None
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ServerFault(f"{self.name}: {self.base_url} sent an unreadable reply") from None
        reply = self.read(answer)
        if not isinstance(reply.content, str):
            self._turns[reply.content[0].id] = answer.candidates[0].content
            while len(self._turns) > MAX_TURNS:
                del self._turns[next(iter(self._turns))]
        return reply

    def read(self, answer: types.GenerateContentResponse) -> Reply:
        """The reply in an answer that is not streamed."""
        arrived = _Chunks(f"{self.name}: {self.base_url}")
        arrived.add(answer)
        return arrived.whole()

    async def events(self, request: Request) -> AsyncGenerator[Any, None]:
        contents, config = self.contents(request), self.config(request)
        try:
            async with asyncio.timeout(self.options.timeout):
                stream = await self._models().generate_content_stream(
                    model=self.model, contents=contents, config=config
                )
            async for chunk in stream:
                yield chunk
        except (errors.APIError, TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self.error_for(error) from None
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ServerFault(f"{self.name}: {self.base_url} streamed an unreadable event") from None

    def arriving(self) -> Arriving:
        return _Chunks(f"{self.name}: {self.base_url}")

    def error_for(self, error: Exception) -> ModelError:
        if isinstance(error, TimeoutError):
            return ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s")
        if not isinstance(error, errors.APIError):
            return ServerFault(f"{self.name}: {self.base_url}: {self._clean(error)}")
        where = f"{self.name}: {self.base_url} answered {error.code}"
        details = str(error.details)
        if error.code in (401, 403) or "API_KEY_INVALID" in details or "API key not valid" in details:
            return AuthError(f"{where}, the key was refused; check {self._key_variable}")
        after = _retry_after(error, details)
        if error.code == 429:
            return RateLimited(f"{where}, too many requests", retry_after=after)
        message = self._clean(error.message or error.status or "")
        text = f"{where}: {message}" if message else where
        if 400 <= error.code < 500 and error.code != 408:
            return BadRequest(text)
        return ServerFault(text, retry_after=after)

    def _clean(self, message: object) -> str:
        """One short line, with the key redacted."""
        return " ".join(str(message).replace(self._key, "***").split())[:200]

    async def close(self) -> None:
        if self._sdk is not None:
            await self._sdk.aio.aclose()
            self._sdk.close()
        if self._session is not None:
            await self._session.close()


class LimitedResponse(aiohttp.ClientResponse):
    """Limits the size of a response, which the SDK does not."""

    max_bytes: ClassVar[int] = MAX_BYTES

    async def read(self) -> bytes:
        if self._body is None:
            self._body = await read_body(self, self.max_bytes)
        return self._body


class _Chunks(Arriving):
    """The chunks of a reply, put together; a reply that is not streamed is one chunk."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[FunctionCall] = []
        self._usage = types.GenerateContentResponseUsageMetadata()
        self._ending = ""
        self._why = ""
        self._size = 0

    def add(self, event: types.GenerateContentResponse) -> str:
        self.anything = True
        try:
            text = self._text(event)
        except (AttributeError, TypeError, ValueError):
            raise ServerFault(f"{self._where} sent an unreadable reply", billed=self.billed()) from None
        self._size += len(text) + len(self._thoughts[-1] if self._thoughts else "")
        if self._size > MAX_BYTES:
            raise ServerFault(f"{self._where}: {TooLong(MAX_BYTES)}")
        return text

    def _text(self, event: types.GenerateContentResponse) -> str:
        self._usage = event.usage_metadata or self._usage
        feedback = event.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._ending = "SAFETY"
            self._why = feedback.block_reason_message or f"The prompt was blocked: {feedback.block_reason.value}"
            return ""
        if not event.candidates:
            if not event.usage_metadata:
                raise ValueError("neither an answer nor a reason")
            return ""
        first = event.candidates[0]
        if first.finish_reason is not None:
            self._ending = first.finish_reason.value
            self._why = first.finish_message or ""
        texts = []
        for part in (first.content.parts or ()) if first.content else ():
            if part.function_call is not None:
                self._calls.append(_function_call(part))
            elif part.thought:
                self._thoughts.append(part.text or "")
            elif part.text:
                texts.append(part.text)
        self._texts += texts
        return "".join(texts)

    def billed(self) -> Reply | None:
        """An empty reply with the usage, if it is known."""
        return self._made("", "unknown") if self._usage.prompt_token_count else None

    def whole(self) -> Reply:
        """The reply, if it is complete; else the `ServerFault`."""
        if not self._ending and not (self._texts or self._calls):
            raise ServerFault(f"{self._where} sent an unreadable reply", billed=self.billed())
        if self._ending in MALFORMED:
            raise ServerFault(f"{self._where}: the reply ended with {self._ending}", billed=self.billed())
        return self.reply()

    def reply(self) -> Reply:
        if self._calls:
            return self._made(self._calls, "function_calls", ["".join(self._texts)])
        refused = self._ending in BLOCKED
        text = "".join(self._texts)
        ending: FinishReasons = "content_filter" if refused else FINISH.get(self._ending, "unknown")
        return self._made(text or (self._why if refused else ""), ending, refused=refused)

    def _made(
        self, content: Any, ending: FinishReasons, said: list[str] | None = None, *, refused: bool = False
    ) -> Reply:
        usage = self._usage
        prompt_tokens = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
        completion_tokens = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return Reply(
            finish_reason=ending,
            content=content,
            usage=RequestUsage(prompt_tokens, completion_tokens),
            cached=False,
            cached_tokens=valid_cached_count(usage.cached_content_token_count, prompt_tokens),
            thought=join_thoughts(["".join(self._thoughts), *(said or ())]) or None,
            thought_tokens=usage.thoughts_token_count,
            refused=refused,
        )


def _picture_part(part: Mapping[str, Any]) -> types.Part:
    if part["type"] == "text":
        return types.Part(text=part["text"])
    kind, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return types.Part(inline_data=types.Blob(mime_type=kind, data=base64.b64decode(data)))


def _declaration(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    declared = {"name": function["name"], "description": function.get("description", "")}
    if (function.get("parameters") or {}).get("properties"):
        declared["parameters_json_schema"] = function["parameters"]
    return declared


OURS = "parley-"
"""What the ids of calls begin with that came without one: the API does not know them."""


def _sent_id(call_id: str) -> str | None:
    return None if call_id.startswith(OURS) else call_id


def _call_part(call: FunctionCall, signature: bytes | None) -> types.Part:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = {}
    made = types.FunctionCall(id=_sent_id(call.id), name=call.name, args=arguments)
    return types.Part(function_call=made, thought_signature=signature)


def _function_call(part: types.Part) -> FunctionCall:
    call = part.function_call
    assert call is not None, "no call"
    arguments = json.dumps(call.args or {}, ensure_ascii=False)
    return FunctionCall(id=call.id or f"{OURS}{uuid.uuid4().hex}", name=call.name or "", arguments=arguments)


def _retry_after(error: errors.APIError, details: str) -> float | None:
    """From the header, or else from the `RetryInfo` that Google puts into the body ("37s")."""
    headers = getattr(error.response, "headers", None) or {}
    delay = re.search(r"'retryDelay': '(\d+(?:\.\d+)?)s'", details)
    after = retry_seconds(headers)
    return after if after is not None or delay is None else float(delay.group(1))
