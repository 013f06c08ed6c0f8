"""Gemini's batches: the requests themselves are posted, and answered within a day at half the price.

Every batch has a `mark` of ours as its name. If the response to `create` is lost, the batch is found by its mark and
not created twice. A request is found by the `key` in its metadata.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from google.genai import types
from google.genai.client import AsyncClient

from parley.agents.models.batches import TIMEOUT_SECONDS, State, Unsent
from parley.agents.models.google_messages import FAILURES, read_answer
from parley.agents.models.remote import RemoteClient
from parley.agents.models.reply import Reply, redact, redact_reply
from parley.agents.models.request import Request
from parley.base.errors import BadRequest, ModelError, ServerFault

STATUSES = {
    "JOB_STATE_SUCCEEDED": "completed",
    "JOB_STATE_PARTIALLY_SUCCEEDED": "completed",
    "JOB_STATE_FAILED": "failed",
    "JOB_STATE_EXPIRED": "expired",
    "JOB_STATE_CANCELLED": "cancelled",
}
PAGE_SIZE = 100
T = TypeVar("T")


class GeminiBatches:
    """Google's batches.

    Args:
        client: its requests, key and number of retries are used.
        open_sdk: the SDK's methods.
        error_for: our error for one of the SDK's; None if it is not one of a request.
    """

    max_bytes = 15 * 10**6
    """Google accepts 20 MB if requests are not in a file."""

    def __init__(
        self,
        client: RemoteClient,
        open_sdk: Callable[[], AsyncClient],
        error_for: Callable[[Exception], ModelError | None],
    ) -> None:
        self._client, self._open, self._error_for = client, open_sdk, error_for
        self._unsent = Unsent(client)

    def line(self, name: str, request: Request) -> bytes:
        made = types.InlinedRequest(**self._client.body(request), metadata={"key": name})
        text: str = made.model_dump_json(exclude_none=True)
        return text.encode("utf-8", "replace") + b"\n"

    async def upload(self, lines: bytes) -> str:
        """Sends nothing before the batch itself."""
        return self._unsent.keep(uuid.uuid4().hex, lines)

    async def create(self, file: str, mark: str) -> State:
        requests = [types.InlinedRequest.model_validate_json(line) for line in self._unsent.take(file)]

        async def send() -> State:
            job = await self._try(
                lambda sdk: sdk.batches.create(
                    model=self._client.model,
                    src=requests,
                    config=types.CreateBatchJobConfig(display_name=mark),
                )
            )
            return _state(job)

        return await self._client.retries.run(send, lambda error: self.find(mark, file))

    async def find(self, mark: str, file: str) -> State | None:
        async def search(sdk: AsyncClient) -> types.BatchJob | None:
            # All of them, since the order is not documented.
            async for job in await sdk.batches.list(config=types.ListBatchJobsConfig(page_size=PAGE_SIZE)):
                if job.display_name == mark:
                    return job
            return None

        job = await self._get(search)
        return _state(job) if job else None

    async def state(self, batch: str) -> State:
        return _state(await self._job(batch))

    async def _job(self, batch: str) -> types.BatchJob:
        return await self._get(lambda sdk: sdk.batches.get(name=batch))

    async def answers(self, state: State) -> dict[str, Any]:
        job = await self._job(state.id)
        answers = (job.dest.inlined_responses if job.dest else None) or []
        return {answer.metadata["key"]: answer for answer in answers if answer.metadata and "key" in answer.metadata}

    def read(self, answer: types.InlinedResponse) -> Reply:
        client = self._client
        if answer.response is not None:
            return redact_reply(read_answer(client.where, answer.response), client._key)
        error = answer.error or types.JobError()
        reason = " ".join(redact(error.message or "no reason given", client._key).split())[:200]
        kind = BadRequest if error.code == 3 else ServerFault  # gRPC's code of an invalid argument
        raise kind(f"{client.name}: not answered in the batch: {reason}")

    async def _get(self, make: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """The response to a request that may safely be repeated."""
        return await self._client.retries.run(lambda: self._try(make))

    async def _try(self, make: Callable[[AsyncClient], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await make(self._open())
        except FAILURES as error:
            unreadable = self._client.unreadable("sent an unreadable answer about a batch")
            raise self._error_for(error) or unreadable from None


def _state(job: types.BatchJob) -> State:
    name = job.state.value if job.state else ""
    status = STATUSES.get(name, name.removeprefix("JOB_STATE_").lower() or "unknown")
    answers = (job.dest.inlined_responses if job.dest else None) or []
    reason = job.error.message if job.error and job.error.message else ""
    if not job.name:
        raise ServerFault("the batch has no name")
    return State(id=job.name, status=status, answered=len(answers), total=len(answers), files=(), error=reason)
