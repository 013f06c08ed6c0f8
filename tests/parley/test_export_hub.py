"""Uploading to the hub, against a server on loopback that accepts the same requests."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from parley.cli import main
from tests.panels import PAPER_DEBATES

pytest.importorskip("huggingface_hub")


class Hub:
    """Creates a dataset, says that all files are small, and accepts one commit."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.tokens: set[str | None] = set()
        self.refuses = False
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                hub.tokens.add(self.headers.get("Authorization"))
                status, answer = hub.answer(self.path, body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                """Nothing on the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        if self.refuses:
            return 403, {"error": "this token may not write: " + "hf_secret_of_mine " * 20}
        if path.endswith("/repos/create"):
            self.created.append(json.loads(body))
            return 200, {"url": f"{self.address}/datasets/me/debates", "id": "me/debates", "name": "me/debates"}
        if "/preupload/" in path:
            files = json.loads(body)["files"]
            small = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in files]
            return 200, {"files": small}
        if "/commit/" in path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return 200, {"commitUrl": f"{self.address}/datasets/me/debates/commit/1", "commitOid": "1", "success": True}
        return 200, {"errors": [], "warnings": []}

    def is_private(self) -> bool:
        """As older and newer clients send it."""
        request = self.created[0]
        return bool(request["private"]) if "private" in request else bool(request["visibility"] == "private")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hub(monkeypatch):
    serving = Hub()
    monkeypatch.setenv("HF_ENDPOINT", serving.address)
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_mine")
    yield serving
    serving.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("hub") / "a.sqlite")
    model = "sim/debate?base=3.5&noise=2"
    assert main([*PAPER_DEBATES, "--topics", "6", "--rounds", "2", "--quiet", "--model", model, "--out", path]) == 0
    return path


def test_a_dataset_is_uploaded_in_one_commit_with_its_card(parley, run, hub):
    result = parley("export", run, "--format", "hub", "--to", "me/debates")
    assert result.status == 0, result.err
    assert f"{hub.address}/datasets/me/debates" in result.out
    assert hub.tokens == {"Bearer hf_secret_of_mine"}
    assert hub.is_private(), "private by default"
    assert {"README.md", "export.json", "pairs/train.parquet", "statements/train.parquet"} <= set(hub.files)
    assert hub.files["pairs/train.parquet"][:4] == b"PAR1"
    assert b"SIMULATED" in hub.files["README.md"]


def test_a_public_dataset_needs_a_flag(parley, run, hub):
    assert parley("export", run, "--format", "hub", "--to", "me/debates", "--public").status == 0
    assert not hub.is_private()


def test_a_hub_that_refuses_is_one_line_without_the_token(parley, run, hub):
    nobodys = parley("export", run, "--format", "hub", "--to", "debates")
    assert (nobodys.status, "owner/name" in nobodys.err, hub.created) == (2, True, [])
    hub.refuses = True
    result = parley("export", run, "--format", "hub", "--to", "me/debates")
    assert (result.status, len(result.complaints)) == (1, 1)
    assert "the hub refused me/debates" in result.err
    assert "hf_secret" not in result.err, "nor a part of it, where the line is truncated"
