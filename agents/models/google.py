"""Gemini, with the `google-genai` package: `google/gemini-3.8-flash`.

The key is GEMINI_API_KEY or, if that is not set, GOOGLE_API_KEY. `google-genai` replaces `google-generativeai`, whose
support ended on 30 November 2025.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import aiohttp
from autogen_core.models import FinishReasons, RequestUsage, SystemMessage
from google.genai import Client as GenaiClient
from google.genai import errors, types
from pydantic import Field, ValidationError

from parley.agents.address import INSECURE, INSECURE_HINT, BaseUrl, from_environment, require_https
from parley.agents.errors import AuthError, BadRequest, ConfigError, ModelError, RateLimited, ServerFault
from parley.agents.models.base import Client, ClientOptions, Request
from parley.agents.models.reply import Reply
from parley.agents.models.wire import retry_seconds, strict_schema, to_chat, valid_cached_count

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
URL = "https://generativelanguage.googleapis.com"
ROLES = {"user": "user", "assistant": "model"}
BLOCKED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
FINISH: dict[str, FinishReasons] = {"STOP": "stop", "MAX_TOKENS": "length"}


class GoogleOptions(ClientOptions):
    """The options of Google's models."""

    base_url: BaseUrl | None = Field(None, description="the server's address, without the API's version")
    insecure: bool = Field(False, description=INSECURE)


class GoogleClient(Client):
    """The SDK's own retries and timeouts are off; `Client` has its own."""

    OptionsType: ClassVar[type[ClientOptions]] = GoogleOptions
    options: GoogleOptions
    native_schema = True
    context_tokens = 1_048_576
    cache_minimum = 4096

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        keys = {variable: os.environ.get(variable, "").strip() for variable in KEYS}
        self._key_variable = next((variable for variable in KEYS if keys[variable]), "")
        if not self._key_variable:
            raise ConfigError(f"{name} needs a key: set {' or '.join(KEYS)} in the environment")
        self._key = keys[self._key_variable]
        self.base_url = self.options.base_url or from_environment(name, "GOOGLE_GEMINI_BASE_URL") or URL
        if not self.options.insecure:
            require_https(name, self.base_url, INSECURE_HINT)
        self.identity = f"{self.base_url} {name}"
        # Without retry options the SDK still retries for up to ten seconds after a broken connection. Its timeout is
        # not set because it is sent as the server's deadline, and Google rejects deadlines below ten seconds.
        no_retries = types.HttpRetryOptions(attempts=1)
        # A redirect would send the key to another server: aiohttp forwards the header that contains it.
        no_redirects = {"allow_redirects": False}
        http = types.HttpOptions(base_url=self.base_url, retry_options=no_retries, async_client_args=no_redirects)
        self._sdk = GenaiClient(vertexai=False, api_key=self._key, http_options=http)

    def config(self, request: Request) -> types.GenerateContentConfig:
        """The SDK's config: options, system messages and schema."""
        fields = {key: value for key, value in request.options.items() if key != "logprobs"}
        if "max_tokens" in fields:
            fields["max_output_tokens"] = fields.pop("max_tokens")
        system = [message.content for message in request.messages if isinstance(message, SystemMessage)]
        if system:
            fields["system_instruction"] = "\n\n".join(system)
        if request.schema:
            fields["response_mime_type"] = "application/json"
        if isinstance(request.schema, type):
            fields["response_json_schema"] = strict_schema(request.schema.model_json_schema())
        no_calls = types.AutomaticFunctionCallingConfig(disable=True)
        try:
            return types.GenerateContentConfig(**fields, automatic_function_calling=no_calls)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise BadRequest(f"{self.name}: option '{key}': {first['msg']}") from None

    async def send(self, request: Request) -> Reply:
        chat = to_chat([message for message in request.messages if not isinstance(message, SystemMessage)])
        if request.tools or any(turn["role"] not in ROLES or "tool_calls" in turn for turn in chat):
            raise BadRequest(f"{self.name}: tools are not supported by this client yet; use an OpenAI-compatible one")
        if not chat:
            raise BadRequest(f"{self.name}: there is no message to answer")
        contents = [types.Content(role=ROLES[turn["role"]], parts=[types.Part(text=turn["content"])]) for turn in chat]
        config = self.config(request)
        try:
            async with asyncio.timeout(self.options.timeout):
                answer = await self._sdk.aio.models.generate_content(model=self.model, contents=contents, config=config)
        except errors.APIError as error:
            raise self._error(error) from None
        except TimeoutError:
            raise ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ServerFault(f"{self.name}: {self.base_url}: {self._clean(error)}") from None
        except (ValueError, TypeError, AttributeError):
            raise ServerFault(f"{self.name}: {self.base_url} sent an unreadable reply") from None
        return self._read(answer)

    def _read(self, answer: types.GenerateContentResponse) -> Reply:
        first = answer.candidates[0] if answer.candidates else None
        feedback = answer.prompt_feedback
        if first is None and (feedback is None or feedback.block_reason is None):
            raise ServerFault(f"{self.name}: {self.base_url} sent an unreadable reply")
        reason = first.finish_reason.value if first and first.finish_reason else ""
        refused = first is None or reason in BLOCKED
        usage = answer.usage_metadata or types.GenerateContentResponseUsageMetadata()
        completion_tokens = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return Reply(
            finish_reason="content_filter" if refused else FINISH.get(reason, "unknown"),
            content=answer.text or "",
            usage=RequestUsage(usage.prompt_token_count or 0, completion_tokens),
            cached=False,
            cached_tokens=valid_cached_count(usage.cached_content_token_count, usage.prompt_token_count),
            refused=refused,
        )

    def _error(self, error: errors.APIError) -> ModelError:
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
        await self._sdk.aio.aclose()
        self._sdk.close()


def _retry_after(error: errors.APIError, details: str) -> float | None:
    """From the header, or else from the `RetryInfo` that Google puts into the body ("37s")."""
    headers = getattr(error.response, "headers", None) or {}
    delay = re.search(r"'retryDelay': '(\d+(?:\.\d+)?)s'", details)
    after = retry_seconds(headers)
    return after if after is not None or delay is None else float(delay.group(1))
