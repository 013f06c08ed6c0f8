"""`--executor batch`: requests are collected and sent as OpenAI batches, at half the price, answered within a day.

Units are held as ever, all at once; each of their requests waits here for its answer. When no further request has come
for a moment, what has gathered becomes a batch. So units of one call take one batch, and others one batch a wave. After
a kill, the same command holds the units again, and finds their requests in the batches that the run file names.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from parley.agents import Budget, BudgetSpent, Client, ConfigError, ServerFault
from parley.agents.errors import BadRequest, ModelError
from parley.agents.models import Reply, Request
from parley.agents.models.base import estimate_tokens
from parley.agents.models.batches import MAX_BYTES, MAX_REQUESTS, PRICE, Batches, State, line_for, read_line
from parley.agents.models.compatible import CompatibleClient
from parley.judging import Unit
from parley.runs import InProcess, RunControl, RunFile
from parley.runs.batches import BatchBook, Sent

GATHER_SECONDS = 0.5
"""So long after the last request a batch is sent."""
FIRST_POLL, LAST_POLL = 0.5, 30.0
"""Seconds between two looks at a batch: few at first, for the small ones, then more."""
REPLY_TOKENS = 1000
"""What a reply is reckoned with that has no limit of its own."""


def price_as_batches(clients: Sequence[Client]) -> None:
    """Half the price from here on; a model whose server has no batches is refused."""
    for client in clients:
        if not (isinstance(client, CompatibleClient) and client.batches):
            raise ConfigError(f"--executor batch needs OpenAI's batch interface, and {client.name} has none")
        client.price = client.price_for(client.name, client.options.model_dump(exclude_unset=True)).in_batches(PRICE)


class Letter(NamedTuple):
    name: str
    line: bytes
    answer: asyncio.Future[Reply]


@dataclass(slots=True)
class Pile:
    """What has gathered for one model."""

    letters: list[Letter] = field(default_factory=list)
    size: int = 0
    due: asyncio.TimerHandle | None = None


class BatchExecutor(InProcess):
    on_interrupt = "batches that were sent go on at the provider; the same command fetches them"

    def __init__(self, file: RunFile) -> None:
        super().__init__(post=self._post)
        self._book = BatchBook(file)
        self._piles: dict[CompatibleClient, Pile] = {}
        self._fetched: dict[str, asyncio.Task[dict[str, Any]]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._reserved_tokens, self._reserved_cost = 0.0, 0.0

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        """Interrupted, nobody waits for a batch: it may take a day, and is in the run file."""
        self._desk = control
        holding = asyncio.ensure_future(super().run_units(units, control))
        stopping = asyncio.ensure_future(control.stopping.wait())
        try:
            await asyncio.wait((holding, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not holding.done() and not control.interrupted:
                await asyncio.wait((holding,))
            if holding.done():
                holding.result()
        finally:
            rest = [holding, stopping, *self._sending, *self._fetched.values()]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

    async def _post(self, client: CompatibleClient, address: bytes, request: Request) -> Reply:
        name = address.hex()
        if (sent := self._book.sent(name)) is not None:
            lines: dict[str, Any] = {}
            with suppress(BadRequest):  # refused, or no longer there
                lines = await self._results(client, sent)
            with suppress(ModelError, KeyError):  # what was not answered then is sent again
                return read_line(client, lines[name])
        tokens, cost = self._reckon(client, request, self._desk.budget)
        self._reserved_tokens += tokens
        self._reserved_cost += cost
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            return await self._enclose(client, Letter(name, line_for(client, name, request), answer))
        finally:
            self._reserved_tokens -= tokens
            self._reserved_cost -= cost

    def _reckon(self, client: CompatibleClient, request: Request, budget: Budget) -> tuple[float, float]:
        """What the request may come to: a batch cannot be stopped halfway, so it must fit into the budget whole."""
        prompt = sum(estimate_tokens(piece.text) for piece in request.prompt())
        reply = int(request.options.get("max_tokens") or REPLY_TOKENS)
        tokens, cost = prompt + reply, client.price.cost(prompt, reply) or 0.0
        if budget.max_tokens is not None and budget.tokens + self._reserved_tokens + tokens > budget.max_tokens:
            raise BudgetSpent(f"the budget of {budget.max_tokens} tokens has no room for another request")
        if budget.max_cost is not None and budget.cost + self._reserved_cost + cost > budget.max_cost:
            raise BudgetSpent(f"the budget of ${budget.max_cost:g} has no room for another request")
        return tokens, cost

    async def _enclose(self, client: CompatibleClient, letter: Letter) -> Reply:
        pile = self._piles.setdefault(client, Pile())
        if len(pile.letters) == MAX_REQUESTS or pile.size + len(letter.line) > MAX_BYTES:
            self._dispatch(client)
            pile = self._piles.setdefault(client, Pile())
        pile.letters.append(letter)
        pile.size += len(letter.line)
        if pile.due is not None:
            pile.due.cancel()
        pile.due = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._dispatch, client)
        return await letter.answer

    def _dispatch(self, client: CompatibleClient) -> None:
        pile = self._piles.pop(client)
        if pile.due is not None:
            pile.due.cancel()
        letters = [letter for letter in pile.letters if not letter.answer.done()]
        if letters:
            task = asyncio.ensure_future(self._send(client, letters))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, client: CompatibleClient, letters: list[Letter]) -> None:
        """A batch from the first byte to the last answer; whatever goes wrong is every letter's answer."""
        try:
            mark = uuid.uuid4().hex
            file = await Batches(client).upload(b"".join(letter.line for letter in letters))
            self._book.enter(mark, client.name, file, [letter.name for letter in letters])
            lines = await self._results(client, Sent(mark, file, None), new=True)
        except Exception as error:
            for letter in letters:
                if not letter.answer.done():
                    letter.answer.set_exception(error)
            return
        for letter in letters:
            if letter.answer.done():
                continue
            try:
                letter.answer.set_result(read_line(client, lines[letter.name]))
            except KeyError:
                letter.answer.set_exception(ServerFault(f"{client.name}: not answered in the batch"))
            except ModelError as error:
                letter.answer.set_exception(error)

    async def _results(self, client: CompatibleClient, sent: Sent, *, new: bool = False) -> dict[str, Any]:
        """A batch's lines by request, once it has ended; asked for by many, fetched once."""
        if sent.mark not in self._fetched:
            self._fetched[sent.mark] = asyncio.ensure_future(self._fetch(client, sent, new=new))
        return await asyncio.shield(self._fetched[sent.mark])

    async def _fetch(self, client: CompatibleClient, sent: Sent, *, new: bool) -> dict[str, Any]:
        batches = Batches(client)
        if sent.batch is not None:
            state = await batches.state(sent.batch)
        else:
            found = None if new else await batches.find(sent.mark)
            state = found or await batches.create(sent.file, sent.mark)
            self._book.made(sent.mark, state.id)
            self._desk.note("batch", f"{state.id}: sent")
        state = await self._wait(batches, state)
        self._desk.note("batch", f"{state.id}: {state.status}, {state.answered} of {state.total} answered")
        if state.status == "failed":
            raise BadRequest(f"{client.name}: the batch {state.id} was refused: {state.error or 'no reason given'}")
        return {line["custom_id"]: line for file in state.files for line in await batches.lines(file)}

    async def _wait(self, batches: Batches, state: State) -> State:
        pause = FIRST_POLL
        while not state.ended:
            self._desk.progress.waiting = f"{state.id} {state.status}, {state.answered} of {state.total}"
            await asyncio.sleep(pause)
            pause = min(LAST_POLL, pause * 1.5)
            state = await batches.state(state.id)
        self._desk.progress.waiting = ""
        return state
