"""HTTP as every client of ours uses it: aiohttp, through the environment's proxy, with a limit on what is read."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from parley.base.address import is_loopback

MAX_BYTES = 32 * 2**20
"""About twice the size of a reply of 8,192 tokens with twenty log-probabilities each."""
LINE_BYTES = 2**20
"""Half the size limit of a streamed event: OpenAI's Responses end with one that has the whole reply."""


class TooLong(aiohttp.ClientError):
    """The body is larger than the limit. A `ClientError`, so that it is retried like a broken connection."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the response is larger than {max_bytes:,} bytes")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address: HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY excludes it."""
    address = URL(url)
    # A proxy cannot reach a server on this machine, which most users forget to exclude.
    if is_loopback(url) or proxy_bypass(address.host_port_subcomponent or ""):
        return None
    return getproxies().get(address.scheme)


def open_session(url: str, headers: Mapping[str, str], timeout: float) -> aiohttp.ClientSession:
    """A session for one server, which must be closed.

    Args:
        url: the server's address.
        headers: sent with every request.
        timeout: seconds that a request may take, reading its response included.
    """
    return aiohttp.ClientSession(
        # The throttle limits concurrent calls, so the connector must not.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
        # What `trust_env` does, read once: aiohttp asks two threads per call, which doubles its CPU time, and takes
        # a user from ~/.netrc too, with which it refuses a request that carries a key.
        proxy=proxy_for(url),
        timeout=aiohttp.ClientTimeout(total=timeout),
        headers={"User-Agent": "parley", **headers},
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=LINE_BYTES,
    )


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The whole decompressed body; raises `TooLong` as soon as it passes the limit."""
    if (response.content_length or 0) > max_bytes:
        raise TooLong(max_bytes)
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise TooLong(max_bytes)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
