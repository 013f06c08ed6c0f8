"""Who holds the units of a run. The engine plans and writes; an executor only holds, and hands in what it finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from parley.agents import Budget, Call, Models, ReplyCache
from parley.agents.models.session import Sender
from parley.judging import Study, Unit
from parley.runs.progress import Progress
from parley.runs.rows import Rows
from parley.runs.unit import RunStopped, run_unit


class RunControl(Protocol):
    """The engine, as an executor sees it: what is given out here, and what is handed in."""

    study: Study
    models: Models
    cache: ReplyCache | None
    budget: Budget
    concurrency: int
    progress: Progress
    stopping: asyncio.Event
    """Once set: no new units, those under way are finished."""
    interrupted: bool
    """Whether it is a person who stops the run."""

    def finish(self, rows: Rows) -> None:
        """A unit was held, or failed; it is written soon."""

    def end(self, why: str) -> None:
        """The run must stop."""

    def note(self, kind: str, detail: str) -> None:
        """An event for the run file."""


FINISHING = "finishing the units under way; Ctrl-C again abandons them"


class Executor(Protocol):
    """Holds units, wherever: in this process, in others, on other machines, as a vendor's batch."""

    on_interrupt: str
    """What a person who presses Ctrl-C is told."""

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        """Hold the units until there are none left or the control is stopping; cancelled, abandon those under way."""


class InProcess:
    """All units in this process, as many at once as the control says. `post` may deliver requests in another way."""

    on_interrupt = FINISHING

    def __init__(self, post: Sender | None = None) -> None:
        self._post = post

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        left = max(1, control.progress.total - control.progress.done)  # one at least looks whether all are there
        workers = [asyncio.create_task(self._work(units, control)) for _ in range(min(control.concurrency, left))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, units: Iterator[Unit], control: RunControl) -> None:
        on_call: Callable[[Call], None] = control.progress.add_call
        for unit in units:
            if control.stopping.is_set():
                return
            try:
                rows = await run_unit(
                    control.study,
                    unit,
                    control.models,
                    cache=control.cache,
                    budget=control.budget,
                    on_call=on_call,
                    post=self._post,
                )
            except RunStopped as error:
                control.end(str(error))
            else:
                control.finish(rows)
