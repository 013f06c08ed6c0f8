"""A worker: a separate process that runs units, with its own event loop and model clients.

The pool sends it `Instructions`, and it answers with a `WorkerReport` as soon as there is something to report. Finished
units are sent as rows, so that the run's own process only has to write them.

One budget covers all workers: the run's own process has it and lends calls in chunks. A call is counted when it is
lent, so that the limit on calls is never exceeded. Tokens and cost are reported by the workers; chunks shrink to single
calls near the limit, so that only calls in progress can exceed it.
"""

from __future__ import annotations

import asyncio
import gc
import math
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from parley.agents import Budget, Call, Models, ReplyCache
from parley.base.errors import BudgetSpent, ParleyError
from parley.base.home import home
from parley.judging import Study, Unit
from parley.runs.executor import GC_THRESHOLDS, KEEP_SECONDS, PendingRow, RunStopped, UnfinishedUnits, run_unit
from parley.runs.plan import StudySpec
from parley.runs.rows import Rows, Tally

TICK_SECONDS = 0.5
"""A report comes at least this often, so that progress is shown and the worker is not taken for dead."""
LINGER_SECONDS = 0.01
"""How long a report waits for further units to finish, so that many are sent together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSlot:
    """A worker's share of the run."""

    index: int
    workers: int
    concurrency: int
    """How many units this worker runs concurrently."""
    limited: bool
    """Whether the run has a budget, so that calls must be borrowed."""
    cache: bool
    """Whether the run uses the reply cache."""

    def share(self, total: int) -> int:
        return max(1, nth_part(total, self.workers, self.index))


def nth_part(total: int, parts: int, index: int) -> int:
    """Divide a total into nearly equal parts, and return the one at this index."""
    return total // parts + (index < total % parts)


class Instructions(NamedTuple):
    """What the pool sends to a worker."""

    units: Sequence[Unit] = ()
    replies: Sequence[PendingRow] = ()
    """What earlier attempts at these units have paid for."""
    calls: int = 0
    """Calls that the shared budget lends."""
    spent: str | None = None
    """The message that the shared budget is spent."""
    slowed: Sequence[tuple[str, float]] = ()
    """Models whose servers told another worker to slow down, and the pause they asked for."""
    stop: bool = False


@dataclass(slots=True, kw_only=True)
class WorkerReport:
    """What a worker tells the pool: what happened since its last report."""

    finished: list[Rows] = field(default_factory=list)
    replies: list[PendingRow] = field(default_factory=list)
    """Replies of units that are not finished, to be kept in the run file."""
    dropped: list[str] = field(default_factory=list)
    """Units that were assigned and will not be finished here, since the run is stopping."""
    tally: Tally = field(default_factory=Tally)
    requested_calls: int = 0
    """Calls that wait for the shared budget."""
    slowed: list[tuple[str, float]] = field(default_factory=list)
    stop_reason: str | None = None
    """Why the whole run must stop."""


class Worker:
    """Runs in its own process; its methods are called through a pipe or by Ray, `open` first and `close` last.

    Args:
        spec: The study.
        slot: This worker's share of the run.
    """

    def __init__(self, spec: StudySpec, slot: WorkerSlot) -> None:
        self._spec, self._slot = spec, slot
        self._models = Models()
        self._cache: ReplyCache | None = None
        self._units: asyncio.Queue[Unit] = asyncio.Queue()
        self._earlier: dict[str, dict[bytes, str]] = {}
        self._unfinished = UnfinishedUnits(lambda unit: self._earlier.pop(unit, {}), collect=not slot.cache)
        self._next_keeping = 0.0
        self._running = 0
        self._report = WorkerReport()

    async def open(self) -> str | None:
        """Create the study and its clients, and start working; the error message if that fails."""
        try:
            self._wake = asyncio.Event()
            self._budget = BorrowedBudget(limited=self._slot.limited, wake=self._wake)
            self._study: Study = self._spec.make()
            if self._slot.cache:
                self._cache = ReplyCache(home() / "replies.sqlite")
            for name in self._study.models():
                client = self._models[name]
                client.throttle = client.make_throttle(
                    self._slot.share, 1 / self._slot.workers, partial(self._on_slow, name)
                )
                await client.prepare()
        except ParleyError as error:
            return f"a worker on {socket.gethostname()} cannot work: {error}"
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._slot.concurrency)]
        return None

    async def exchange(self, instructions: Instructions) -> WorkerReport:
        """Take instructions, and report once something has happened or half a second has passed."""
        for name, address, reply in instructions.replies:
            self._earlier.setdefault(name, {})[address] = reply
        for unit in instructions.units:
            self._units.put_nowait(unit)
        self._budget.receive(instructions.calls, instructions.spent)
        for name, pause in instructions.slowed:
            self._models[name].throttle.slow_down(pause, reported=True)
        if instructions.stop:
            while not self._units.empty():
                self._report.dropped.append(self._units.get_nowait().id)
        if self._running or not self._units.empty():
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wake.wait()
            await asyncio.sleep(LINGER_SECONDS)
        self._wake.clear()
        if time.monotonic() >= self._next_keeping:
            self._report.replies = self._unfinished.take()
            self._next_keeping = time.monotonic() + KEEP_SECONDS
        return self._take_report()

    def _take_report(self) -> WorkerReport:
        report, self._report = self._report, WorkerReport()
        report.requested_calls = self._budget.requested
        return report

    async def close(self) -> WorkerReport:
        """Abandon the units in progress; the replies they have paid for are in the cache, or in the last report."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._models.close()
        if self._cache is not None:
            with suppress(ParleyError):
                self._cache.close()
        self._report.replies = self._unfinished.take()
        return self._take_report()

    def _on_slow(self, model: str, pause: float) -> None:
        self._report.slowed.append((model, pause))
        self._wake.set()

    async def _work(self) -> None:
        while True:
            unit = await self._units.get()
            self._running += 1
            try:
                rows = await run_unit(
                    self._study,
                    unit,
                    self._models,
                    cache=self._cache,
                    pending=self._unfinished.begin(unit.id),
                    budget=self._budget,
                    on_call=self._count,
                )
            except RunStopped as error:
                self._report.dropped.append(unit.id)
                self._report.stop_reason = self._report.stop_reason or str(error)
            else:
                self._report.finished.append(rows)
                if not rows.failed:
                    self._unfinished.done(unit.id)
            finally:
                self._running -= 1
                self._wake.set()

    def _count(self, call: Call) -> None:
        self._report.tally.count(call)


CHUNK = 64
"""Calls that are lent at once, if there are enough."""


class SharedBudget:
    """The run's budget, which lends calls to workers.

    It is in the run's own process, which learns of every unit anyway: a process for it alone could die with the only
    record of what was spent.

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
