"""The session of a unit: its calls share the run's budget and reply cache.

Cache, budget and progress reach every call made inside `session(...)`, whichever agent makes it: the session is in a
context variable. Calls are counted before they are made and never exceed the budget. Tokens and cost are known only
afterwards: a call reserves what the longest call of its kind took so far, and waits if that exceeds the budget together
with the calls in progress. So a run exceeds its budget by one call of each kind at most, and by what replies are longer
than all before them. The first call of a kind goes alone, and then at most twice as many as were answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from parley.agents.models.reply import Reply
from parley.agents.transcripts import Call
from parley.base.errors import BudgetSpent, ParleyError
from parley.base.text import plural


class Estimate(NamedTuple):
    """Expected usage of a call."""

    kind: tuple[object, ...]
    """Its model, and the form and the limit of its reply: calls of a kind take about as much."""
    tokens: int
    """Of its prompt."""
    cost: float
    """Of its prompt."""
    reply_tokens: int = 0
    """Of its reply, until one of this kind is known."""
    reply_cost: float = 0.0


class Used(NamedTuple):
    """What a call used. No tokens: it gave no reply."""

    tokens: int = 0
    cost: float = 0.0
    unknown: bool = False
    """Whether it was abandoned after it was sent: it counts as what was reserved for it."""


@dataclass(slots=True)
class Kind:
    """The calls of a kind so far."""

    in_progress: int = 0
    answered: int = 0
    failed: int = 0
    tokens: int = 0
    """The most that a call took beyond the estimate of its prompt."""
    cost: float = 0.0
    """The same in dollars."""

    @property
    def may_start(self) -> bool:
        """Whether enough calls have ended for one more at a time. Failed ones cost nothing, but show no length."""
        return self.in_progress < max(1, 2 * self.answered) + min(self.failed, MOST_UNKNOWN)


MOST_UNKNOWN = 7
"""Calls of a kind that start beside the first if so many failed: one by one, a server that is down would take hours."""
AHEAD = 0.05
"""Share of what is left of a budget that is counted as spent in advance, in the run file."""


@dataclass(slots=True)
class Budget:
    """The limits of a run, and its usage so far.

    Args:
        max_calls: maximum number of calls; None for no limit.
        max_tokens: maximum number of prompt and reply tokens; None for no limit.
        max_cost: maximum cost in US dollars; None for no limit.
        calls: calls made so far; not 0 if the run was resumed.
        tokens: tokens used so far.
        cost: dollars spent so far.
        store: called when more must be stored as spent than `to_store` gave, before the call is made: a run that is
            killed has spent no more than that.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    store: Callable[[], None] | None = None
    reserved: dict[Estimate, list[tuple[int, float]]] = field(default_factory=dict)
    """Tokens and dollars reserved for the calls in progress."""
    reserved_tokens: int = 0
    reserved_cost: float = 0.0
    kinds: dict[tuple[object, ...], Kind] = field(default_factory=dict)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a call in progress has ended."""
    _stored: tuple[int, int, float] = (0, 0, 0.0)

    async def take_call(self, estimate: Estimate) -> None:
        """Wait for room, then count a call; `release` its estimate when it has ended."""
        while not self.reserve(estimate):
            self.freed.clear()
            await self.freed.wait()

    def reserve(self, estimate: Estimate) -> bool:
        """Reserve what a call may take if there is room. A call that is alone is always sent until the budget is spent,
        since its estimate may be too high."""
        self.refuse_if_spent()
        kind = self.kinds.setdefault(estimate.kind, Kind())
        tokens, cost = (kind.tokens, kind.cost) if kind.answered else (estimate.reply_tokens, estimate.reply_cost)
        tokens, cost = estimate.tokens + tokens, estimate.cost + cost
        if self.measured and self.reserved and not (kind.may_start and self._has_room(tokens, cost)):
            return False
        self.reserved.setdefault(estimate, []).append((tokens, cost))
        self.reserved_tokens += tokens
        self.reserved_cost += cost
        kind.in_progress += 1
        self.calls += 1
        if self.store is not None and self._exceeds_stored():
            self.store()
        return True

    def _has_room(self, tokens: int, cost: float) -> bool:
        return self.tokens + self.reserved_tokens + tokens <= (self.max_tokens or inf) and (
            self.cost + self.reserved_cost + cost <= (self.max_cost or inf)
        )

    def release(self, estimate: Estimate, used: Used) -> None:
        """Release the estimate of a call that has ended, and learn from what it used."""
        amounts = self.reserved[estimate]
        tokens, cost = amounts.pop()
        if not amounts:
            del self.reserved[estimate]
        self.reserved_tokens -= tokens
        self.reserved_cost = self.reserved_cost - cost if self.reserved else 0.0
        kind = self.kinds[estimate.kind]
        kind.in_progress -= 1
        if used.unknown:
            self.tokens += tokens
            self.cost += cost
        elif used.tokens == 0:
            kind.failed += 1
        else:
            kind.answered += 1
            kind.tokens = max(kind.tokens, used.tokens - estimate.tokens)
            kind.cost = max(kind.cost, used.cost - estimate.cost)
        self.freed.set()

    def to_store(self, ahead: float = AHEAD) -> tuple[int, int, float]:
        """Calls, tokens and dollars that count as spent if the process is killed: what was spent or is reserved, and
        some more, so that not every call has to be stored."""
        tokens, cost = self.tokens + self.reserved_tokens, self.cost + self.reserved_cost
        self._stored = (
            self.calls + int(ahead * max(0, (self.max_calls or 0) - self.calls)),
            tokens + int(ahead * max(0, (self.max_tokens or 0) - tokens)),
            cost + ahead * max(0.0, (self.max_cost or 0.0) - cost),
        )
        return self._stored

    def _exceeds_stored(self) -> bool:
        calls, tokens, cost = self._stored
        return (
            (self.max_calls is not None and self.calls > calls)
            or (self.max_tokens is not None and self.tokens + self.reserved_tokens > tokens)
            or (self.max_cost is not None and self.cost + self.reserved_cost > cost)
        )

    @property
    def limited(self) -> bool:
        return self.max_calls is not None or self.measured

    @property
    def measured(self) -> bool:
        """Whether a limit is known to be reached only when calls have ended."""
        return self.max_tokens is not None or self.max_cost is not None

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


class ReplyStore(Protocol):
    """Where a unit's replies are stored: the reply cache, or a worker's connection to it."""

    async def find(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        """Parse the stored text; None if there is none, or if it cannot be parsed."""

    def put_text(self, address: bytes, model: str, text: str) -> None:
        """Store a text; `model` names its source."""

    def commit(self) -> None:
        """Write stored texts, so that they can be found."""


Sender = Callable[[Any, Any], Awaitable[Reply]]
"""Replaces `Client.send` in a rehearsal; called with the client and the request."""


@dataclass(slots=True)
class Session:
    """The unit that is being run.

    Args:
        sample: identifies the unit in cache keys and seeds, so that repeats of a unit get replies of their own.
        cache: where replies are stored; None stores none.
        budget: the run's limits; None for no limit.
        on_call: called with every finished call.
        label_words: words that stand for a label in the unit's prompts, such as "a woman" → female, for simulated
        models.
        sender: sends requests instead of `Client.send`; None for the normal way.
        occurrences: how often each request was made in this unit; starts empty.
        failure: the first error of a call; starts as None.
    """

    sample: str = ""
    _: KW_ONLY
    cache: ReplyStore | None = None
    budget: Budget | None = None
    on_call: Callable[[Call], None] | None = None
    label_words: Mapping[str, str] = field(default_factory=dict)
    sender: Sender | None = None
    occurrences: dict[bytes, int] = field(default_factory=dict)
    failure: ParleyError | None = None
    """The first error of a call: AutoGen's runtime raises a `RuntimeError` in its place."""
    order: int = field(default_factory=count(1).__next__)
    """Number of the session in this process: calls of units that began earlier are sent first."""

    def occurrence(self, request_key: bytes) -> int:
        """Count a request; returns how often this unit made it before. Each repetition is a separate sample."""
        earlier = self.occurrences.get(request_key, 0)
        self.occurrences[request_key] = earlier + 1
        return earlier

    async def read(self, address: bytes, parse: Callable[[str], T]) -> T | None:
        """Read a reply from the cache; None if there is none."""
        return None if self.cache is None else await self.cache.find(address, parse)

    def put(self, address: bytes, model: str, reply: Reply | str) -> None:
        """Store a reply, or a text, in the cache."""
        if self.cache is not None:
            self.cache.put_text(address, model, reply if isinstance(reply, str) else reply.model_dump_json())


SESSION: ContextVar[Session | None] = ContextVar("parley_session", default=None)


@contextmanager
def session(current: Session) -> Iterator[Session]:
    """Make the calls inside belong to the session `current`."""
    token = SESSION.set(current)
    try:
        yield current
    finally:
        SESSION.reset(token)
