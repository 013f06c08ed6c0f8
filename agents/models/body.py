"""Reading a response body with a size limit, so that a broken server cannot fill the memory."""

from __future__ import annotations

import aiohttp

MAX_BYTES = 32 * 2**20
"""About twice the size of a reply of 8,192 tokens with twenty log-probabilities each."""


class TooLong(aiohttp.ClientError):
    """The body is larger than the limit. A `ClientError`, so that it is retried like a broken connection."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the response is larger than {max_bytes:,} bytes")


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
