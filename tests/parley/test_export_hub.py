"""Uploading to the hub, against a server on loopback that accepts the same requests."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from aiohttp import web

from parley.cli import main
from tests.panels import PAPER_DEBATES
from tests.servers import Loopback

pytest.importorskip("huggingface_hub")


class Hub(Loopback):
    """Creates a dataset, says that all files are small, and accepts one commit."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.tokens: set[str | None] = set()
        self.refuses = False
        super().__init__()
        self.address = f"http://127.0.0.1:{self.port}"

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization"))
        body, answer = await request.read(), {"errors": [], "warnings": []}
        if self.refuses:
            said = {"error": "this token may not write: " + "hf_secret_of_mine " * 20}
            return web.json_response(said, status=403)
        if request.path.endswith("/repos/create"):
            self.created.append(json.loads(body))
            answer = {"url": f"{self.address}/datasets/me/debates", "id": "me/debates", "name": "me/debates"}
        elif "/preupload/" in request.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            answer = {"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]}
        elif "/commit/" in request.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            commit = f"{self.address}/datasets/me/debates/commit/1"
            answer = {"commitUrl": commit, "commitOid": "1", "success": True}
        return web.json_response(answer)

    def is_private(self) -> bool:
        """As older and newer clients send it."""
        request = self.created[0]
        return bool(request["private"]) if "private" in request else bool(request["visibility"] == "private")


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
    hub.created.clear()
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
