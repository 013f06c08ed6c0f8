"""Search engines by name, with options written as for models (`duckduckgo?region=uk-en`).

    engine = make_engine("folder:articles")
    results = await engine.search("who built the bridge", limit=5)

Every engine gets the same client: pauses between queries, retries and a cache. Results are cached with the model
replies of a run, so that a run can be repeated without a network.

To use your own, name it as `file.py:Class`: a class with the members of `SearchEngine`, called with the options as
keywords.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time

from parley.agents.models.request import read_query
from parley.agents.models.session import SESSION
from parley.agents.search.engine import SearchEngine, SearchResult, read_results
from parley.agents.search.folder import FolderEngine
from parley.base.errors import ConfigError, SearchError
from parley.base.plugins import Registry

MAX_ATTEMPTS = 3
FIRST_WAIT_SECONDS = 1.0
"""Wait before the second attempt; doubled before each further one."""
FOLDER = "folder:"
ENGINES = Registry(
    "search engine",
    {"duckduckgo": "parley.agents.search.web:DuckDuckGo"},
    members=("search", "close"),
    contract="agents/search/engine.py",
    others=(f"{FOLDER}DIR",),
)


class SearchClient:
    """An engine with pacing, retries and a cache; itself a `SearchEngine`.

    Args:
        engine: The engine. It may set `pause` (seconds between queries, default 0) and `cacheable` (default True).
    """

    def __init__(self, engine: SearchEngine) -> None:
        self.engine = engine
        self.name = engine.name
        self._pause: float = getattr(engine, "pause", 0.0)
        self._cacheable: bool = getattr(engine, "cacheable", True)
        self._pacing = asyncio.Lock()
        self._next_query_time = 0.0

    def sources(self) -> dict[str, str]:
        """Hashes of what is searched, if the engine has them."""
        engine_sources = getattr(self.engine, "sources", None)
        return dict(engine_sources()) if engine_sources else {}

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        """At most `limit` results, best first, from the run's cache if they are there."""
        query = query.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent
        session = SESSION.get() if self._cacheable else None
        address = hashlib.blake2b(f"{self.name}\x1f{query}\x1f{limit}".encode(), digest_size=20).digest()
        if session is not None and (cached := await session.read(address, read_results)) is not None:
            return cached
        results = await self._search_with_retries(query, limit)
        if session is not None:
            session.put(address, self.name, json.dumps(results))
        return results

    async def _search_with_retries(self, query: str, limit: int) -> list[SearchResult]:
        attempt = 0
        while True:
            attempt += 1
            await self._wait_for_turn()
            try:
                return (await self.engine.search(query, limit))[:limit]
            except SearchError as error:
                if not error.retryable or attempt == MAX_ATTEMPTS:
                    raise
                await asyncio.sleep(FIRST_WAIT_SECONDS * 2 ** (attempt - 1))

    async def _wait_for_turn(self) -> None:
        if not self._pause:
            return
        async with self._pacing:
            await asyncio.sleep(max(0.0, self._next_query_time - time.monotonic()))
            self._next_query_time = time.monotonic() + self._pause

    async def close(self) -> None:
        """Close the engine."""
        await self.engine.close()


def make_engine(name: str) -> SearchClient:
    """The engine for a name, with pacing, retries and a cache. ConfigError if it cannot work.

    Args:
        name: `folder:DIR`, a known name, `module:Class` or `file.py:Class`; all but the first may have
            `?option=value&…`.
    """
    if name.startswith(FOLDER):
        return SearchClient(FolderEngine(name.removeprefix(FOLDER)))
    plain, _, query = name.partition("?")
    engine_class = ENGINES.find(plain)
    try:
        engine: SearchEngine = engine_class(**read_query(plain, query))
    except TypeError as error:  # an option that the class does not have
        raise ConfigError(f"{plain}: {error}".replace(f"{engine_class.__name__}.__init__() ", "")) from None
    return SearchClient(engine)
