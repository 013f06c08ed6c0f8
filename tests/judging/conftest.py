"""What these tests share: an empty folder with a small suite in it, and a model's server on loopback whose replies a
test sets."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.judging import Unit
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu
from tests.panels import in_design

SUITE = """
schema = 1
name = "mine"
version = "1"
[[scenario]]
id = "bakery"
domain = "baking"
text = "Bake bread {with care}."
stereotype = "none"
responses = ["Knead it twice.", "Wait for an hour."]
"""


@pytest.fixture(autouse=True)
def _begin_with_a_small_suite(place: Path) -> None:
    (place / "mine.toml").write_text(SUITE)


@pytest.fixture
def planned() -> Callable[..., list[Unit]]:
    """A panel's plan for some settings."""

    def plan(**settings: Any) -> list[Unit]:
        return list(Malibu(MalibuConfig(**in_design(settings))).plan())

    return plan


@pytest.fixture
def run_study() -> Callable[..., list[tuple[Any, ...]]]:
    """Run the study's panel on a simulated model, and query its run file."""

    def run(sql: str, **settings: Any) -> list[tuple[Any, ...]]:
        settings = {"suite": "mine.toml", "identities": ["gender"], "model": "sim/judge", **settings}
        assert parley.run("malibu", out="a.sqlite", **in_design(settings)).complete
        with closing(sqlite3.connect("a.sqlite")) as db:
            return db.execute(sql).fetchall()

    return run


class Speaker:
    """An OpenAI-compatible server. `says(body)` gives the text of a reply, `finish(body)` why it ended."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.says: Callable[[dict[str, Any]], str] = lambda body: "So I think."
        self.finish: Callable[[dict[str, Any]], str] = lambda body: "stop"
        speaker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                speaker.asked.append(body)
                choice = {"index": 0, "message": {"role": "assistant", "content": speaker.says(body)}}
                usage = {"prompt_tokens": 100, "completion_tokens": 20}
                data = json.dumps(
                    {"choices": [{**choice, "finish_reason": speaker.finish(body)}], "usage": usage}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                """Nothing on the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def model(self, name: str = "speaker") -> str:
        return f"server/{name}?base_url=http://127.0.0.1:{self._server.server_port}/v1&retries=0"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    speaking = Speaker()
    yield speaking
    speaking.close()
