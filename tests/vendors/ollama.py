"""Ollama's chat completions, as its maintainers describe them (docs/models.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from tests.vendors.base import Answer, Received, Rejected
from tests.vendors.chat import ChatServer

EFFORTS = ("none", "low", "medium", "high")


class Standin(ChatServer):
    provider, model = "ollama", "qwen3:4b"
    thought_field = "reasoning"
    takes_temperature = True
    counts_cached = False
    efforts: ClassVar[Mapping[str, Any]] = {name: name for name in EFFORTS}

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"{self.path}/models", self._list)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.served, "object": "model"}]})

    def check(self, received: Received) -> None:
        super().check(received)
        if self.effort(received.body) not in (None, *EFFORTS):
            raise Rejected("invalid reasoning value")

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        return {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}
