"""Parley: debates, critique loops and panels of judges with personas, and the studies that measure them.

import parley
result = parley.run("malibu", model="sim/judge?female=+0.4", suite="quick", out="runs/try.sqlite")
revised = parley.detox("What a stupid idea, you idiot.").text

from parley import Critique, Debate, Persona
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parley.agents import Critique as Critique
    from parley.agents import Debate as Debate
    from parley.agents import Models as Models
    from parley.agents import Persona as Persona
    from parley.agents import Transcript as Transcript
    from parley.agents import Turn as Turn
    from parley.agents import ask as ask
    from parley.detoxing import detox as detox
    from parley.detoxing import detox_async as detox_async
    from parley.execute import Options as Options
    from parley.execute import run as run
    from parley.execute import run_async as run_async
    from parley.recording import record as record
    from parley.recording import record_async as record_async

try:
    __version__ = version("parley-autogen")
except PackageNotFoundError:  # a checkout on PYTHONPATH
    __version__ = "0+unknown"

_MODULES = {
    "Critique": "parley.agents",
    "Debate": "parley.agents",
    "Models": "parley.agents",
    "Persona": "parley.agents",
    "Transcript": "parley.agents",
    "Turn": "parley.agents",
    "ask": "parley.agents",
    "detox": "parley.detoxing",
    "detox_async": "parley.detoxing",
    "Options": "parley.execute",
    "run": "parley.execute",
    "run_async": "parley.execute",
    "record": "parley.recording",
    "record_async": "parley.recording",
}
__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    # Imported when first used: AutoGen takes a second to load, and `parley --help` does not need it.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'parley' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
