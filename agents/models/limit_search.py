"""Finds how many concurrent calls a server needs to give its full throughput, by doubling their number.

A server queues the calls that it cannot work on yet. Calls that wait here instead can be sent in the order of their
units (`throttle`), so the limit should be low, and high enough to keep the server busy. The throughput (replies per
second) is measured over as many calls as the limit. The limit is doubled for as long as that raises the throughput;
otherwise it goes back, and doubling is tried again after a pause, which is longer each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

START_LIMIT = 32
"""Concurrent calls at the beginning: 256 are reached after three round trips."""
GROWTH = 1.05
"""A doubled limit is kept if it raises the throughput by at least this factor."""
CLEAR_GROWTH = 1.25
"""If it is raised by less than this factor, that is measured over more replies before it is judged:"""
LONGER = 8
"""this many times as many. Replies often come in bursts, and a short measurement may end within one."""
LEAST_REPLIES = 32
"""A throughput is measured over as many replies as the limit, and over no fewer than this."""
ENOUGH = 0.75
"""For a trial, this share of them: if all come at once, the throughput has then grown by half."""
SHORTEST_PAUSE, LONGEST_PAUSE = 4, 128
"""The pause before the next trial, as a multiple of the replies of one measurement; each is twice the one before."""
SHARE_WITHIN = 0.9
"""A reply counts for the current limit if this share of its latency was under it. Not all of it: where all calls take
equally long, those sent in the moment before the limit changed belong to it too."""


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
