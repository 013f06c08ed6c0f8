"""OpenAI's batch interface: a file of requests, answered within a day at half the price.

    batches = Batches(client)
    file = await batches.upload(lines)
    state = await batches.create(file, mark)

A `mark` of ours goes with every batch, so that one whose making was not heard of can be found again, and none is made
twice. Answers come back one line a request, in any order; a line may be an error of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import aiohttp

from parley.agents.errors import BadRequest, ModelError, ServerFault
from parley.agents.models.base import Request
from parley.agents.models.body import read_body
from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.reply import Reply, hide_bytes
from parley.agents.models.wire import from_completion, server_words

MOST_REQUESTS = 50_000
MOST_BYTES = 190 * 10**6
"""OpenAI takes 200 MB; a file must stay below."""
MOST_ANSWERED = 2**30
"""Bytes of a batch's answers."""
PRICE = 0.5
"""Of what the same call costs at once."""
ENDED = ("completed", "failed", "expired", "cancelled")
FIND_PAGES = 20
T = TypeVar("T")


class State(NamedTuple):
    """How far a batch is."""

    id: str
    status: str
    answered: int
    total: int
    files: tuple[str, ...]
    """Where its answers and its errors are."""
    complaint: str

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> State:
        counts = data.get("request_counts") or {}
        errors = (data.get("errors") or {}).get("data") or []
        return cls(
            str(data["id"]),
            str(data["status"]),
            int(counts.get("completed") or 0) + int(counts.get("failed") or 0),
            int(counts.get("total") or 0),
            tuple(name for key in ("output_file_id", "error_file_id") if (name := data.get(key))),
            " ".join(str(error.get("message")) for error in errors)[:200],
        )


def line_for(client: CompatibleClient, name: str, request: Request) -> bytes:
    """One request as a line of the file."""
    body = {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": client.body(request)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


class Page(NamedTuple):
    """A look at a part of the list of batches: the one that was looked for, or after which one to look on."""

    found: State | None
    after: str

    @classmethod
    def read(cls, said: Mapping[str, Any], mark: str) -> Page:
        listed = said["data"]
        found = next((one for one in listed if (one.get("metadata") or {}).get("parley") == mark), None)
        return cls(
            State.read(found) if found else None, str(listed[-1]["id"]) if listed and said.get("has_more") else ""
        )


def read_line(client: CompatibleClient, line: Mapping[str, Any]) -> Reply:
    """The reply that a line of the answer holds, or its error as a `ModelError`."""
    try:
        response = line.get("response") or {}
        status, body = int(response.get("status_code") or 0), response.get("body") or {}
        if status == 200:
            return from_completion(body)
        complaint = str((line.get("error") or {}).get("message") or status or "no reason given")[:200]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise ServerFault(f"{client.name}: a line of the batch is no reply") from None
    said = server_words(json.dumps(body).encode(), "") if body else ""
    if 400 <= status < 500 and status not in (408, 429):
        raise BadRequest(f"{client.name}: the batch answered {status}{said}")
    raise ServerFault(f"{client.name}: not answered in the batch: {complaint}{said}")


class Batches:
    """The interface at one client's server, with that client's key."""

    def __init__(self, client: CompatibleClient) -> None:
        self._client = client

    async def upload(self, lines: bytes) -> str:
        def form() -> aiohttp.FormData:
            made = aiohttp.FormData({"purpose": "batch"})
            made.add_field("file", lines, filename="parley.jsonl", content_type="application/jsonl")
            return made

        return await self._ask("POST", "/files", self._json(lambda said: str(said["id"])), form=form)

    async def create(self, file: str, mark: str) -> State:
        """Made once: if the server's answer was lost, the batch is looked for before it is made again."""
        body = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"parley": mark},
        }
        for tried in range(self._client.options.retries + 1):
            try:
                return await self._ask("POST", "/batches", self._json(State.read), body=body, once=True)
            except ModelError as error:
                if not error.retryable or tried == self._client.options.retries:
                    raise
                await asyncio.sleep(self._client._pause(tried + 1, error.retry_after))
                if found := await self.find(mark):
                    return found
        raise AssertionError("the last try returns or raises")

    async def find(self, mark: str) -> State | None:
        """The batch with this mark, if one was made: among the newest first."""
        after = ""
        for _ in range(FIND_PAGES):
            page = await self._ask("GET", f"/batches?limit=100{after}", self._json(lambda said: Page.read(said, mark)))
            if page.found or not page.after:
                return page.found
            after = f"&after={page.after}"
        return None

    async def state(self, batch: str) -> State:
        return await self._ask("GET", f"/batches/{batch}", self._json(State.read))

    async def lines(self, file: str) -> list[dict[str, Any]]:
        """Lines that can be read; one that cannot counts as not answered."""
        found = []
        for raw in (await self._ask("GET", f"/files/{file}/content", bytes)).splitlines():
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and "custom_id" in line:
                found.append(line)
        return found

    async def _ask(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], T],
        *,
        body: Any = None,
        form: Callable[[], aiohttp.FormData] | None = None,
        once: bool = False,
    ) -> T:
        """What `read` makes of the answer; asked again where that may help."""
        client, tried = self._client, 0
        while True:
            tried += 1
            try:
                return read(await self._send(method, path, body, form() if form else None))
            except ModelError as error:
                if once or not error.retryable or tried > client.options.retries:
                    raise
                await asyncio.sleep(client._pause(tried, error.retry_after))

    def _json(self, read: Callable[[Any], T]) -> Callable[[bytes], T]:
        def understand(raw: bytes) -> T:
            try:
                return read(json.loads(raw))
            except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
                where = f"{self._client.name}: {self._client.base_url}"
                raise ServerFault(
                    f"{where} answered what is no batch: {raw[:60].decode('utf-8', 'replace')!r}"
                ) from None

        return understand

    async def _send(self, method: str, path: str, body: Any, form: aiohttp.FormData | None) -> bytes:
        client = self._client
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600), headers=client.bearer()) as session,
                session.request(
                    method, client.base_url + path, json=body, data=form, allow_redirects=False
                ) as response,
            ):
                raw = await read_body(response, MOST_ANSWERED)
                if response.status != 200:
                    raise client.error_for(response.status, response.headers, raw)
                return hide_bytes(raw, client._key)
        except TimeoutError:
            raise ServerFault(f"{client.name}: {client.base_url}: no answer within 600 s") from None
        except aiohttp.ClientError as error:
            raise ServerFault(f"{client.name}: {client.base_url}: {' '.join(str(error).split())[:200]}") from None
