"""The progress of a run: a bar in a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from parley.agents.models.catalogue import catalogue, fetch
from parley.runs import Progress

LINE_SECONDS = 10.0


def facts(progress: Progress) -> str:
    """Calls per second, tokens, cost, errors and time left, in one line."""
    parts = [f"{progress.calls / max(progress.elapsed, 1e-9):.1f} calls/s", f"{progress.tokens:,} tokens"]
    parts.append(f"${progress.cost:.2f}" if progress.cost_known else "cost unknown")
    if progress.cached:
        parts.append(f"{progress.cached} cached")
    for name in ("failed", "unparsed", "refused", "cut", "unscored"):
        if count := getattr(progress, name):
            parts.append(f"{count} {name}")
    if progress.waiting:
        parts.append(progress.waiting)
    if (seconds := progress.seconds_left) is not None:
        parts.append(f"{_clock(seconds)} left")
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
        self._bar = Bar(
            TextColumn("units"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=console,
        )
        self._task = self._bar.add_task("", total=total)
        self._printed_at = 0.0
        self._ended = False
        self._remarks = 0

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
        if not self._quiet:
            for remark in progress.remarks[self._remarks :]:
                self._console.print(remark, highlight=False)
        self._remarks = len(progress.remarks)
        if self._live:
            finished = progress.done + progress.failed
            self._bar.update(self._task, completed=finished, description=facts(progress))
            return
        now = time.monotonic()
        finished = progress.done + progress.failed == self._total
        if not self._quiet and not self._ended and (finished or now - self._printed_at >= LINE_SECONDS):
            self._printed_at, self._ended = now, finished
            self._console.print(f"{progress.done}/{self._total} units · {facts(progress)}", highlight=False)


def fetch_with_bar(name: str) -> None:
    """Download a model of the catalogue, with a progress bar."""
    entry = catalogue()[name]
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"fetching {name} ({entry.size / 1e6:.0f} MB, {entry.licence})", highlight=False)
        fetch(name)
        return
    columns = (
        TextColumn("fetching {task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(name, total=entry.size)
        fetch(name, lambda done, size: bar.update(task, completed=done))
