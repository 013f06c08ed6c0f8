"""How many calls may be under way at one server, learnt from its answers.

Starts at the limit; a 429 takes a third away and pauses all calls as long as the server asks; every limit's
worth of answers adds one again. Workers that share a server each have a part of its limit, grow by a part of one, and
tell the others of a 429 (`on_slow`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable


class Throttle:
    def __init__(self, most: int, step: float = 1.0, on_slow: Callable[[float], None] | None = None) -> None:
        self.most = most
        self._step, self._on_slow = step, on_slow
        self.limit = float(most)
        self.under_way = 0
        self.slowed = 0
        self._paused_until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        await self._wait_out_pause()
        if self.under_way < int(self.limit) and not self._waiting:
            self.under_way += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            raise
        try:
            await self._wait_out_pause()
        except asyncio.CancelledError:
            self.leave()
            raise

    async def _wait_out_pause(self) -> None:
        while self._paused_until:
            rest = self._paused_until - time.monotonic()
            if rest <= 0:
                self._paused_until = 0.0
            else:
                await asyncio.sleep(rest)

    def leave(self, *, ok: bool = False) -> None:
        self.under_way -= 1
        if ok and self.limit < self.most:
            self.limit = min(float(self.most), self.limit + self._step / self.limit)
        while self._waiting and self.under_way < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.under_way += 1
                place.set_result(None)

    def slow_down(self, retry_after: float | None, *, heard: bool = False) -> None:
        """After a 429, one's own or one that another worker told of (`heard`)."""
        self.slowed += 1
        if self._on_slow is not None and not heard:
            self._on_slow(retry_after or 0.0)
        self.limit = max(1.0, min(self.limit, self.under_way + 1.0) * 0.67)
        if retry_after:
            self._paused_until = max(self._paused_until, time.monotonic() + retry_after)
