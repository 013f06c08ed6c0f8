"""What the stories of this folder share: a clean home, and a model's server on loopback that says what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


class Speaker:
    """An OpenAI-compatible server. `says(body)` gives the text of a reply."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.says: Callable[[dict[str, Any]], str] = lambda body: "So I think."
        speaker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                speaker.asked.append(body)
                choice = {"index": 0, "message": {"role": "assistant", "content": speaker.says(body)}}
                usage = {"prompt_tokens": 100, "completion_tokens": 20}
                data = json.dumps({"choices": [{**choice, "finish_reason": "stop"}], "usage": usage}).encode()
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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
