"""Search engines: one file each, behind one small protocol."""

from parley.agents.search.cached import Careful
from parley.agents.search.engine import Engine, Found
from parley.agents.search.quoting import quote
from parley.agents.search.registry import known_engines, make_engine

__all__ = ["Careful", "Engine", "Found", "known_engines", "make_engine", "quote"]
