"""Servers on loopback: an OpenAI-compatible one, and a model with prepared replies."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import threading
from collections.abc import Callable
from typing import Any

from aiohttp import web

PATIENCE = 300.0
"""Seconds to wait for what takes a few on an idle machine: only a fault takes longer."""


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition; the test fails if it never becomes true."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - another thread or the client may make it true
            await asyncio.sleep(0.001)


def fill(node: dict[str, Any], seed: int, path: str = "") -> Any:
    """A value that fits a schema, always the same for the same seed."""
    byte = hashlib.blake2b(f"{seed}{path}".encode()).digest()[0]
    if "enum" in node:
        return node["enum"][byte % len(node["enum"])]
    if node.get("type") == "object":
        return {key: fill(child, seed, f"{path}.{key}") for key, child in node["properties"].items()}
    return byte % 11 if node.get("type") in ("integer", "number") else f"remark {byte}"


PAIR = re.compile(r"\b(?:Answer|Statement|Text) B\b")
"""In the prompt of a silent ballot that asks for a letter."""


def first_token(probabilities: dict[str, float]) -> list[dict[str, Any]]:
    """The log-probabilities after a silent ballot's prompt, as servers send them; the first token is the reply."""
    tops = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in probabilities.items()]
    return [{**tops[0], "top_logprobs": tops}]


def silent_ballot(body: dict[str, Any]) -> list[dict[str, Any]]:
    """A steady judge's answer, whether it is asked for a number or for a letter."""
    pair = PAIR.search("\n".join(str(message["content"]) for message in body["messages"]))
    return first_token({"A": 0.6, "B": 0.3, "I": 0.05} if pair else {"7": 0.6, "8": 0.2, "I": 0.05})


Answer = Callable[[int, dict[str, Any]], web.StreamResponse | None]


class Loopback:
    """An HTTP server on loopback, in a thread of its own. A subclass adds its routes."""

    def __init__(self) -> None:
        self._loop, self._stop, self._ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        self._add_routes(app)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def _add_routes(self, app: web.Application) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)


class Server(Loopback):
    """An OpenAI-compatible server.

    `asked` has the bodies of all requests; `answer(n, body)` may replace the response to the n-th. `silent` never
    answers; `cuts_short` closes the connection in the middle of a response. From the `holds_from`-th on, requests wait
    until it is None: a test can do something in the middle of a run, however busy the machine is.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Answer = lambda nth, body: None
        self.delay = 0.0
        self.silent = self.cuts_short = False
        self.holds_from: int | None = None
        super().__init__()

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._respond)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        nth = len(self.asked)
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        await asyncio.sleep(3600 if self.silent else self.delay)
        await until(lambda: self.holds_from is None or nth < self.holds_from)
        if self.cuts_short:
            partial = web.StreamResponse(headers={"Content-Length": "500"})
            await partial.prepare(request)
            await partial.write(b'{"choices": [{"message": {"con')
            assert request.transport is not None
            request.transport.abort()
            return partial
        response = self.answer(nth, body)
        return self.completion(body) if response is None else response

    def completion(self, body: dict[str, Any]) -> web.Response:
        """The usual response to a request."""
        return self.reply(self.fitting(body), silent_ballot(body) if body.get("logprobs") else None)

    @staticmethod
    def fitting(body: dict[str, Any]) -> str:
        """A reply that fits the requested schema; to a silent ballot, a number of the scale."""
        if "response_format" not in body:
            return "7"
        schema = body["response_format"]["json_schema"]["schema"]
        return json.dumps(fill(schema, body["seed"]))

    @staticmethod
    def reply(text: str, logprobs: list[dict[str, Any]] | None = None) -> web.Response:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": logprobs}}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def model(self, options: str = "retries=0", provider: str = "server", name: str = "judge") -> str:
        return f"{provider}/{name}?base_url={self.url}&{options}"


class Author:
    """A model on the server with prepared replies.

    In a conversation about `topic`, the n-th request gets the n-th reply, and further requests the last one. Replies
    depend only on the conversation, never on the order of requests.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._replies: dict[str, tuple[str, ...]] = {}
        server.answer = self._answer

    @property
    def model(self) -> str:
        return self._server.model(name="author")

    def writes(self, topic: str, *replies: dict[str, str] | str) -> None:
        self._replies[topic] = tuple(reply if isinstance(reply, str) else json.dumps(reply) for reply in replies)

    @property
    def asked(self) -> list[list[dict[str, str]]]:
        """The conversations it was sent, in the order of the requests."""
        return [body["messages"] for body in self._server.asked if body["model"] == "author"]

    def told(self, topic: str) -> list[str]:
        """The last message before each of its replies about a topic."""
        return [messages[-1]["content"] for messages in self.asked if topic in messages[1]["content"]]

    def _answer(self, nth: int, body: dict[str, Any]) -> web.Response | None:
        if body["model"] != "author":
            return None
        messages = body["messages"]
        replies = next(replies for topic, replies in self._replies.items() if topic in messages[1]["content"])
        attempts = sum(message["role"] == "assistant" for message in messages)
        return self._server.reply(replies[min(attempts, len(replies) - 1)])
