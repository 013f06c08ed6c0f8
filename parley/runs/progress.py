"""How far a run is, and how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from parley.agents import Call
from parley.runs.rows import Rows, Tally


@dataclass(slots=True, kw_only=True)
class Progress(Tally):
    """How far a run is. `done` counts what is on disk; the tally counts calls as they are made."""

    total: int
    done: int = 0
    failed: int = 0
    expected_calls: float = 0.0
    unparsed: int = 0
    refused: int = 0
    unscored: int = 0
    spared: int = 0
    """Units that a stopping rule no longer wants (see `looks`)."""
    waiting: str = ""
    """What the run is waiting for, where that is not simply a model (a batch, say)."""
    kept: Tally = field(default_factory=Tally)
    started: float = field(default_factory=time.monotonic)

    def add(self, rows: Rows) -> None:
        """A unit that is on disk now."""
        if rows.failed:
            self.failed += 1
            return
        self.done += 1
        self.unparsed += rows.statuses.get("unparsed", 0)
        self.refused += rows.statuses.get("refused", 0)
        self.unscored += rows.statuses.get("unscored", 0)
        self.kept.merge(rows.tally)

    def add_call(self, call: Call) -> None:
        """Counted as it is made, whether its unit gets finished or not."""
        self.count(call)

    @property
    def cost_known(self) -> bool:
        return self.unpriced == 0

    def abandoned(self) -> list[float]:
        """Calls, tokens and dollars that went into units which were not finished."""
        calls = (self.calls - self.cached) - (self.kept.calls - self.kept.cached)
        return [calls, self.tokens - self.kept.tokens, self.cost - self.kept.cost]

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
        return self.stopped is None and self.progress.done + self.progress.spared == self.progress.total
