"""Parley: language models around a table, with personas; and the application that runs studies on them.

import parley
result = parley.run("malibu", model="sim/judge?female=+0.4", suite="quick", out="runs/try.sqlite")
mended = parley.detox("What a stupid idea, you idiot.").text
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parley.detoxing import detox as detox
    from parley.detoxing import detox_async as detox_async
    from parley.execute import Options as Options
    from parley.execute import run as run
    from parley.execute import run_async as run_async

try:
    __version__ = version("parley")
except PackageNotFoundError:  # run from a checkout that was not installed
    __version__ = "0+unknown"

__all__ = ["Options", "__version__", "detox", "detox_async", "run", "run_async"]


def __getattr__(name: str) -> Any:
    # Late, so that `parley.house` can look at the other rooms before any of them is imported.
    if name in ("run", "run_async", "Options"):
        from parley import execute

        return getattr(execute, name)
    if name in ("detox", "detox_async"):
        from parley import detoxing

        return getattr(detoxing, name)
    raise AttributeError(f"module 'parley' has no attribute '{name}'")
