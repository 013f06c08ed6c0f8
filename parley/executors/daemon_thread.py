"""A thread for calls that may block for long: the program can end while one of them is running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonThread:
    """Runs functions one after the other; `asyncio.to_thread` would keep the program until the last one returns.

    The thread lives until the program ends, since Linux may end the processes that a thread has started with it.
    """

    def __init__(self, name: str) -> None:
        self._functions: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            with suppress(RuntimeError):  # the event loop is closed: nobody waits any longer
                self._functions.get()()

    async def call(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def deliver(set_outcome: Callable[[Any], None], outcome: object) -> None:
            if not result.done():
                set_outcome(outcome)

        def run() -> None:
            try:
                outcome = function()
            except Exception as error:
                loop.call_soon_threadsafe(deliver, result.set_exception, error)
            else:
                loop.call_soon_threadsafe(deliver, result.set_result, outcome)

        self._functions.put(run)
        return await result
