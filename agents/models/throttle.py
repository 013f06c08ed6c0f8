"""Limits the number of concurrent calls to one server, and adapts the limit to the server's answers.

The limit starts at its maximum. A 429 lowers it by a third and pauses all calls for as long as the server asks; further
429s during the pause do not lower it again. After as many successful calls as the limit, it grows by one. Workers that
share a server each have a part of its limit, grow by a part of one, and report a 429 to the others (`on_slow`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable


class Throttle:
    """An adaptive limit on concurrent calls.

    Args:
        max_limit: the limit to start with, and never to exceed.
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
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Wait until a call may start."""
        await self._wait_out_pause()
        if self.under_way < int(self.limit) and not self._waiting:
            self.under_way += 1
            return
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
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

    async def _wait_out_pause(self) -> None:
        while self._paused_until:
            remaining = self._paused_until - time.monotonic()
            if remaining <= 0:
                self._paused_until = 0.0
            else:
                await asyncio.sleep(remaining)

    def leave(self, *, ok: bool = False) -> None:
        """A call has ended; only successful ones (`ok`) raise the limit."""
        self.under_way -= 1
        if ok and self.limit < self.max_limit:
            self.limit = min(float(self.max_limit), self.limit + self._step / self.limit)
        while self._waiting and self.under_way < int(self.limit):
            slot = self._waiting.popleft()
            if not slot.done():
                self.under_way += 1
                slot.set_result(None)

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
