"""Fixtures of this folder: a clean home, a finished run, and the command in a separate process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from tests.fuzz import workshop
from tests.panels import TINY_PANEL
from tests.process import ParleyProcess
from tests.servers import PATIENCE


@pytest.fixture(autouse=True)
def _start_in_an_empty_folder(place):
    """See `place`."""


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The file of a run that is done: `TINY_PANEL` with sim/judge."""
    path = tmp_path_factory.mktemp("finished") / "whole.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(path.parent / "home"))
        assert main([*TINY_PANEL, "--model", "sim/judge", "--out", str(path)]) == 0
    return path.read_bytes()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A folder with a run of every study that has a report of its own, and the files that they were made from."""
    folder = tmp_path_factory.mktemp("workshop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(folder.parent / "home"))
        workshop.prepare(folder)
    return folder


@pytest.fixture
def whole(place, finished):
    """A copy of that run to be damaged or resumed."""
    path = place / "whole.sqlite"
    path.write_bytes(finished)
    return path


class Started:
    """The command in a separate process, so that it can be killed."""

    def __init__(self, output: Callable[..., Any], folder: Path, *arguments: object, **environment: str) -> None:
        self._output = output
        folder.mkdir()
        out, err = folder / "out", folder / "err"
        self.process = ParleyProcess(arguments, Path.cwd(), {**os.environ, **environment}, out, err)

    def output(self) -> Any:
        texts = [path.read_text("utf-8") if path.exists() else "" for path in (self.process.out, self.process.err)]
        return self._output(self.process.process.exitcode, *texts)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.alive, f"it ended too early: {self.output()}"
            assert time.monotonic() < deadline, "timed out"
            time.sleep(0.005)

    def kill(self) -> None:
        self.process.signal(signal.SIGKILL)
        assert self.process.end() == -signal.SIGKILL, "it had ended before it was killed"

    def press_ctrl_c(self) -> None:
        self.process.signal(signal.SIGINT)

    def end(self) -> Any:
        self.process.end()
        return self.output()

    def close(self) -> None:
        if self.process.alive:
            self.kill()


@pytest.fixture
def start(told, tmp_path_factory):
    processes: list[Started] = []
    folder = tmp_path_factory.mktemp("output")

    def start_process(*arguments, **environment):
        processes.append(Started(told, folder / str(len(processes)), *arguments, **environment))
        return processes[-1]

    yield start_process
    for process in processes:
        process.close()
