"""Makes reports and comparisons for pages, one after the other, in a separate process: they take seconds of
computing, and a thread would block requests for tens of milliseconds at a time.

The process reads a JSON list of paths per line (one: its report; two: their comparison), stores what it computed in the
first run's cache, and answers with lines of progress, and in the end "done".

Cautions, sentences and forest plots are those of `parley report`, with the same draws and seed, so that a p-value is
the same wherever it is shown: with fewer draws of the viewer's own, one test had several. A report that the command
line has made is not made again (`keep`).
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley import __version__
from parley.base.errors import ParleyError, install
from parley.base.plugins import child_environment
from parley.base.text import plural
from parley.reports import cautions
from parley.reports.cautions import unfinished_cautions
from parley.runs import RunFile
from parley.runs.reading import compared_values, why_nothing_is_done
from parley.viewer.index import SearchIndex

if TYPE_CHECKING:
    from parley.analysis.page.report import Report


NOT_INSTALLED = f"reports need pandas, SciPy and Matplotlib: {install('analysis')}"
MAX_VERDICTS = 4_000_000
"""Maximum verdicts; with more, the report takes too long for a page."""


def headline(file: RunFile, tell: Callable[[str], None] = lambda stage: None) -> dict[str, Any]:
    """The contents of a run's page (`page_of`). Without a report, `unavailable` has the reason.

    Args:
        file: the run.
        tell: receives progress messages.
    """
    page: dict[str, Any] = {"cautions": early_cautions(file)}
    if file.counts()["done"] == 0:
        return {**page, "unavailable": why_nothing_is_done(file)}
    verdicts = file.rows("SELECT count(*) FROM verdicts")[1][0][0]
    if verdicts == 0:
        return {**page, "unavailable": "this run has no verdicts"}
    if verdicts > MAX_VERDICTS:
        return {**page, "unavailable": "this run is too large for a report here: use parley report"}
    tell("loading the statistics")
    try:
        from parley.reports import make_report
    except ModuleNotFoundError:
        return {**page, "unavailable": NOT_INSTALLED}
    tell(f"tests and intervals from {plural(verdicts, 'verdict')}")
    try:
        return page_of(make_report([file.path]))
    except (ParleyError, ValueError) as error:
        return {**page, "unavailable": str(error)}


def early_cautions(file: RunFile) -> list[str]:
    """What a reader must know before the report is computed."""
    return [*cautions(file.info()["models"]), *unfinished_cautions(file.counts())]


def page_of(report: Report) -> dict[str, Any]:
    """The headline, cautions, sentences and forest plots; `also` has the other answered questions.

    Args:
        report: The run's report.
    """
    from parley.analysis.say import headline as answer_of
    from parley.analysis.say import json_values

    others = [answer_of(forest) for forest in report.forests]
    # A plot whose lines are not tested describes: its numbers are its answer.
    forests = [
        json_values(forest.data()) | {"answer": answer.answer if answer.tests else ""}
        for forest, answer in zip(report.forests, others, strict=True)
    ]
    # The question with an answer may not be the first.
    shown = [report.headline, *(answer for answer in others[1:] if answer.shown)]
    answers = [json_values(answer.data()) for answer in shown if answer]
    lines = [line for forest in report.forests for line in forest.lines]
    lines += [answer.line for answer in shown if answer and answer.line]
    pages = [line for forest in forests for line in forest["lines"]]
    pages += [answer["line"] for answer in answers if answer["line"]]
    for page_line, line in zip(pages, lines, strict=True):
        page_line["compared"] = compared_values(line)  # the order of its units, as in `parley show --finding`
    first = int(report.headline is not None)
    return {
        "headline": answers[0] if first else None,
        "also": answers[first:],
        "cautions": list(report.cautions),
        "sentences": report.sentences,
        "forests": forests,
    }


def comparison(path: Path, other: Path) -> dict[str, Any]:
    """The other run minus the first on the units that both have: the report of `parley compare RUN OTHER`.

    Args:
        path: the first run.
        other: the run that is compared with it.
    """
    try:
        from parley.analysis.say import json_values
        from parley.reports import compare_runs
    except ModuleNotFoundError:
        return {"unavailable": NOT_INSTALLED}
    try:
        report = compare_runs([path, other])
    except (ParleyError, ValueError) as error:
        return {"unavailable": str(error)}
    return {
        "headline": json_values(report.headline.data()) if report.headline else None,
        "cautions": list(report.cautions),
        "sentences": list(report.words),
        "forests": [json_values(forest.data()) for forest in report.forests],
        "units": next((json_values(table.frame) for table in report.tables if table.name == "largest"), []),
    }


FAILED = (
    "the report could not be computed: run parley report to see why",
    "the runs could not be compared: run parley compare to see why",
)
DONE = "done"


def compute(index: SearchIndex, *paths: Path, tell: Callable[[str], None] = lambda stage: None) -> dict[str, Any]:
    """Compute a run's results or a comparison, and store it with the numbers of units.

    Args:
        index: the first run's cache.
        paths: the run file, or the two that are compared.
        tell: receives progress messages.
    """
    units, started = unit_counts(paths), time.time()
    try:
        if paths[1:]:
            figures = comparison(*paths)
        else:
            with RunFile.open(paths[0]) as file:
                figures = headline(file, tell)
    except Exception:  # whatever a file contains, its page says so and the next one's report is made
        if __name__ != "__main__":
            raise
        figures = {"cautions": [], "unavailable": FAILED[len(paths) - 1]}
    return _stored(index, cache_key(paths), units, time.time() - started, figures)


def keep(path: Path, report: Report) -> None:
    """Let the viewer show a report that was made elsewhere, with the same settings as the viewer's.

    Args:
        path: the run file.
        report: its report.
    """
    with suppress(OSError, sqlite3.Error):  # a page that cannot be stored is made when it is asked for
        _stored(SearchIndex(path), cache_key([path]), report.runs[0]["units"], 0.0, page_of(report))


def _stored(
    index: SearchIndex, key: str, units: Mapping[str, int], seconds: float, figures: Mapping[str, Any]
) -> dict[str, Any]:
    stored = {"version": __version__, "units": units, "at": time.time(), "seconds": seconds, "figures": figures}
    index.store(key, stored)
    return stored


def cache_key(paths: Sequence[Path]) -> str:
    return f"comparison with {paths[1].resolve()}" if paths[1:] else "headline"


def unit_counts(paths: Sequence[Path]) -> dict[str, int]:
    """Numbers of planned, done and failed units of these runs."""
    counts = Counter[str]()
    for path in paths:
        with RunFile.open(path) as file:
            counts.update(file.counts())
    return dict(counts)


Job = tuple[Path, ...]


class Reporter:
    """Runs the process and gives it one job at a time. The process ends when the viewer does."""

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._current: Job | None = None
        self._process: subprocess.Popen[str] | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._stage = ""
        self._began = 0.0
        self.failed: set[Job] = set()
        """Jobs that crashed the process."""

    def request(self, *paths: Path, first: bool) -> None:
        """Request a report or a comparison, unless already requested; small runs come first.

        Args:
            paths: the run file, or the two that are compared.
            first: whether it has priority, because someone is looking at it.
        """
        with self._changed:
            if paths == self._current or self._closed:
                return
            if paths in self._waiting:
                if not first:
                    return
                self._waiting.remove(paths)
            larger = (place for place, job in enumerate(self._waiting) if _size(job) > _size(paths))
            self._waiting.insert(0 if first else next(larger, len(self._waiting)), paths)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="reports", daemon=True)
                self._thread.start()
            self._changed.notify()

    def progress(self, *paths: Path) -> dict[str, Any]:
        """The progress of a job: the current step and its seconds, or the number of jobs before it."""
        with self._changed:
            if paths == self._current:
                return {"stage": self._stage, "seconds": time.monotonic() - self._began}
            before = self._waiting.index(paths) + 1 if paths in self._waiting else 0
            return {"before": before}

    def _work(self) -> None:
        while True:
            with self._changed:
                self._current = None
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                self._current = self._waiting.popleft()
                job = self._current
                self._stage, self._began = "", time.monotonic()
                if self._process is None or self._process.poll() is not None:
                    self._process = _start()
                process = self._process
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps([str(path) for path in job]) + "\n")
                process.stdin.flush()
                while (line := process.stdout.readline().strip()) not in ("", DONE):
                    self._stage = line
                answered = line == DONE
            except OSError:
                answered = False
            if not answered and not self._closed:
                self.failed.add(job)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            if self._process is not None:
                self._process.kill()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(5.0)


def _size(job: Job) -> int:
    return sum(path.stat().st_size for path in job if path.exists())


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "parley.viewer.reporter"],
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


if __name__ == "__main__":
    for line in sys.stdin:
        run_files = [Path(text) for text in json.loads(line)]
        compute(SearchIndex(run_files[0]), *run_files, tell=lambda stage: print(stage, flush=True))
        print(DONE, flush=True)
