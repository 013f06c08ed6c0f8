"""Limits the number of concurrent calls to one server, adapts the limit to the server, and orders the calls that wait.

Calls that wait start in the order in which their units began, so that units are finished one after the other and not
all at the end. The limit is the one that was set, or is found during the run (`LimitSearch`). A 429 lowers it by a
third and pauses all calls for as long as the server asks; further 429s during the pause do not lower it again. After as
many successful calls as the limit, it then grows by one (one that was searched for: from the second 429 on). Workers
that share a server each have a part of its limit, grow by a part of one, and report a 429 to the others (`on_slow`).

A server queues the calls that it cannot work on yet. Calls that wait here instead can be sent in the order of their
units, so the limit should be low, and high enough to keep the server busy. `LimitSearch` measures the throughput
(replies per second) over as many calls as the limit, and doubles the limit for as long as that raises the throughput;
otherwise it goes back, and doubling is tried again after a pause, which is longer each time.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import sys
import time
from collections.abc import Callable
from itertools import count

FILES_IN_RESERVE = 24
"""Files that a run opens in addition to connections: its database, the cache, logs, a report."""


def most_connections() -> int | None:
    """How many connections this process may have at once, by the files that it may open (`ulimit -n`); None if no limit
    is known."""
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


START_LIMIT = 32
"""Concurrent calls at the beginning: 256 are reached after three round trips."""
GROWTH = 1.05
"""A doubled limit is kept if it raises the throughput by at least this factor."""
CLEAR_GROWTH = 1.25
"""If the throughput rises by less than this factor, it is measured again over more replies:"""
LONGER = 8
"""this many times as many, because replies often come in bursts."""
LEAST_REPLIES = 32
"""A throughput is measured over as many replies as the limit, and over no fewer than this."""
ENOUGH = 0.75
"""For a trial, this share of them: if all come at once, the throughput has then grown by half."""
SHORTEST_PAUSE, LONGEST_PAUSE = 4, 128
"""The pause before the next trial, as a multiple of the replies of one measurement; each is twice the one before."""
SHARE_WITHIN = 0.9
"""A reply counts for the current limit if this share of its latency fell under it. Less than all, so that calls sent
just before the limit changed still count.
"""


class LimitSearch:
    """A limit that follows the measured throughput.

    Args:
        start: the limit to start with.
        max_limit: the limit never to exceed.
        clock: the time in seconds; `parley.jobs.forecast` has its own.
    """

    def __init__(self, start: int, max_limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit, self._max_limit, self._clock = min(start, max_limit), max_limit, clock
        self.pressed = False
        """Whether a call had to wait since the measurement began: otherwise the limit limits nothing."""
        self._before: tuple[int, float] | None = None
        """The limit and its throughput before the trial that is being made."""
        self._pause = 1
        self._refused = False
        self.retried = False
        """Whether the limit was raised again after a 429."""
        self._begin(None)

    def _begin(self, now: float | None) -> None:
        self._began, self._replies, self._counted, self.pressed = now, 0, 0, False

    def idle(self) -> None:
        """No call is in progress: the time until the next one must not count."""
        self._begin(None)

    def lower(self, limit: int) -> None:
        """Take a limit that was lowered because of a 429; it is raised again after a pause."""
        self.limit, self._before, self._refused = limit, None, True
        self._pause = max(self._pause, SHORTEST_PAUSE)
        self._begin(None)

    def reply(self, seconds: float) -> None:
        """A call was answered after so many seconds."""
        now = self._clock()
        if self._began is None:
            self._began = now - seconds
        elapsed = now - self._began
        self._replies += 1
        self._counted += elapsed >= SHARE_WITHIN * seconds
        needed = max(self.limit, LEAST_REPLIES) * (self._pause if self._before is None else ENOUGH)
        if self._counted < needed:
            return
        throughput = self._replies / max(elapsed, 1e-9)
        if self._before is not None:
            limit_before, throughput_before = self._before
            growth = throughput / throughput_before
            if growth < CLEAR_GROWTH and self._counted < LONGER * needed:
                return
            self._before = None
            if growth < GROWTH:
                self.limit = limit_before
            if growth < CLEAR_GROWTH:  # the server is busy, or nearly: measure for longer before the next trial
                self._pause = min(max(2 * self._pause, SHORTEST_PAUSE), LONGEST_PAUSE)
                self._begin(now)
                return
        if self.pressed and self.limit < self._max_limit:
            self._before, self.limit = (self.limit, throughput), min(2 * self.limit, self._max_limit)
            self.retried = self.retried or self._refused
        self._begin(now)


class Throttle:
    """An adaptive limit on concurrent calls.

    Args:
        max_limit: the limit never to exceed.
        step: how much the limit grows after as many successful calls as the limit.
        on_slow: called with the server's pause in seconds after each 429 of this process.
        search: finds the limit. Default: the limit starts at its maximum.
    """

    def __init__(
        self,
        max_limit: int,
        step: float = 1.0,
        on_slow: Callable[[float], None] | None = None,
        search: LimitSearch | None = None,
    ) -> None:
        self.max_limit = max_limit
        self._step, self._on_slow, self._search = step, on_slow, search
        self.limit = float(max_limit if search is None else search.limit)
        self.under_way = 0
        self.slowed = 0
        self._paused_until = 0.0
        self._waiting: list[tuple[int, int, Callable[[], bool]]] = []
        self._arrivals = count()

    async def enter(self, order: int = 0) -> None:
        """Wait until a call may start.

        Args:
            order: the call's rank among those that wait, the least first: the number of its unit.
        """
        await self._wait_out_pause()
        if self.take():
            return
        slot = asyncio.get_running_loop().create_future()

        def start() -> bool:
            if slot.done():
                return False
            slot.set_result(None)
            return True

        self.queue(order, start)
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
        """Take a free slot, unless there is none or a call waits for it."""
        if self.under_way >= int(self.limit) or self._waiting:
            return False
        self.under_way += 1
        return True

    def queue(self, order: int, start: Callable[[], bool]) -> None:
        """Have `start` called when there is a slot; it returns whether the call still wants it."""
        heapq.heappush(self._waiting, (order, next(self._arrivals), start))
        if self._search is not None:
            self._search.pressed = True

    async def _wait_out_pause(self) -> None:
        while self._paused_until:
            remaining = self._paused_until - time.monotonic()
            if remaining <= 0:
                self._paused_until = 0.0
            else:
                await asyncio.sleep(remaining)

    def leave(self, seconds: float | None = None) -> None:
        """A call has ended.

        Args:
            seconds: how long a successful call took; None for one that failed. Only successful ones raise the limit.
        """
        self.under_way -= 1
        if self._search is not None:
            if seconds is not None:
                self._search.reply(seconds)
                self.limit = float(self._search.limit)
            if not self.under_way and not self._waiting:
                self._search.idle()
        elif seconds is not None and self.limit < self.max_limit:
            self.limit = min(float(self.max_limit), self.limit + self._step / self.limit)
        while self._waiting and self.under_way < int(self.limit):
            _, _, start = heapq.heappop(self._waiting)
            self.under_way += 1
            if not start():
                self.under_way -= 1

    def slow_down(self, retry_after: float | None, *, reported: bool = False) -> None:
        """Lower the limit after a 429: of this process, or `reported` by another worker."""
        self.slowed += 1
        if self._on_slow is not None and not reported:
            self._on_slow(retry_after or 0.0)
        # The 429s of calls that were sent before the first one carry no new information.
        if time.monotonic() >= self._paused_until:
            self.limit = max(1.0, min(self.limit, self.under_way + 1.0) * 0.67)
            if self._search is not None and self._search.retried:
                self._search = None  # a server that refuses calls again shows how many are too many
            elif self._search is not None:
                self._search.lower(int(self.limit))
        if retry_after:
            self._paused_until = max(self._paused_until, time.monotonic() + retry_after)
