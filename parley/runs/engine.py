"""The engine: gives the units of a plan to an executor, and writes each down when it is finished.

    result = await Engine(study, file, models=Models(), concurrency=64).run()

It is the run's one writer: finished units are committed together, as many as are ready at that moment. An error that
concerns one unit marks it as failed and goes on; one that concerns the whole run (a refused key, a full disk, a spent
budget, Ctrl-C) stops it cleanly. In every case the same command goes on from there.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable

from parley.agents import Budget, Models, ParleyError, ReplyCache
from parley.judging import Study
from parley.runs.executor import Executor, InProcess
from parley.runs.interim import spared, waves
from parley.runs.progress import Progress, Result
from parley.runs.rows import Rows
from parley.runs.store import RunFile, RunFileError
from parley.runs.unit import GC_THRESHOLDS

FAILURES_IN_A_ROW = 20
"""So many failed units with none between them that worked: the server is gone, and the run stops."""
TICK_SECONDS = 0.5


class Engine:
    """Holds the units of a study that are still to be done, many at once, and writes each when it is done."""

    def __init__(
        self,
        study: Study,
        file: RunFile,
        *,
        models: Models,
        executor: Executor | None = None,
        concurrency: int = 64,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        expected_calls: int = 0,
    ) -> None:
        self.study, self.file, self.models = study, file, models
        self.executor = executor or InProcess()
        self.concurrency, self.cache, self.budget = concurrency, cache, budget or Budget()
        counts = file.counts()
        total, done = sum(counts.values()), counts["done"]
        share = 1 - done / total if total else 0.0
        self.progress = Progress(total=total, done=done, expected_calls=expected_calls * share)
        self.stopping = asyncio.Event()
        self._on_progress = on_progress or (lambda progress: None)
        self._finished: list[Rows] = []
        self._flush_due = False
        self._why: str | None = None
        self.interrupted = False
        self._first_error: str | None = None
        self._failures_in_a_row = 0

    def interrupt(self) -> None:
        """Ctrl-C, the first time: no new units, those under way are finished."""
        self.interrupted = True
        self.end("interrupted")

    def end(self, why: str) -> None:
        if self._why is None:
            self._why = why
        self.stopping.set()

    def note(self, kind: str, detail: str) -> None:
        """An event for the run file; a file that cannot be written ends the run."""
        try:
            self.file.note(kind, detail)
        except RunFileError as error:
            self.end(str(error))

    async def run(self) -> Result:
        self.file.note("started", f"{self.progress.done} of {self.progress.total} units were done")
        ticker = asyncio.create_task(self._tick())
        thresholds = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            for units in waves(self.study, self.file):
                await self.executor.run_units(units, self)
                self._flush()  # the next wave depends on what this one found
                if self.stopping.is_set():
                    break
            else:
                self.progress.spared = spared(self.study, self.file)
        except asyncio.CancelledError:
            self.interrupted = True
            self.end("interrupted")
        except RunFileError:
            raise  # a file that cannot be read has nothing to go on with
        except ParleyError as error:
            self.end(str(error))
        finally:
            ticker.cancel()
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            self._flush()
            if self.cache is not None:
                self.cache.commit()
        self.note("stopped" if self._why else "ended", self._why or self._ended())
        if (abandoned := self.progress.abandoned())[0]:
            self.note("abandoned", json.dumps(abandoned))
        return Result(self.progress, self._why, self.interrupted, self._first_error)

    def _ended(self) -> str:
        if not self.progress.spared:
            return "every unit was held"
        return f"{self.progress.spared} units were not needed: what they serve has been decided"

    async def _tick(self) -> None:
        """Calls are counted between units too, so that slow models are seen to move."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._on_progress(self.progress)

    def finish(self, rows: Rows) -> None:
        self._finished.append(rows)
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)
        if rows.error is None:
            self._failures_in_a_row = 0
            return
        self._first_error = self._first_error or rows.error
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= FAILURES_IN_A_ROW:
            self.end(f"{FAILURES_IN_A_ROW} units failed in a row, the last with: {rows.error}")

    def _flush(self) -> None:
        """Commit what has finished since the last time; a file that cannot be written ends the run."""
        self._flush_due = False
        finished, self._finished = self._finished, []
        if not finished:
            return
        try:
            finished = self.file.write(finished)
        except RunFileError as error:
            self.end(str(error))
            return
        for rows in finished:
            self._first_error = self._first_error or rows.error
            self.progress.add(rows)
        self._on_progress(self.progress)
