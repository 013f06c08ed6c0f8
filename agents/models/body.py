"""The body of an answer, up to a limit: whoever answers without end fills no memory."""

from __future__ import annotations

import aiohttp

MOST_BYTES = 32 * 2**20
"""A reply of 8,192 tokens with twenty log-probabilities each has about half of it."""


class TooLong(aiohttp.ClientError):
    """The server sent more than it may; like any broken answer, it may be asked again."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it answered with more than {most:,} bytes")


async def read_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """All of it, unpacked; `TooLong` as soon as there is more."""
    if (response.content_length or 0) > most:
        raise TooLong(most)
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most:
            raise TooLong(most)
    return parts[0] if len(parts) == 1 else b"".join(parts)
