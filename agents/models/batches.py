"""Providers' batches, answered within a day at half the price; and OpenAI's batch endpoint, which takes a file.

    batches = Batches(client)
    file = await batches.upload(lines)
    state = await batches.create(file, mark)

Every batch carries a `mark` of ours in its metadata. If the response to `create` is lost, the batch is found by its
mark and not created twice. Answers come back one line per request, in any order; a line may be an error.
`anthropic_batches` and `google_batches` have the others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import aiohttp

from parley.agents.models.base import Client
from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.http import open_session, read_body, server_message
from parley.agents.models.reply import Reply, redact_bytes
from parley.agents.models.request import Request
from parley.agents.models.retries import backoff
from parley.agents.models.wire import billed_reply, from_completion
from parley.base.errors import BadRequest, ServerFault

MAX_BYTES = 190 * 10**6
"""Size limit of a batch's file: OpenAI accepts 200 MB."""
MAX_ANSWER_BYTES = 2**30
"""Size limit of the file of answers."""
FINAL_STATUSES = ("completed", "failed", "expired", "cancelled")
MAX_PAGES = 20
"""How many pages of the list of batches `find` reads."""
MAX_READS = 3
"""How often files of answers that are not complete are read again."""
TIMEOUT_SECONDS = 600
T = TypeVar("T")


class State(NamedTuple):
    """The state of a batch."""

    id: str
    status: str
    """OpenAI's word: `validating`, `in_progress`, `completed`, …"""
    answered: int
    """Requests that have a reply or an error."""
    total: int
    """All requests of the batch."""
    files: tuple[str, ...]
    """The ids of the files with its replies and its errors."""
    error: str
    """Why the batch failed, if it did."""

    @property
    def ended(self) -> bool:
        return self.status in FINAL_STATUSES

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> State:
        counts = data.get("request_counts") or {}
        errors = (data.get("errors") or {}).get("data") or []
        return cls(
            id=str(data["id"]),
            status=str(data["status"]),
            answered=int(counts.get("completed") or 0) + int(counts.get("failed") or 0),
            total=int(counts.get("total") or 0),
            files=tuple(name for key in ("output_file_id", "error_file_id") if (name := data.get(key))),
            error=" ".join(str(error.get("message")) for error in errors)[:200],
        )


class BatchEndpoint(Protocol):
    """A provider's batches. It is made once per client and run, so that it can keep what is not sent yet."""

    max_bytes: int
    """Size limit of the requests of one batch, as lines."""

    def line(self, name: str, request: Request) -> bytes:
        """A request as one line; its reply is found by the name."""

    async def upload(self, lines: bytes) -> str:
        """Upload a batch's requests; returns what is recorded before the batch is created."""

    async def create(self, file: str, mark: str) -> State:
        """Start a batch, never twice, even if the server's response is lost. `BadRequest` if the file is gone."""

    async def find(self, mark: str, file: str) -> State | None:
        """The batch that was created with this mark, if there is one."""

    async def state(self, batch: str) -> State:
        """The state of the batch with this id."""

    async def answers(self, state: State) -> dict[str, Any]:
        """The answers of a batch that has ended, by the names of their requests."""

    def read(self, answer: Any) -> Reply:
        """The reply in an answer; raises its error as a `ModelError`."""


@runtime_checkable
class Batched(Protocol):
    """A client that has batches of its own."""

    def batch_endpoint(self) -> BatchEndpoint:
        """The provider's batches."""


def as_line(request: Mapping[str, Any]) -> bytes:
    """A request as one line of JSON."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


class Unsent:
    """The requests of batches that are posted with the batch itself, until then.

    Args:
        client: whose requests they are.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lines: dict[str, bytes] = {}

    def keep(self, file: str, lines: bytes) -> str:
        """Keep the requests under a name, which is returned."""
        self._lines[file] = lines
        return file

    def take(self, file: str) -> list[bytes]:
        """The requests, once, line by line; `BadRequest` if they were another process's."""
        if file not in self._lines:
            raise BadRequest(f"{self._client.name}: the batch was not sent before the run ended")
        return self._lines.pop(file).splitlines()


async def all_answers(client: Client, state: State, read: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """The answers of a batch that has ended.

    Fewer than the batch says it has are read again: a request without an answer is sent again, and paid for twice.
    """
    for attempt in range(1, client.retries.limit + 2):
        answers = await read()
        if len(answers) >= state.answered or attempt > MAX_READS:
            break
        await asyncio.sleep(backoff(attempt, None))
    return answers


class Batches:
    """The batch endpoint of a client's server.

    Args:
        client: its address, key and number of retries are used.
    """

    max_bytes = MAX_BYTES

    def __init__(self, client: CompatibleClient) -> None:
        self._client = client

    def line(self, name: str, request: Request) -> bytes:
        client = self._client
        if client.path(request) != "/chat/completions":
            raise BadRequest(f"{client.name}: a request with tools cannot be sent in a batch")
        body = client.body(request)
        return as_line({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})

    def read(self, answer: Any) -> Reply:
        name, billed = self._client.name, None
        try:
            response = answer.get("response") or {}
            status, body = int(response.get("status_code") or 0), response.get("body") or {}
            if status == 200:
                billed = billed_reply(body)
                return from_completion(body)
            reason = str((answer.get("error") or {}).get("message") or status or "no reason given")[:200]
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise ServerFault(f"{name}: an answer of the batch cannot be read", billed=billed) from None
        message = server_message(json.dumps(body).encode(), "") if body else ""
        if 400 <= status < 500 and status not in (408, 429):
            raise BadRequest(f"{name}: the batch answered {status}{message}")
        raise ServerFault(f"{name}: not answered in the batch: {reason}{message}")

    async def upload(self, lines: bytes) -> str:
        """Upload a batch's file; returns the file's id."""

        def form() -> aiohttp.FormData:
            data = aiohttp.FormData({"purpose": "batch"})
            data.add_field("file", lines, filename="parley.jsonl", content_type="application/jsonl")
            return data

        return await self._request("POST", "/files", self._json(lambda data: str(data["id"])), form=form)

    async def create(self, file: str, mark: str) -> State:
        """Start a batch. If the server's response is lost, the batch is searched for before it is created again."""
        body = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"parley": mark},
        }

        async def send() -> State:
            return self._json(State.read)(await self._send("POST", "/batches", body=body))

        return await self._client.retries.run(send, lambda error: self.find(mark, file))

    async def find(self, mark: str, file: str) -> State | None:
        """The batch with this mark, if there is one; the newest batches are searched first."""

        def read(data: Mapping[str, Any]) -> tuple[State | None, str]:
            """The batch, if it is on this page, and where the next page starts."""
            batches = data["data"]
            match = next((batch for batch in batches if (batch.get("metadata") or {}).get("parley") == mark), None)
            after = f"&after={batches[-1]['id']}" if batches and data.get("has_more") else ""
            return State.read(match) if match else None, after

        after = ""
        for _ in range(MAX_PAGES):
            match, after = await self._request("GET", f"/batches?limit=100{after}", self._json(read))
            if match or not after:
                return match
        return None

    async def state(self, batch: str) -> State:
        """The state of the batch with this id."""
        return await self._request("GET", f"/batches/{batch}", self._json(State.read))

    async def answers(self, state: State) -> dict[str, Any]:
        """The lines of all files of answers, by the names of their requests."""

        async def read() -> dict[str, Any]:
            return {line["custom_id"]: line for file in state.files for line in await self.lines(file)}

        return await all_answers(self._client, state, read)

    async def lines(self, file: str) -> list[dict[str, Any]]:
        """The lines of a file of answers. An unreadable line is skipped: its request counts as not answered."""
        lines = []
        for raw in (await self._request("GET", f"/files/{file}/content", bytes)).splitlines():
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and "custom_id" in line:
                lines.append(line)
        return lines

    async def _request(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], T],
        *,
        form: Callable[[], aiohttp.FormData] | None = None,
    ) -> T:
        """The response's body, parsed by `read`; temporary failures are retried."""

        async def send() -> T:
            return read(await self._send(method, path, form=form() if form else None))

        return await self._client.retries.run(send)

    def _json(self, read: Callable[[Any], T]) -> Callable[[bytes], T]:
        """`read` for a body of JSON; anything unexpected becomes a `ServerFault`."""

        def parse(raw: bytes) -> T:
            try:
                return read(json.loads(raw))
            except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
                start = raw[:60].decode("utf-8", "replace")
                raise self._client.unreadable(f"sent an unreadable answer about a batch: {start!r}") from None

        return parse

    async def _send(self, method: str, path: str, *, body: Any = None, form: aiohttp.FormData | None = None) -> bytes:
        client = self._client
        try:
            async with (
                open_session(client.base_url, TIMEOUT_SECONDS) as session,
                session.request(
                    method,
                    client.base_url + path,
                    headers=client.bearer(),
                    json=body,
                    data=form,
                    allow_redirects=False,
                ) as response,
            ):
                raw = await read_body(response, MAX_ANSWER_BYTES)
                if response.status != 200:
                    raise client.error_for(response.status, response.headers, raw)
                return redact_bytes(raw, client._key)
        except (aiohttp.ClientError, OSError) as error:
            raise client.transport_error(error, TIMEOUT_SECONDS) from None
