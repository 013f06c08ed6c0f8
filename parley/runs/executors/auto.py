"""`--executor auto`, the default: the run's own process, and worker processes once one core is the limit.

A run begins in its own process. If its event loop is busy nearly all the time, and enough is left to do, worker
processes are started. When they are ready, it finishes the units in progress, and the workers run the others. A thread
for HTTP would not help: that is Python code as well. The run's process does not become one of the workers: it also
writes the file, and limits would have to be divided anew while calls are in flight.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from parley.agents.providers import provider_of
from parley.base.errors import ParleyError
from parley.base.tasks import gather_or_cancel
from parley.judging import Unit
from parley.runs.executor import InProcess, RunControl
from parley.runs.executors.processes import ProcessPool
from parley.runs.plan import StudySpec

WATCH_SECONDS = 3.0
"""How long the process must be busy."""
BUSY = 0.9
"""The share of that time in which its event loop does something."""
WORTH_SECONDS = 10.0
"""Workers take seconds to start: with less than this left to do, they are not worth it."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class AutoExecutor(InProcess):
    """Runs units in this process, and moves to worker processes when one core is the limit.

    Args:
        make_spec: How workers create the study; called if they are needed.
    """

    def __init__(self, make_spec: Callable[[], StudySpec]) -> None:
        super().__init__()
        self._make_spec = make_spec
        self._pool: ProcessPool | None = None
        self._is_ready = False

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        self._ready_or_done, self._done = asyncio.Event(), asyncio.Event()
        watch = asyncio.create_task(self._watch(control)) if _may_move(control) else None
        try:
            await gather_or_cancel((self._run_here(units, control), self._run_in_workers(units, control)))
        finally:
            if watch is not None:
                watch.cancel()
                with suppress(asyncio.CancelledError):
                    await watch

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def _run_here(self, units: Iterator[Unit], control: RunControl) -> None:
        try:
            await super().run_units(self._until_ready(units), control)
        finally:
            self._ready_or_done.set()
            self._done.set()

    async def _run_in_workers(self, units: Iterator[Unit], control: RunControl) -> None:
        """Run the other units, once the workers are ready."""
        await self._ready_or_done.wait()
        if self._pool is None or not self._is_ready:
            return
        if any("max_connections" in client.options.model_fields_set for client in control.models):
            # Workers have their own connections: with those of this process, there would be more than the user set.
            await self._done.wait()
        await self._pool.run_units(units, control)

    def _until_ready(self, units: Iterator[Unit]) -> Iterator[Unit]:
        """The units, until the workers are ready: they take over then."""
        while not self._is_ready and (unit := next(units, None)) is not None:
            yield unit

    async def _watch(self, control: RunControl) -> None:
        """Wait until this process is the limit, and start the workers."""
        share = 0.0
        while share < BUSY or (control.progress.seconds_left or 0.0) < WORTH_SECONDS:
            # The thread's time and not the process's: an embedded model's threads do not keep the loop from working.
            busy, clock = time.thread_time(), time.perf_counter()
            await asyncio.sleep(WATCH_SECONDS)
            share = (time.thread_time() - busy) / (time.perf_counter() - clock)
        if control.stopping.is_set():
            return
        state = f"one core was busy {share:.0%} of the time"
        try:
            self._pool = ProcessPool(self._make_spec(), workers=cores(), elsewhere=lambda: self._in_progress)
            await self._pool.start_all(control)
        except (ParleyError, OSError) as error:
            control.note("executor", f"{state}, and the run stays in one process: {error}")
            await self.close()
            return
        control.note("executor", f"{state}: worker processes run the other units")
        self._is_ready = True
        self._ready_or_done.set()


def _may_move(control: RunControl) -> bool:
    # Each worker would load their weights.
    embedded = any(provider_of(name).embedded for name in control.study.models())
    return cores() > 1 and control.concurrency > 1 and not embedded
