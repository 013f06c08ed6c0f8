"""Search engines behind one small protocol, by name: the web's, or a folder of documents."""

from parley.agents.search.engine import SearchEngine, SearchResult, quote
from parley.agents.search.registry import SearchClient, known_engines, make_engine

__all__ = ["SearchClient", "SearchEngine", "SearchResult", "known_engines", "make_engine", "quote"]
