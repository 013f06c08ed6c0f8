"""Search engines: one file each, behind one small protocol."""

from agents.search.careful import Careful
from agents.search.engine import Engine, Found
from agents.search.registry import known_engines, make_engine

__all__ = ["Careful", "Engine", "Found", "known_engines", "make_engine"]
