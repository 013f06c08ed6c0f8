"""A process that runs `parley` and can be killed: forked from one that has imported everything, so that a hundred of
them start quickly. The processes themselves, their signals and their ends are real.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from tests.servers import PATIENCE

ROOT = Path(__file__).parents[1]
PRELOADED = [
    "tests.process",
    "parley.cli.run",
    "parley.judging.malibu.study",
    "parley.judging.bbq.study",
    "parley.judging.stardtox.study",
    "parley.judging.squad.study",
    "parley.agents.models.compatible",
    "parley.runs.executor",
]
JUMPS = (0.0, 0.0, 3600.0, -3600.0, 1e8, -1e9)


class ParleyProcess:
    """`parley ARGUMENTS` in a folder.

    Args:
        arguments: The command line.
        folder: The working directory.
        environment: All of its environment.
        out: The file that its output goes to.
        err: The file that its messages go to. Default: `out`.
        clock: Seed of a wall clock that jumps by hours and years, both ways; None leaves the clock alone.
        quota: The largest size of a file in bytes; None sets no limit.
    """

    def __init__(
        self,
        arguments: Sequence[object],
        folder: Path,
        environment: Mapping[str, str],
        out: Path,
        err: Path | None = None,
        clock: int | None = None,
        quota: int | None = None,
    ) -> None:
        self.out, self.err = out, err or out
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        given = ([*map(str, arguments)], folder, dict(environment), out, err, clock, quota)
        self.process = context.Process(target=_run, args=given)
        with patch.dict(os.environ, {"PYTHONPATH": str(ROOT)}):  # for the fork server
            self.process.start()

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self, seconds: float = PATIENCE) -> int:
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"it does not end: {self.output()}"
        return self.process.exitcode

    def output(self) -> str:
        return self.err.read_text("utf-8", "replace") if self.err.exists() else ""


def started(
    arguments: Sequence[object], folder: Path, name: str, log: Path | None = None, **limits: int | None
) -> ParleyProcess:
    """A process in a folder, whose log and home there have this name, with a clock or a quota."""
    home = {**os.environ, "PARLEY_HOME": str(folder / f"{name}.home")}
    return ParleyProcess(arguments, folder, home, log or folder / f"{name}.log", **limits)


def _run(
    arguments: list[str],
    folder: Path,
    environment: dict[str, str],
    out: Path,
    err: Path | None,
    clock: int | None,
    quota: int | None,
) -> None:
    try:
        if quota is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (quota, quota))
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
        for stream, path in ((1, out), (2, err)):
            os.dup2(1 if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        if clock is not None:
            real, rng = time.time, random.Random(clock)
            time.time = lambda: max(0.0, real() + rng.choice(JUMPS))
        from parley.cli import main

        status = main(arguments)
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)
