"""llama.cpp's server, as the real one behaved (tests/agents/test_servers.py): it ignores what it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from tests.vendors.base import Answer, Rejected
from tests.vendors.chat import ChatServer

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Standin(ChatServer):
    provider, model = "llamacpp", "qwen3"
    thought_field = "reasoning_content"
    takes_temperature = True
    efforts: ClassVar[Mapping[str, Any]] = {name: (name, name != "none") for name in EFFORTS}

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"{self.path}/models", self._list)
        app.router.add_get("/props", self._props)

    async def _list(self, request: web.Request) -> web.Response:
        model = {"id": "/models/qwen3.gguf", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 32_768}}
        return web.json_response({"object": "list", "data": [model]})

    async def _props(self, request: web.Request) -> web.Response:
        return web.json_response({"chat_template_caps": {"supports_reasoning_effort": True}})

    def error(self, rejected: Rejected) -> Any:
        error = {"code": rejected.status, "message": rejected.message, "type": "invalid_request_error"}
        return {"error": error}

    def effort(self, body: Mapping[str, Any]) -> Any:
        effort = body.get("reasoning_effort")
        return None if effort is None else (effort, body["chat_template_kwargs"]["enable_thinking"])

    def thinks(self, body: Mapping[str, Any]) -> bool:
        return body.get("reasoning_effort") != "none"

    def usage(self, answer: Answer) -> dict[str, Any]:
        usage = super().usage(answer)
        del usage["completion_tokens_details"]
        return usage
