"""One budget for many workers: the run's own process has it and lends calls in chunks.

A call is counted when it is lent, so that the limit on calls is never exceeded. Tokens and cost are reported by the
workers; chunks shrink to single calls near the limit, so that only calls in progress can exceed it.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque

from parley.agents import Budget, BudgetSpent
from parley.runs import Tally

CHUNK = 64


class SharedBudget:
    """The run's budget, which lends calls to workers.

    Args:
        budget: The limits, and what was spent before.
        workers: How many workers borrow from it.
    """

    def __init__(self, budget: Budget, workers: int) -> None:
        self._budget, self._workers = budget, workers
        self._lent = 0
        self._reported = Tally()

    @property
    def limited(self) -> bool:
        budget = self._budget
        return any(limit is not None for limit in (budget.max_calls, budget.max_tokens, budget.max_cost))

    def report(self, tally: Tally) -> None:
        """Count what a worker has spent."""
        self._reported.merge(tally)
        self._budget.tokens += tally.tokens
        self._budget.cost += tally.cost

    def lend(self, requested: int) -> int:
        """A number of calls, at least one; raises `BudgetSpent` if there are none left."""
        self._budget.refuse_if_spent()
        calls = max(1, min(max(requested, CHUNK), int(self._calls_left() // (2 * self._workers))))
        self._budget.calls += calls
        self._lent += calls
        return calls

    def _calls_left(self) -> float:
        """How many more calls fit in the budget if they cost up to twice the average so far."""
        budget, made = self._budget, self._reported.calls - self._reported.cached
        in_progress = self._lent - made
        left = math.inf if budget.max_calls is None else float(budget.max_calls - budget.calls)
        if budget.max_tokens is not None:
            tokens_per_call = self._reported.tokens / made if made else math.inf
            left = min(left, (budget.max_tokens - budget.tokens) / (2 * tokens_per_call or 1.0) - in_progress)
        if budget.max_cost is not None:
            cost_per_call = self._reported.cost / made if made else math.inf
            left = min(left, (budget.max_cost - budget.cost) / (2 * cost_per_call or 1e-9) - in_progress)
        return min(left, 1e9)


class BorrowedBudget(Budget):
    """A worker's part: the calls that were lent to it, and a queue of calls that wait for more.

    Args:
        limited: Whether calls must be borrowed; if not, there is no limit.
        wake: Set when the worker must ask for more calls.
    """

    def __init__(self, *, limited: bool, wake: asyncio.Event) -> None:
        super().__init__()
        self._available = 0.0 if limited else math.inf
        self._wake = wake
        self._spent: str | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def requested(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    async def take_call(self) -> None:
        while self._available < 1:
            self.refuse_if_spent()
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            self._wake.set()
            try:
                await waiter
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
        self._available -= 1

    def refuse_if_spent(self) -> None:
        if self._spent is not None:
            raise BudgetSpent(self._spent)

    def give_call_back(self) -> None:
        self._available += 1

    def receive(self, calls: int, spent: str | None) -> None:
        """Take the calls that were lent, or the message that the budget is spent."""
        self._available += calls
        self._spent = spent or self._spent
        while self._waiting and (calls > 0 or self._spent):
            calls -= 1
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
        if self._waiting:
            self._wake.set()
