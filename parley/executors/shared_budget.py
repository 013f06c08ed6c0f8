"""One budget for many workers: the run's own process keeps it and lends calls in chunks.

A call is counted when it is lent, so that the limit on calls is never passed. Tokens and dollars are reported by the
workers; chunks shrink to single calls as the limit comes near, so that no more than what is under way goes over it.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque

from parley.agents import Budget, BudgetSpent
from parley.runs import Tally

CHUNK = 64


class Ledger:
    """The lender's side."""

    def __init__(self, budget: Budget, workers: int) -> None:
        self._budget, self._workers = budget, workers
        self._lent = 0
        self._reported = Tally()

    @property
    def limited(self) -> bool:
        budget = self._budget
        return any(limit is not None for limit in (budget.max_calls, budget.max_tokens, budget.max_cost))

    def report(self, tally: Tally) -> None:
        self._reported.merge(tally)
        self._budget.tokens += tally.tokens
        self._budget.cost += tally.cost

    def lend(self, wanted: int) -> int:
        """So many calls, at least one; raises `BudgetSpent` if there are none."""
        self._budget.refuse_if_spent()
        calls = max(1, min(max(wanted, CHUNK), int(self._room() // (2 * self._workers))))
        self._budget.calls += calls
        self._lent += calls
        return calls

    def _room(self) -> float:
        """How many more calls the budget surely has room for, by what calls came to so far."""
        budget, made = self._budget, self._reported.calls - self._reported.cached
        under_way = self._lent - made
        room = math.inf if budget.max_calls is None else float(budget.max_calls - budget.calls)
        if budget.max_tokens is not None:
            each = self._reported.tokens / made if made else math.inf
            room = min(room, (budget.max_tokens - budget.tokens) / (2 * each or 1.0) - under_way)
        if budget.max_cost is not None:
            each = self._reported.cost / made if made else math.inf
            room = min(room, (budget.max_cost - budget.cost) / (2 * each or 1e-9) - under_way)
        return min(room, 1e9)


class Loan(Budget):
    """A worker's side: calls that were lent, and a place to wait for more."""

    def __init__(self, *, limited: bool, ask: asyncio.Event) -> None:
        super().__init__()
        self._free = 0.0 if limited else math.inf
        self._ask = ask
        self._spent: str | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def wanted(self) -> int:
        return len(self._waiting)

    async def take_call(self) -> None:
        while self._free < 1:
            self.refuse_if_spent()
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            self._ask.set()
            try:
                await place
            finally:
                if place in self._waiting:
                    self._waiting.remove(place)
        self._free -= 1

    def refuse_if_spent(self) -> None:
        if self._spent is not None:
            raise BudgetSpent(self._spent)

    def give_call_back(self) -> None:
        self._free += 1

    def receive(self, calls: int, spent: str | None) -> None:
        """What the ledger answered: calls, or that the budget is spent."""
        self._free += calls
        self._spent = spent or self._spent
        while self._waiting and (calls > 0 or self._spent):
            calls -= 1
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
        if self._waiting:
            self._ask.set()
