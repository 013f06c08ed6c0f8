"""Posting over kept connections: against a server on loopback that sends exactly the bytes a test gives it."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from parley.agents.models import connections as module
from parley.agents.models.body import TooLong
from parley.agents.models.connections import Connections
from parley.agents.models.http_answer import BadAnswer
from parley.agents.models.json_body import to_json

Reply = bytes | list[bytes] | None
"""What the server sends: at once, in pieces, or nothing."""


class Scripted:
    """A server that reads requests and answers them with the next reply; `CLOSE` ends the connection."""

    CLOSE = b"close"

    def __init__(self, *replies: Reply) -> None:
        self.replies, self.requests, self.connections = list(replies), list[bytes](), 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                reply = self.replies.pop(0) if self.replies else None
                for piece in [reply] if isinstance(reply, bytes) else reply or []:
                    if piece == self.CLOSE:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.01)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def connected(
    scripted: Scripted, *, seconds: float = 5.0, max_bytes: int = 1000, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Connections]:
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0, ssl=tls)
    scheme, port = "https" if tls else "http", server.sockets[0].getsockname()[1]
    pool = Connections(f"{scheme}://localhost:{port}/v1", {"X-Key": "k"}, timeout=seconds, max_bytes=max_bytes)
    try:
        yield pool
    finally:
        pool.close()
        server.close()


GZIPPED = gzip.compress(b"abc", mtime=0)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def test_a_connection_is_kept_for_the_next_request() -> None:
    scripted = Scripted(OK, OK)
    async with connected(scripted) as pool:
        assert [(await pool.post("/chat", b"one")).body, (await pool.post("/chat", b"two")).body] == [b"{}", b"{}"]
    first = scripted.requests[0]
    assert first.startswith(b"POST /v1/chat HTTP/1.1\r\nHost: localhost:")
    assert b"\r\nX-Key: k\r\n" in first
    assert first.endswith(b"Content-Length: 3\r\n\r\none")
    assert scripted.connections == 1


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        ([b"HTTP/1.1 200 OK\r\nconTENT-length:3\r", b"\n\r\na", b"bc"], b"abc"),
        ([CHUNKED + b"3;x=y\r\nab", b"c\r\n1\r\nd\r\n0\r\nT: 1\r\n\r\n"], b"abcd"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK, b"{}"),
        (b"HTTP/1.1 200\r\nContent-Encoding: gzip\r\nContent-Length: 23\r\n\r\n" + GZIPPED, b"abc"),
        (b"HTTP/1.1 200\r\nContent-Encoding: deflate\r\nContent-Length: 11\r\n\r\n" + zlib.compress(b"abc"), b"abc"),
    ],
)  # fmt: skip
async def test_answers_are_read_whole_and_the_connection_stays(reply: Reply, body: bytes) -> None:
    scripted = Scripted(reply, OK)
    async with connected(scripted) as pool:
        assert (await pool.post("", b"")).body == body
        assert (await pool.post("", b"")).body == b"{}"
    assert scripted.connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        [b"HTTP/1.1 200 OK\r\n\r\n{}", Scripted.CLOSE],
        [b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"],
        [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"],
        [OK + b"HTTP/1.1 200 OK\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"],
    ],
)
async def test_a_connection_that_cannot_be_trusted_again_is_closed(reply: Reply) -> None:
    scripted = Scripted(reply, OK)
    async with connected(scripted) as pool:
        assert [(await pool.post("", b"")).body for _ in range(2)] == [b"{}", b"{}"]
    assert scripted.connections == 2


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", Scripted.CLOSE], BadAnswer, "closed the connection"),
        ([Scripted.CLOSE], BadAnswer, "before it answered"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", BadAnswer, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", BadAnswer, "malformed header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", BadAnswer, "malformed length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", BadAnswer, "two lengths"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", BadAnswer, "malformed chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", BadAnswer, "transfer encoding"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx", BadAnswer, "content encoding"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", BadAnswer, "decompressed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", TooLong, "larger than"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", TooLong, "larger than"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, TooLong, "larger than"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**17, BadAnswer, "headers are too long"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
            % (len(bomb := gzip.compress(b"0" * 100_000)), bomb),
            TooLong,
            "larger than",
        ),
    ],
)
async def test_what_is_not_an_answer_is_an_error_and_the_next_request_works(
    reply: Reply, error: type[Exception], message: str
) -> None:
    scripted = Scripted(reply, OK)
    async with connected(scripted) as pool:
        with pytest.raises(error, match=message):
            await pool.post("", b"")
        assert (await pool.post("", b"")).body == b"{}"


async def test_a_late_answer_is_an_error_and_its_connection_is_not_used_again() -> None:
    scripted = Scripted(None, OK)
    async with connected(scripted, seconds=0.1) as pool:
        with pytest.raises(TimeoutError):
            await pool.post("", b"")
        assert (await pool.post("", b"")).body == b"{}"
    assert scripted.connections == 2


async def test_the_answer_to_a_cancelled_request_goes_to_nobody() -> None:
    scripted = Scripted(None, OK)
    async with connected(scripted) as pool:
        first = asyncio.create_task(pool.post("", b"first"))
        await asyncio.sleep(0.1)
        assert scripted.requests
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await pool.post("", b"second")).body == b"{}"
    assert scripted.connections == 2


async def test_an_idle_connection_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    scripted = Scripted(OK, OK)
    async with connected(scripted) as pool:
        await pool.post("", b"")
        await pool.post("", b"")
    assert scripted.connections == 2


async def test_nobody_listens() -> None:
    pool = Connections("http://127.0.0.1:1/v1", {}, timeout=5, max_bytes=1)
    with pytest.raises(OSError, match="Connect call failed"):
        await pool.post("", b"")


def test_a_header_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="line break"):
        Connections("http://localhost/v1", {"Authorization": "Bearer a\r\nX: b"}, timeout=1, max_bytes=1)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for localhost, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *more], check=True, capture_output=True)
    return certificate, key


async def test_certificates_are_checked(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    async with connected(Scripted(OK), tls=tls) as pool:
        with pytest.raises(ssl.SSLCertVerificationError):
            await pool.post("", b"")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    module._tls.cache_clear()
    try:
        async with connected(Scripted(OK), tls=tls) as pool:
            assert (await pool.post("", b"")).body == b"{}"
    finally:
        module._tls.cache_clear()


@pytest.mark.parametrize(
    "content",
    ["plain", 'a "quote" and a \\ and a\nline', "tab\tnull\0bell\a", "naïve — “quoted” 日本 😀", "\u2028", ""],
)
def test_bodies_are_what_json_makes_of_them(content: str) -> None:
    messages = [{"role": "user", "content": content}, {"role": "user", "content": [{"type": "text", "text": content}]}]
    messages.append({"role": "assistant", "content": None, "tool_calls": [content]})
    for body in ({"model": "m", "messages": messages, "seed": 1}, {"messages": messages}, {"input": content}):
        assert json.loads(to_json(body)) == body


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert json.loads(to_json({"messages": [{"role": "user", "content": "a\ud800"}]}))["messages"][0]["content"] == "a?"
