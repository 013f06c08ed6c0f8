"""What the vendors' stand-ins share: a server in a thread, which checks, records and answers requests.

A stand-in answers the same prompt in the same way, whatever its kind. What it thinks is different from what it says,
and looks like an answer: whoever reads the thought gets a wrong score.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

from aiohttp import web
from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage

from parley.agents.models.request import Request
from parley.agents.models.sim import SimClient
from tests.servers import Loopback
from tests.vendors.filling import fill

Script = str | Callable[[web.Request], Awaitable[web.StreamResponse]]
Kind = Literal["plain", "thinking", "cut", "null", "parts", "refused", "filtered"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEY = "sk-a-secret-that-must-not-show"
PROMPT_TOKENS, CACHED_TOKENS, TEXT_TOKENS, THOUGHT_TOKENS = 100, 40, 20, 380
REFUSAL = "I'm sorry, but I can't compare people in this way."


class Rejected(Exception):
    """A request that the vendor does not accept; `message` is in the vendor's own words where they are known."""

    def __init__(self, message: str, status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.param = message, status, param


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request as it arrived."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the model says, before it is put into the vendor's format.

    Args:
        text: the answer; empty if there is none.
        thought: what it thinks before; to be shown only as the vendor shows it.
        ending: `stop`, `cut` (at the limit of tokens), `refused`, or `calls` (of tools).
        pieces: the text in several parts, if the vendor's content is to be a list.
        calls: tools that are called, as name and arguments.
    """

    text: str = ""
    thought: str = ""
    ending: Literal["stop", "cut", "refused", "calls"] = "stop"
    pieces: tuple[str, ...] = ()
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()

    @property
    def completion_tokens(self) -> int:
        """Thinking included."""
        return (TEXT_TOKENS if self.text or self.calls else 0) + self.thought_tokens

    @property
    def thought_tokens(self) -> int:
        return THOUGHT_TOKENS if self.thought else 0


class StrictServer(Loopback, ABC):
    """A vendor's server. A subclass says how to read a request, what to reject, and what replies look like.

    Args:
        kind: how every request is answered: `plain`; `thinking` before the answer; `cut` in the middle of it; `null`,
            everything spent on thinking, and no answer; `parts`, the answer in a list of parts; `refused`; `filtered`,
            the answer, and the vendor says that it is refused.
        model: another model of the vendor than the usual one.
    """

    provider: ClassVar[str]
    """The first part of a model's name."""
    model: ClassVar[str]
    """A current model of the vendor that thinks by default."""
    key_variable: ClassVar[str | None] = None
    """The environment variable of the key, which is `KEY`."""
    path: ClassVar[str] = ""
    """What a base address ends with."""
    tool_options: ClassVar[str] = ""
    """Options of the model's name without which this server gets no request with tools."""
    shows_thoughts: ClassVar[bool] = True
    """Whether the text of the thinking comes back."""
    marks_refusals: ClassVar[bool] = True
    """Whether the vendor says that a reply is a refusal; if not, it is text like any other."""
    efforts: ClassVar[Mapping[str, Any]] = {}
    """What `effort(body)` is for each value of the option `effort` that the client accepts."""
    counts_cached: ClassVar[bool] = True
    """Whether it says how much of a prompt came from its cache."""
    takes_temperature: ClassVar[bool] = False
    """Whether the client sends a temperature to this model as it is by default."""
    unreadable: ClassVar[tuple[str, ...]] = ()
    """Bodies that look like replies but are not."""
    spoilt: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Fields that spoil a reply, which is billed all the same."""
    size_limit: ClassVar[str] = "parley.agents.models.compatible.CompatibleClient.max_bytes"
    """What limits the size of its responses."""

    def __init__(self, kind: Kind = "plain", *, model: str | None = None) -> None:
        self.kind: Kind = kind
        self.served = model or self.model
        self.requests: list[Received] = []
        """Every request for a reply that was accepted."""
        self.rejected: list[str] = []
        """Why others were not."""
        self.asked: list[Received] = []
        """Every request for a reply, whatever became of it."""
        self.script: list[Script] = []
        """What the next requests get, in this order: the text of a reply, or a response."""
        self.breaks_off = False
        """Whether the connection is closed in the middle of a stream."""
        self._writer = SimClient("sim/any", {})
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}{self.path}"

    # What a vendor's module has.

    @abstractmethod
    def check(self, received: Received) -> None:
        """Raise `Rejected` for everything that the vendor rejects."""

    @abstractmethod
    def error(self, rejected: Rejected) -> Any:
        """The body of an error."""

    @abstractmethod
    def turns(self, body: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The prompt as (role, text); roles are system, user, assistant and tool."""

    @abstractmethod
    def schema(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The schema that the reply must fit, if the request has one."""

    @abstractmethod
    def reply(self, answer: Answer, received: Received) -> Any:
        """The body of a reply."""

    @abstractmethod
    def events(self, answer: Answer, received: Received) -> Iterable[tuple[str | None, Any]]:
        """A streamed reply as (event, data); data that are not a text are sent as JSON."""

    @abstractmethod
    def effort(self, body: Mapping[str, Any]) -> Any:
        """What the request says about how much to think; None if nothing."""

    def tool_schemas(self, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        """The tools of a request, as name and schema of the arguments."""
        return []

    def thinks(self, body: Mapping[str, Any]) -> bool:
        """Whether the model thinks before it answers this request."""
        return True

    def wants_stream(self, received: Received) -> bool:
        return bool(received.body.get("stream"))

    def add_routes(self, app: web.Application) -> None:
        """Routes besides those for replies, such as the list of models."""

    def refuse(self, rejected: Rejected) -> web.Response:
        if rejected.status < 500:
            self.rejected.append(rejected.message)
        return web.json_response(self.error(rejected), status=rejected.status)

    # What is the same for all.

    def name(self, options: str = "retries=0") -> str:
        """The model's name with the server's address."""
        given = "&".join(filter(None, [f"base_url={self.url}", "insecure=true", options]))
        return f"{self.provider}/{self.served}?{given}"

    def says(self, *texts: str) -> None:
        """The texts of the next replies."""
        self.script += texts

    def sends(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """The next response: a text, or what is sent as JSON."""
        text = body if isinstance(body, str) else json.dumps(body)
        kind = "application/json" if text.startswith(("{", "[")) else "text/html"

        async def send(request: web.Request) -> web.StreamResponse:
            return web.Response(text=text, status=status, headers={"Content-Type": kind, **(headers or {})})

        self.script.append(send)

    def fails(self, status: int, message: str = "no", headers: Mapping[str, str] | None = None) -> None:
        self.sends(self.error(Rejected(message, status)), status, headers)

    def sends_events(self, *events: Any, closes: bool = False) -> None:
        """The next response as a stream of JSON; events that have a type are named after it."""

        async def send(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            response.enable_chunked_encoding()
            await response.prepare(request)
            for event in events:
                name = f"event: {event['type']}\n" if "type" in event else ""
                await response.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            if closes and request.transport is not None:
                request.transport.close()
            return response

        self.script.append(send)

    def cuts_off(self) -> None:
        """Half a body, then a closed connection."""

        async def send(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Length": "500"})
            await response.prepare(request)
            await response.write(b'{"choices": [{"mess')
            assert request.transport is not None
            request.transport.close()
            return response

        self.script.append(send)

    def keeps_silent(self) -> None:
        async def wait(request: web.Request) -> web.StreamResponse:
            await self._stop.wait()
            return web.Response()

        self.script.append(wait)

    async def answer(self, received: Received) -> Answer:
        """What the model says to this request."""
        body = received.body
        turns = self.turns(body)
        if self.kind == "refused":
            return Answer(text=REFUSAL, ending="refused")
        tools = self.tool_schemas(body)
        seed = int.from_bytes(hashlib.blake2b(repr(turns).encode(), digest_size=4).digest())
        thinks = self.kind in ("thinking", "null", "parts") and self.thinks(body)
        schema = self.schema(body)
        decoy = json.dumps(fill(schema, seed + 1)) if schema else '{"score": 1}'
        thought = f"Perhaps {decoy} or not.\n1. A thought that nobody hears.\nAnswer: 0\nScore: 1" if thinks else ""
        if self.kind == "null":
            return Answer(thought=thought or "…", ending="cut")
        if tools and turns[-1][0] != "tool":
            name, arguments = tools[0]
            return Answer(thought=thought, ending="calls", calls=((name, fill(arguments, seed)),))
        text = json.dumps(fill(schema, seed)) if schema else await self._write(turns, seed)
        if self.kind == "filtered":
            return Answer(text=text, ending="refused")
        if self.kind == "cut":
            return Answer(text=text[: len(text) // 2], ending="cut")
        half = len(text) // 2
        return Answer(text=text, thought=thought, pieces=(text[:half], text[half:]) if self.kind == "parts" else ())

    async def _write(self, turns: Sequence[tuple[str, str]], seed: int) -> str:
        """Text without a schema, by the simulated model, which knows what the studies' prompts ask for."""
        messages: list[LLMMessage] = []
        for role, text in turns:
            if role == "system":
                messages.append(SystemMessage(content=text))
            elif role == "assistant":
                messages.append(AssistantMessage(content=text, source="self"))
            else:
                messages.append(UserMessage(content=text, source="user"))
        return str((await self._writer.send(Request(tuple(messages), options={"seed": seed}))).content)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        received = Received(path=request.path, body=await request.json(), headers=dict(request.headers))
        self.asked.append(received)
        if self.script:
            scripted = self.script.pop(0)
            if not isinstance(scripted, str):
                return await scripted(request)
            return web.json_response(self.reply(Answer(text=scripted), received))
        try:
            self.check(received)
        except Rejected as rejected:
            return self.refuse(rejected)
        self.requests.append(received)
        answer = await self.answer(received)
        if not self.wants_stream(received):
            return web.json_response(self.reply(answer, received))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        events = list(self.events(answer, received))
        for event, data in events[: len(events) * 2 // 3] if self.breaks_off else events:
            text = data if isinstance(data, str) else json.dumps(data)
            await response.write((f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode())
        if self.breaks_off:
            assert request.transport is not None
            request.transport.close()
        return response

    def _add_routes(self, app: web.Application) -> None:
        self.add_routes(app)
        app.router.add_post("/{path:.*}", self._respond)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def names(listed: str) -> frozenset[str]:
    """The names of a list of words."""
    return frozenset(listed.split())


def allow(body: Iterable[str], names: Iterable[str], where: str = "") -> None:
    """Reject a request with a parameter that is not among the names."""
    for name in body:
        if name not in set(names):
            raise Rejected(f"Unknown parameter: '{where}{name}'.", param=f"{where}{name}")


@dataclass(frozen=True)
class SchemaRules:
    """What a vendor's constrained decoding accepts in a schema."""

    keywords: frozenset[str]

    def check(self, node: Mapping[str, Any], where: str = "schema") -> None:
        """Raise `Rejected` at the first thing that is not accepted."""
        for keyword in node:
            if keyword not in self.keywords:
                raise Rejected(f"Invalid schema: In context={where}, '{keyword}' is not permitted.")
        if node.get("type") == "object":
            properties = node.get("properties", {})
            if node.get("additionalProperties") is not False:
                raise Rejected(f"Invalid schema: In context={where}, 'additionalProperties' must be false.")
            if sorted(node.get("required", [])) != sorted(properties):
                raise Rejected(f"Invalid schema: In context={where}, 'required' must list every property.")
            for key, child in properties.items():
                self.check(child, f"{where}.{key}")
        for child in [*node.get("anyOf", []), *filter(None, [node.get("items")])]:
            self.check(child, f"{where}[]")
