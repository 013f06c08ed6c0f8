"""Search engines: one file per engine, behind one small protocol."""

from parley.agents.search.client import SearchClient
from parley.agents.search.engine import SearchEngine, SearchResult
from parley.agents.search.quoting import quote
from parley.agents.search.registry import known_engines, make_engine

__all__ = ["SearchClient", "SearchEngine", "SearchResult", "known_engines", "make_engine", "quote"]
