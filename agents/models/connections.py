"""Posts to one server over kept HTTP/1.1 connections: what a model call needs, and no more.

aiohttp's client takes 0.3 ms of CPU for a request, this a third of it (docs/decisions.md). Redirects are answers like
any other: they are not followed, so that a key goes nowhere else. What is streamed goes through aiohttp.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from functools import lru_cache

from yarl import URL

from parley.agents.models.body import TooLong
from parley.agents.models.http_answer import Answer, AnswerReader, BadAnswer
from parley.base.address import is_loopback

IDLE_SECONDS = 60.0
"""A connection that was not used for longer is not used again: most servers have closed it."""
HAPPY_EYEBALLS_SECONDS = 0.25
"""When a server's next address is tried too (RFC 8305)."""


class _Connection(asyncio.Protocol):
    """One connection: one request at a time, and its answer."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._reader = AnswerReader(max_bytes)
        self._waiting: asyncio.Future[Answer] | None = None
        self.used_at = 0.0
        self.is_open = False
        """Whether it can take a request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.is_open = transport, True

    def request(self, data: bytes) -> asyncio.Future[Answer]:
        """Send a request; its answer, or the error, is set later."""
        self._reader = AnswerReader(self._max_bytes)
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:  # nobody asked
            self.abort()
            return
        try:
            if self._reader.feed(data):
                self._finish()
        except (BadAnswer, TooLong) as error:
            self._fail(error)

    def _finish(self) -> None:
        answer, is_kept = self._reader.answer()
        waiting, self._waiting = self._waiting, None
        self.used_at = time.monotonic()
        if not is_kept:
            self.abort()
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, None
        self.abort()
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def time_out(self) -> None:
        """The answer comes too late."""
        self._fail(TimeoutError())

    def abort(self) -> None:
        """Close the connection at once."""
        self.is_open = False
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        head = self._reader.head
        try:
            if error is None and self._waiting is not None and head is not None and head.ends_with_connection:
                self._finish()
        except (BadAnswer, TooLong) as bad:
            error = bad
        self._fail(error or BadAnswer("the server closed the connection before it answered"))


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Connections:
    """The connections to one server, each kept for the next request.

    Args:
        url: The server's address; requests go below it.
        headers: Sent with every request.
        timeout: Seconds that a request may take, connecting included.
        max_bytes: Size limit of an answer's body.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float, max_bytes: int) -> None:
        self._url, self._timeout, self._max_bytes = URL(url), timeout, max_bytes
        fields = {"Host": self._url.host_port_subcomponent or "", "User-Agent": "parley", "Accept": "*/*"}
        fields |= {"Accept-Encoding": "gzip", **headers}
        if any(mark in value for value in fields.values() for mark in "\r\n\0"):
            raise ValueError("a header has a line break")
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._heads: dict[str, bytes] = {}
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, path: str, body: bytes) -> Answer:
        """Post a body; raises OSError if there is no answer, TimeoutError if there is none in time.

        Args:
            path: Below the server's address.
            body: What to send.
        """
        head = self._heads.get(path) or self._head_for(path)
        loop = asyncio.get_running_loop()
        end = loop.time() + self._timeout
        connection = self._kept(loop)
        if connection is None:
            async with asyncio.timeout_at(end):
                connection = await self._connect(loop)
        self._busy.add(connection)
        timer = loop.call_at(end, connection.time_out)
        try:
            answer = await connection.request(b"%s%d\r\n\r\n%s" % (head, len(body), body))
        except BaseException:
            connection.abort()
            raise
        finally:
            timer.cancel()
            self._busy.discard(connection)
        if connection.is_open:
            self._idle.append(connection)
        return answer

    def _head_for(self, path: str) -> bytes:
        target = URL(f"{self._url}{path}").raw_path_qs
        head = f"POST {target} HTTP/1.1\r\n{self._fields}Content-Length: ".encode()
        self._heads[path] = head
        return head

    def _kept(self, loop: asyncio.AbstractEventLoop) -> _Connection | None:
        if loop is not self._loop:  # the connections of a loop that has ended are dead
            self._loop, self._idle = loop, []
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and time.monotonic() - connection.used_at < IDLE_SECONDS:
                return connection
            if connection.is_open:
                connection.abort()
        return None

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        _, connection = await loop.create_connection(
            lambda: _Connection(self._max_bytes),
            self._url.raw_host or "",
            self._url.port or 0,
            ssl=_tls() if self._url.scheme == "https" else None,
            happy_eyeballs_delay=None if is_loopback(str(self._url)) else HAPPY_EYEBALLS_SECONDS,
        )
        return connection

    def close(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, *self._busy):
            connection.abort()
        self._idle.clear()
