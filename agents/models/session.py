"""What the calls of a unit share: the run's budget, replies that are kept until the unit is done, and the unit itself.

Cache, budget and progress reach every call made inside `session(...)`, whichever agent makes it: the session is in a
context variable. Calls are counted before they are made and never exceed the budget. Tokens and cost are known only
afterwards, so calls in progress may end a little above it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

from parley.agents.models.cache import ReplyCache
from parley.agents.models.reply import Reply
from parley.agents.transcripts import Call, Turn
from parley.base.errors import BudgetSpent, ParleyError
from parley.base.text import plural


@dataclass(slots=True)
class Budget:
    """The limits of a run, and what it has used so far.

    Args:
        max_calls: maximum number of calls; None for no limit.
        max_tokens: maximum number of prompt and reply tokens; None for no limit.
        max_cost: maximum cost in US dollars; None for no limit.
        calls: calls made so far; not 0 when a run is resumed.
        tokens: tokens used so far.
        cost: dollars spent so far.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    async def take_call(self) -> None:
        """Count a call that is about to be made. Asynchronous, since a budget shared by processes may have to wait."""
        self.refuse_if_spent()
        self.calls += 1

    def refuse_if_spent(self) -> None:
        """Raise `BudgetSpent` if a limit is reached."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetSpent(f"the budget of {plural(self.max_calls, 'call')} is spent")
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise BudgetSpent(f"the budget of {plural(self.max_tokens, 'token')} is spent")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetSpent(f"the budget of ${self.max_cost:g} is spent")

    def give_call_back(self) -> None:
        """Uncount a call that gave no reply."""
        self.calls -= 1

    def spend(self, call: Call) -> None:
        """Count the tokens and the cost of a finished call."""
        self.tokens += call.prompt_tokens + call.completion_tokens
        self.cost += call.cost or 0.0


T = TypeVar("T")


class PendingReplies:
    """The replies of one unit that is not done, where there is no reply cache to keep them; with the same addresses.

    They are written to the run file about once a second, where they stay until the unit is done: a resumed run gets
    back what it has already paid for.

    Args:
        earlier: those of an earlier attempt at the unit, as JSON.
    """

    def __init__(self, earlier: Mapping[bytes, str] = MappingProxyType({})) -> None:
        self._earlier = earlier
        self._new: list[tuple[bytes, Reply | str]] = []

    def read(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        """What `parse` makes of the stored text; None if there is none, or if it cannot be parsed."""
        text = self._earlier.get(address)
        try:
            return None if text is None else parse(text)
        except (ValueError, TypeError, RecursionError):
            return None

    def put(self, address: bytes, reply: Reply | str) -> None:
        """Add a reply, or a text. It is made into JSON only if it is written: most units are done before that."""
        self._new.append((address, reply))

    def take(self) -> list[tuple[bytes, str]]:
        """The texts added since the last time."""
        new, self._new = self._new, []
        return [(address, reply if isinstance(reply, str) else reply.model_dump_json()) for address, reply in new]


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
        on_turn: called with every turn of a conversation as it ends, silent ballots not counted.
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
    on_turn: Callable[[Turn], None] | None = None
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

    def read(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        """What was stored by an earlier attempt at this unit, or in the cache; None if there is nothing."""
        for place in (self.pending, self.cache):
            if place is not None and (found := place.read(address, parse)) is not None:
                return found
        return None

    def put(self, address: bytes, model: str, reply: Reply | str) -> None:
        """Store a reply, or a text, in the cache, or else until the unit is done."""
        if self.cache is not None:
            self.cache.put_text(address, model, reply if isinstance(reply, str) else reply.model_dump_json())
        elif self.pending is not None:
            self.pending.put(address, reply)


SESSION: ContextVar[Session | None] = ContextVar("parley_session", default=None)


@contextmanager
def session(current: Session) -> Iterator[Session]:
    """Calls made inside belong to the session `current`."""
    token = SESSION.set(current)
    try:
        yield current
    finally:
        SESSION.reset(token)


def report_turn(turn: Turn) -> None:
    """Called by a conversation's seats, once per turn."""
    current = SESSION.get()
    if current is not None and current.on_turn is not None:
        current.on_turn(turn)
