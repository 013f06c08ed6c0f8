"""What a search engine is, and what it finds."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class SearchResult(NamedTuple):
    """One result. All of it is untrusted text; the link is shown, never followed."""

    title: str
    link: str
    text: str


class SearchEngine(Protocol):
    """`name` is recorded with every result."""

    name: str

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        """The best results first. An engine that is down raises `SearchError`; it never answers with nothing."""

    async def close(self) -> None: ...
