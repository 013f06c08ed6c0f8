"""One request to a search service that answers with JSON, without retries.

Error messages contain nothing of a request but the service's host: a key may be in its headers or its address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from parley.agents.models.http import TooLong, open_session, read_body
from parley.agents.search.engine import SearchResult
from parley.base.errors import ConfigError, SearchError

TIMEOUT_SECONDS = 20.0
MAX_BYTES = 4_000_000


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
            open_session(url, {}, TIMEOUT_SECONDS) as session,
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
        raise SearchError(f"{host} asks for fewer queries (429)", retryable=True)
    raise SearchError(f"{host} answered with status {status}", retryable=status >= 500)


def _parse_object(host: str, body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise SearchError(f"{host} did not answer with JSON") from None
    if not isinstance(value, dict):
        raise SearchError(f"{host} answered with JSON that has no results")
    return value


def read_results(host: str, rows: object, text_field: str) -> list[SearchResult]:
    """The rows of a reply as results; `text_field` names the field with the text."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SearchError(f"{host} answered with JSON that has no results")
    return [
        SearchResult(
            title=str(row.get("title") or ""), link=str(row.get("url") or ""), text=str(row.get(text_field) or "")
        )
        for row in rows
    ]
