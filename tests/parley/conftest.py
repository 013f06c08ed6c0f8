"""Fixtures of this folder: a clean home, a finished run, and the command in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from tests.panels import TINY_PANEL

COMMAND = (sys.executable, "-P", "-c", "import sys; from parley.cli import main; sys.exit(main())")


@pytest.fixture(autouse=True)
def _start_in_an_empty_folder(place: Path) -> None:
    """See `place`."""


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run that is done: `TINY_PANEL` with sim/judge."""
    path = tmp_path_factory.mktemp("finished") / "whole.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(path.parent / "home"))
        assert main([*TINY_PANEL, "--model", "sim/judge", "--out", str(path)]) == 0
    return path.read_bytes()


@pytest.fixture
def whole(place: Path, finished: bytes) -> Path:
    """A copy of that run to be damaged or resumed."""
    path = place / "whole.sqlite"
    path.write_bytes(finished)
    return path


class Started:
    """The command in a separate process, so that it can be killed."""

    def __init__(self, output: Callable[..., Any], *arguments: object, **environment: str) -> None:
        self._output = output
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=self._out,
            stderr=self._err,
            env={**os.environ, **environment},
        )

    def output(self) -> Any:
        texts = [os.pread(stream.fileno(), 1 << 20, 0).decode() for stream in (self._out, self._err)]
        return self._output(self.process.returncode, *texts)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, f"it ended too early: {self.output()}"
            assert time.monotonic() < deadline, "timed out"
            time.sleep(0.005)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.returncode == -signal.SIGKILL, "it had ended before it was killed"

    def press_ctrl_c(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds: float = 60.0) -> Any:
        self.process.wait(timeout=seconds)
        return self.output()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._out.close()
        self._err.close()


@pytest.fixture
def start(told: Callable[..., Any]) -> Iterator[Callable[..., Started]]:
    processes: list[Started] = []

    def start_process(*arguments: object, **environment: str) -> Started:
        processes.append(Started(told, *arguments, **environment))
        return processes[-1]

    yield start_process
    for process in processes:
        process.close()
