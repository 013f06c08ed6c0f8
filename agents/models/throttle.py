"""Limits the number of concurrent calls to one server, and orders the calls that wait.

Calls that wait start in the order in which their units began, so that units are finished one after the other and not
all at the end. A 429 lowers the limit by a third and pauses all calls for as long as the server asks; further 429s
during the pause do not lower it again. After as many successful calls as the limit, it then grows by one. Workers that
share a server each have a part of its limit, grow by a part of one, and report a 429 to the others (`on_slow`).

`Retries` decides whether a failed request is sent again, and how long to wait.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import random
import sys
import time
from collections.abc import Callable
from itertools import count

from parley.base.errors import ModelError, NotConnected, Unreachable

FILES_IN_RESERVE = 24
"""File descriptors for other files of a run: its database, the cache, logs, a report."""


def most_connections() -> int | None:
    """Maximum number of connections of this process, from its limit of open files (`ulimit -n`); None if there is no
    limit."""
    if sys.platform == "win32":
        return None
    from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit  # not on Windows

    files = getrlimit(RLIMIT_NOFILE)[0]
    if files == RLIM_INFINITY:
        return None
    try:
        taken = len(os.listdir("/dev/fd"))
    except OSError:  # where there is no such folder, or not even it can be opened
        taken = FILES_IN_RESERVE
    return max(1, files - taken - FILES_IN_RESERVE)


class Throttle:
    """An adaptive limit on concurrent calls.

    Args:
        max_limit: the limit never to exceed.
        step: how much the limit grows after as many successful calls as the limit.
        on_slow: called with the server's pause in seconds after each 429 of this process.
    """

    def __init__(self, max_limit: int, step: float = 1.0, on_slow: Callable[[float], None] | None = None) -> None:
        self.max_limit = max_limit
        self._step, self._on_slow = step, on_slow
        self.limit = float(max_limit)
        self.under_way = 0
        self.slowed = 0
        self._paused_until = 0.0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    async def enter(self, order: int = 0) -> None:
        """Wait until a call may start.

        Args:
            order: the number of the call's unit; the call with the lowest number starts first.
        """
        await self._wait_out_pause()
        if self.take():
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (order, next(self._arrivals), slot))
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.leave()
            raise
        try:
            await self._wait_out_pause()
        except asyncio.CancelledError:
            self.leave()
            raise

    def take(self) -> bool:
        """Take a slot, unless none is free, another call waits for it, or the server asked for a pause."""
        if self.under_way >= int(self.limit) or self._waiting or self._paused_until:
            return False
        self.under_way += 1
        return True

    async def _wait_out_pause(self) -> None:
        while self._paused_until:
            remaining = self._paused_until - time.monotonic()
            if remaining <= 0:
                self._paused_until = 0.0
            else:
                await asyncio.sleep(remaining)

    def leave(self, *, succeeded: bool = False) -> None:
        """Release a slot; only successful calls raise a limit that was lowered."""
        self.under_way -= 1
        if succeeded and self.limit < self.max_limit:
            self.limit = min(float(self.max_limit), self.limit + self._step / self.limit)
        while self._waiting and self.under_way < int(self.limit):
            _, _, slot = heapq.heappop(self._waiting)
            if not slot.done():  # its call was not cancelled meanwhile
                slot.set_result(None)
                self.under_way += 1

    def slow_down(self, retry_after: float | None, *, reported: bool = False) -> None:
        """Lower the limit after a 429: of this process, or `reported` by another worker."""
        self.slowed += 1
        if self._on_slow is not None and not reported:
            self._on_slow(retry_after or 0.0)
        # The 429s of calls that were sent before the first one carry no new information.
        if time.monotonic() >= self._paused_until:
            self.limit = max(1.0, min(self.limit, self.under_way + 1.0) * 0.67)
        if retry_after:
            self._paused_until = max(self._paused_until, time.monotonic() + retry_after)


MAX_WAIT_SECONDS = 300.0
"""Longest wait that a server may ask for; beyond it the call fails, and the run can be resumed later."""
FIRST_CONTACT_SECONDS = 3.0
"""How long to retry a server that never answered: a wrong address or a missing network does not get better."""
_JITTER = random.Random()


def backoff(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait after a failed attempt: doubling from 0.5 s up to 30 s, times a random factor so that calls do
    not retry in step; at least what the server's Retry-After says."""
    return max(min(30.0, 0.5 * 2.0 ** (attempt - 1)) * _JITTER.uniform(0.5, 1.5), retry_after or 0.0)


class Retries:
    """The retries of one client, and whether its server was ever reached.

    Args:
        limit: number of retries after a temporary failure.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reached = False
        """True once the server has answered."""

    def delay(self, error: ModelError, attempt: int, began: float) -> float:
        """Seconds to wait before the next attempt; raises the error if there is none.

        Args:
            error: the error of the failed attempt.
            attempt: number of attempts so far.
            began: start of the first attempt, by `time.perf_counter`.
        """
        self.reached = self.reached or not isinstance(error, NotConnected)
        is_last = attempt > self.limit
        if not self.reached and (is_last or time.perf_counter() - began > FIRST_CONTACT_SECONDS):
            raise Unreachable(str(error)) from None
        if not error.retryable or is_last:
            raise error
        if (error.retry_after or 0.0) > MAX_WAIT_SECONDS:
            raise type(error)(f"{error}; the server asks to wait {error.retry_after:.0f} s") from None
        return backoff(attempt, error.retry_after)
