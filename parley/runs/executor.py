"""Who holds the units of a run. The engine plans and writes; an executor only holds, and hands in what it finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from parley.agents import Budget, Call, Models, ReplyCache
from parley.agents.models.session import Post
from parley.judging import Study, Unit
from parley.runs.progress import Progress
from parley.runs.rows import Rows
from parley.runs.unit import RunEnds, hold


class Desk(Protocol):
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

    async def hold(self, units: Iterator[Unit], desk: Desk) -> None:
        """Hold the units until there are none left or the desk is stopping; cancelled, abandon those under way."""


class InProcess:
    """All units in this process, as many at once as the desk says. `post` may deliver requests in another way."""

    on_interrupt = FINISHING

    def __init__(self, post: Post | None = None) -> None:
        self._post = post

    async def hold(self, units: Iterator[Unit], desk: Desk) -> None:
        left = max(1, desk.progress.total - desk.progress.done)  # one at least looks whether all are there
        workers = [asyncio.create_task(self._work(units, desk)) for _ in range(min(desk.concurrency, left))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, units: Iterator[Unit], desk: Desk) -> None:
        on_call: Callable[[Call], None] = desk.progress.add_call
        for unit in units:
            if desk.stopping.is_set():
                return
            try:
                rows = await hold(
                    desk.study,
                    unit,
                    desk.models,
                    cache=desk.cache,
                    budget=desk.budget,
                    on_call=on_call,
                    post=self._post,
                )
            except RunEnds as error:
                desk.end(str(error))
            else:
                desk.finish(rows)
