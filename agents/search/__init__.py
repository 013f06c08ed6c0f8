"""Search engines: one file each, behind one small protocol."""

from parley.agents.search.client import Careful
from parley.agents.search.engine import SearchEngine, SearchResult
from parley.agents.search.quoting import quote
from parley.agents.search.registry import known_engines, make_engine

__all__ = ["Careful", "SearchEngine", "SearchResult", "known_engines", "make_engine", "quote"]
