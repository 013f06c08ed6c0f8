"""The protocol of a search engine, and its results."""

from __future__ import annotations

import json
from typing import NamedTuple, Protocol


class SearchResult(NamedTuple):
    """One result. All of it is untrusted text; the link is shown and never followed."""

    title: str
    link: str
    text: str


def read_results(stored: str) -> list[SearchResult]:
    """Results that were stored as JSON; a `ValueError` or `TypeError` if they are not results."""
    results = [SearchResult(*row) for row in json.loads(stored)]
    if not all(isinstance(value, str) for result in results for value in result):
        raise ValueError("not search results")
    return results


class SearchEngine(Protocol):
    """What an engine of your own must have; `make_engine("file.py:Class?option=value")` calls `Class(option="value")`.

    Optional attributes: `pause`, the least number of seconds between two queries (default 0); `cacheable`, whether
    results may be cached with a run's model replies (default True); `sources()`, hashes of what is searched, with which
    a run refuses to resume over other data.

    Args:
        name: The engine and everything that changes its results (host, region). It is recorded with every result and
            part of the cache key.
    """

    name: str

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        """Search once, without retries.

        Args:
            query: The query, as the agent wrote it.
            limit: The highest number of results; five short passages fit a prompt.

        Returns:
            The results, best first; empty if nothing was found.

        Raises:
            SearchError: The engine is down. It must not return an empty list then: that would be recorded as a result.
        """

    async def close(self) -> None:
        """Close connections, if any stay open between searches."""
