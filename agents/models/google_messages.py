"""Gemini's API through `google-genai`: what each model accepts, AutoGen's messages as parts, and chunks as replies."""

from __future__ import annotations

import json
import logging
import os
import re
import ssl
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import aiohttp
import certifi
from autogen_core import FunctionCall
from autogen_core.models import FinishReasons, RequestUsage
from google.genai import Client as GenaiClient
from google.genai import errors, types

from parley.agents.models.http import (
    MAX_BYTES,
    TRANSPORT,
    TooLong,
    load_certificates,
    read_body,
    retry_seconds,
    through_proxy,
)
from parley.agents.models.reply import Reply
from parley.agents.models.request import Effort
from parley.agents.models.streaming import Arriving
from parley.agents.models.thoughts import join_thoughts
from parley.agents.models.wire import valid_cached_count
from parley.base.errors import ServerFault

# Where both keys are set it says "Using GOOGLE_API_KEY", and uses the one that it is given.
logging.getLogger("google_genai._api_client").addFilter(lambda record: "GEMINI_API_KEY are set" not in str(record.msg))
BLOCKED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"})
FINISH: dict[str, FinishReasons] = {"STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "length"}
_NAME = re.compile(r"gemini-(\d+)(?:\.(\d+))?-?(.*)")


def efforts_of(model: str) -> tuple[Effort, ...]:
    """The thinking levels of a model; () if it has none. Google rejects others; thinking cannot be turned off.

    Looked up on 16 November 2026; docs/models.md says where.
    """
    match = _NAME.search(model)
    if match is None:
        return ("low", "medium", "high") if re.search(r"gemini-(pro|flash).*latest", model) else ()
    version, kind = (int(match.group(1)), int(match.group(2) or 0)), match.group(3)
    if version < (3, 0):
        return ()
    if version == (3, 0) and kind.startswith("pro"):
        return ("low", "high")
    minimal = kind.startswith("flash") and (version < (3, 7) or kind.startswith("flash-lite"))
    return ("minimal", "low", "medium", "high") if minimal else ("low", "medium", "high")


FAILURES = (
    errors.APIError,
    *TRANSPORT,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    RecursionError,
)
"""Errors that the SDK raises; the last five are for malformed responses."""


class LimitedResponse(aiohttp.ClientResponse):
    """Limits the size of a response, which the SDK does not."""

    async def read(self) -> bytes:
        if self._body is None:
            self._body = await read_body(self, MAX_BYTES)
        return self._body


@lru_cache(maxsize=1)
def certificates() -> ssl.SSLContext:
    """The certificates that the SDK trusts, loaded once: it would load them three times per client, at 50 ms of CPU
    each.
    """
    file, folder = os.environ.get("SSL_CERT_FILE", certifi.where()), os.environ.get("SSL_CERT_DIR")
    return load_certificates(lambda: ssl.create_default_context(cafile=file, capath=folder))


def open_sdk(base_url: str, key: str) -> tuple[aiohttp.ClientSession, GenaiClient]:
    """The SDK, with a session that limits the size of responses. Both must be closed."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        **through_proxy(base_url),
        response_class=LimitedResponse,
        read_bufsize=2**22,
    )
    http = types.HttpOptions(
        base_url=base_url,
        # Without retry options the SDK still retries for up to ten seconds after a broken connection. Its timeout
        # is not set because it is sent as the server's deadline, and Google rejects deadlines below ten seconds.
        retry_options=types.HttpRetryOptions(attempts=1),
        # A redirect would send the key to another server: aiohttp forwards the header that contains it.
        async_client_args={"allow_redirects": False, "ssl": certificates(), "verify": certificates()},
        aiohttp_client=session,
    )
    return session, GenaiClient(vertexai=False, api_key=key, http_options=http)


class ArrivingChunks(Arriving):
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
                raise ValueError("the reply has neither an answer nor a reason")
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

    def billed(self) -> Reply:
        """An empty reply with the usage."""
        return self._made("", "unknown")

    def whole(self) -> Reply:
        """The reply if it is complete, else a `ServerFault`."""
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
        self, content: Any, ending: FinishReasons, thoughts: Sequence[str] = (), *, refused: bool = False
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
            thought=join_thoughts(["".join(self._thoughts), *thoughts]) or None,
            thought_tokens=usage.thoughts_token_count,
            refused=refused,
        )


def read_answer(where: str, answer: types.GenerateContentResponse) -> Reply:
    """The reply in a response that is not streamed; error messages begin with `where`."""
    arrived = ArrivingChunks(where)
    arrived.add(answer)
    reply = arrived.whole()
    reply.others = tuple(
        "".join(part.text or "" for part in (other.content.parts or ()) if not part.thought) if other.content else ""
        for other in (answer.candidates or ())[1:]
    )
    return reply


def declaration(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    declared = {"name": function["name"], "description": function.get("description", "")}
    if (function.get("parameters") or {}).get("properties"):
        declared["parameters_json_schema"] = function["parameters"]
    return declared


OURS = "parley-"
"""Prefix of ids that Parley makes for calls without one; they are not sent to the API."""


def sent_id(call_id: str) -> str | None:
    return None if call_id.startswith(OURS) else call_id


def call_part(call: FunctionCall, signature: bytes | None) -> types.Part:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = {}
    made = types.FunctionCall(id=sent_id(call.id), name=call.name, args=arguments)
    return types.Part(function_call=made, thought_signature=signature)


def _function_call(part: types.Part) -> FunctionCall:
    call = part.function_call
    assert call is not None, "no call"
    arguments = json.dumps(call.args or {}, ensure_ascii=False)
    return FunctionCall(id=call.id or f"{OURS}{uuid.uuid4().hex}", name=call.name or "", arguments=arguments)


def retry_after(error: errors.APIError, details: str) -> float | None:
    """Seconds to wait: from the header, else from `RetryInfo` in Google's body ("37s")."""
    headers = getattr(error.response, "headers", None) or {}
    delay = re.search(r"'retryDelay': '(\d+(?:\.\d+)?)s'", details)
    after = retry_seconds(headers)
    return after if after is not None or delay is None else float(delay.group(1))
