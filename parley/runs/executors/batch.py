"""`--executor batch`: requests are collected and sent as the provider's batches, at half the price, within a day.

Units run in this process as usual, all of them concurrently, and each of their requests waits here for its reply. When
no request has been added for half a second, the collected ones are sent as a batch. So units of one call take one
batch, and units of several calls one batch per call. After a kill, the same command runs the units again, and finds
their requests in the batches that the run file lists.

`BatchLog` writes which request is in which batch before the batch is created, so that none is sent twice.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from parley.agents import Budget, Client
from parley.agents.models import Reply, Request
from parley.agents.models.batches import Batched, BatchEndpoint, Batches, State
from parley.agents.models.compatible import CompatibleClient
from parley.agents.models.request import BATCH_REQUESTS, estimate_tokens
from parley.base.errors import BadRequest, BudgetSpent, ConfigError, ModelError, ServerFault
from parley.judging import Unit
from parley.runs.executor import InProcess, RunControl
from parley.runs.opening import RunFileError, reason
from parley.runs.schema import BATCH_TABLES
from parley.runs.store import RunFile

COLLECT_SECONDS = 0.5
"""A batch is sent this long after its last request was added."""
FIRST_POLL_SECONDS, LAST_POLL_SECONDS = 0.5, 30.0
"""Time between two polls of a batch: short at first, for small batches, then longer."""
REPLY_TOKENS = 1000
"""Expected length of a reply without a `max_tokens`, for the budget."""


def price_as_batches(clients: Sequence[Client]) -> None:
    """Set the clients' prices to those of batches; raises `ConfigError` if a model has no batch endpoint."""
    for client in clients:
        if endpoint_of(client) is None:
            raise ConfigError(f"--executor batch needs a provider with batches, but {client.name} has none")
        client.price = client.price_for(client.name, client.options.model_dump(exclude_unset=True)).in_batches()


def endpoint_of(client: Client) -> BatchEndpoint | None:
    """The batches of a client's provider; None if it has none."""
    if isinstance(client, CompatibleClient):
        return Batches(client) if client.batches else None
    return client.batch_endpoint() if isinstance(client, Batched) else None


class QueuedRequest(NamedTuple):
    id: str
    """The `custom_id` of the request, by which its reply is found."""
    line: bytes
    """The request as a line of the batch's file."""
    reply: asyncio.Future[Reply]


@dataclass(slots=True)
class RequestQueue:
    """Requests to one model that are not sent yet."""

    requests: list[QueuedRequest] = field(default_factory=list)
    size: int = 0
    """Bytes of their lines."""
    timer: asyncio.TimerHandle | None = None


class BatchExecutor(InProcess):
    """Runs units in this process, and sends their requests as batches.

    Args:
        file: The run file, which lists the batches that were sent.
    """

    on_interrupt = "sent batches continue at the provider; the same command fetches them"

    def __init__(self, file: RunFile) -> None:
        super().__init__(post=self._post)
        self._log = BatchLog(file)
        self._queues: dict[Client, RequestQueue] = {}
        self._endpoints: dict[Client, BatchEndpoint] = {}
        self._fetched: dict[str, asyncio.Task[dict[str, Any]]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._reserved_tokens, self._reserved_cost = 0.0, 0.0

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        """Run the units; on Ctrl-C do not wait for batches, which may take a day and can be fetched later."""
        self._control = control
        running = asyncio.ensure_future(super().run_units(units, control))
        stopping = asyncio.ensure_future(control.stopping.wait())
        try:
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not running.done() and not control.interrupted:
                await asyncio.wait((running,))
            if running.done():
                running.result()
        finally:
            rest = [running, stopping, *self._sending, *self._fetched.values()]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

    def _endpoint(self, client: Client) -> BatchEndpoint:
        if client not in self._endpoints:
            endpoint = endpoint_of(client)
            assert endpoint is not None, "price_as_batches has refused it"
            self._endpoints[client] = endpoint
        return self._endpoints[client]

    async def _post(self, client: Client, address: bytes, request: Request) -> Reply:
        # The key in the reply cache (content, unit, occurrence), which is the same after a restart: resuming needs to
        # know only which key went into which batch.
        request_id = address.hex()
        if (batch := self._log.find(request_id)) is not None:
            lines: dict[str, Any] = {}
            with suppress(BadRequest):  # the batch was refused, or has been deleted
                lines = await self._results(client, batch)
            with suppress(ModelError, KeyError):  # a request without a reply in it is sent again
                return self._endpoint(client).read(lines[request_id])
        tokens, cost = self._expected_spending(client, request, self._control.budget)
        self._reserved_tokens += tokens
        self._reserved_cost += cost
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            line = self._endpoint(client).line(request_id, request)
            return await self._enqueue(client, QueuedRequest(request_id, line, reply))
        finally:
            self._reserved_tokens -= tokens
            self._reserved_cost -= cost

    def _expected_spending(self, client: Client, request: Request, budget: Budget) -> tuple[float, float]:
        """Tokens and cost of a request; `BudgetSpent` if they may not fit, since a batch cannot be stopped halfway."""
        prompt = sum(estimate_tokens(piece.text) for piece in request.prompt())
        reply = int(request.options.get("max_tokens") or REPLY_TOKENS)
        tokens, cost = prompt + reply, client.price.cost(prompt, reply) or 0.0
        if budget.max_tokens is not None and budget.tokens + self._reserved_tokens + tokens > budget.max_tokens:
            raise BudgetSpent(f"the budget of {budget.max_tokens} tokens has no room for another request")
        if budget.max_cost is not None and budget.cost + self._reserved_cost + cost > budget.max_cost:
            raise BudgetSpent(f"the budget of ${budget.max_cost:g} has no room for another request")
        return tokens, cost

    async def _enqueue(self, client: Client, request: QueuedRequest) -> Reply:
        queue = self._queues.setdefault(client, RequestQueue())
        if len(queue.requests) == BATCH_REQUESTS or queue.size + len(request.line) > self._endpoint(client).max_bytes:
            self._send_queue(client)
            queue = self._queues.setdefault(client, RequestQueue())
        queue.requests.append(request)
        queue.size += len(request.line)
        if queue.timer is not None:
            queue.timer.cancel()
        queue.timer = asyncio.get_running_loop().call_later(COLLECT_SECONDS, self._send_queue, client)
        return await request.reply

    def _send_queue(self, client: Client) -> None:
        queue = self._queues.pop(client)
        if queue.timer is not None:
            queue.timer.cancel()
        requests = [request for request in queue.requests if not request.reply.done()]
        if requests:
            task = asyncio.ensure_future(self._send(client, requests))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, client: Client, requests: list[QueuedRequest]) -> None:
        """Send a batch and deliver its replies; if that fails, every request gets the error."""
        try:
            mark = uuid.uuid4().hex
            file = await self._endpoint(client).upload(b"".join(request.line for request in requests))
            self._log.add(mark, client.name, file, [request.id for request in requests])
            lines = await self._results(client, SentBatch(mark, file, None), new=True)
        except Exception as error:
            for request in requests:
                if not request.reply.done():
                    request.reply.set_exception(error)
            return
        for request in requests:
            if request.reply.done():
                continue
            try:
                request.reply.set_result(self._endpoint(client).read(lines[request.id]))
            except KeyError:
                request.reply.set_exception(ServerFault(f"{client.name}: not answered in the batch"))
            except ModelError as error:
                request.reply.set_exception(error)

    async def _results(self, client: Client, batch: SentBatch, *, new: bool = False) -> dict[str, Any]:
        """A batch's lines by request, once it has ended; fetched once for all of its requests."""
        if batch.mark not in self._fetched:
            self._fetched[batch.mark] = asyncio.ensure_future(self._fetch(client, batch, new=new))
        return await asyncio.shield(self._fetched[batch.mark])

    async def _fetch(self, client: Client, batch: SentBatch, *, new: bool) -> dict[str, Any]:
        batches = self._endpoint(client)
        if batch.batch is not None:
            state = await batches.state(batch.batch)
        else:
            existing = None if new else await batches.find(batch.mark, batch.file)
            state = existing or await batches.create(batch.file, batch.mark)
            self._log.confirm(batch.mark, state.id)
            self._control.note("batch", f"{state.id}: sent")
        state = await self._wait(batches, state)
        self._control.note("batch", f"{state.id}: {state.status}, {state.answered} of {state.total} answered")
        if state.status == "failed":
            raise BadRequest(f"{client.name}: the batch {state.id} was refused: {state.error or 'no reason given'}")
        return await batches.answers(state)

    async def _wait(self, batches: BatchEndpoint, state: State) -> State:
        pause = FIRST_POLL_SECONDS
        while not state.ended:
            self._control.progress.waiting = f"{state.id} {state.status}, {state.answered} of {state.total}"
            await asyncio.sleep(pause)
            pause = min(LAST_POLL_SECONDS, pause * 1.5)
            state = await batches.state(state.id)
        self._control.progress.waiting = ""
        return state


class SentBatch(NamedTuple):
    mark: str
    """Our id of the batch, stored in its metadata at the provider, to find it there."""
    file: str
    """The provider's id of the uploaded requests."""
    batch: str | None
    """The provider's id of the batch; None if the process died before the provider confirmed it."""


class BatchLog:
    """The batches of a run, in two tables of its run file that only `--executor batch` creates."""

    def __init__(self, file: RunFile) -> None:
        self._file = file
        self._write([(table, ()) for table in BATCH_TABLES])

    def add(self, mark: str, model: str, file: str, requests: Iterable[str]) -> None:
        """Record a batch that is about to be created; its requests no longer belong to an earlier batch."""
        self._write(
            [
                ("INSERT INTO batches VALUES (?, ?, ?, NULL, ?)", (mark, model, file, time.time())),
                *(("INSERT OR REPLACE INTO batched VALUES (?, ?)", (request, mark)) for request in requests),
            ]
        )

    def confirm(self, mark: str, batch: str) -> None:
        """Record the id that the provider gave the batch."""
        self._write([("UPDATE batches SET batch = ? WHERE mark = ?", (batch, mark))])

    def find(self, request: str) -> SentBatch | None:
        """The last batch that contained the request."""
        rows = self._file.rows(
            "SELECT b.mark, b.file, b.batch FROM batched r JOIN batches b ON b.mark = r.mark WHERE r.request = ?",
            (request,),
        )[1]
        return SentBatch(*rows[0]) if rows else None

    def _write(self, statements: list[tuple[str, tuple[object, ...]]]) -> None:
        try:
            with self._file.db as db:
                db.execute("BEGIN IMMEDIATE")
                for sql, values in statements:
                    db.execute(sql, values)
        except sqlite3.Error as error:
            raise RunFileError(f"{self._file.path} cannot be written: {reason(error)}") from None
