"""STARDTOX's critique loop for applications.

result = parley.detox("What a stupid idea, you idiot.", model="openai/gpt-6-luna")
result = await parley.detox_async(text, models=models)      # inside an event loop, and for many texts
"""

from __future__ import annotations

from parley.base.tasks import blocking
from parley.judging.stardtox import detox as detox_async

__all__ = ["detox", "detox_async"]

detox = blocking(detox_async)
