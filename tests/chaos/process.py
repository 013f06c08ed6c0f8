"""A process that runs `parley` and can be killed: forked from one that has imported everything, so that fifty of
them start quickly. The processes themselves, their signals and their ends are real.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRELOADED = [
    "tests.chaos.process",
    "parley.cli.run",
    "parley.judging.malibu.study",
    "parley.judging.bbq",
    "parley.judging.stardtox",
    "parley.judging.squad",
    "parley.agents.models.compatible",
    "parley.runs.executors.batch",
]
BATCH_SECONDS, BATCH_TIMEOUT_SECONDS = 0.1, 4
"""Batches are collected, polled and given up sooner than in earnest, since their server answers immediately."""
JUMPS = (0.0, 0.0, 3600.0, -3600.0, 1e8, -1e9)


class ChaosProcess:
    """`parley ARGUMENTS` in a folder.

    Args:
        arguments: The command line.
        folder: The working directory.
        name: Names its log and its home.
        clock: Seed of a wall clock that jumps by hours and years, both ways; None leaves the clock alone.
        quota: The largest size of a file in bytes; None sets no limit.
        log: Where its output goes. Default: a file in the folder.
    """

    def __init__(
        self,
        arguments: Sequence[object],
        folder: Path,
        name: str,
        clock: int | None = None,
        quota: int | None = None,
        log: Path | None = None,
    ) -> None:
        self.log = log or folder / f"{name}.log"
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        os.environ["PYTHONPATH"] = str(ROOT)  # for the fork server
        home = folder / f"{name}.home"
        self.process = context.Process(target=_run, args=([*map(str, arguments)], folder, home, self.log, clock, quota))
        self.process.start()

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def end(self, seconds: float = 300.0) -> int:
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"it does not end: {self.output()}"
        return self.process.exitcode

    def output(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""


def _run(arguments: list[str], folder: Path, home: Path, log: Path, clock: int | None, quota: int | None) -> None:
    try:
        if quota is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (quota, quota))
        os.chdir(folder)
        os.environ["PARLEY_HOME"] = str(home)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if clock is not None:
            real, rng = time.time, random.Random(clock)
            time.time = lambda: max(0.0, real() + rng.choice(JUMPS))
        from parley.agents.models import batches
        from parley.cli import main
        from parley.runs.executors import batch

        batches.TIMEOUT_SECONDS = BATCH_TIMEOUT_SECONDS
        batch.COLLECT_SECONDS = batch.FIRST_POLL_SECONDS = BATCH_SECONDS
        status = main(arguments)
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)
