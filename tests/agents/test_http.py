"""Calls over HTTP: connections that are kept, odd and broken responses, limits, proxies.

The server on loopback sends exactly the bytes that a test gives it; the client is the one of `server/`.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from autogen_core.models import UserMessage

from parley.agents import Client, model
from parley.agents.models.catalogue import download
from parley.agents.models.compatible import CompatibleClient
from parley.base.address import proxy_for
from parley.base.errors import ConfigError, ModelError, NotConnected, ServerFault, Unreachable
from tests.vendors.vllm import Standin

Answer = bytes | list[bytes] | None
"""What the server sends: at once, in pieces, or nothing."""
PROMPT = [UserMessage(content="Hello?", source="user")]
COMPLETION = json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": "Yes."}}]}).encode()
PROXY_VARIABLES = [
    cased for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for cased in (name, name.upper())
]


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


async def test_a_connection_is_kept_for_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", "k")
    scripted = Scripted(OK, OK)
    async with connected(scripted) as client:
        assert [await ask(client), await ask(client)] == ["Yes.", "Yes."]
    first = scripted.requests[0]
    assert first.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:")
    assert b"\r\nAuthorization: Bearer k\r\n" in first
    assert scripted.connections == 1


HALF = len(COMPLETION) // 2
TWO_MEMBERS = gzip.compress(COMPLETION[:HALF]) + gzip.compress(COMPLETION[HALF:])


@pytest.mark.parametrize(
    "sent",
    [
        [OK[:30], OK[30:-5], OK[-5:]],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(COMPLETION), COMPLETION),
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
        answer(gzip.compress(COMPLETION), "Content-Encoding: gzip"),
        answer(TWO_MEMBERS, "Content-Encoding: gzip"),
    ],
    ids=["in pieces", "chunked", "early hints", "gzip", "gzip of two members"],
)
async def test_responses_are_read_whole(sent: Answer) -> None:
    async with connected(Scripted(sent, OK)) as client:
        assert [await ask(client), await ask(client)] == ["Yes.", "Yes."]


async def test_a_stream_may_be_gzip_of_two_members() -> None:
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
async def test_what_is_not_a_response_is_an_error_and_the_next_call_works(
    sent: Answer, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CompatibleClient, "max_bytes", 1000)
    async with connected(Scripted(sent, OK)) as client:
        with pytest.raises(ServerFault, match=message):
            await ask(client)
        assert await ask(client) == "Yes."


async def test_a_late_response_is_an_error_and_its_connection_is_not_used_again() -> None:
    scripted = Scripted(None, OK)
    async with connected(scripted, timeout=0.2) as client:
        with pytest.raises(ServerFault, match=r"no answer within 0\.2 s"):
            await ask(client)
        assert await ask(client) == "Yes."
    assert scripted.connections == 2


async def test_the_response_to_a_cancelled_call_goes_to_nobody(until: Callable[..., Awaitable[None]]) -> None:
    scripted = Scripted(None, OK)
    async with connected(scripted) as client:
        first = asyncio.create_task(ask(client))
        await until(lambda: scripted.requests)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await ask(client) == "Yes."
    assert scripted.connections == 2


def test_a_client_works_in_a_second_event_loop() -> None:
    client = model("server/m?base_url=http://localhost:1/v1", retries=0)

    async def twice() -> list[Any]:
        async with serving(Scripted(OK, OK)) as url:
            client.base_url = f"{url}/v1"  # type: ignore[attr-defined]
            return [await ask(client), await ask(client)]

    assert [asyncio.run(twice()) for _ in range(2)] == [["Yes.", "Yes."]] * 2


async def test_a_name_that_cannot_be_resolved_is_not_tried_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.agents.models.retries.FIRST_CONTACT_SECONDS", 0.2)  # three otherwise
    client = model("server/m?base_url=http://nosuch.invalid/v1")
    began = time.monotonic()
    with pytest.raises(Unreachable, match=r"the name nosuch\.invalid cannot be resolved: check"):
        await ask(client)
    assert time.monotonic() - began < 12
    await client.close()


async def test_a_server_that_answered_before_is_waited_for() -> None:
    async with serving(Scripted([OK, Scripted.CLOSE])) as url:  # a connection that is kept would be waited for too
        client = model(f"server/m?base_url={url}/v1", retries=1)
        assert await ask(client) == "Yes."
    with pytest.raises(NotConnected, match="no connection to"):  # which fails a unit, and does not stop a run
        await ask(client)
    await client.close()


async def test_half_a_surrogate_pair_can_be_sent() -> None:
    scripted = Scripted(OK)
    async with connected(scripted) as client:
        await client.create([UserMessage(content="a\ud800", source="user")])
    sent = json.loads(scripted.requests[0].partition(b"\r\n\r\n")[2])
    assert sent["messages"][0]["content"] == "a?"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    more = ["-addext", "subjectAltName=DNS:localhost,DNS:models.invalid", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *more], check=True, capture_output=True)
    return certificate, key


async def test_certificates_are_checked(certificate: tuple[Path, Path]) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    async with connected(Scripted(OK), tls) as client:
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            await ask(client)


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in PROXY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


ELSEWHERE = "server/m?base_url={}://models.invalid/v1"
"""A host that no name server knows: only a proxy can answer for it."""


async def test_calls_go_through_the_environments_proxy(no_proxies: pytest.MonkeyPatch) -> None:
    proxy = Scripted(OK, OK)
    async with serving(proxy) as url:
        no_proxies.setenv("HTTP_PROXY", url)
        client = model(ELSEWHERE.format("http"), retries=0)
        assert [await ask(client), await ask(client)] == ["Yes.", "Yes."]
        await client.close()
    assert proxy.requests[0].startswith(b"POST http://models.invalid/v1/chat/completions HTTP/1.1\r\n")


async def test_encrypted_calls_are_tunnelled_through_the_environments_proxy(no_proxies: pytest.MonkeyPatch) -> None:
    proxy = Scripted(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
    async with serving(proxy) as url:
        no_proxies.setenv("HTTPS_PROXY", url)
        client = model(ELSEWHERE.format("https"), retries=0)
        with pytest.raises(ServerFault, match="502"):
            await ask(client)
        await client.close()
    assert proxy.requests[0].startswith(b"CONNECT models.invalid:443 HTTP/1.1\r\n")


@pytest.mark.parametrize("excluded", ["models.invalid", ".invalid", "*"])
async def test_no_proxy_is_honoured(excluded: str, no_proxies: pytest.MonkeyPatch) -> None:
    proxy = Scripted(OK)
    async with serving(proxy) as url:
        no_proxies.setenv("HTTP_PROXY", url)
        no_proxies.setenv("NO_PROXY", excluded)
        client = model(ELSEWHERE.format("http"), retries=0)
        with pytest.raises(Unreachable, match=r"the name models\.invalid cannot be resolved"):
            await ask(client)
        await client.close()
    assert proxy.requests == []


class Proxy:
    """A forward proxy: every host is the one server, by plain requests and by tunnels. It may ask for a password."""

    def __init__(self, port: int, password: str = "") -> None:
        self.port, self.password, self.asked, self.url = port, password, list[bytes](), ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.partition(b"\r\n")[0])
        given = base64.b64encode(f"ada:{self.password}".encode())
        if self.password and b"proxy-authorization: basic " + given.lower() not in head.lower():
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self.port)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            method, target, rest = head.split(b" ", 2)
            other_writer.write(b" ".join([method, b"/" + target.split(b"/", 3)[3], rest]))
        await asyncio.gather(self.copy(reader, other_writer), self.copy(other_reader, writer))

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def proxied(scripted: Scripted, password: str = "", tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """A proxy to the server."""
    async with serving(scripted, tls) as url:
        proxy = Proxy(int(url.rpartition(":")[2]), password)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        user = f"ada:{quote(password, safe='')}@" if password else ""
        proxy.url = f"http://{user}127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            server.close()


@pytest.mark.parametrize(
    ("variable", "password"),
    [("HTTP_PROXY", ""), ("http_proxy", "p@ss/w:rd"), ("ALL_PROXY", "p@ss/w:rd"), ("all_proxy", "")],
)
async def test_a_proxy_with_and_without_a_password(
    no_proxies: pytest.MonkeyPatch, variable: str, password: str
) -> None:
    async with proxied(Scripted(OK, OK), password) as proxy:
        no_proxies.setenv(variable, proxy.url)
        client = model(ELSEWHERE.format("http"), retries=0)
        assert [await ask(client), await ask(client)] == ["Yes.", "Yes."]
        await client.close()
    assert proxy.asked[0] == b"POST http://models.invalid/v1/chat/completions HTTP/1.1"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "all_proxy"])
async def test_weights_are_downloaded_through_the_same_proxy(no_proxies: pytest.MonkeyPatch, variable: str) -> None:
    def fetch(url: str) -> bytes:
        return b"".join(download(url))

    async with proxied(Scripted(OK), "p@ss/w:rd") as proxy:
        no_proxies.setenv(variable, proxy.url)
        assert await asyncio.to_thread(fetch, "http://models.invalid/weights") == COMPLETION
    assert proxy.asked == [b"GET http://models.invalid/weights HTTP/1.1"]
    async with serving(Scripted(OK)) as url:  # a server on this machine is reached without it
        assert await asyncio.to_thread(fetch, f"{url}/weights") == COMPLETION
    no_proxies.setenv(variable, "socks5://proxy:1080")
    with pytest.raises(ConfigError, match=r"the proxy for models.invalid is socks5://proxy:1080, and only"):
        fetch("http://models.invalid/weights")


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_wrong_password_is_an_error_that_does_not_show_it(no_proxies: pytest.MonkeyPatch, scheme: str) -> None:
    async with proxied(Scripted(OK), "right") as proxy:
        no_proxies.setenv("ALL_PROXY", proxy.url.replace("right", "wr0ng"))
        client = model(ELSEWHERE.format(scheme), retries=0)
        with pytest.raises(ModelError, match="407") as error:
            await ask(client)
        await client.close()
    assert "wr0ng" not in str(error.value)


async def test_an_encrypted_call_through_a_proxy_with_a_certificate_of_ones_own(
    no_proxies: pytest.MonkeyPatch, certificate: tuple[Path, Path]
) -> None:
    """In a process of its own: OpenSSL's SSL_CERT_FILE is read when aiohttp is imported."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    program = (
        "import asyncio\nfrom autogen_core.models import UserMessage\nfrom parley.agents import model\n"
        "client = model('server/m?base_url=https://models.invalid/v1', retries=0)\n"
        "call = client.create([UserMessage(content='Hello?', source='user')])\n"
        "print(asyncio.run(call).content)"
    )
    async with proxied(Scripted(OK), "secret", tls) as proxy:
        variables = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": str(certificate[0])}
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **variables}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, env=environment, stdout=pipe, stderr=pipe
        )
        out, problems = await process.communicate()
        assert out.strip() == b"Yes.", problems
    assert set(proxy.asked) == {b"CONNECT models.invalid:443 HTTP/1.1"}


async def test_a_run_through_a_proxy(no_proxies: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Standin("thinking") as server:
        proxy = Proxy(int(server.url.rpartition(":")[2].partition("/")[0]), "secret")
        listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        address = f"http://ada:secret@127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        name = server.name().replace(server.url, "http://models.invalid/v1")
        command = ["-m", "parley", "run", "malibu", "--suite", "tiny", "--limit", "1", "--model", name]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "HTTP_PROXY": address}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, "--out", "a.sqlite", cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe
        )
        out, problems = await process.communicate()
        listening.close()
    assert process.returncode == 0, out + problems
    assert {line.split(b" ")[1].split(b"/")[2] for line in proxy.asked} == {b"models.invalid"}
    stored = (tmp_path / "a.sqlite").read_bytes() + out + problems
    assert b"ada:secret" not in stored


@pytest.mark.parametrize("scheme", ["socks5h", "https", "SOCKS4"])
def test_other_kinds_of_proxies_are_refused_in_one_line(no_proxies: pytest.MonkeyPatch, scheme: str) -> None:
    no_proxies.setenv("ALL_PROXY", f"{scheme}://ada:{'s3cret'}@proxy:1080")
    name = "server/m"
    with pytest.raises(ConfigError, match=rf"{scheme}://…@proxy:1080, and only proxies that begin with http://") as e:
        model(f"{name}?base_url=https://models.invalid")
    assert "\n" not in str(e.value)
    assert "s3cret" not in str(e.value)
    model(f"{name}?base_url=http://127.0.0.1:8000")  # is never sent through a proxy
    no_proxies.setenv("NO_PROXY", "models.invalid")
    model(f"{name}?base_url=https://models.invalid")


def test_a_server_on_this_machine_needs_no_exception(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://proxy:3128")
    assert proxy_for("http://gpu-box:8000/v1") == "http://proxy:3128"
    assert proxy_for("https://gpu-box:8000/v1") is None
    assert proxy_for("http://localhost:8000/v1") is None
    assert proxy_for("http://127.0.0.1:8000/v1") is None
