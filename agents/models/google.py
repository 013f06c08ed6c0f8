"""Gemini, on the `google-genai` package: `google/gemini-3.8-flash`.

The key is GEMINI_API_KEY or, where that is not set, GOOGLE_API_KEY. The vendor ended the older
package, `google-generativeai`, on 30 November 2025; this one takes its place.
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
from parley.agents.models.wire import possible, retry_seconds, strict_schema, to_chat

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
URL = "https://generativelanguage.googleapis.com"
ROLES = {"user": "user", "assistant": "model"}
BLOCKED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
FINISH: dict[str, FinishReasons] = {"STOP": "stop", "MAX_TOKENS": "length"}


class GoogleOptions(ClientOptions):
    base_url: BaseUrl | None = Field(None, description="the server's address, without the API's version")
    insecure: bool = Field(False, description=INSECURE)


class GoogleClient(Client):
    """One key, one address. The SDK's own retries and timeouts are off: ours go around it."""

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
        # Without retry options the SDK still asks again, up to ten seconds after a broken connection; and its
        # timeout would be sent on as the server's deadline, which Google refuses below ten seconds.
        once = types.HttpRetryOptions(attempts=1)
        # A redirect would take the key elsewhere: it stands in a header that aiohttp sends on.
        stay = {"allow_redirects": False}
        http = types.HttpOptions(base_url=self.base_url, retry_options=once, async_client_args=stay)
        self._sdk = GenaiClient(vertexai=False, api_key=self._key, http_options=http)

    def config(self, request: Request) -> types.GenerateContentConfig:
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
            raise ServerFault(f"{self.name}: {self.base_url} answered what is no reply") from None
        return self._read(answer)

    def _read(self, answer: types.GenerateContentResponse) -> Reply:
        first = answer.candidates[0] if answer.candidates else None
        feedback = answer.prompt_feedback
        if first is None and (feedback is None or feedback.block_reason is None):
            raise ServerFault(f"{self.name}: {self.base_url} answered what is no reply")
        reason = first.finish_reason.value if first and first.finish_reason else ""
        refused = first is None or reason in BLOCKED
        usage = answer.usage_metadata or types.GenerateContentResponseUsageMetadata()
        written = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return Reply(
            finish_reason="content_filter" if refused else FINISH.get(reason, "unknown"),
            content=answer.text or "",
            usage=RequestUsage(usage.prompt_token_count or 0, written),
            cached=False,
            cached_tokens=possible(usage.cached_content_token_count, usage.prompt_token_count),
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
        said = self._clean(error.message or error.status or "")
        text = f"{where}: {said}" if said else where
        if 400 <= error.code < 500 and error.code != 408:
            return BadRequest(text)
        return ServerFault(text, retry_after=after)

    def _clean(self, said: object) -> str:
        return " ".join(str(said).replace(self._key, "***").split())[:200]

    async def close(self) -> None:
        await self._sdk.aio.aclose()
        self._sdk.close()


def _retry_after(error: errors.APIError, details: str) -> float | None:
    """From the header, or else from the `RetryInfo` that Google puts into the body ("37s")."""
    headers = getattr(error.response, "headers", None) or {}
    told = re.search(r"'retryDelay': '([\d.]+)s'", details)
    return retry_seconds(headers.get("Retry-After") or (told.group(1) if told else None))
