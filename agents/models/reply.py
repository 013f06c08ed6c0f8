"""A model's reply, made safe to keep: whatever a server says, it can be summed, encoded and written down."""

from __future__ import annotations

from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from pydantic import field_validator

MOST_TOKENS = 10**12
"""No reply has more: a server that says so, or says a word, a fraction or less than nothing, has told no count."""

SHORTEST_KEY = 12


class Reply(CreateResult):
    """AutoGen's result, and what the provider alone knows."""

    refused: bool = False
    cached_tokens: int | None = None
    """Prompt tokens that the server had read before and did not read again; None where it does not say."""
    written_tokens: int = 0
    """Prompt tokens that were put into a vendor's prompt cache, which some charge for."""

    @field_validator("usage")
    @classmethod
    def _counts_only(cls, usage: RequestUsage) -> RequestUsage:
        return RequestUsage(_count(usage.prompt_tokens), _count(usage.completion_tokens))

    @field_validator("content")
    @classmethod
    def _encodable(cls, content: Any) -> Any:
        """Half a surrogate pair can stand in JSON, and in no encoding: it becomes its escape."""
        if not isinstance(content, str) or content.isascii():
            return content
        return content.encode("utf-8", "backslashreplace").decode()


def hide(text: str, key: str) -> str:
    """A server's words without the key, should it say it aloud. What is as short as "EMPTY" is no key."""
    return text.replace(key, "***") if len(key) >= SHORTEST_KEY else text


def hide_bytes(raw: bytes, key: str) -> bytes:
    """The same for what has not been read yet."""
    return raw.replace(key.encode(), b"***") if len(key) >= SHORTEST_KEY else raw


def hide_key(reply: Reply, key: str) -> Reply:
    """The reply without the key: in its text, in what it thought, in the tools it calls."""
    if len(key) < SHORTEST_KEY:
        return reply
    if isinstance(reply.content, str):
        reply.content = hide(reply.content, key)
    else:
        reply.content = [
            FunctionCall(id=hide(call.id, key), name=hide(call.name, key), arguments=hide(call.arguments, key))
            for call in reply.content
        ]
    if reply.thought:
        reply.thought = hide(reply.thought, key)
    return reply


class Hiding:
    """A text that comes in pieces, without the key: what may be its beginning waits for the next piece."""

    def __init__(self, key: str) -> None:
        self._key, self._held = key, ""

    def feed(self, piece: str) -> str:
        """What can be shown by now."""
        if len(self._key) < SHORTEST_KEY:
            return piece
        text = hide(self._held + piece, self._key)
        begun = (size for size in range(len(self._key) - 1, 0, -1) if text.endswith(self._key[:size]))
        shown = len(text) - next(begun, 0)
        self._held = text[shown:]
        return text[:shown]

    def rest(self) -> str:
        """What waited and was no key after all."""
        held, self._held = self._held, ""
        return held


def _count(said: Any) -> int:
    """A count of tokens; 0 is what stands for one that was not told."""
    return said if type(said) is int and 0 <= said <= MOST_TOKENS else 0
