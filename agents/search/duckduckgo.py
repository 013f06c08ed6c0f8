"""DuckDuckGo, through the package `ddgs`: `duckduckgo`, or `duckduckgo?region=uk-en`.

`DDGS().text` says "No results found" for a page that was refused as for one that is empty, so its engine is asked
directly: it tells the two apart.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar

from parley.agents.errors import ConfigError, SearchError
from parley.agents.search.engine import SearchResult
from parley.agents.search.web import host_of

TIMEOUT = 20


class DuckDuckGo:
    pause: ClassVar[float] = 0.5

    def __init__(self, region: str = "us-en", base_url: str | None = None) -> None:
        self.name = " ".join(["duckduckgo", *([host_of("duckduckgo", base_url)] if base_url else []), region])
        self._region, self._base_url = region, base_url
        _engines()

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        """In a thread of its own: the package waits for its answer."""
        rows = await asyncio.to_thread(self._ask, query)
        return [SearchResult(row.title, row.href, row.body) for row in rows[:limit]]

    def _ask(self, query: str) -> list[Any]:
        engine = _engines()["duckduckgo"](proxy=os.environ.get("DDGS_PROXY"), timeout=TIMEOUT)
        if self._base_url:
            engine.search_url = self._base_url
        try:
            rows = engine.search(query, region=self._region)
        except Exception as error:  # whatever the package or its transport raises: it gave no answer
            raise SearchError(f"duckduckgo cannot be reached ({type(error).__name__})", retryable=True) from None
        if rows is None:
            raise SearchError("duckduckgo refused to answer: too many queries, or a robot check", retryable=True)
        return list(rows)

    async def close(self) -> None:
        """Nothing is held open between searches."""


def _engines() -> Any:
    try:
        from ddgs.engines import ENGINES
    except ModuleNotFoundError:
        raise ConfigError("duckduckgo needs the package 'ddgs': pip install 'parley-autogen[search]'") from None
    return ENGINES["text"]
