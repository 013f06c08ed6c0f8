"""A model's reply, made safe to store: counts can be summed, text can be encoded, and the API key is redacted."""

from __future__ import annotations

from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from pydantic import field_validator

MAX_TOKENS = 10**12
"""A larger count of tokens is taken for an error of the server."""
MIN_KEY_LENGTH = 12
"""A shorter key (such as "EMPTY") is a placeholder; redacting it would damage ordinary text."""


class Reply(CreateResult):
    """AutoGen's `CreateResult`, with what providers add.

    Inherited fields:
        content: the text, or the tool calls.
        finish_reason: why the reply ended: `stop`, `length`, `content_filter`, `function_calls` or `unknown`.
        usage: prompt and completion tokens.
        cached: whether it came from the reply cache.
        logprobs: the log-probabilities of its tokens, if they were requested and the provider returns them.
        thought: the model's reasoning, if the provider returns it.
    """

    refused: bool = False
    """Whether the provider says that the model refused or that a filter blocked the reply."""
    cached_tokens: int | None = None
    """Prompt tokens that the server read from its prompt cache; None if the server does not say."""
    written_tokens: int = 0
    """Prompt tokens that were written to the vendor's prompt cache, which some vendors charge for."""

    @field_validator("usage")
    @classmethod
    def _valid_counts(cls, usage: RequestUsage) -> RequestUsage:
        return RequestUsage(_token_count(usage.prompt_tokens), _token_count(usage.completion_tokens))

    @field_validator("content")
    @classmethod
    def _encodable(cls, content: Any) -> Any:
        """JSON may contain half a surrogate pair, which cannot be encoded as UTF-8: it becomes its escape."""
        if not isinstance(content, str) or content.isascii():
            return content
        return content.encode("utf-8", "backslashreplace").decode()


def redact(text: str, key: str) -> str:
    """The text with the API key replaced by `***`, in case a server echoes it."""
    return text.replace(key, "***") if len(key) >= MIN_KEY_LENGTH else text


def redact_bytes(raw: bytes, key: str) -> bytes:
    """`redact` for a body that has not been decoded yet."""
    return raw.replace(key.encode(), b"***") if len(key) >= MIN_KEY_LENGTH else raw


def redact_reply(reply: Reply, key: str) -> Reply:
    """The reply with the key redacted from its text, its reasoning and its tool calls."""
    if len(key) < MIN_KEY_LENGTH:
        return reply
    if isinstance(reply.content, str):
        reply.content = redact(reply.content, key)
    else:
        reply.content = [
            FunctionCall(id=redact(call.id, key), name=redact(call.name, key), arguments=redact(call.arguments, key))
            for call in reply.content
        ]
    if reply.thought:
        reply.thought = redact(reply.thought, key)
    return reply


class StreamRedactor:
    """Redacts the key from streamed text: the end of a chunk that may be the start of the key waits for the next."""

    def __init__(self, key: str) -> None:
        self._key, self._pending = key, ""

    def feed(self, chunk: str) -> str:
        """The text that can be shown so far."""
        if len(self._key) < MIN_KEY_LENGTH:
            return chunk
        text = redact(self._pending + chunk, self._key)
        overlaps = (size for size in range(len(self._key) - 1, 0, -1) if text.endswith(self._key[:size]))
        end = len(text) - next(overlaps, 0)
        self._pending = text[end:]
        return text[:end]

    def flush(self) -> str:
        """The pending text, at the end of the stream: it was not the key."""
        pending, self._pending = self._pending, ""
        return pending


def _token_count(count: Any) -> int:
    """The count if it is a plausible one, else 0."""
    return count if type(count) is int and 0 <= count <= MAX_TOKENS else 0
