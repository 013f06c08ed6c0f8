"""STARDTOX's loop for use inside an application.

done = parley.detox("What a stupid idea, you idiot.", model="openai/gpt-4o-mini")
done = await parley.detox_async(text, models=models)      # where there is an event loop, and for many texts
"""

from __future__ import annotations

import asyncio
from typing import Any

from parley.agents import ConfigError
from parley.judging.stardtox import Detoxed
from parley.judging.stardtox import detox as detox_async

__all__ = ["detox", "detox_async"]


def detox(text: str, **settings: Any) -> Detoxed:
    """Judge a text and revise it; the settings are those of `parley.judging.stardtox.detox`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(detox_async(text, **settings))
    raise ConfigError("an event loop is running here: await parley.detox_async(...) instead")
