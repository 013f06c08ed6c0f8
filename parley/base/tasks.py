"""Coroutines: run to the end by a caller that has no event loop; run together and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from parley.base.errors import BudgetSpent, ConfigError, CutShort

T = TypeVar("T")


def run_to_end(work: Callable[[], Coroutine[Any, Any, T]], instead: str) -> T:
    """Run a coroutine; raises `ConfigError` where an event loop is already running.

    Args:
        work: Makes the coroutine.
        instead: What to await there: "parley.run_async".
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    raise ConfigError(f"an event loop is already running, as in a notebook: use await {instead}(...) instead")


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently; if one fails, cancel the others before the exception is raised.

    If one had no budget left, or was cut before it said anything, the others are awaited: their calls are paid for, and
    their replies will be in the cache.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return await asyncio.gather(*tasks)
    except (BudgetSpent, CutShort):
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def last_item(stream: AsyncIterator[Any], kind: type[T], on_other: Callable[[Any], object] | None = None) -> T:
    """The item of this kind with which a stream ends; the others are passed to `on_other`."""
    last = None
    async for item in stream:
        if isinstance(item, kind):
            last = item
        elif on_other is not None:
            on_other(item)
    assert last is not None, f"the stream ends with a {kind.__name__}"
    return last
