"""Anthropic's Message Batches: the requests themselves are posted, and answered within a day at half the price.

A batch carries no mark of ours, and its requests cannot be read back. So the ids of its requests begin with the mark,
and an unconfirmed batch is recognised by its answers: Parley reads every newer batch with as many requests. Only
batches that have ended can be read, so the search may take as long as the batch.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2
from anthropic import APIError
from anthropic.resources.messages import AsyncBatches

from parley.agents.models.anthropic_messages import SAMPLING, SAMPLING_VERSION, billed_message, read_message
from parley.agents.models.batches import MAX_BYTES, TIMEOUT_SECONDS, State, Unsent, all_answers, as_line
from parley.agents.models.http import TooLong, server_message
from parley.agents.models.remote import RemoteClient
from parley.agents.models.reply import Reply, redact_reply
from parley.agents.models.request import Request
from parley.base.errors import BadRequest, ModelError, RateLimited, ServerFault

MARK_LENGTH = 22
"""Characters of the mark in the ids of requests, which may have 64: the rest is the request's own name."""
CLOCK_SECONDS = 600
"""How far the vendor's clock may be behind ours when it dates a batch."""
POLL_SECONDS = 30.0
T = TypeVar("T")


class MessageBatches:
    """Anthropic's batches.

    Args:
        client: its requests, key and number of retries are used.
        batches: the SDK's methods for batches.
        error_for: our error for one of the SDK's; None if it is not one of a request.
    """

    max_bytes = MAX_BYTES

    def __init__(
        self, client: RemoteClient, batches: AsyncBatches, error_for: Callable[[Exception], ModelError | None]
    ) -> None:
        self._client, self._batches, self._error_for = client, batches, error_for
        self._unsent = Unsent(client)

    def line(self, name: str, request: Request) -> bytes:
        body = self._client.body(request)
        body.pop("extra_headers", None)
        params = {**body, **body.pop("extra_body", {})}
        params.pop("extra_body", None)
        return as_line({"custom_id": name, "params": params})

    async def upload(self, lines: bytes) -> str:
        """Sends nothing before the batch itself; the record says when it was made and how many requests it has."""
        return self._unsent.keep(f"{int(time.time())}-{len(lines.splitlines())}-{uuid.uuid4().hex[:8]}", lines)

    async def create(self, file: str, mark: str) -> State:
        requests = [json.loads(line) for line in self._unsent.take(file)]
        for request in requests:
            request["custom_id"] = f"{mark[:MARK_LENGTH]}-{request['custom_id']}"
        headers = SAMPLING_VERSION if any(request["params"].keys() & SAMPLING for request in requests) else None

        async def send() -> State:
            return _state(
                await self._try(
                    lambda: self._batches.create(requests=requests, extra_headers=headers, timeout=TIMEOUT_SECONDS)
                )
            )

        async def search(error: ModelError) -> State | None:
            return None if isinstance(error, RateLimited) else await self.find(mark, file)

        return await self._client.retries.run(send, search)

    async def find(self, mark: str, file: str) -> State | None:
        since, count = (int(part) for part in file.split("-")[:2])
        for batch in await self._get(lambda: self._recent(since - CLOCK_SECONDS)):
            state = _state(batch)
            if state.total != count:
                continue
            while not state.ended:
                await asyncio.sleep(POLL_SECONDS)
                state = await self.state(state.id)
            first = await self._get(lambda found=state.id: self._results(found, most=1))  # type: ignore[misc]
            if any(name.startswith(f"{mark[:MARK_LENGTH]}-") for name in first):
                return state
        return None

    async def _recent(self, since: float) -> list[Any]:
        """The batches that were created since then, the newest first."""
        found = []
        async for batch in self._batches.list(limit=100):
            if batch.created_at.timestamp() < since:
                break
            found.append(batch)
        return found

    async def state(self, batch: str) -> State:
        return _state(await self._get(lambda: self._batches.retrieve(batch)))

    async def answers(self, state: State) -> dict[str, Any]:
        found = await all_answers(self._client, state, lambda: self._get(lambda: self._results(state.id)))
        return {name.partition("-")[2]: result for name, result in found.items()}

    async def _results(self, batch: str, most: int | None = None) -> dict[str, Any]:
        """Results by the ids of their requests."""
        found: dict[str, Any] = {}
        stream = await self._batches.results(batch, timeout=TIMEOUT_SECONDS)
        async for entry in stream:
            found[entry.custom_id] = entry.result
            if most is not None and len(found) >= most:
                await stream.close()
                break
        return found

    def read(self, answer: Any) -> Reply:
        client, message = self._client, None
        try:
            if answer.type == "succeeded":
                message = answer.message
                return redact_reply(read_message(message), client._key)
            if answer.type != "errored":
                raise ServerFault(f"{client.name}: not answered in the batch: {answer.type}")
            error = answer.error.error
            detail = server_message(json.dumps({"message": error.message}).encode(), client._key)
            kind = BadRequest if error.type == "invalid_request_error" else ServerFault
        except (AttributeError, TypeError, ValueError):
            billed = billed_message(message)
            raise ServerFault(f"{client.name}: an answer of the batch cannot be read", billed=billed) from None
        raise kind(f"{client.name}: not answered in the batch{detail}")

    async def _get(self, make: Callable[[], Awaitable[T]]) -> T:
        """The response to a request that may safely be repeated."""
        return await self._client.retries.run(lambda: self._try(make))

    async def _try(self, make: Callable[[], Awaitable[T]]) -> T:
        try:
            return await make()
        except (APIError, httpx2.HTTPError, TooLong, TimeoutError, ValueError, TypeError, AttributeError) as error:
            raise self._error_for(error) or self._client.unreadable("sent an unreadable answer") from None


def _state(batch: Any) -> State:
    counts = batch.request_counts
    done = counts.succeeded + counts.errored + counts.canceled + counts.expired
    status = "completed" if batch.processing_status == "ended" else str(batch.processing_status)
    return State(id=batch.id, status=status, answered=done, total=done + counts.processing, files=(batch.id,), error="")
