"""Calls over HTTP: connections that are kept, odd and broken responses, limits. Proxies are in test_proxies.py.

The server on loopback sends exactly the bytes that a test gives it; the client is the one of `server/`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import UserMessage

from parley.agents import Client, model
from parley.agents.models import anthropic, google_messages
from parley.agents.models.compatible import CompatibleClient
from parley.base.errors import ConfigError, NotConnected, ServerFault, Unreachable

Answer = bytes | list[bytes] | None
"""What the server sends: at once, in pieces, or nothing."""
PROMPT = [UserMessage(content="Hello?", source="user")]
COMPLETION = json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": "Yes."}}]}).encode()


def answer(body: bytes, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *headers, f"Content-Length: {len(body)}", "", ""]).encode() + body


OK = answer(COMPLETION)


class Scripted:
    """A server that reads requests and answers them with the next answer; `CLOSE` ends the connection."""

    CLOSE = b"close"

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.requests, self.connections, self.url = list(answers), list[bytes](), 0, ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = head.lower().split(b"content-length: ")
                length = int(fields[1].split(b"\r\n")[0]) if len(fields) > 1 else 0
                self.requests.append(head + await reader.readexactly(length))
                reply = self.answers.pop(0) if self.answers else None
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


def encrypted_by(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    """TLS for a server, with a certificate and its key."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    return tls


@asynccontextmanager
async def serving(scripted: Scripted, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The server's address."""
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://localhost:{port}"
    finally:
        server.close()


@asynccontextmanager
async def connected(scripted: Scripted, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[Client]:
    async with serving(scripted, tls) as url:
        client = model(f"server/m?base_url={url}/v1", **{"retries": 0, **options})
        try:
            yield client
        finally:
            await client.close()


async def ask(client: Client) -> Any:
    return (await client.create(PROMPT)).content


async def test_a_connection_is_kept_for_the_next_call(monkeypatch):
    monkeypatch.setenv("PARLEY_SERVER_KEY", "k")
    scripted = Scripted(OK, OK)
    async with connected(scripted) as client:
        assert [await ask(client), await ask(client)] == ["Yes.", "Yes."]
    first = scripted.requests[0]
    assert first.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:")
    assert b"\r\nAuthorization: Bearer k\r\n" in first
    assert scripted.connections == 1


async def test_a_stream_may_be_gzip_of_two_members():
    event = b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n'
    body = gzip.compress(event % b"Ye") + gzip.compress(event % b"s." + b"data: [DONE]\n\n")
    async with connected(Scripted(answer(body, "Content-Encoding: gzip"))) as client:
        parts = [part async for part in client.create_stream(PROMPT)]
    assert parts[:-1] == ["Ye", "s."]


BOMB = gzip.compress(b"0" * 100_000)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", Scripted.CLOSE], "Not enough data"),
        ([Scripted.CLOSE], "Server disconnected"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "Expected HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "chunk"),
        (answer(b"no gzip at all", "Content-Encoding: gzip"), "Can not decode"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "larger than 1,000 bytes"),
        ([b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, Scripted.CLOSE], "larger than 1,000 bytes"),
        (answer(BOMB, "Content-Encoding: gzip"), "larger than 1,000 bytes"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**17, "more than"),
    ],
)
async def test_what_is_not_a_response_is_an_error_and_the_next_call_works(sent, message, monkeypatch):
    monkeypatch.setattr(CompatibleClient, "max_bytes", 1000)
    async with connected(Scripted(sent, OK)) as client:
        with pytest.raises(ServerFault, match=message):
            await ask(client)
        assert await ask(client) == "Yes."


async def test_a_late_response_is_an_error_and_its_connection_is_not_used_again():
    scripted = Scripted(None, OK)
    async with connected(scripted, timeout=0.2) as client:
        with pytest.raises(ServerFault, match=r"no answer within 0\.2 s"):
            await ask(client)
        assert await ask(client) == "Yes."
    assert scripted.connections == 2


def test_a_client_works_in_a_second_event_loop():
    client = model("server/m?base_url=http://localhost:1/v1", retries=0)

    async def twice() -> list[Any]:
        async with serving(Scripted(OK, OK)) as url:
            client.base_url = f"{url}/v1"  # type: ignore[attr-defined]
            return [await ask(client), await ask(client)]

    assert [asyncio.run(twice()) for _ in range(2)] == [["Yes.", "Yes."]] * 2


async def test_a_name_that_cannot_be_resolved_is_not_tried_for_long(monkeypatch):
    monkeypatch.setattr("parley.agents.models.retries.FIRST_CONTACT_SECONDS", 0.2)  # three otherwise
    client = model("server/m?base_url=http://nosuch.invalid/v1")
    began = time.monotonic()
    with pytest.raises(Unreachable, match=r"the name nosuch\.invalid cannot be resolved: check"):
        await ask(client)
    assert time.monotonic() - began < 12
    await client.close()


async def test_a_server_that_answered_before_is_waited_for():
    async with serving(Scripted([OK, Scripted.CLOSE])) as url:  # a connection that is kept would be waited for too
        client = model(f"server/m?base_url={url}/v1", retries=1)
        assert await ask(client) == "Yes."
    with pytest.raises(NotConnected, match="no connection to"):  # which fails a unit, and does not stop a run
        await ask(client)
    await client.close()


async def test_half_a_surrogate_pair_can_be_sent():
    scripted = Scripted(OK)
    async with connected(scripted) as client:
        await client.create([UserMessage(content="a\ud800", source="user")])
    sent = json.loads(scripted.requests[0].partition(b"\r\n\r\n")[2])
    assert sent["messages"][0]["content"] == "a?"


@pytest.fixture
def keys(monkeypatch):
    for variable in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, "k")
    return monkeypatch


@pytest.mark.parametrize("name", ["server/m", "anthropic/m", "google/m"])
async def test_certificates_are_checked(name, certificate, keys):
    """Anthropic's message was "operation not permitted"."""
    async with serving(Scripted(OK), encrypted_by(certificate)) as url:
        client = model(f"{name}?base_url={url}&retries=0")
        with pytest.raises(Unreachable, match=f"no encrypted connection to {url}: .*CERTIFICATE_VERIFY_FAILED"):
            await ask(client)
        await client.close()


@pytest.mark.parametrize(("name", "module"), [("anthropic/m", anthropic), ("google/m", google_messages)])
def test_a_file_of_certificates_that_is_not_there_is_named_before_the_run(name, module, keys):
    module.certificates.cache_clear()
    keys.setenv("SSL_CERT_FILE", "gone.pem")
    with pytest.raises(ConfigError, match=r"^SSL_CERT_FILE=gone.pem: no certificates can be read from it \(No such"):
        model(name)
