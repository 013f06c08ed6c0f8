"""STARDTOX's critique loop for use inside an application.

result = parley.detox("What a stupid idea, you idiot.", model="openai/gpt-6-luna")
result = await parley.detox_async(text, models=models)      # inside an event loop, and for many texts
"""

from __future__ import annotations

import asyncio
from typing import Any

from parley.agents import ConfigError
from parley.judging.stardtox import Detoxed
from parley.judging.stardtox import detox as detox_async

__all__ = ["detox", "detox_async"]


def detox(text: str, **settings: Any) -> Detoxed:
    """Judge a text and revise it until all criteria are met.

    Args:
        text: The text.
        settings: Those of `detox_async`, such as `model`, `judge`, `scorer`, `criteria` and `max_iterations`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(detox_async(text, **settings))
    raise ConfigError("an event loop is already running: use await parley.detox_async(...) instead")
