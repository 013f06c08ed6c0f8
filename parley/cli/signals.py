"""Stops a run from outside: by Ctrl-C, a scheduler's signals, and the end of the wall time.

After the first Ctrl-C, units in progress have five seconds; the second abandons them. A scheduler's signal gives them
`grace` seconds. Then the process ends in any case; a thread ends it if the event loop cannot. While a run's packages
load, which takes seconds, Python's own handlers would end the process with another status.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported only by name: this module must be loaded at once
    from rich.console import Console

STOPPED_IN_TIME = 75
"""The exit status after a scheduler's signal or the wall time: EX_TEMPFAIL of sysexits.h, "try again later"."""
SCHEDULERS = ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP")


@contextmanager
def early_signals() -> Iterator[None]:
    """End the process at a scheduler's signal, until others handle it."""
    before: dict[int, Any] = {}
    for name in SCHEDULERS:
        number = getattr(signal, name, None)
        # Signals that are ignored, or handled by the calling program, stay so. Only the main thread has handlers.
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
    """End the process now. Finished units are in the run file, as after `kill -9`."""
    with suppress(OSError):
        os.write(2, f"parley: {message}\nrun the same command again to resume\n".encode())
    os._exit(STOPPED_IN_TIME)


class Signals:
    """Handles signals while a job is executed; a context manager.

    Args:
        console: Where to say what happens.
        grace: Seconds from a scheduler's signal to the end of the process.
        seconds_left: Seconds until the wall time is over; None if there is none.
    """

    def __init__(self, console: Console, *, grace: float, seconds_left: float | None) -> None:
        self._console, self._grace, self._seconds_left = console, grace, seconds_left
        self._timers: list[threading.Timer] = []
        self._handlers: dict[int, Any] = {}
        self._interrupts = 0
        self._end_within: Callable[[float, str], float] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signalled = False
        self.scheduled = False
        """Set when a scheduler or the wall time has stopped the run."""

    def __enter__(self) -> Signals:
        if self._seconds_left is not None:
            self._exit_after(self._seconds_left)
        for name in SCHEDULERS:
            number = getattr(signal, name, None)
            # A signal that is ignored stays ignored: `nohup` does so with SIGHUP. Only the main thread has handlers.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                with suppress(ValueError):
                    self._handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if not self.scheduled:  # otherwise closing the interpreter may take too long
            for timer in self._timers:
                timer.cancel()

    def attach(self, interrupt: Callable[[], float], end_within: Callable[[float, str], float]) -> None:
        """Pass signals to the engine from now on; before, there is nothing to finish.

        Args:
            interrupt: `Engine.interrupt`.
            end_within: `Engine.end_within`.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        self._end_within, self._loop = end_within, loop

        def on_interrupt() -> None:
            self._interrupts += 1
            if self._interrupts == 1:
                seconds = interrupt()
                self._console.print(
                    f"units in progress have {seconds:.0f} s; press Ctrl-C again to abandon them now", highlight=False
                )
            elif task is not None:
                task.cancel()

        with suppress(NotImplementedError, RuntimeError):  # neither Windows nor other threads have such handlers
            loop.add_signal_handler(signal.SIGINT, on_interrupt)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """A plain handler: the event loop's would wait for a study that blocks the loop."""
        name = signal.Signals(number).name
        if hasattr(signal, "alarm"):
            signal.alarm(0)  # while Ray is starting, its own handler comes first, and would abort the process
        if self._end_within is None or self._loop is None:
            exit_now(f"stopped: {name} was received before the first unit")
        elif not self._signalled:
            self._signalled = True
            self._exit_after(self._grace)
            self._loop.call_soon_threadsafe(self._end_engine, self._end_within, name)

    def _end_engine(self, end_within: Callable[[float, str], float], name: str) -> None:
        seconds = end_within(self._grace, f"{name} was received")
        with suppress(OSError):  # after SIGHUP the terminal may be gone
            self._console.print(
                f"{name}: no new units are started; those in progress have {seconds:.0f} s", highlight=False
            )

    def _exit_after(self, seconds: float) -> None:
        timer = threading.Timer(max(0.0, seconds), exit_now, ["stopped: time is up, and some units did not finish"])
        timer.daemon = True
        timer.start()
        self._timers.append(timer)
