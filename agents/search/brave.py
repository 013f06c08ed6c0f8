"""Brave's search service: `brave`, with a key in BRAVE_API_KEY."""

from __future__ import annotations

import os
from typing import ClassVar

from parley.agents.search.engine import SearchResult
from parley.agents.search.web import get_json, host_of, read_results
from parley.base.address import require_https
from parley.base.errors import ConfigError, SearchError

KEY = "BRAVE_API_KEY"
MAX_RESULTS = 20
"""The most results that the service gives per request."""


class Brave:
    """Brave's web search.

    Args:
        base_url: The service's address, or that of a proxy. https, unless it is on this machine.
    """

    pause: ClassVar[float] = 0.5
    name: ClassVar[str] = "brave"

    def __init__(self, base_url: str = "https://api.search.brave.com") -> None:
        self._host = host_of("brave", base_url)
        require_https("brave", base_url)
        self._url = f"{base_url.rstrip('/')}/res/v1/web/search"
        if not os.environ.get(KEY):
            raise ConfigError(f"brave needs a key: set {KEY}")

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        params = {"q": query, "count": str(min(limit, MAX_RESULTS)), "text_decorations": "false"}
        reply = await get_json(self._url, params, {"X-Subscription-Token": os.environ.get(KEY, "")})
        web = reply.get("web", {"results": []})  # absent if nothing was found
        if not isinstance(web, dict):
            raise SearchError(f"{self._host} answered with JSON that has no results")
        return read_results(self._host, web.get("results"), "description")

    async def close(self) -> None:
        """Nothing stays open between searches."""
