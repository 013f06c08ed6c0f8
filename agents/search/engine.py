"""The protocol of a search engine, its results, and how a prompt quotes them: numbered, and fenced."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from parley.agents.fencing import between_fences, break_tokens, clean, one_line

TITLE_CHARS, LINK_CHARS, TEXT_CHARS = 200, 300, 1000


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
    """The interface of a search engine of your own; `make_engine("file.py:Class?option=value")` calls
    `Class(option="value")`.

    Optional attributes: `pause`, the least number of seconds between two queries (default 0); `cacheable`, whether
    results may be cached with a run's model replies (default True); `sources()`, hashes of what is searched, so that a
    run refuses to resume over other data.

    Args:
        name: The engine and all options that change its results (host, region). Recorded with every result, and part
            of the cache key.
    """

    name: str

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        """Search once, without retries.

        Args:
            query: The query, as the agent wrote it.
            limit: Maximum number of results; five short passages fit a prompt.

        Returns:
            The results, best first; empty if nothing was found.

        Raises:
            SearchError: The engine is down. It must not return an empty list then: that would be recorded as a result.
        """

    async def close(self) -> None:
        """Close connections, if any stay open between searches."""


def quote(query: str, results: Sequence[SearchResult]) -> str:
    """Format the results of a query: numbered, with title and link. Links are never followed."""
    blocks: list[str] = []
    for number, result in enumerate(results, 1):
        title, link = one_line(result.title, TITLE_CHARS), one_line(result.link, LINK_CHARS)
        text = clean(result.text, TEXT_CHARS)
        lines = [f"{number}. {title}", f"({link})", *text.split("\n")]
        blocks.append("\n".join(f"> {break_tokens(line)}" for line in lines))
    body = "\n\n".join(blocks) or "(nothing was found)"
    label = f"SEARCH RESULTS for: {one_line(query, TITLE_CHARS)}"
    return between_fences(body, label)
