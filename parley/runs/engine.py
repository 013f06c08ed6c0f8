"""The engine passes a plan's units to an executor, and writes each to the run file when it is finished.

    result = await Engine(study, file, models=Models(), concurrency=64).run()

It is the only writer of the run file: units that finish together are committed together. An error that concerns one
unit marks that unit as failed, and the run continues; one that concerns the whole run (a refused key, a full disk, a
spent budget, Ctrl-C) stops it cleanly. The same command then resumes it, unless another file has taken its place.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from parley.agents import Budget, Models, ReplyCache
from parley.agents.models.session import AHEAD
from parley.base.errors import ParleyError
from parley.base.text import plural
from parley.judging import Study, Unit
from parley.runs.executor import GC_THRESHOLDS, Executor, InProcess, stored_error
from parley.runs.opening import Replaced, RunFileError
from parley.runs.plan import pending
from parley.runs.rows import Progress, Rows
from parley.runs.store import RunFile


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended."""

    path: Path
    """The run file."""
    progress: Progress
    stopped: str | None = None
    """Why the run stopped early; None if every unit was run, even if some failed."""
    interrupted: bool = False
    first_error: str | None = None
    """The error of the first unit that failed."""
    unread: str | None = None
    """Message that no reply of the run could be read, with the reason; None otherwise."""
    scheduled: bool = False
    """Whether a scheduler's signal or the wall time stopped it."""

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def complete(self) -> bool:
        return self.stopped is None and self.progress.done == self.progress.total


TRIED = "enough replies were tried"
"""The reason for stopping a trial."""
MAX_FAILURES_IN_A_ROW = 20
"""After this many failed units in a row, the server counts as down."""
TICK_SECONDS = 0.5
INTERRUPTED_SECONDS = 5.0
"""How long units in progress may go on after Ctrl-C."""
MAX_CLOSING_SECONDS = 10.0
"""Seconds of a scheduler's grace (at most half of it) that are kept for closing workers, models and files."""


class Engine:
    """Runs the units of a study that are not done yet, many concurrently, and writes each when it is finished.

    `run` calls `executor.run_units(units, control)` with itself as the `RunControl`, and `executor.close()` in the end;
    the executor calls back `finish` for every unit and `stop` if the whole run must stop.

    Args:
        study: The study.
        file: The run file, opened for writing.
        models: The clients of the study's models.
        executor: What runs the units. Default: this process.
        concurrency: How many units run concurrently.
        cache: The reply cache; None asks the models for every reply, and again when the run is resumed.
        budget: Limits on calls, tokens and cost, with what was spent before. Default: no limits.
        on_progress: Called with the progress after every commit, and twice a second in between.
        expected_calls: Expected calls of the whole plan, for the estimate of the time left.
        expected_reads: The expected calls for one token.
        trial: Stop after this many replies that had to be parsed; 0 for no limit.
    """

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
        expected_reads: int = 0,
        trial: int = 0,
    ) -> None:
        self.study, self.file, self.models = study, file, models
        self.executor = executor or InProcess()
        self.concurrency, self.cache, self.budget = concurrency, cache, budget or Budget()
        counts = file.counts()
        total, done = sum(counts.values()), counts["done"]
        share = 1 - done / total if total else 0.0
        self.progress = Progress(
            total=total,
            done=done,
            before=done,
            expected_calls=expected_calls * share,
            expected_reads=expected_reads * share,
        )
        self.stopping = asyncio.Event()
        self._before = file.spent()[:3]
        self._start = (self.budget.calls, self.budget.tokens, self.budget.cost)
        self._spent: list[float] = []
        self.budget.store = self._flush
        self._trial = trial
        self._on_progress = on_progress or (lambda progress: None)
        self._finished: list[Rows] = []
        self._flush_due = False
        self._stop_reason: str | None = None
        self.interrupted = False
        self.scheduled = False
        """Whether a scheduler or the wall time is stopping the run."""
        self._task: asyncio.Task[object] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._first_error: str | None = None
        self._failures_in_a_row = 0
        self._replaced: Replaced | None = None

    def interrupt(self) -> float:
        """Handle the first Ctrl-C: start no new units, and abandon those that do not finish soon.

        Returns:
            The seconds left for units in progress.
        """
        self.interrupted = True
        self.stop("interrupted")
        self._abandon_after(INTERRUPTED_SECONDS)
        return INTERRUPTED_SECONDS

    def end_within(self, seconds: float, reason: str) -> float:
        """Handle a scheduler's signal or the wall time: start no new units, and abandon those that do not finish in
        time.

        Args:
            seconds: Time until the whole run must have ended, with files closed.
            reason: The message for the user.

        Returns:
            The seconds left for units in progress.
        """
        self.interrupted = self.scheduled = True
        self.stop(reason)
        seconds = max(0.0, seconds - min(MAX_CLOSING_SECONDS, seconds / 2))
        self._abandon_after(seconds)
        return seconds

    def _abandon_after(self, seconds: float) -> None:
        """Abandon the units that are still in progress after some seconds; the first call decides."""
        if self._deadline is None and self._task is not None:
            self._deadline = asyncio.get_running_loop().call_later(seconds, self._task.cancel)

    def stop(self, reason: str) -> None:
        """Start no new units. The first reason is reported."""
        if self._stop_reason is None:
            self._stop_reason = reason
        self.stopping.set()

    def note(self, kind: str, detail: str) -> None:
        """Add an event to the run file; if that cannot be written, stop the run."""
        try:
            self.file.note(kind, detail)
        except RunFileError as error:
            self._stop_unwritten(error)

    def _stop_unwritten(self, error: RunFileError) -> None:
        self.stop(str(error))
        self._replaced = error if isinstance(error, Replaced) else self._replaced

    async def run(self) -> Result:
        """Run all units that are not done, or as many as a budget or Ctrl-C allows."""
        self._task = asyncio.current_task()
        self.file.note("started", f"{self.progress.done} of {self.progress.total} units were done")
        ticker = asyncio.create_task(self._tick())
        thresholds = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            try:
                await self.executor.run_units(self._units(), self)
            finally:
                await self.executor.close()
        except asyncio.CancelledError:
            self.interrupt()
            if self._task is not None:
                self._task.uncancel()  # the caller's task continues, and may use its own timeouts
        except RunFileError:
            raise  # a file that cannot be read cannot be resumed either
        except ParleyError as error:
            self.stop(str(error))
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
            ticker.cancel()
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            self._flush(ahead=0.0)
            if self.cache is not None:
                self.cache.commit()
        if self._stop_reason:
            self.note("stopped", stored_error(self.study, self._stop_reason))
        else:
            self.note("ended", "every unit was run")
        if self._replaced:
            raise self._replaced
        return Result(
            self.file.path,
            self.progress,
            self._stop_reason,
            self.interrupted,
            self._first_error,
            scheduled=self.scheduled,
            unread=self._unread(),
        )

    def _units(self) -> Iterator[Unit]:
        """The units that are not done; none once the run stops."""
        units = pending(self.file, self.study)
        while not self.stopping.is_set() and (unit := next(units, None)) is not None:
            yield unit
            if self._trial:
                self._flush()  # includes the unit that has just ended
            if self._trial and self.file.replies().typed >= self._trial:
                self.stop(TRIED)

    def _unread(self) -> str | None:
        """The message for a run in which nothing could be read; None if something was."""
        lost = self.file.lost_verdicts()
        if self.progress.read and not lost:
            return None
        replies = self.file.replies()
        if not lost and (not replies.typed or replies.read or replies.whole_texts):
            return None
        # Some replies may be readable and give no verdict: a scorer's, about drafts that were refused.
        statuses = lost if replies.read else {key: count for key, count in replies.statuses.items() if key}
        what = ("verdict", "verdicts") if replies.read else ("reply", "replies")
        kinds = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
        hint = "; raise --max-tokens" if replies.cut else ""
        return f"none of {plural(sum(statuses.values()), *what)} could be read ({kinds}){hint}"

    async def _tick(self) -> None:
        """Between commits, report progress and write replies, so that calls to slow models are visible."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._report()
            self._flush()  # even if no unit has ended: it notices a run file that was replaced
            try:
                if self.cache is not None:
                    self.cache.commit()
            except ParleyError as error:
                self.stop(str(error))

    def finish(self, rows: Rows) -> None:
        """Take a unit that is done or failed; it is written in the next turn of the event loop."""
        self._finished.append(rows)
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)
        if rows.error is None:
            self._failures_in_a_row = 0
            return
        self._first_error = self._first_error or rows.error
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
            self.stop(f"{MAX_FAILURES_IN_A_ROW} units failed in a row, the last with: {rows.error}")

    def _flush(self, ahead: float = AHEAD) -> None:
        """Commit the units that finished since the last flush, and what the run has spent; if the file cannot be
        written, stop the run.

        Args:
            ahead: See `Budget.to_store`.
        """
        self._flush_due = False
        finished, self._finished = self._finished, []
        now = zip(self._before, self.budget.to_store(ahead), self._start, strict=True)
        before, self._spent = self._spent, [earlier + total - start for earlier, total, start in now]
        try:
            written = self.file.write(finished, None if self._spent == before else self._spent)
        except RunFileError as error:
            self._stop_unwritten(error)
            return
        if not written:
            return
        for rows in written:
            self._first_error = self._first_error or rows.error
            self.progress.add(rows)
        self._report()

    def _report(self) -> None:
        self.progress.in_flight = sum(client.throttle.under_way for client in self.models)
        self._on_progress(self.progress)
