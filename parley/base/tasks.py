"""Helpers for coroutines: blocking calls, concurrent runs, and streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from parley.base.errors import BudgetSpent, ConfigError, CutShort

P = ParamSpec("P")
T = TypeVar("T")


def blocking(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The blocking form of a coroutine function; it raises `ConfigError` if an event loop is already running.

    Args:
        work: A coroutine function that `parley` has under this name with `_async` at its end.
    """
    name = work.__name__.removesuffix("_async")

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work(*args, **kwargs))
        raise ConfigError(
            f"an event loop is already running, as in a notebook: use await parley.{name}_async(...) instead"
        )

    run.__name__ = run.__qualname__ = name
    return run


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently; if one fails, cancel the others before the exception is raised.

    If one ran out of budget, or was cut off, the others are awaited: their calls are paid for, and their replies go to
    the cache.
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


async def streamed(
    work: Callable[[Callable[[Any], None]], Coroutine[Any, Any, Any]],
    link: Callable[[asyncio.Future[Any]], object] | None = None,
) -> AsyncGenerator[Any, None]:
    """Yield what the work reports as it happens, then its result.

    Args:
        work: From `emit` to the coroutine that calls it. It is cancelled when nobody listens.
        link: Receives the work's task, so that it can be cancelled at any point.
    """
    arrived: asyncio.Queue[Any] = asyncio.Queue()  # shared by agents that speak concurrently
    ended = object()
    task = asyncio.ensure_future(work(arrived.put_nowait))
    task.add_done_callback(lambda _: arrived.put_nowait(ended))
    if link is not None:
        link(task)
    try:
        while (item := await arrived.get()) is not ended:
            yield item
        yield task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def last_item(stream: AsyncIterator[Any], kind: type[T], on_other: Callable[[Any], object] | None = None) -> T:
    """The last item of a stream, which is of this kind; others go to `on_other`."""
    last = None
    async for item in stream:
        if isinstance(item, kind):
            last = item
        elif on_other is not None:
            on_other(item)
    assert last is not None, f"the stream ends with a {kind.__name__}"
    return last
