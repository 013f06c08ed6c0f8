"""The unit that is being run, passed to the clients in a context variable.

Cache, budget and progress reach every call made inside `session(...)`, whichever agent makes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from typing import Any

from parley.agents.models.budget import Budget
from parley.agents.models.cache import ReplyCache
from parley.agents.models.pending import PendingReplies
from parley.agents.models.reply import Reply
from parley.agents.transcripts import Call, record_call
from parley.base.errors import ParleyError

Sender = Callable[[Any, bytes, Any], Awaitable[Reply]]
"""Replaces `Client.send`, e.g. by a batch endpoint; called with the client, the cache address and the request."""


@dataclass(slots=True)
class Session:
    """The unit that is being run.

    Args:
        sample: identifies the unit in cache keys and seeds, so that repeats of a unit get replies of their own.
        cache: where replies are stored; None turns caching off.
        pending: replies of this unit, kept until it is done; None if it has none and they need not be kept.
        budget: the run's limits; None for no limit.
        on_call: called with every finished call.
        sender: sends requests instead of `Client.send`; None for the normal way.
        occurrences: how often each request was made in this unit; starts empty.
        failure: the first error of a call; starts as None.
    """

    sample: str = ""
    _: KW_ONLY
    cache: ReplyCache | None = None
    pending: PendingReplies | None = None
    budget: Budget | None = None
    on_call: Callable[[Call], None] | None = None
    sender: Sender | None = None
    occurrences: dict[bytes, int] = field(default_factory=dict)
    failure: ParleyError | None = None
    """The first error of a call: AutoGen's runtime raises a `RuntimeError` in its place."""
    order: int = field(default_factory=count(1).__next__)
    """The number of the session in this process: calls of the units that began first are sent first."""

    def occurrence(self, request_key: bytes) -> int:
        """How often this request was made before in this unit; counts it. Each repetition is a sample of its own."""
        earlier = self.occurrences.get(request_key, 0)
        self.occurrences[request_key] = earlier + 1
        return earlier

    def stored_reply(self, address: bytes) -> Reply | None:
        """The reply of an earlier attempt at this unit, or from the cache."""
        reply = self.pending.get(address) if self.pending is not None else None
        return self.cache.get(address) if reply is None and self.cache is not None else reply

    def store_reply(self, address: bytes, model: str, reply: Reply) -> None:
        """Store a reply in the cache, or else until the unit is done."""
        if self.cache is not None:
            self.cache.put(address, model, reply)
        elif self.pending is not None:
            self.pending.put(address, reply)


SESSION: ContextVar[Session | None] = ContextVar("parley_session", default=None)


def unit_order() -> int:
    """The rank of a call that is made now; one that belongs to no unit goes first."""
    current = SESSION.get()
    return 0 if current is None else current.order


@contextmanager
def session(current: Session) -> Iterator[Session]:
    """Calls made inside belong to the session `current`."""
    token = SESSION.set(current)
    try:
        yield current
    finally:
        SESSION.reset(token)


_OBSERVER: Callable[[Call], None] | None = None


@contextmanager
def observe_calls(observer: Callable[[Call], None]) -> Iterator[None]:
    """`observer` is called with every call of this process as it ends, in the context that made the call."""
    global _OBSERVER
    before, _OBSERVER = _OBSERVER, observer
    try:
        yield
    finally:
        _OBSERVER = before


def report_call(call: Call) -> None:
    """Called by the clients, once per call."""
    if _OBSERVER is not None:
        _OBSERVER(call)
    current = SESSION.get()
    if current is not None and current.on_call is not None:
        current.on_call(call)
    record_call(call)
