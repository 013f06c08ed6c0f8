"""Records of model calls, and how they are collected.

Every reply makes a `Call`. `record_calls` collects the calls made inside it, whichever agent makes them, so that any
AutoGen agent with a Parley client is recorded.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from contextvars import ContextVar
from typing import NamedTuple


class PromptMessage(NamedTuple):
    """One message of a prompt, as the model received it."""

    role: str
    source: str
    text: str


class Call(NamedTuple):
    """One model call: the model, its prompt and reply, and the cost."""

    model: str
    prompt: tuple[PromptMessage, ...]
    reply: str
    prompt_tokens: int
    completion_tokens: int
    latency: float
    cost: float | None
    cached: bool
    """Whether the whole reply came from Parley's reply cache."""
    attempts: int
    cached_tokens: int | None = None
    """Prompt tokens that were in the server's prompt cache; None where the server does not say."""
    written_tokens: int = 0
    """Prompt tokens that were written to a vendor's prompt cache, which has its own price."""
    thought: str = ""
    """The model's thinking, where the server gives it."""
    thought_tokens: int | None = None
    """Completion tokens spent on thinking; None where the server does not say."""
    cut: bool = False
    """Whether the reply ended because it reached its limit of tokens."""


_RECORDED: ContextVar[list[Call] | None] = ContextVar("parley_recorded", default=None)


class record_calls:
    """Collect the calls made inside; an enclosing `record_calls` gets them too."""

    __slots__ = ("_calls", "_outer", "_token")

    def __enter__(self) -> list[Call]:
        self._outer = _RECORDED.get()
        self._calls: list[Call] = []
        self._token = _RECORDED.set(self._calls)
        return self._calls

    def __exit__(self, *error: object) -> None:
        with suppress(ValueError):  # a generator that was given up is closed in another context
            _RECORDED.reset(self._token)
        if self._outer is not None:
            self._outer.extend(self._calls)


def record_call(call: Call) -> None:
    """Add a call to the innermost `record_calls`, if there is one."""
    calls = _RECORDED.get()
    if calls is not None:
        calls.append(call)


def seed_from(*parts: object) -> int:
    """A 31-bit seed that depends on all parts, the same on every machine."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF
