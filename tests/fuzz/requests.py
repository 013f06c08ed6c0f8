"""Target: requests to a running viewer, generated from what it answers and then mutated."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes, urlsplit

from hypothesis import strategies as st

from parley.viewer.api import NewExport
from parley.viewer.notes_api import LabelUndo, NewDraw, NewLabels, NewNote, NoteWithdrawal
from tests.fuzz.checking import Rejected, Target
from tests.fuzz.strategies import ODD, VALUES, as_json, choose, edited_bytes, edited_text, edited_tree, often

READS = """\
/api/runs
/api/run run
/api/pulse run
/api/headline run brief?
/api/figure run name
/api/config run
/api/units run plan? after?
/api/search run q prompts? unit?
/api/ballots run unit?
/api/unit run unit
/api/texts run ids
/api/comparison run with
/api/notes run format?
/api/label/sets run
/api/label run set rater"""
WRITES = {
    "/api/export run": NewExport,
    "/api/notes run": NewNote,
    "/api/notes/withdraw run": NoteWithdrawal,
    "/api/label/sets run f.phase?": NewDraw,
    "/api/label run": NewLabels,
    "/api/label/undo run": LabelUndo,
}
HEADERS = ("Host", "Origin", "Cookie", "Sec-Fetch-Site", "Content-Length", "Transfer-Encoding", "X-Any")


class Operation(NamedTuple):
    """A path with its parameters, a question mark after those that are optional, and schemas of the body's fields."""

    method: str
    path: str
    query: list[str]
    body: dict[str, dict[str, Any]]


def operations() -> list[Operation]:
    """All requests that the viewer answers."""
    reads = [Operation("GET", path, query, {}) for path, *query in map(str.split, READS.splitlines())]
    bodies = {line: model.model_json_schema()["properties"] for line, model in WRITES.items()}
    return reads + [Operation("POST", line.split()[0], line.split()[1:], body) for line, body in bodies.items()]


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
    fitting = {
        "integer": (0, 1, 2, 50, schema.get("minimum", -5), schema.get("maximum", 500), 10**30),
        "number": (0.0, 7.5, -1e300, 10, "nan", "1e999"),
        "boolean": ("true", "false", True, "perhaps"),
        "array": ([], [["", "Accuracy", 7]], [["A", "Accuracy", "x"], ["", "Accuracy", -1]]),
    }
    if values := schema.get("enum") or fitting.get(schema.get("type", "")):
        return choose(draw, values)
    edited = edited_text(list(known)).map(lambda text: text[:3000])
    return draw(st.sampled_from(known) | edited | st.sampled_from(ODD))


@st.composite
def edited_request(draw: st.DrawFn, known: Sequence[str]) -> RawRequest:
    """`known` are values that the viewer accepts; the first is the name of a run."""
    operation = choose(draw, operations())
    query = []
    for parameter in operation.query:
        name = parameter.removesuffix("?")
        if often(draw, 95 if name == parameter else 25):
            is_run = name in ("run", "with") and often(draw, 85)
            value = known[0] if is_run else value_of(draw, {"type": "string"}, known)
            text = value if isinstance(value, str) else json.dumps(value)
            query.append(f"{name}={quote_from_bytes(text.encode('utf-8', 'surrogatepass'))}")
    body, headers = b"", []
    if operation.body:
        fields = operation.body.items()
        sent = {name: value_of(draw, kind, known[1:]) for name, kind in fields if often(draw, 80)}
        body = as_json(draw(edited_tree([sent])) if often(draw, 30) else sent).encode("utf-8", "surrogatepass")
        body = draw(edited_bytes([body])) if often(draw, 10) else body
        kinds = (b"application/json",) * 9 + (b"application/json; charset=\xff", b"text/plain")
        headers.append(("Content-Type", choose(draw, kinds)))
    if often(draw, 15):
        usual = ["127.0.0.1:1", "http://evil.example", "parley_view=x", "cross-site", "7", "[::1"]
        value = draw(edited_text(usual))[:3000].encode("utf-8", "surrogatepass")
        headers.append((choose(draw, HEADERS), value.replace(b"\n", b"").replace(b"\r", b"")))
    line = f"{operation.path}?{'&'.join(query)}"
    if often(draw, 10):
        line = draw(edited_text([line]))[:6000].replace("\n", "").replace("\r", "").replace(" ", "")
    return RawRequest(operation.method, line or "/", tuple(headers), body)


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


def target(address: str, run: str, units: Sequence[str]) -> Target:
    seeds = [RawRequest("GET", path) for path in (f"/api/units?run={run}", "/", "/static/app.js")]
    return Target("viewer request", seeds, edited_request([run, *units, "Accuracy", "One", "female"]), sender(address))
