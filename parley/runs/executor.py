"""What runs the units of a run. The engine plans and writes; an executor only runs units and hands in the results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from parley.agents import Budget, Call, Models, ReplyCache
from parley.agents.models.session import Sender
from parley.judging import Study, Unit
from parley.runs.pending import PendingRow, PendingTable, UnfinishedUnits
from parley.runs.progress import Progress
from parley.runs.rows import Rows
from parley.runs.unit import RunStopped, run_unit


class RunControl(Protocol):
    """The engine as an executor sees it: settings to run units with, and methods to report to."""

    study: Study
    models: Models
    cache: ReplyCache | None
    unfinished: UnfinishedUnits
    """The replies of the units that this process runs."""
    pending: PendingTable
    """The replies of unfinished units that are in the run file."""
    budget: Budget
    concurrency: int
    """How many units run concurrently, in all processes together."""
    progress: Progress
    stopping: asyncio.Event
    """Once set: start no new units, finish those in progress."""
    interrupted: bool
    """Whether the user is stopping the run."""

    def finish(self, rows: Rows) -> None:
        """Hand in a unit that is done or failed; it is written soon after."""

    def keep(self, replies: Sequence[PendingRow]) -> None:
        """Write replies of units that are not done, which another process runs."""

    def stop(self, reason: str) -> None:
        """Stop the whole run."""

    def note(self, kind: str, detail: str) -> None:
        """Add an event to the run file."""


FINISHING = "finishing the units in progress; press Ctrl-C again to abandon them"


class Executor(Protocol):
    """Runs units: in this process, in worker processes, on other machines, or as a provider's batch.

    Called by the engine only.
    """

    on_interrupt: str
    """The message for a user who presses Ctrl-C."""

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        """Run units until there are none left or `control.stopping` is set; if cancelled, abandon those in progress.

        Args:
            units: The units to run, taken one by one as there is room.
            control: The engine. Call `control.finish` for every unit that is done or failed.
        """

    async def close(self) -> None:
        """Called once, when the run has ended; `run_units` may have been called several times."""


class InProcess:
    """Runs all units in this process, `control.concurrency` of them concurrently.

    Args:
        post: Sends a request and returns the reply, in place of the client's own `send` (the batch executor's).
    """

    on_interrupt = FINISHING

    def __init__(self, post: Sender | None = None) -> None:
        self._post = post
        self._in_progress = 0

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        # At least one worker, which finds out whether any unit is left.
        left = max(1, control.progress.total - control.progress.done)
        workers = [asyncio.create_task(self._work(units, control)) for _ in range(min(control.concurrency, left))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def close(self) -> None:
        """Nothing is left open by `run_units`."""

    async def _work(self, units: Iterator[Unit], control: RunControl) -> None:
        on_call: Callable[[Call], None] = control.progress.add_call
        for unit in units:
            if control.stopping.is_set():
                return
            self._in_progress += 1
            try:
                rows = await run_unit(
                    control.study,
                    unit,
                    control.models,
                    cache=control.cache,
                    pending=control.unfinished.begin(unit.id),
                    budget=control.budget,
                    on_call=on_call,
                    post=self._post,
                )
            except RunStopped as error:
                control.stop(str(error))
            else:
                control.finish(rows)
            finally:
                self._in_progress -= 1
