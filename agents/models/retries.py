"""When a failed request is sent again, and how long to wait before."""

from __future__ import annotations

import random
import time

from parley.base.errors import ModelError, NotConnected, Unreachable

MAX_WAIT_SECONDS = 300.0
"""If a server asks for a longer wait, the call fails; the run can be resumed later."""
FIRST_CONTACT_SECONDS = 3.0
"""How long a server that never answered is tried: a wrong address or a missing network does not get better."""
_JITTER = random.Random()


def backoff(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait after a failed attempt: doubling from 0.5 s up to 30 s, times a random factor so that calls do
    not retry in step; at least what the server's Retry-After says."""
    return max(min(30.0, 0.5 * 2.0 ** (attempt - 1)) * _JITTER.uniform(0.5, 1.5), retry_after or 0.0)


class Retries:
    """The retries of one client, and whether its server was ever reached.

    Args:
        limit: how many further attempts follow a failure that may pass.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reached = False
        """True once the server answered anything."""

    def delay(self, error: ModelError, attempt: int, began: float) -> float:
        """Seconds to wait before the next attempt; raises the error if there is none.

        Args:
            error: why the attempt failed.
            attempt: how many attempts there were.
            began: when the first one began, on `time.perf_counter`.
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
