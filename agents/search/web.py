"""DuckDuckGo, through the package `ddgs`.

Nothing is retried here: `SearchClient` does that for every engine.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar
from urllib.parse import urlsplit

from parley.agents.search.engine import SearchResult
from parley.base.errors import ConfigError, SearchError, install

TIMEOUT_SECONDS = 20


class DuckDuckGo:
    """DuckDuckGo's web search: `duckduckgo`, or `duckduckgo?region=uk-en`. A proxy can be set in DDGS_PROXY.

    Args:
        region: Country and language of the results, as DuckDuckGo names them.
        base_url: Another address than DuckDuckGo's own.
    """

    pause: ClassVar[float] = 0.5

    def __init__(self, region: str = "us-en", base_url: str | None = None) -> None:
        self.name = " ".join(["duckduckgo", *([host_of("duckduckgo", base_url)] if base_url else []), region])
        self._region, self._base_url = region, base_url
        _text_engines()  # fails now, not at the first search, if the package is missing

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        # In a thread, since the package blocks until the answer is there.
        rows = await asyncio.to_thread(self._search_blocking, query)
        return [SearchResult(title=row.title, link=row.href, text=row.body) for row in rows[:limit]]

    def _search_blocking(self, query: str) -> list[Any]:
        # `DDGS().text` reports "No results found" both for a refused page and for an empty one; its inner engine tells
        # the two apart.
        engine = _text_engines()["duckduckgo"](proxy=os.environ.get("DDGS_PROXY"), timeout=TIMEOUT_SECONDS)
        if self._base_url:
            engine.search_url = self._base_url
        try:
            rows = engine.search(query, region=self._region)
        except Exception as error:  # the package and its transport do not document what they raise
            raise SearchError(f"duckduckgo cannot be reached ({type(error).__name__})", retryable=True) from None
        if rows is None:
            raise SearchError("duckduckgo refused to answer: too many queries, or a robot check", retryable=True)
        return list(rows)

    async def close(self) -> None:
        """Nothing stays open between searches."""


def _text_engines() -> Any:
    try:
        from ddgs.engines import ENGINES
    except ModuleNotFoundError:
        raise ConfigError(f"duckduckgo needs the package 'ddgs': {install('search')}") from None
    return ENGINES["text"]


def host_of(name: str, base_url: str) -> str:
    """The host and port of a base URL. A password is refused, since the URL is stored with every run."""
    parts = urlsplit(base_url)
    if "@" in parts.netloc:
        raise ConfigError(f"{name}: base_url must not contain a user or password; let a proxy on this machine add them")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{name}: base_url must be an address like https://host")
    return parts.netloc
