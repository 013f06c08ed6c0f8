"""What every engine shares: pauses between queries, further tries, one flight for equal queries, and kept results.

Results are kept where the model replies of a run are kept, so that a run can be repeated with no network.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time

from parley.agents.errors import SearchError
from parley.agents.models.session import SESSION
from parley.agents.search.engine import SearchEngine, SearchResult

TRIES = 3
FIRST_WAIT = 1.0
"""Seconds before the second try; doubled before each further one."""


class Careful:
    """An engine, asked with care. `pause` (seconds between queries) and `cacheable` are the engine's to say."""

    def __init__(self, engine: SearchEngine, *, first_wait: float = FIRST_WAIT) -> None:
        self.engine = engine
        self.name = engine.name
        self._pause: float = getattr(engine, "pause", 0.0)
        self._cacheable: bool = getattr(engine, "cacheable", True)
        self._first_wait = first_wait
        self._flying: dict[tuple[str, int], asyncio.Task[list[SearchResult]]] = {}
        self._turn = asyncio.Lock()
        self._free_at = 0.0

    def sources(self) -> dict[str, str]:
        """Hashes of what is searched, where the engine can say."""
        tell = getattr(self.engine, "sources", None)
        return dict(tell()) if tell else {}

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        query = query.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent to anyone
        key = (query, limit)
        flying = self._flying.get(key)
        if flying is None:
            flying = self._flying[key] = asyncio.ensure_future(self._look(query, limit))
            flying.add_done_callback(lambda _: self._flying.pop(key, None))
        return list(await asyncio.shield(flying))

    async def _look(self, query: str, limit: int) -> list[SearchResult]:
        session = SESSION.get()
        cache = session.cache if session is not None and self._cacheable else None
        address = hashlib.blake2b(f"{self.name}\x1f{query}\x1f{limit}".encode(), digest_size=20).digest()
        if cache is not None and (kept := cache.get_text(address)) is not None:
            return [SearchResult(*row) for row in json.loads(kept)]
        found = await self._ask(query, limit)
        if cache is not None:
            cache.put_text(address, self.name, json.dumps(found))
        return found

    async def _ask(self, query: str, limit: int) -> list[SearchResult]:
        for tried in range(1, TRIES + 1):
            await self._wait_for_turn()
            try:
                return (await self.engine.search(query, limit))[:limit]
            except SearchError as error:
                if not error.retryable or tried == TRIES:
                    raise
                await asyncio.sleep(self._first_wait * 2 ** (tried - 1))
        raise AssertionError("the last try returns or raises")

    async def _wait_for_turn(self) -> None:
        if not self._pause:
            return
        async with self._turn:
            await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
            self._free_at = time.monotonic() + self._pause

    async def close(self) -> None:
        await self.engine.close()
