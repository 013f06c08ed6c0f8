"""A SearxNG server: `searxng?base_url=https://host`. Its settings must allow the format `json`."""

from __future__ import annotations

from typing import ClassVar

from parley.agents.search.engine import SearchResult
from parley.agents.search.web import get_json, host_of, read_results
from parley.base.errors import ConfigError, SearchError


class SearxNG:
    """A SearxNG server.

    Args:
        base_url: The server's address; there is no default server.
        language: The language of the results.
    """

    pause: ClassVar[float] = 0.5

    def __init__(self, base_url: str = "", language: str = "en") -> None:
        if not base_url:
            raise ConfigError("searxng needs its server's address: searxng?base_url=https://host")
        self._host = host_of("searxng", base_url)
        self._url = f"{base_url.rstrip('/')}/search"
        self._language = language
        self.name = f"searxng {self._host} {language}"

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        reply = await get_json(self._url, {"q": query, "format": "json", "language": self._language})
        results = read_results(self._host, reply.get("results"), "content")
        if not results and reply.get("unresponsive_engines"):
            # Its own sources were down, which is not the same as finding nothing.
            raise SearchError(f"none of the engines behind {self._host} answered", retryable=True)
        return results[:limit]

    async def close(self) -> None:
        """Nothing stays open between searches."""
