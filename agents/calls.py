"""What one model call was, and the setting it was made in.

A `Call` is written down for every reply. Two context variables carry the setting, so that any AutoGen agent
that holds one of our clients is recorded, cached and budgeted without knowing it:

- `Session`: the unit of a run that is being worked on (its sample key, the reply cache, the budget);
- the list of calls heard during the current turn (`hear_calls`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agents.models.budget import Budget
    from agents.models.cache import ReplyCache


class Piece(NamedTuple):
    """One message of a prompt as the model was given it."""

    role: str
    source: str
    text: str


class Call(NamedTuple):
    """One model call: who answered, to what, at what cost."""

    model: str
    prompt: tuple[Piece, ...]
    reply: str
    prompt_tokens: int
    completion_tokens: int
    latency: float
    cost: float | None
    cached: bool
    attempts: int


@dataclass(slots=True)
class Session:
    """The unit at work. `sample` keeps repeats apart in the cache; `seed` follows from it."""

    sample: str = ""
    cache: ReplyCache | None = None
    budget: Budget | None = None
    on_call: Callable[[Call], None] | None = None
    asked: dict[bytes, int] = field(default_factory=dict)

    def occurrence(self, request_key: bytes) -> int:
        """How often this very request was made before in this unit: each time is a sample of its own."""
        seen = self.asked.get(request_key, 0)
        self.asked[request_key] = seen + 1
        return seen


SESSION: ContextVar[Session | None] = ContextVar("parley_session", default=None)
_HEARD: ContextVar[list[Call] | None] = ContextVar("parley_heard", default=None)


@contextmanager
def session(current: Session) -> Iterator[Session]:
    """Everything called inside belongs to `current`."""
    token = SESSION.set(current)
    try:
        yield current
    finally:
        SESSION.reset(token)


class hear_calls:
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


def note_call(call: Call) -> None:
    """Called by the clients."""
    current = SESSION.get()
    if current is not None and current.on_call is not None:
        current.on_call(call)
    heard = _HEARD.get()
    if heard is not None:
        heard.append(call)


def seed_from(*parts: object) -> int:
    """A 31-bit seed that depends on all parts, the same on every machine."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF
