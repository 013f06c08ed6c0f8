"""The engine: holds the units of a plan, many at once, and writes each down when it is finished.

    result = await Engine(study, file, concurrency=64).run()

Finished units are committed together, as many as are ready at that moment. An error that concerns one unit marks
it as failed and goes on; one that concerns the whole run (a refused key, a full disk, a spent budget, Ctrl-C) stops
it cleanly. In every case the same command goes on from there.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agents import (
    AuthError,
    Budget,
    BudgetSpent,
    Call,
    ModelError,
    Models,
    ParleyError,
    ReplyCache,
    SearchError,
    Session,
    session,
)
from judging import Study, Unit
from parley.runs.plan import pending
from parley.runs.store import Record, RunFile, RunFileError

FAILURES_IN_A_ROW = 20
"""So many failed units with none between them that worked: the server is gone, and the run stops."""
TICK_SECONDS = 0.5
GC_THRESHOLDS = (50_000, 20, 50)
"""Thousands of live messages make Python's default collector take a fifth of a run's CPU (docs/decisions.md)."""


@dataclass(slots=True)
class Progress:
    """How far a run is. `done` counts what is on disk."""

    total: int
    done: int = 0
    failed: int = 0
    expected_calls: float = 0.0
    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float = 0.0
    cost_known: bool = True
    unparsed: int = 0
    refused: int = 0
    unscored: int = 0
    recorded: list[float] = field(default_factory=lambda: [0, 0, 0.0])
    started: float = field(default_factory=time.monotonic)

    def add(self, record: Record) -> None:
        if record.outcome is None:
            self.failed += 1
            return
        self.done += 1
        for turn in record.outcome.transcript.turns:
            self.unparsed += turn.parse_status == "unparsed"
            self.refused += turn.parse_status == "refused"
            self.unscored += turn.parse_status == "unscored"
            for call in turn.calls:
                if not call.cached:
                    self.recorded[0] += 1
                    self.recorded[1] += call.prompt_tokens + call.completion_tokens
                    self.recorded[2] += call.cost or 0.0

    def add_call(self, call: Call) -> None:
        """Counted as it is made, whether its unit gets finished or not."""
        self.calls += 1
        self.cached += call.cached
        if not call.cached:
            self.tokens += call.prompt_tokens + call.completion_tokens
            self.cost += call.cost or 0.0
            self.cost_known &= call.cost is not None

    def abandoned(self) -> list[float]:
        """Calls, tokens and dollars that went into units which were not finished."""
        made = (self.calls - self.cached, self.tokens, self.cost)
        return [total - kept for total, kept in zip(made, self.recorded, strict=True)]

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float | None:
        """Seconds until the end, at the pace of calls so far; None before there is one."""
        if not self.calls or self.done + self.failed >= self.total:
            return None
        return self.elapsed / self.calls * max(self.expected_calls - self.calls, 1.0)


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended: `stopped` is None if every unit was held or failed by itself."""

    progress: Progress
    stopped: str | None = None
    interrupted: bool = False
    first_error: str | None = None

    @property
    def complete(self) -> bool:
        return self.stopped is None and self.progress.done == self.progress.total


class Engine:
    """Holds the units of a study that are still to be done, many at once, and writes each when it is done."""

    def __init__(
        self,
        study: Study,
        file: RunFile,
        *,
        models: Models,
        concurrency: int = 64,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        expected_calls: int = 0,
    ) -> None:
        self.study, self.file, self.models = study, file, models
        self.concurrency, self.cache, self.budget = concurrency, cache, budget
        counts = file.counts()
        total, done = sum(counts.values()), counts["done"]
        share = 1 - done / total if total else 0.0
        self.progress = Progress(total=total, done=done, expected_calls=expected_calls * share)
        self._on_progress = on_progress or (lambda progress: None)
        self._finished: list[Record] = []
        self._flush_due = False
        self._stop: asyncio.Event = asyncio.Event()
        self._why: str | None = None
        self._interrupted = False
        self._first_error: str | None = None
        self._failures_in_a_row = 0

    def interrupt(self) -> None:
        """Ctrl-C, the first time: no new units, those under way are finished."""
        self._interrupted = True
        self._end("interrupted")

    def _end(self, why: str) -> None:
        if self._why is None:
            self._why = why
        self._stop.set()

    async def run(self) -> Result:
        units = pending(self.file, self.study)
        self.file.note("started", f"{self.progress.done} of {self.progress.total} units were done")
        workers = [asyncio.create_task(self._work(units)) for _ in range(self.concurrency)]
        ticker = asyncio.create_task(self._tick())
        thresholds = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        try:
            await asyncio.gather(*workers)
        except asyncio.CancelledError:
            self._interrupted = True
            self._why = self._why or "interrupted"
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        finally:
            ticker.cancel()
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            self._flush()
            if self.cache is not None:
                self.cache.commit()
        self._note_end()
        return Result(self.progress, self._why, self._interrupted, self._first_error)

    async def _tick(self) -> None:
        """Calls are counted between units too, so that slow models are seen to move."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._on_progress(self.progress)

    def _note_end(self) -> None:
        try:
            self.file.note("stopped" if self._why else "ended", self._why or "every unit was held")
            if (abandoned := self.progress.abandoned())[0]:
                self.file.note("abandoned", json.dumps(abandoned))
        except RunFileError as error:
            self._why = self._why or str(error)

    async def _work(self, units: Iterator[Unit]) -> None:
        for unit in units:
            if self._stop.is_set():
                return
            await self._hold(unit)

    async def _hold(self, unit: Unit) -> None:
        started = time.time()
        seed = getattr(self.study.config, "seed", 0)
        current = Session(f"{seed}/{unit.id}", self.cache, self.budget, self.progress.add_call)
        try:
            with session(current):
                outcome = await self.study.run(unit, self.models)
        except (BudgetSpent, AuthError) as error:
            self._end(str(error))
            return
        except (ModelError, SearchError) as error:
            self._fail(unit, started, str(error))
            return
        except ParleyError as error:
            self._end(str(error))
            return
        except Exception as error:  # a fault of the study's own must not take the others with it
            self._fail(unit, started, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
            return
        self._failures_in_a_row = 0
        self._finish(Record(unit, started, time.time(), outcome))

    def _fail(self, unit: Unit, started: float, why: str) -> None:
        self._first_error = self._first_error or why
        self._failures_in_a_row += 1
        self._finish(Record(unit, started, time.time(), error=why))
        if self._failures_in_a_row >= FAILURES_IN_A_ROW:
            self._end(f"{FAILURES_IN_A_ROW} units failed in a row, the last with: {why}")

    def _finish(self, record: Record) -> None:
        self._finished.append(record)
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Commit what has finished since the last time; a file that cannot be written ends the run."""
        self._flush_due = False
        records, self._finished = self._finished, []
        if not records:
            return
        try:
            self.file.write(records)
        except RunFileError as error:
            self._end(str(error))
            return
        for record in records:
            self.progress.add(record)
        self._on_progress(self.progress)
