"""The engines of the web: DuckDuckGo through the package `ddgs`, Brave and SearxNG by one request for JSON.

Nothing is retried here: `SearchClient` does that for every engine. Error messages name only the service's host: a
request's headers or address may contain a key.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

import aiohttp

from parley.agents.models.http import TooLong, open_session, read_body
from parley.agents.search.engine import SearchResult
from parley.base.address import require_https
from parley.base.errors import ConfigError, SearchError

TIMEOUT_SECONDS = 20
MAX_BYTES = 4_000_000
BRAVE_KEY = "BRAVE_API_KEY"
BRAVE_RESULTS = 20
"""The service's maximum number of results per request."""


class WebEngine:
    """What the engines of the web share: a pause between queries, and nothing that stays open between searches."""

    pause: ClassVar[float] = 0.5

    async def close(self) -> None:
        """Nothing to close."""


class DuckDuckGo(WebEngine):
    """DuckDuckGo's web search: `duckduckgo`, or `duckduckgo?region=uk-en`. A proxy can be set in DDGS_PROXY.

    Args:
        region: Country and language of the results, as DuckDuckGo names them.
        base_url: Another address than DuckDuckGo's own.
    """

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


def _text_engines() -> Any:
    try:
        from ddgs.engines import ENGINES
    except ModuleNotFoundError:
        raise ConfigError("duckduckgo needs the package 'ddgs': pip install 'parley-autogen[search]'") from None
    return ENGINES["text"]


class Brave(WebEngine):
    """Brave's web search: `brave`, with a key in BRAVE_API_KEY.

    Args:
        base_url: The service's address, or that of a proxy. https, unless it is on this machine.
    """

    name: ClassVar[str] = "brave"

    def __init__(self, base_url: str = "https://api.search.brave.com") -> None:
        self._host = host_of("brave", base_url)
        require_https("brave", base_url)
        self._url = f"{base_url.rstrip('/')}/res/v1/web/search"
        if not os.environ.get(BRAVE_KEY):
            raise ConfigError(f"brave needs a key: set {BRAVE_KEY} in the environment")

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        params = {"q": query, "count": str(min(limit, BRAVE_RESULTS)), "text_decorations": "false"}
        reply = await get_json(self._url, params, {"X-Subscription-Token": os.environ.get(BRAVE_KEY, "")})
        web = reply.get("web", {"results": []})  # absent if nothing was found
        if not isinstance(web, dict):
            raise SearchError(f"{self._host} answered with JSON that has no results")
        return read_rows(self._host, web.get("results"), "description")


class SearxNG(WebEngine):
    """A SearxNG server: `searxng?base_url=https://host`. Its settings must allow the format `json`.

    Args:
        base_url: The server's address; there is no default server.
        language: The language of the results.
    """

    def __init__(self, base_url: str = "", language: str = "en") -> None:
        if not base_url:
            raise ConfigError("searxng needs its server's address: searxng?base_url=https://host")
        self._host = host_of("searxng", base_url)
        self._url = f"{base_url.rstrip('/')}/search"
        self._language = language
        self.name = f"searxng {self._host} {language}"

    async def search(self, query: str, limit: int = 5) -> list[SearchResult]:
        reply = await get_json(self._url, {"q": query, "format": "json", "language": self._language})
        results = read_rows(self._host, reply.get("results"), "content")
        if not results and reply.get("unresponsive_engines"):
            # Its own sources were down, which is not the same as finding nothing.
            raise SearchError(f"none of the engines behind {self._host} answered", retryable=True)
        return results[:limit]


def host_of(name: str, base_url: str) -> str:
    """The host and port of a base URL. A password is refused, since the URL is stored with every run."""
    parts = urlsplit(base_url)
    if "@" in parts.netloc:
        raise ConfigError(f"{name}: base_url must not contain a user or password; let a proxy on this machine add them")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{name}: base_url must be an address like https://host")
    return parts.netloc


async def get_json(url: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The JSON object that a service answers with; `SearchError` if there is none."""
    host = urlsplit(url).netloc
    try:
        async with (
            open_session(url, TIMEOUT_SECONDS) as session,
            # Redirects are not followed: they could take the key to another host.
            session.get(url, params=params, headers=headers, allow_redirects=False) as response,
        ):
            _check_status(host, response.status)
            body = await read_body(response, MAX_BYTES)
    except TooLong:
        raise SearchError(f"{host} answered with more than {MAX_BYTES:,} bytes") from None
    except TimeoutError:
        raise SearchError(f"{host} did not answer within {TIMEOUT_SECONDS:.0f} s", retryable=True) from None
    except aiohttp.ClientError as error:
        raise SearchError(f"{host} cannot be reached ({type(error).__name__})", retryable=True) from None
    return _parse_object(host, body)


def _check_status(host: str, status: int) -> None:
    if status == 200:
        return
    if status in (401, 403):
        raise SearchError(f"{host} refused the request ({status}): check the key, and that the server allows JSON")
    if status == 429:
        raise SearchError(f"{host} received too many queries (429)", retryable=True)
    raise SearchError(f"{host} answered with status {status}", retryable=status >= 500)


def _parse_object(host: str, body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise SearchError(f"{host} did not answer with JSON") from None
    if not isinstance(value, dict):
        raise SearchError(f"{host} answered with JSON that has no results")
    return value


def read_rows(host: str, rows: object, text_field: str) -> list[SearchResult]:
    """The rows of a reply as results; `text_field` names the field with the text."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SearchError(f"{host} answered with JSON that has no results")
    return [
        SearchResult(
            title=str(row.get("title") or ""), link=str(row.get("url") or ""), text=str(row.get(text_field) or "")
        )
        for row in rows
    ]
