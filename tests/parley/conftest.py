"""What the stories of this folder share: a clean home, the command in a process of its own, and small disks."""

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

COMMAND = (sys.executable, "-P", "-c", "import sys; from parley.cli import main; sys.exit(main())")


@pytest.fixture(autouse=True)
def _begin_in_an_empty_place(place: Path) -> None:
    """See `place`."""


class Started:
    """The command in a process of its own, so that it can be killed."""

    def __init__(self, told: Callable[..., Any], *arguments: object, **environment: str) -> None:
        self._told = told
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=self._out,
            stderr=self._err,
            env={**os.environ, **environment},
        )

    def said(self) -> Any:
        texts = [os.pread(stream.fileno(), 1 << 20, 0).decode() for stream in (self._out, self._err)]
        return self._told(self.process.returncode, *texts)

    def wait_for(self, reached: Callable[[], bool], seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while not reached():
            assert self.process.poll() is None, f"it ended too early: {self.said()}"
            assert time.monotonic() < until, "it never came so far"
            time.sleep(0.005)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.returncode == -signal.SIGKILL, "it had ended before it was killed"

    def press_ctrl_c(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds: float = 60.0) -> Any:
        self.process.wait(timeout=seconds)
        return self.said()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._out.close()
        self._err.close()


@pytest.fixture
def start(told: Callable[..., Any]) -> Iterator[Callable[..., Started]]:
    begun: list[Started] = []

    def begin(*arguments: object, **environment: str) -> Started:
        begun.append(Started(told, *arguments, **environment))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A small file system of its own, where the machine lets us mount one."""
    places: list[Path] = []

    def mount(options: str) -> Path:
        target = tmp_path / f"mounted{len(places)}"
        target.mkdir()
        try:
            tried = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(target)], capture_output=True, text=True
            )
        except FileNotFoundError:
            pytest.skip("there is no mount command here")
        if tried.returncode != 0:
            pytest.skip(f"mounting is not permitted here: {tried.stderr.strip()}")
        places.append(target)
        return target

    yield mount
    for target in places:
        subprocess.run(["umount", "-l", str(target)], check=True)


@pytest.fixture
def remount() -> Callable[[Path, str], None]:
    def again(target: Path, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(target)], check=True)

    return again
