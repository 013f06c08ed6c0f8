"""Search engines: one file each, behind one small protocol."""

from agents.search.careful import Careful
from agents.search.engine import Engine, Found
from agents.search.registry import known_engines, make_engine
from agents.search.untrusted import Quoted, fence, quote

__all__ = ["Careful", "Engine", "Found", "Quoted", "fence", "known_engines", "make_engine", "quote"]
