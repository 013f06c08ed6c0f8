"""OpenAI's batches that fail on purpose: lines with errors or without an answer, batches that expire or are refused.

Answers come in any order. A request is paid for when it is answered: one that is answered twice is counted twice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.chaos.faults import FaultServer

LINE_SHARE = 0.01
"""The share of lines that get an error, and of those that get no answer."""
BATCH_SHARE = 0.06
"""The share of batches that expire, and of those that are refused."""


class FaultyBatches:
    """The batches of a server.

    Args:
        server: It draws the faults, answers requests and counts.
    """

    def __init__(self, server: FaultServer) -> None:
        self._server = server
        self._files: dict[str, list[dict[str, Any]]] = {}
        self._batches: dict[str, dict[str, Any]] = {}

    async def respond(self, request: web.Request) -> bytes:
        parts = request.path.removeprefix("/v1/").split("/")
        if parts[0] == "files" and request.method == "POST":
            form = await request.post()
            text = form["file"].file.read().decode()  # type: ignore[union-attr]
            return _json({"id": self._store([json.loads(line) for line in text.splitlines()])})
        if parts[0] == "files":
            return b"".join(_json(line) + b"\n" for line in self._files[parts[1]])
        if request.method == "POST":
            name = f"batch_{len(self._batches)}"
            self._batches[name] = {**await request.json(), "id": name, "status": "validating"}
            return _json(self._batches[name])
        if len(parts) == 1:
            return _json({"data": list(self._batches.values())[::-1][:100], "has_more": False})
        batch = self._batches[parts[1]]
        if batch["status"] == "validating":
            batch["status"] = "in_progress"
        elif batch["status"] == "in_progress":
            self._end(batch)
        return _json(batch)

    def _store(self, lines: list[dict[str, Any]]) -> str:
        name = f"file-{len(self._files)}"
        self._files[name] = lines
        return name

    def _fails(self, kind: str, share: float) -> bool:
        fails = self._server.chance(share)
        self._server.sent_faults[kind] += fails
        return fails

    def _end(self, batch: dict[str, Any]) -> None:
        if self._fails("batch refused", BATCH_SHARE):
            batch.update(status="failed", errors={"data": [{"message": "the queue is full"}]})
            return
        lines = self._files[batch["input_file_id"]]
        good: list[dict[str, Any]] = []
        bad: list[dict[str, Any]] = []
        batch["status"] = "completed"
        answered = len(lines)
        if self._fails("batch expired", BATCH_SHARE):
            batch["status"], answered = "expired", len(lines) // 2
        for nth, line in enumerate(lines):
            name = {"custom_id": line["custom_id"]}
            if nth >= answered:
                bad.append({**name, "response": None, "error": {"code": "batch_expired", "message": "expired"}})
            elif self._fails("line with an error", LINE_SHARE):
                error = {"error": {"message": "try again"}}
                bad.append({**name, "response": {"status_code": 500, "body": error}, "error": None})
            elif not self._fails("line without an answer", LINE_SHARE):
                reply = json.loads(self._server.answer_in_batch(line["body"]))
                good.append({**name, "response": {"status_code": 200, "body": reply}, "error": None})
        random.Random(len(self._files)).shuffle(good)
        for key, results in (("output_file_id", good), ("error_file_id", bad)):
            if results:
                batch[key] = self._store(results)
        batch["request_counts"] = {"total": len(lines), "completed": len(good), "failed": len(bad)}


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()
