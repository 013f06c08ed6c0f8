"""What one model call was, and who hears of it.

A `Call` is written down for every reply. Whoever listens (`record_calls`) gets those made inside, whichever agent
makes them: so any AutoGen agent that holds one of our clients is recorded without knowing it.
"""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from typing import NamedTuple


class PromptMessage(NamedTuple):
    """One message of a prompt as the model was given it."""

    role: str
    source: str
    text: str


class Call(NamedTuple):
    """One model call: who answered, to what, at what cost."""

    model: str
    prompt: tuple[PromptMessage, ...]
    reply: str
    prompt_tokens: int
    completion_tokens: int
    latency: float
    cost: float | None
    cached: bool
    attempts: int
    cached_tokens: int | None = None
    """Of the prompt's tokens, those that the server had read before; None where it does not say. (`cached` is ours: the
    whole reply came from the reply cache.)"""
    written_tokens: int = 0
    """Of the prompt's tokens, those that were put into a vendor's prompt cache at a price of their own."""


_HEARD: ContextVar[list[Call] | None] = ContextVar("parley_heard", default=None)


class record_calls:
    """Collect the calls made inside, whichever agent makes them; who listens outside hears them too."""

    __slots__ = ("_heard", "_outer", "_token")

    def __enter__(self) -> list[Call]:
        self._outer = _HEARD.get()
        self._heard: list[Call] = []
        self._token = _HEARD.set(self._heard)
        return self._heard

    def __exit__(self, *error: object) -> None:
        _HEARD.reset(self._token)
        if self._outer is not None:
            self._outer.extend(self._heard)


def record_call(call: Call) -> None:
    heard = _HEARD.get()
    if heard is not None:
        heard.append(call)


def seed_from(*parts: object) -> int:
    """A 31-bit seed that depends on all parts, the same on every machine."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF
