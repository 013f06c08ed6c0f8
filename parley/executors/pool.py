"""Many workers, one run: units are streamed to the workers, finished ones are streamed back, dead workers are replaced.

How a worker is started and called is up to a subclass (`processes`, `ray_pool`).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Protocol

from parley.agents import BudgetSpent, ConfigError, ParleyError
from parley.agents.text import plural
from parley.executors.shared_budget import SharedBudget
from parley.executors.study_spec import StudySpec
from parley.executors.worker import Instructions, WorkerReport, WorkerSlot, nth_part
from parley.judging import Unit
from parley.runs import RunControl
from parley.runs.executor import FINISHING

MAX_DEATHS_IN_A_ROW = 5
"""If this many workers die with no unit finished in between, the units are what kills them, and the run stops."""
CLOSE_SECONDS = 5.0
IDLE_SECONDS = 0.05


class WorkerLost(ParleyError):
    """A worker process or its machine died."""


class WorkerHandle(Protocol):
    """A worker as the pool sees it. `exchange` and `close` may raise `WorkerLost`."""

    async def exchange(self, instructions: Instructions) -> WorkerReport: ...

    async def close(self) -> WorkerReport: ...

    async def kill(self) -> None: ...


class WorkerPool:
    """An executor whose units run in workers. The engine calls `run_units`; that calls `start` for every worker.

    Args:
        spec: How workers create the study.
        workers: How many. Default: as many as `max_workers` says.
    """

    on_interrupt = FINISHING

    def __init__(self, spec: StudySpec, *, workers: int | None = None) -> None:
        self._spec = spec
        self._requested_workers = workers

    @abstractmethod
    async def start(self, slot: WorkerSlot) -> WorkerHandle:
        """Start a worker and wait until it is ready; raises `ConfigError` if it cannot work."""

    @abstractmethod
    def max_workers(self) -> int:
        """How many workers there is room for."""

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        self._units, self._requeued = units, deque[Unit]()
        self._left = control.progress.total - control.progress.done
        self._concurrency = max(1, min(control.concurrency, self._left))
        workers = min(self._requested_workers or self.max_workers(), self._concurrency)
        self._deaths = 0
        self._assigned: list[dict[str, Unit]] = [{} for _ in range(workers)]
        self._slowed: list[list[tuple[str, float]]] = [[] for _ in range(workers)]
        self._budget = SharedBudget(control.budget, workers)
        tasks = [asyncio.create_task(self._run_worker(index, workers, control)) for index in range(workers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _next_units(self, count: int) -> list[Unit]:
        """The next units; those of dead workers come last, so that a unit that kills workers does not delay others."""
        units = list(islice(self._units, max(0, count)))
        while self._requeued and len(units) < count:
            units.append(self._requeued.popleft())
        self._left -= len(units)
        return units

    async def _run_worker(self, index: int, workers: int, control: RunControl) -> None:
        """Keep one slot filled: start its worker, exchange messages with it, replace it if it dies."""
        concurrency = nth_part(self._concurrency, workers, index)
        slot = WorkerSlot(
            index=index,
            workers=workers,
            concurrency=concurrency,
            limited=self._budget.limited,
            cache=control.cache is not None,
        )
        worker: WorkerHandle | None = None
        instructions = Instructions()
        assigned = self._assigned[index]
        try:
            while True:
                # A few units wait at the worker, so that it never idles, unless too few are left for all workers.
                room = concurrency + (concurrency // 4 + 1 if self._left > self._concurrency else 0)
                units = [] if control.stopping.is_set() else self._next_units(room - len(assigned))
                assigned.update((unit.id, unit) for unit in units)
                if not assigned:
                    if not any(self._assigned):
                        return
                    await asyncio.sleep(IDLE_SECONDS)  # another worker may die and its units come back
                    continue
                slowed, self._slowed[index] = self._slowed[index], []
                replies = [(unit.id, *row) for unit in units for row in control.pending.of(unit.id).items()]
                instructions = instructions._replace(
                    units=units, replies=replies, slowed=slowed, stop=control.stopping.is_set()
                )
                try:
                    if worker is None:
                        worker = await self.start(slot)
                    instructions = self._handle_report(await worker.exchange(instructions), index, control)
                except WorkerLost as lost:
                    worker, instructions = None, Instructions()
                    self._requeue(lost, assigned, control)
        finally:
            if worker is not None:
                await asyncio.shield(self._close(worker, index, control))

    def _handle_report(self, report: WorkerReport, index: int, control: RunControl) -> Instructions:
        """Hand in finished units; return the answer to the worker's request for calls."""
        control.progress.merge(report.tally)
        self._budget.report(report.tally)
        control.keep(report.replies)
        for rows in report.finished:
            if self._assigned[index].pop(rows.id, None) is not None:
                control.finish(rows)
                self._deaths = 0
        for unit in report.dropped:
            self._assigned[index].pop(unit, None)
        if report.stop_reason is not None:
            control.stop(report.stop_reason)
        for other, slowed in enumerate(self._slowed):
            if other != index:
                slowed.extend(report.slowed)
        if not report.requested_calls:
            return Instructions()
        try:
            return Instructions(calls=self._budget.lend(report.requested_calls))
        except BudgetSpent as error:
            return Instructions(spent=str(error))

    def _requeue(self, lost: WorkerLost, assigned: dict[str, Unit], control: RunControl) -> None:
        """Return the units of a dead worker to the queue."""
        self._deaths += 1
        control.note("worker lost", f"{lost}; {plural(len(assigned), 'unit')} to be run again")
        if self._deaths >= MAX_DEATHS_IN_A_ROW:
            raise ConfigError(f"{MAX_DEATHS_IN_A_ROW} workers died in a row, the last with: {lost}")
        self._requeued.extend(assigned.values())
        self._left += len(assigned)
        assigned.clear()

    async def _close(self, worker: WorkerHandle, index: int, control: RunControl) -> None:
        """Take the worker's last report; a worker that does not answer is killed."""
        with suppress(WorkerLost, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                self._handle_report(await worker.close(), index, control)
        await worker.kill()
