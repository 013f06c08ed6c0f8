"""The progress of a run, and how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from parley.agents import Call
from parley.runs.rows import Rows, Tally


@dataclass(slots=True, kw_only=True)
class Progress(Tally):
    """The progress of a run. `done` counts units on disk; the inherited tally counts calls as they are made."""

    total: int
    done: int = 0
    failed: int = 0
    expected_calls: float = 0.0
    read: int = 0
    """Replies that could be parsed."""
    unparsed: int = 0
    refused: int = 0
    cut: int = 0
    unscored: int = 0
    waiting: str = ""
    """What the run is waiting for other than replies: a provider's batch, a free CPU."""
    remarks: list[str] = field(default_factory=list)
    """What the user should know and no number shows: fewer workers than requested."""
    stored: Tally = field(default_factory=Tally)
    """The calls of the units on disk."""
    started: float = field(default_factory=time.monotonic)

    def add(self, rows: Rows) -> None:
        """Count a unit that has been written."""
        if rows.failed:
            self.failed += 1
            return
        self.done += 1
        self.read += rows.statuses.get("ok", 0) + rows.statuses.get("repaired", 0)
        self.unparsed += rows.statuses.get("unparsed", 0)
        self.refused += rows.statuses.get("refused", 0)
        self.cut += rows.cut
        self.unscored += rows.statuses.get("unscored", 0)
        self.stored.merge(rows.tally)

    def add_call(self, call: Call) -> None:
        """Count a call when it is made, whether its unit is finished later or not."""
        self.count(call)

    @property
    def cost_known(self) -> bool:
        return self.unpriced == 0

    def abandoned(self) -> list[float]:
        """Calls, tokens and US dollars spent on units that were not finished."""
        calls = (self.calls - self.cached) - (self.stored.calls - self.stored.cached)
        return [calls, self.tokens - self.stored.tokens, self.cost - self.stored.cost]

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end, at the rate of calls so far; None before the first call and when all is done.

        Repairs make units longer than planned, so that the expected calls are made before all is done: each unfinished
        unit then counts as half of a finished one.
        """
        unfinished = self.total - self.done - self.failed
        if not self.calls or unfinished <= 0:
            return None
        under_way = unfinished * self.stored.calls / self.done / 2 if self.done else 0.0
        return self.elapsed / self.calls * max(self.expected_calls - self.calls, under_way, 1.0)


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended."""

    progress: Progress
    stopped: str | None = None
    """Why the run stopped early; None if every unit was run, even if some failed."""
    interrupted: bool = False
    first_error: str | None = None
    """The error of the first unit that failed."""
    unread: str | None = None
    """That not one reply of the run could be read, and of what kinds they are; None if one could be, or none was
    to be."""
    rescued: Path | None = None
    """The file that has everything, if the run file was removed or replaced during the run."""
    scheduled: bool = False
    """Whether a scheduler's signal or the wall time stopped it."""

    @property
    def complete(self) -> bool:
        return self.stopped is None and self.progress.done == self.progress.total
