"""What happens within a turn, as it happens: chunks of text, tool calls, requests for input, messages of inner teams.

Work that reports its events takes a function `emit`. `stream_events` turns such work into an async generator, which is
what AutoGen's interfaces return.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage
from autogen_core import CancellationToken

Event = BaseAgentEvent | BaseChatMessage
Emit = Callable[[Event], None]
"""Called with each event as it happens."""
T = TypeVar("T")
_IDS = random.Random()


def new_message_id() -> str:
    """An id for a message: AutoGen's default, uuid4, takes as long to make as the rest of the message."""
    return f"{_IDS.getrandbits(128):032x}"


async def stream_events(
    work: Callable[[Emit], Coroutine[Any, Any, T]], token: CancellationToken | None = None
) -> AsyncGenerator[Event | T, None]:
    """The events of the work as they happen, then its result.

    Args:
        work: From `emit` to the coroutine that calls it. It is cancelled if nobody listens any longer.
        token: Cancels the work at once, whatever it is waiting for.
    """
    arrived: asyncio.Queue[Any] = asyncio.Queue()
    ended = object()
    task = asyncio.ensure_future(work(arrived.put_nowait))
    task.add_done_callback(lambda _: arrived.put_nowait(ended))
    if token is not None:
        token.link_future(task)
    try:
        while (event := await arrived.get()) is not ended:
            yield event
        yield task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
