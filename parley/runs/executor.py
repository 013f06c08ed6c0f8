"""The interface of executors. The engine plans and writes; an executor only runs units and hands in the results.

`run_unit` runs one, in the run's own process or in a worker's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from parley.agents import Budget, Call, Models, ReplyCache, Session, session
from parley.agents.models.session import ReplyStore, Sender
from parley.base.errors import AuthError, BudgetSpent, ModelError, ParleyError, SearchError
from parley.base.redaction import HiddenAddresses
from parley.base.text import encodable
from parley.judging import Outcome, Study, Unit
from parley.runs.rows import UNWRITABLE, Progress, Record, Rows, to_rows, unwritable_message

GC_THRESHOLDS = (50_000, 20, 50)
"""With thousands of live messages, Python's default garbage collection takes a fifth of a run's CPU time: 44 µs of some
200 per message."""


class RunStopped(ParleyError):
    """An error that concerns the whole run: a refused key, a spent budget, a mistake in the config."""


def stored_error(study: Study, error: str) -> str:
    """An error for the run file, without addresses of servers, since the file may be shared."""
    return HiddenAddresses(study.config.model_dump()).hide_in_error(error)


async def run_unit(
    study: Study,
    unit: Unit,
    models: Models,
    *,
    cache: ReplyStore | None,
    budget: Budget | None,
    on_call: Callable[[Call], None],
    sender: Sender | None = None,
) -> Rows:
    """Run one unit and return its rows: the conversation and verdicts, or the error. Raises only `RunStopped`.

    Args:
        study: The study that the unit belongs to.
        unit: The unit.
        models: The clients of the study's models.
        cache: The reply cache; None asks the models for every reply.
        budget: Checked before every call; None is no limit.
        on_call: Called after every model call, even if the unit is never finished.
        sender: Sends a request in place of the client's own `send`, in a rehearsal.
    """
    started, clock = time.time(), time.monotonic()

    def record(outcome: Outcome | None = None, error: str | None = None) -> Record:
        # The end is measured by the monotonic clock: if the system's clock is set back, no unit ends before it began.
        finished = started + time.monotonic() - clock
        return Record(unit=unit, started_at=started, finished_at=finished, outcome=outcome, error=error)

    def failed(error: str) -> Rows:
        # The terminal still shows the address, which may be what must be corrected.
        return replace(to_rows(record(error=stored_error(study, error))), error=encodable(error))

    try:
        # The unit is part of the key in the reply cache: two units with the same prompt are two samples, not copies.
        sample = f"{study.seed}/{unit.id}"
        current = Session(
            sample,
            cache=cache,
            budget=budget,
            on_call=on_call,
            label_words=study.label_words,
            sender=sender,
        )
        with session(current):
            outcome = await study.run(unit, models)
    except (BudgetSpent, AuthError) as error:
        raise RunStopped(str(error)) from None
    except (ModelError, SearchError) as error:
        return failed(str(error))
    except ParleyError as error:
        raise RunStopped(str(error)) from None
    except Exception as error:  # a bug in a study fails this unit, not the run
        return failed(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    try:
        return to_rows(record(outcome))
    except (*UNWRITABLE, AttributeError) as error:  # a user's study may return anything
        return failed(unwritable_message(error))


class RunControl(Protocol):
    """The engine's interface for executors: settings, and methods to report to."""

    study: Study
    models: Models
    cache: ReplyCache | None
    budget: Budget
    concurrency: int
    """Number of concurrent units, over all processes."""
    progress: Progress
    stopping: asyncio.Event
    """Once set: start no new units, finish those in progress."""
    interrupted: bool
    """Whether the user is stopping the run."""

    def finish(self, rows: Rows) -> None:
        """Hand in a unit that is done or failed; it is written soon after."""

    def stop(self, reason: str) -> None:
        """Stop the whole run."""

    def note(self, kind: str, detail: str) -> None:
        """Add an event to the run file."""


class Executor(Protocol):
    """Runs units: in this process, or in Ray's workers.

    Called by the engine only.
    """

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        """Run units until there are none left or `control.stopping` is set; if cancelled, abandon those in progress.

        Args:
            units: The units to run, taken one by one as there is room.
            control: The engine. Call `control.finish` for every unit that is done or failed.
        """

    async def close(self) -> None:
        """Called once, when the run has ended."""


class InProcess:
    """Runs all units in this process, `control.concurrency` of them concurrently."""

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
        """Nothing to close."""

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
                )
            except RunStopped as error:
                control.stop(str(error))
            else:
                control.finish(rows)
