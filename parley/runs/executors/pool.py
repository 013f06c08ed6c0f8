"""Many workers, one run: units are streamed to the workers, finished ones are streamed back, dead workers are replaced.

Workers live until the run ends. How a worker is started and called is up to a subclass (`processes`, `ray_pool`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from parley.base.errors import BudgetSpent, ConfigError, ParleyError
from parley.base.tasks import gather_or_cancel
from parley.base.text import plural
from parley.judging import Unit
from parley.runs.executor import FINISHING, RunControl
from parley.runs.executors.worker import Instructions, SharedBudget, WorkerReport, WorkerSlot, nth_part
from parley.runs.plan import StudySpec

MAX_DEATHS_IN_A_ROW = 5
"""If this many workers die with no unit finished in between, the units kill them, and the run stops. With
more workers the limit is twice their number, since a machine that fails takes all of its workers with it."""
CLOSE_SECONDS = 5.0
IDLE_SECONDS = 0.05


class WorkerLost(ParleyError):
    """A worker process or its machine died."""


class WorkerNotPlaced(ParleyError):
    """There was no room for a worker within the time limit."""


class WorkerHandle(ABC):
    """A worker as the pool sees it."""

    @abstractmethod
    async def call(self, method: str, *args: object) -> Any:
        """Call a method of the `Worker`; raises `WorkerLost` if it has died."""

    async def exchange(self, instructions: Instructions) -> WorkerReport:
        return await self.call("exchange", instructions)  # type: ignore[no-any-return]

    async def close(self) -> WorkerReport:
        return await self.call("close")  # type: ignore[no-any-return]

    @abstractmethod
    async def kill(self) -> None:
        """End it now."""


@dataclass(slots=True, kw_only=True, eq=False)
class PooledWorker:
    """One of the pool's workers, or the place of one that is yet to be started."""

    slot: WorkerSlot
    handle: WorkerHandle | None = None
    assigned: dict[str, Unit] = field(default_factory=dict)
    instructions: Instructions = field(default_factory=Instructions)
    """What to send next, in addition to units."""
    slowed: list[tuple[str, float]] = field(default_factory=list)
    """What other workers have reported about rate limits since then."""


class WorkerPool:
    """An executor whose units run in workers. The engine calls `run_units`; that calls `start` for every worker.

    Args:
        spec: How workers create the study.
        workers: How many. Default: as many as there is room for.
        elsewhere: Counts the run's units that are in progress and not in a worker; its concurrency includes them.
    """

    on_interrupt = FINISHING

    def __init__(
        self, spec: StudySpec, *, workers: int | None = None, elsewhere: Callable[[], int] = lambda: 0
    ) -> None:
        self._spec = spec
        self._requested_workers = workers
        self._workers: list[PooledWorker] = []
        self._deaths = 0
        self.in_progress_elsewhere = elsewhere

    @abstractmethod
    async def start(self, slot: WorkerSlot) -> WorkerHandle:
        """Start a worker and wait until it is ready.

        Raises `ConfigError` if it cannot work, `WorkerNotPlaced` if there was no room for it in time.
        """

    @abstractmethod
    async def room(self, control: RunControl) -> int:
        """How many workers to start at most; at least one."""

    async def start_all(self, control: RunControl) -> None:
        """Start every worker before there are units for them; raises `ParleyError` if one cannot work."""

        async def start(worker: PooledWorker) -> None:
            worker.handle = await self.start(worker.slot)

        await self._plan_workers(control)
        await gather_or_cancel(map(start, self._workers))

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        if not self._workers:
            await self._plan_workers(control)
        self._queue, self._left = UnitQueue(units), self._count_left(control)
        self._not_placed: WorkerNotPlaced | None = None
        tasks = [asyncio.create_task(self._run_worker(worker, control)) for worker in self._workers]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._not_placed is not None and not self._over(control):
            raise ConfigError(str(self._not_placed))

    def _count_left(self, control: RunControl) -> int:
        return control.progress.total - control.progress.done - self.in_progress_elsewhere()

    async def _plan_workers(self, control: RunControl) -> None:
        """Divide the run's concurrency among the workers; they are started when there are units for them."""
        self._control = control
        self._concurrency = max(1, min(control.concurrency, self._count_left(control)))
        room = await self.room(control)
        wanted = min(self._requested_workers or room, self._concurrency)
        if room < wanted:
            remark = f"the cluster has room for {room} of {plural(wanted, 'worker')}"
            control.note("workers", remark)
            control.progress.remarks.append(remark)
        workers = min(room, wanted)
        self._budget = SharedBudget(control.budget, workers)
        for index in range(workers):
            slot = WorkerSlot(
                index=index,
                workers=workers,
                concurrency=nth_part(self._concurrency, workers, index),
                limited=self._budget.limited,
                cache=control.cache is not None,
            )
            self._workers.append(PooledWorker(slot=slot))

    async def close(self) -> None:
        """End the workers, at most a few seconds later."""
        await asyncio.gather(*map(self._close, self._workers))

    def _over(self, control: RunControl) -> bool:
        """Whether nothing is left to do: no worker has a unit, and no unit is to be started."""
        return not any(worker.assigned for worker in self._workers) and (control.stopping.is_set() or self._queue.empty)

    async def _run_worker(self, worker: PooledWorker, control: RunControl) -> None:
        """Keep one worker busy: start it, exchange messages with it, replace it if it dies."""
        concurrency = worker.slot.concurrency
        while not self._over(control):
            try:
                if worker.handle is None:
                    if self._queue.empty:  # another worker may die and its units come back
                        await asyncio.sleep(IDLE_SECONDS)
                    elif not await self._start(worker, control):
                        return
                    continue
                if elsewhere := self.in_progress_elsewhere():
                    room = concurrency - nth_part(elsewhere, worker.slot.workers, worker.slot.index)
                else:
                    # A few units wait at the worker, so that it never idles, unless too few are left for all workers.
                    room = concurrency + (concurrency // 4 + 1 if self._left > self._concurrency else 0)
                units = [] if control.stopping.is_set() else self._queue.take(max(0, room - len(worker.assigned)))
                self._left -= len(units)
                worker.assigned.update((unit.id, unit) for unit in units)
                if not worker.assigned:
                    await asyncio.sleep(IDLE_SECONDS)
                    continue
                slowed, worker.slowed = worker.slowed, []
                stop = control.stopping.is_set()
                replies = [(unit.id, *row) for unit in units for row in control.pending.of(unit.id).items()]
                instructions = worker.instructions._replace(units=units, replies=replies, slowed=slowed, stop=stop)
                worker.instructions = Instructions()
                report = await worker.handle.exchange(instructions)
                worker.instructions = self._handle_report(report, worker)
            except WorkerLost as lost:
                self._requeue(lost, worker, control)

    async def _start(self, worker: PooledWorker, control: RunControl) -> bool:
        """Start a worker, while others run its units; False if that is no longer needed, or there is no room."""
        starting = asyncio.create_task(self.start(worker.slot))
        try:
            while not starting.done():
                await asyncio.wait((starting,), timeout=IDLE_SECONDS)
                if control.stopping.is_set() or self._over(control):
                    return False
            worker.handle = starting.result()
        except WorkerNotPlaced as error:
            self._not_placed = error
            control.note("worker not placed", str(error))
            return False
        finally:
            if worker.handle is None:
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
        return True

    def _handle_report(self, report: WorkerReport, worker: PooledWorker) -> Instructions:
        """Hand in finished units; return the answer to the worker's request for calls."""
        control = self._control
        control.progress.merge(report.tally)
        self._budget.report(report.tally)
        control.keep(report.replies)
        for rows in report.finished:
            if worker.assigned.pop(rows.id, None) is not None:
                control.finish(rows)
                self._deaths = 0
        for unit in report.dropped:
            worker.assigned.pop(unit, None)
        if report.stop_reason is not None:
            control.stop(report.stop_reason)
        for other in self._workers:
            if other is not worker:
                other.slowed.extend(report.slowed)
        if not report.requested_calls:
            return Instructions()
        try:
            return Instructions(calls=self._budget.lend(report.requested_calls))
        except BudgetSpent as error:
            return Instructions(spent=str(error))

    def _requeue(self, lost: WorkerLost, worker: PooledWorker, control: RunControl) -> None:
        """Return the units of a dead worker to the queue."""
        worker.handle, worker.instructions = None, Instructions()
        units, worker.assigned = worker.assigned, {}
        self._deaths += 1
        control.note("worker lost", f"{lost}; {plural(len(units), 'unit')} to be run again")
        if self._deaths >= max(MAX_DEATHS_IN_A_ROW, 2 * len(self._workers)):
            raise ConfigError(f"{self._deaths} workers died in a row, the last with: {lost}")
        self._queue.give_back(units.values())
        self._left += len(units)

    async def _close(self, worker: PooledWorker) -> None:
        """Take the worker's last report; a worker that does not answer is killed."""
        handle, worker.handle = worker.handle, None
        if handle is None:
            return
        try:
            with suppress(WorkerLost, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    self._handle_report(await handle.close(), worker)
        finally:
            await handle.kill()


class UnitQueue:
    """Units to run. Those that come back are taken last, so that a unit that kills workers does not delay others.

    Args:
        units: The units, read only as far as they are taken.
    """

    def __init__(self, units: Iterator[Unit]) -> None:
        self._units = units
        self._next = deque[Unit]()
        self._returned = deque[Unit]()

    @property
    def empty(self) -> bool:
        if not self._next and not self._returned:
            self._next.extend(islice(self._units, 1))
        return not self._next and not self._returned

    def take(self, count: int) -> list[Unit]:
        """At most this many units."""
        units: list[Unit] = []
        while self._next and len(units) < count:
            units.append(self._next.popleft())
        units.extend(islice(self._units, max(0, count - len(units))))
        while self._returned and len(units) < count:
            units.append(self._returned.popleft())
        return units

    def give_back(self, units: Iterable[Unit]) -> None:
        self._returned.extend(units)
