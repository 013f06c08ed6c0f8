"""Target: requests to a running viewer, generated from what it answers and then mutated."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes, urlsplit

from hypothesis import strategies as st

from parley.viewer.server import serve
from tests.fuzz.checking import Rejected, Target
from tests.fuzz.strategies import ODD, VALUES, as_json, choose, edited_bytes, edited_text, edited_tree, often
from tests.fuzz.viewer_api import operations


class RawRequest(NamedTuple):
    """A request as it is sent: request line, headers and body."""

    method: str
    path: str
    headers: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""

    def to_bytes(self, host: str) -> bytes:
        names = {name.lower() for name, _ in self.headers}
        lines = [f"{self.method} {self.path} HTTP/1.1".encode("utf-8", "surrogatepass")]
        lines += [] if "host" in names else [f"Host: {host}".encode()]
        lines += [name.encode() + b": " + value for name, value in self.headers]
        lines += [] if "content-length" in names or not self.body else [f"Content-Length: {len(self.body)}".encode()]
        return b"\r\n".join([*lines, b"Connection: close", b"", self.body])


def value_of(draw: st.DrawFn, schema: dict[str, Any], known: Sequence[str]) -> Any:
    """A value that fits a schema, or almost."""
    if often(draw, 15):
        return choose(draw, VALUES)
    schema = choose(draw, schema.get("anyOf") or [schema])
    if "enum" in schema:
        return choose(draw, schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        return choose(draw, (0, 1, 2, 50, schema.get("minimum", -5), schema.get("maximum", 500), 10**30))
    if kind == "number":
        return choose(draw, (0.0, 7.5, -1e300, 10, "nan", "1e999"))
    if kind == "boolean":
        return choose(draw, ("true", "false", True, "perhaps"))
    if kind == "array":
        return [
            [choose(draw, ("", "A")), "Accuracy", choose(draw, (7, "x", -1))] for _ in range(draw(st.integers(0, 2)))
        ]
    edited = edited_text(list(known) or ["x"]).map(lambda text: text[:3000])
    return draw(st.sampled_from(known or ["x"]) | edited | st.sampled_from(ODD))


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def edited_requests(known: Sequence[str]) -> st.SearchStrategy[RawRequest]:
    """`known` are values that the viewer accepts; the first is the name of a run."""
    known_operations = operations()

    @st.composite
    def generate(draw: st.DrawFn) -> RawRequest:
        operation = choose(draw, known_operations)
        query = []
        for parameter, schema in operation.query.items():
            name = parameter.removesuffix("?")
            if often(draw, 95 if name == parameter else 25):
                is_run = name in ("run", "with") and often(draw, 85)
                value = known[0] if is_run else value_of(draw, schema, known)
                query.append(f"{name}={quote_from_bytes(text_of(value).encode('utf-8', 'surrogatepass'))}")
        body, headers = b"", []
        if operation.body:
            fields = operation.body.items()
            fields_sent = {name: value_of(draw, kind, known[1:]) for name, kind in fields if often(draw, 80)}
            sent = draw(edited_tree([fields_sent])) if often(draw, 30) else fields_sent
            body = as_json(sent).encode("utf-8", "surrogatepass")
            body = draw(edited_bytes([body])) if often(draw, 10) else body
            headers.append(
                (
                    "Content-Type",
                    choose(draw, (b"application/json",) * 9 + (b"application/json; charset=\xff", b"text/plain")),
                )
            )
        if often(draw, 15):
            name = choose(
                draw, ("Host", "Origin", "Cookie", "Sec-Fetch-Site", "Content-Length", "Transfer-Encoding", "X-Any")
            )
            usual = ["127.0.0.1:1", "http://evil.example", "parley_view=x", "cross-site", "7", "[::1"]
            value = draw(edited_text(usual))[:3000]
            headers.append((name, value.encode("utf-8", "surrogatepass").replace(b"\n", b"").replace(b"\r", b"")))
        line = f"{operation.path}?{'&'.join(query)}"
        if often(draw, 10):
            line = draw(edited_text([line]))[:6000].replace("\n", "").replace("\r", "").replace(" ", "")
        return RawRequest(operation.method, line or "/", tuple(headers), body)

    return generate()


def sender(address: str) -> Callable[[RawRequest], None]:
    url = urlsplit(address)
    assert url.port

    def send(request: RawRequest) -> None:
        with socket.create_connection((url.hostname, url.port), timeout=25) as connection:
            connection.sendall(request.to_bytes(url.netloc))
            if any(name in ("Content-Length", "Transfer-Encoding") for name, _ in request.headers):
                connection.shutdown(socket.SHUT_WR)  # the server would wait for the rest of the announced body
            response = b""
            while part := connection.recv(65536):
                response += part
        head, _, body = response.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise Rejected("the connection was closed without a response")
        status = int(words[1])
        if status < 400:
            return
        assert status < 500 or b'{"error"' in body, f"{status}: {body[:200]!r}"
        assert b"the viewer failed" not in body, body[:300]
        assert b"Traceback" not in body
        raise Rejected(f"{status} {body[:80]!r}")

    return send


@contextmanager
def viewer(folder: Path) -> Iterator[str]:
    """The real server in a thread; gives its address."""
    addresses: list[str] = []
    ready = threading.Event()
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def serve_until_cancelled() -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append((asyncio.get_running_loop(), task))
        await serve(folder, "127.0.0.1", 0, lambda address: (addresses.append(address), ready.set())[1])

    def run() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(serve_until_cancelled())

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60), "the server never answered"
    try:
        yield addresses[0]
    finally:
        loop, task = tasks[0]
        loop.call_soon_threadsafe(task.cancel)
        thread.join(30)


def target(address: str, run: str, units: Sequence[str]) -> Target:
    seeds = [RawRequest("GET", path) for path in (f"/api/units?run={run}", "/", "/static/app.js")]
    inputs = edited_requests([run, *units, "Accuracy", "One", "female"])
    return Target("viewer request", seeds, inputs, sender(address))
