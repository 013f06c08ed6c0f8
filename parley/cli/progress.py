"""The progress of a run: a bar in a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import math
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from parley.agents.models.catalogue import catalogue, fetch
from parley.runs import Progress

LINE_SECONDS = 10.0
MAX_RISE = 0.03
"""Maximum relative increase of the displayed time left per second."""


def facts(progress: Progress, seconds_left: float | None) -> str:
    """Calls per second, tokens, cost, errors and time left, in one line.

    Args:
        progress: The run's progress.
        seconds_left: The displayed time left; None if unknown.
    """
    if not progress.calls:
        return progress.waiting or "reading the first prompts"
    rate = progress.calls / max(progress.elapsed, 1e-9)
    parts = [f"{progress.in_flight:,} calls at a time"] if progress.in_flight > 1 else []
    parts += [f"{rate:.1f} calls/s" if rate >= 1 else f"{1 / rate:.1f} s per call", f"{progress.tokens:,} tokens"]
    parts.append(f"${progress.cost:.2f}" if progress.cost_known else "cost unknown")
    if progress.cached:
        parts.append(f"{progress.cached} cached")
    for name in ("failed", "unparsed", "refused", "cut", "unscored"):
        if count := getattr(progress, name):
            parts.append(f"{count} {name}")
    if progress.waiting:
        parts.append(progress.waiting)
    if seconds_left is not None:
        parts.append(f"{_clock(seconds_left)} left")
    return " · ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressView:
    """Shows the progress of a run; a context manager.

    Args:
        console: Where to print.
        total: The number of units.
        quiet: Show nothing.
    """

    def __init__(self, console: Console, total: int, *, quiet: bool) -> None:
        self._console, self._total, self._quiet = console, total, quiet
        self._live = console.is_terminal and not quiet
        self._bar = Bar(BarColumn(), TextColumn("{task.description}", markup=False), console=console)
        self._task = self._bar.add_task("", total=1.0)
        self._printed_at = -math.inf
        self._waiting_for = ""
        self._ended = False
        self._remarks = 0
        self._left: tuple[float, float] | None = None
        """The last displayed time left, and when."""

    def __enter__(self) -> ProgressView:
        if self._live:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bar.stop()

    def update(self, progress: Progress) -> None:
        if self._quiet:
            return
        for remark in progress.remarks[self._remarks :]:
            self._console.print(remark, highlight=False, markup=False, emoji=False)
        self._remarks = len(progress.remarks)
        now = time.monotonic()
        finished = progress.done + progress.failed
        line = f"{finished}/{self._total} units · {facts(progress, self._steady(progress.seconds_left, now))}"
        if self._live:
            share = finished / max(self._total, 1)
            if progress.expected_calls and share < 1:  # the bar counts calls, since a debate is one unit
                share = progress.calls / max(progress.expected_calls, progress.calls)
            self._bar.update(self._task, completed=share, description=line)
            return
        news = progress.waiting != self._waiting_for and not progress.calls
        if not self._ended and (finished == self._total or news or now - self._printed_at >= LINE_SECONDS):
            self._printed_at, self._ended, self._waiting_for = now, finished == self._total, progress.waiting
            self._console.print(line, highlight=False, markup=False, emoji=False)

    def _steady(self, seconds: float | None, now: float) -> float | None:
        """The displayed time left, which may fall at once but rises slowly:

        the last calls of a run may be its longest.
        """
        if seconds is not None and self._left is not None:
            shown, at = self._left
            seconds = min(seconds, shown * (1 + MAX_RISE * (now - at)))
        if seconds is not None:
            self._left = seconds, now
        return seconds


def fetch_with_bar(name: str) -> None:
    """Download a model of the catalogue, with a progress bar."""
    entry = catalogue()[name]
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"downloading {name}, once: {entry.size / 1e6:.0f} MB ({entry.licence})", highlight=False)
        fetch(name)
        return
    columns = (
        TextColumn("downloading {task.description}, once"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(name, total=entry.size)
        fetch(name, lambda done, size: bar.update(task, completed=done))
