"""The unit of a run that is being worked on, carried to the clients by a context variable.

Cache, budget and progress reach every call made inside `session(...)`, through whichever agent it is made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from parley.agents.calls import Call, record_call
from parley.agents.models.budget import Budget
from parley.agents.models.cache import ReplyCache
from parley.agents.models.reply import Reply

Post = Callable[[Any, bytes, Any], Awaitable[Reply]]
"""Another way to an answer than the client's own `send`: given the client, the request's address and the request."""


@dataclass(slots=True)
class Session:
    """The unit at work. `sample` keeps repeats apart in the cache; `seed` follows from it."""

    sample: str = ""
    cache: ReplyCache | None = None
    budget: Budget | None = None
    on_call: Callable[[Call], None] | None = None
    post: Post | None = None
    asked: dict[bytes, int] = field(default_factory=dict)

    def occurrence(self, request_key: bytes) -> int:
        """How often this very request was made before in this unit: each time is a sample of its own."""
        seen = self.asked.get(request_key, 0)
        self.asked[request_key] = seen + 1
        return seen


SESSION: ContextVar[Session | None] = ContextVar("parley_session", default=None)


@contextmanager
def session(current: Session) -> Iterator[Session]:
    """Everything called inside belongs to `current`."""
    token = SESSION.set(current)
    try:
        yield current
    finally:
        SESSION.reset(token)


_WATCH: Callable[[Call], None] | None = None


@contextmanager
def observe_calls(watch: Callable[[Call], None]) -> Iterator[None]:
    """`watch` is told of every call of this process as it ends, inside the context that it was made in."""
    global _WATCH
    before, _WATCH = _WATCH, watch
    try:
        yield
    finally:
        _WATCH = before


def report_call(call: Call) -> None:
    """Called by the clients, once a call."""
    if _WATCH is not None:
        _WATCH(call)
    current = SESSION.get()
    if current is not None and current.on_call is not None:
        current.on_call(call)
    record_call(call)
