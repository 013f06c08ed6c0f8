"""Makes the reports and comparisons that pages show, one after the other, in a process of its own: they take seconds
of computing, and a thread would take the interpreter from requests for tens of milliseconds at a time.

The process reads a JSON list of paths per line (one: its report; two: their comparison), stores what it computed in the
first run's cache, and answers with lines: what it is doing, and in the end "done".
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parley import __version__
from parley.base.plugins import child_environment
from parley.runs import RunFile
from parley.viewer.headline import comparison, headline
from parley.viewer.index import SearchIndex

FAILED = "the report could not be computed: run parley report to see why"
NOT_COMPARED = "the runs could not be compared: run parley compare to see why"


DONE = "done"


def compute(path: Path, index: SearchIndex, tell: Callable[[str], None] = lambda stage: None) -> dict[str, Any]:
    """Compute what a run found and store it in the run's cache, with the numbers of units that it is from.

    Args:
        path: the run file.
        index: the run's cache.
        tell: is told what is being computed.
    """
    with RunFile.open(path) as file:
        units, started = file.counts(), time.time()
        try:
            figures = headline(file, tell)
        except Exception:  # whatever a file contains, its page says so and the next one's report is made
            if __name__ != "__main__":
                raise
            figures = {"cautions": [], "unavailable": FAILED}
    stored = {
        "version": __version__,
        "units": units,
        "at": time.time(),
        "seconds": time.time() - started,
        "figures": figures,
    }
    index.store("pictures", {picture["name"]: picture.pop("svg") for picture in figures.get("figures", [])})
    index.store("headline", stored)
    return stored


def comparison_key(other: Path) -> str:
    return f"comparison with {other.resolve()}"


def unit_counts(*paths: Path) -> list[dict[str, int]]:
    counts = []
    for path in paths:
        with RunFile.open(path) as file:
            counts.append(file.counts())
    return counts


def compute_comparison(path: Path, other: Path, index: SearchIndex) -> None:
    """Compare two runs and store the result in the first one's cache.

    Args:
        path: the first run, which the other is compared with.
        other: the other run.
        index: the first run's cache.
    """
    units = unit_counts(path, other)
    try:
        compared = comparison(path, other)
    except Exception:  # as above
        compared = {"unavailable": NOT_COMPARED}
    index.store(comparison_key(other), {"version": __version__, "units": units, "found": compared})


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
        """Jobs that ended the process."""

    def request(self, *paths: Path, first: bool) -> None:
        """Have a report or a comparison made, unless it is being made already; small runs come before large ones.

        Args:
            paths: the run file, or the two that are compared.
            first: whether it goes before the others, because someone is looking at it.
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
        """How far a job is: what is being computed and for how many seconds, or how many jobs come before it."""
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
        run, *others = map(Path, json.loads(line))
        if others:
            compute_comparison(run, others[0], SearchIndex(run))
        else:
            compute(run, SearchIndex(run), lambda stage: print(stage, flush=True))
        print(DONE, flush=True)
