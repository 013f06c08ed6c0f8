"""Search engines behind one small protocol, by name: the web's, or a folder of documents."""

from parley.agents.search.engine import SearchEngine, SearchResult, quote
from parley.agents.search.registry import SearchClient, make_engine

__all__ = ["SearchClient", "SearchEngine", "SearchResult", "make_engine", "quote"]
