"""Handles a scheduler's signals before a run has begun: the process ends with the status that says "try again later".

Loading a run's packages takes seconds; meanwhile Python's own handlers would let the signal end the process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

STOPPED_IN_TIME = 75
"""The exit status after a scheduler's signal or the wall time: EX_TEMPFAIL of sysexits.h, "try again later"."""
SCHEDULERS = ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP")


@contextmanager
def early_signals() -> Iterator[None]:
    """End the process at a scheduler's signal, until others handle it."""
    before: dict[int, Any] = {}
    for name in SCHEDULERS:
        number = getattr(signal, name, None)
        # One that is ignored, or handled by the calling program, stays so. Only the main thread has handlers.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):
                before[number] = signal.signal(number, _on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_signal(number: int, frame: FrameType | None) -> None:
    exit_now(f"stopped: {signal.Signals(number).name} was received before the first unit")


def exit_now(message: str) -> None:
    """End the process now. What is written is in the run file, as after `kill -9`."""
    with suppress(OSError):
        os.write(2, f"parley: {message}\nrun the same command again to resume\n".encode())
    os._exit(STOPPED_IN_TIME)
