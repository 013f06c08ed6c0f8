"""A server on loopback with scripted replies, OpenAI-compatible or not, and a certificate for servers that need one."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from parley.agents import Client, model

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Sends its answers in order, repeats the last one, and records the requests."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.under_way = self.most_under_way = 0
        self.delay = 0.005
        self.listing: tuple[int, Any] = 404, {}
        """The status and the body of the list of models."""
        self._answers: list[Handler] = []
        self._clients: list[Client] = []

    @property
    def name(self) -> str:
        return f"server/m?base_url={self.url}"

    def client(self, name: str = "server/m", **options: Any) -> Client:
        """A client for this server, which is closed with it."""
        self._clients.append(model(name, base_url=self.url, **options))
        return self._clients[-1]

    def says(
        self,
        *texts: str,
        logprobs: Sequence[Mapping[str, Any]] | None = None,
        finish: str = "stop",
        usage: Mapping[str, Any] | None = None,
        **message: Any,
    ) -> None:
        """One answer per text; further fields of the message ("refusal", "tool_calls") by name."""
        for text in texts or (None,):
            choice: dict[str, Any] = {"finish_reason": finish, "message": {"content": text, **message}}
            if logprobs is not None:
                choice["logprobs"] = {"content": list(logprobs)}
            counts = {"prompt_tokens": 12, "completion_tokens": 3, **(usage or {})}
            self.sends(json.dumps({"created": 1_790_000_000, "choices": [choice], "usage": counts}))

    def fails(self, status: int, message: str = "no", headers: Mapping[str, str] | None = None) -> None:
        self.sends(json.dumps({"error": {"message": message}}), status, headers)

    def sends(self, body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        async def handler(request: web.Request) -> web.StreamResponse:
            return web.Response(text=body, status=status, headers=headers)

        self._answers.append(handler)

    def streams(self, *events: Any) -> None:
        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for event in events:
                await response.write(f"data: {json.dumps(event)}\n\n".encode())
            await response.write(b"data: [DONE]\n\n")
            return response

        self._answers.append(handler)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        chat = request.content_type == "application/json"
        self.asked.append(await request.json() if chat else {**request.query, **await request.post()})
        handler = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.delay)
            return await handler(request)
        finally:
            self.under_way -= 1

    def serves(self, *names: str) -> None:
        self.listing = 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}

    async def list_models(self, request: web.Request) -> web.StreamResponse:
        status, body = self.listing
        return web.json_response(body, status=status)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


@pytest.fixture
async def server():
    server = Server()
    app = web.Application()
    app.router.add_get("/v1/models", server.list_models)
    app.router.add_route("*", "/{path:.*}", server.answer)
    listening = TestServer(app)
    await listening.start_server()
    server.url = str(listening.make_url("/v1"))
    yield server
    await server.close()
    await listening.close()


HOSTS = (
    "api.anthropic.com",
    "api.deepseek.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
    "models.invalid",
    "openrouter.ai",
)
"""Where keys are sent: the vendors' own hosts, and one that no name server knows."""


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate for localhost and for the hosts below, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("trusted")
    key, certificate = tmp_path_factory.mktemp("tls") / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = "subjectAltName=" + ",".join(f"DNS:{host}" for host in ("localhost", *HOSTS))
    subprocess.run([*command, "-addext", names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    subprocess.run(["openssl", "rehash", folder], check=True, capture_output=True)  # for SSL_CERT_DIR
    return certificate, key
