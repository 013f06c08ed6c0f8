"""Target: requests to a viewer that is up, made up from its own description (OpenAPI) and broken from there."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes, urlsplit

from parley.viewer.openapi import openapi_description
from parley.viewer.server import serve
from tests.fuzz import mutation
from tests.fuzz.dictionary import ODD, VALUES
from tests.fuzz.loop import Rejected, Target


class Ask(NamedTuple):
    """A request: its line, its headers, and what it carries."""

    method: str
    path: str
    headers: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""

    def wire(self, host: str) -> bytes:
        named = {name.lower() for name, _ in self.headers}
        lines = [f"{self.method} {self.path} HTTP/1.1".encode("utf-8", "surrogatepass")]
        lines += [] if "host" in named else [f"Host: {host}".encode()]
        lines += [name.encode() + b": " + value for name, value in self.headers]
        lines += [] if "content-length" in named or not self.body else [f"Content-Length: {len(self.body)}".encode()]
        return b"\r\n".join([*lines, b"Connection: close", b"", self.body])


def value_of(rng: random.Random, schema: dict[str, Any], known: Sequence[str]) -> Any:
    """Something that fits a schema, or nearly."""
    if rng.random() < 0.15:
        return rng.choice(VALUES)
    kinds = schema.get("anyOf") or [schema]
    schema = rng.choice(kinds)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        return rng.choice((0, 1, 2, 50, schema.get("minimum", -5), schema.get("maximum", 500), 10**30))
    if kind == "number":
        return rng.choice((0.0, 7.5, -1e300, 10, "nan", "1e999"))
    if kind == "boolean":
        return rng.choice(("true", "false", True, "perhaps"))
    if kind == "array":
        return [[rng.choice(("", "A")), "Accuracy", rng.choice((7, "x", -1))] for _ in range(rng.randrange(3))]
    return rng.choice((*known, mutation.text(rng, list(known) or ["x"])[:3000], rng.choice(ODD)))


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def asked(known: Sequence[str]) -> Callable[[random.Random, Sequence[Ask]], Ask]:
    paths = openapi_description()["paths"]

    def make(rng: random.Random, kept: Sequence[Ask]) -> Ask:
        path, operations = rng.choice(list(paths.items()))
        method, operation = rng.choice(list(operations.items()))
        query = []
        for parameter in operation["parameters"]:
            if rng.random() < (0.95 if parameter["required"] else 0.25):
                name = parameter["name"]
                value = (
                    known[0]
                    if name in ("run", "with") and rng.random() < 0.85
                    else value_of(rng, parameter["schema"], known)
                )
                query.append(f"{name}={quote_from_bytes(text_of(value).encode('utf-8', 'surrogatepass'))}")
        body, headers = b"", []
        if method == "post":
            fields = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
            sent = {name: value_of(rng, kind, known[1:]) for name, kind in fields.items() if rng.random() < 0.8}
            body = mutation.as_json(mutation.tree(rng, sent) if rng.random() < 0.3 else sent).encode(
                "utf-8", "surrogatepass"
            )
            body = mutation.raw(rng, body) if rng.random() < 0.1 else body
            headers.append(
                (
                    "Content-Type",
                    rng.choice((b"application/json",) * 9 + (b"application/json; charset=\xff", b"text/plain")),
                )
            )
        if rng.random() < 0.15:
            name = rng.choice(
                ("Host", "Origin", "Cookie", "Sec-Fetch-Site", "Content-Length", "Transfer-Encoding", "X-Any")
            )
            value = mutation.text(
                rng, ["127.0.0.1:1", "http://evil.example", "parley_view=x", "cross-site", "7", "[::1"]
            )[:3000]
            headers.append((name, value.encode("utf-8", "surrogatepass").replace(b"\n", b"").replace(b"\r", b"")))
        line = f"{path}?{'&'.join(query)}"
        if rng.random() < 0.1:
            line = mutation.text(rng, [line])[:6000].replace("\n", "").replace("\r", "").replace(" ", "")
        return Ask(method.upper(), line or "/", tuple(headers), body)

    return make


def feeder(address: str) -> Callable[[Ask], None]:
    there = urlsplit(address)
    assert there.port

    def feed(ask: Ask) -> None:
        with socket.create_connection((there.hostname, there.port), timeout=25) as line:
            line.sendall(ask.wire(there.netloc))
            if any(name in ("Content-Length", "Transfer-Encoding") for name, _ in ask.headers):
                line.shutdown(socket.SHUT_WR)  # who promises more than he sends would be waited for
            answer = b""
            while part := line.recv(65536):
                answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise Rejected("no answer: the connection was closed")
        status = int(words[1])
        if status < 400:
            return
        assert status < 500 or b'{"error"' in body, f"{status}: {body[:200]!r}"
        assert b"the viewer failed" not in body, body[:300]
        assert b"Traceback" not in body
        raise Rejected(f"{status} {body[:80]!r}")

    return feed


@contextmanager
def viewer(place: Path) -> Iterator[str]:
    """The real server, in a thread of its own."""
    addresses: list[str] = []
    ready = threading.Event()
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def hold() -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append((asyncio.get_running_loop(), task))
        await serve(place, "127.0.0.1", 0, lambda address: (addresses.append(address), ready.set())[1])

    def run() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(hold())

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
    seeds = [Ask("GET", f"/api/units?run={run}"), Ask("GET", "/"), Ask("GET", "/static/app.js")]
    return Target("viewer request", seeds, asked([run, *units, "Accuracy", "One", "female"]), feeder(address), 0.5)
