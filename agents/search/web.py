"""One question to a search service that answers with JSON: a single try, and what went wrong in one line.

Nothing of a request stands in an error but the service's host: a key may be in its headers or its address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from parley.agents.errors import ConfigError, SearchError
from parley.agents.models.body import TooLong, read_body
from parley.agents.search.engine import SearchResult

TIMEOUT = aiohttp.ClientTimeout(total=20)
MOST_BYTES = 4_000_000


def host_of(name: str, base_url: str) -> str:
    """The host and port of an address. One with a password is refused: it would be written into every run."""
    parts = urlsplit(base_url)
    if "@" in parts.netloc:
        raise ConfigError(f"{name}: base_url must not hold a user or password; let a proxy on this machine add them")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{name}: base_url must be an address like https://host, and this one is not")
    return parts.netloc


async def get_json(url: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    host = urlsplit(url).netloc
    try:
        async with (
            aiohttp.ClientSession(timeout=TIMEOUT) as session,
            session.get(url, params=params, headers=headers, allow_redirects=False) as response,
        ):
            _refuse_bad(host, response.status)
            body = await read_body(response, MOST_BYTES)
    except TooLong:
        raise SearchError(f"{host} answered with more than {MOST_BYTES:,} bytes") from None
    except TimeoutError:
        raise SearchError(f"{host} did not answer in {TIMEOUT.total:.0f} s", retryable=True) from None
    except aiohttp.ClientError as error:
        raise SearchError(f"{host} cannot be reached ({type(error).__name__})", retryable=True) from None
    return _read(host, body)


def _refuse_bad(host: str, status: int) -> None:
    if status == 200:
        return
    if status in (401, 403):
        raise SearchError(f"{host} refuses the request ({status}): the key, or leave to answer with JSON, is missing")
    if status == 429:
        raise SearchError(f"{host} asks for fewer queries (429)", retryable=True)
    raise SearchError(f"{host} answered with status {status}", retryable=status >= 500)


def _read(host: str, body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise SearchError(f"{host} did not answer with JSON") from None
    if not isinstance(found, dict):
        raise SearchError(f"{host} answered with JSON that holds no results")
    return found


def results(host: str, rows: object, text: str) -> list[SearchResult]:
    """Rows of a reply as results; `text` names the field that holds the words."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SearchError(f"{host} answered with JSON that holds no results")
    return [SearchResult(*(str(row.get(key) or "") for key in ("title", "url", text))) for row in rows]
