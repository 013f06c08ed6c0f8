"""A worker: a process of its own that holds units, with its own event loop and model clients.

It is given `Orders` and answers with `News` once there is any. What it finished travels as rows, so that the run's
own process has only to write them.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple

from parley.agents import Call, Models, ParleyError, ReplyCache
from parley.agents.home import home
from parley.agents.models.throttle import Throttle
from parley.executors.recipe import Recipe
from parley.executors.shared_budget import Loan
from parley.judging import Study, Unit
from parley.runs import Rows, Tally
from parley.runs.unit import GC_THRESHOLDS, RunStopped, run_unit
from parley.telemetry import traced_in_worker

TICK_SECONDS = 0.5
"""News comes at least this often, so that progress moves and nobody is taken for dead."""
LINGER_SECONDS = 0.01
"""How long news waits for more to go with it."""


class Place(NamedTuple):
    """A worker's part of the whole."""

    nth: int
    workers: int
    at_once: int
    limited: bool
    """Whether calls must be asked for: the run has a budget."""
    cache: bool

    def share(self, whole: int) -> int:
        return max(1, part(whole, self.workers, self.nth))


def part(whole: int, parts: int, nth: int) -> int:
    """The n-th of so many nearly equal parts."""
    return whole // parts + (nth < whole % parts)


class Orders(NamedTuple):
    units: Sequence[Unit] = ()
    calls: int = 0
    """Calls that the ledger lends."""
    spent: str | None = None
    slowed: Sequence[tuple[str, float]] = ()
    """Models whose servers told another worker to slow down, and the pause they asked for."""
    stop: bool = False


class News(NamedTuple):
    finished: list[Rows]
    dropped: list[str]
    """Units that were given out and will not be finished here: the run is ending."""
    tally: Tally
    wanted: int
    slowed: list[tuple[str, float]]
    ends: str | None


class Worker:
    def __init__(self, recipe: Recipe, place: Place) -> None:
        self._recipe, self._place = recipe, place
        self._models = Models()
        self._cache: ReplyCache | None = None
        self._until_closed = ExitStack()
        self._units: asyncio.Queue[Unit] = asyncio.Queue()
        self._holding = 0
        self._finished: list[Rows] = []
        self._dropped: list[str] = []
        self._tally = Tally()
        self._slowed: list[tuple[str, float]] = []
        self._ends: str | None = None

    async def open(self) -> str | None:
        """Everything that can fail early; what is wrong, if something is."""
        try:
            self._bell = asyncio.Event()
            self._loan = Loan(limited=self._place.limited, ask=self._bell)
            made = self._recipe.make()
            self._study: Study = self._until_closed.enter_context(traced_in_worker(made, self._recipe.trace))
            if self._place.cache:
                self._cache = ReplyCache(home() / "replies.sqlite")
            for name in self._study.models():
                client = self._models[name]
                most = self._place.share(client.options.max_connections)
                client.throttle = Throttle(most, 1 / self._place.workers, partial(self._slow, name))
                await client.prepare()
        except ParleyError as error:
            return f"a worker on {socket.gethostname()} cannot work: {error}"
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._place.at_once)]
        return None

    async def exchange(self, orders: Orders) -> News:
        for unit in orders.units:
            self._units.put_nowait(unit)
        self._loan.receive(orders.calls, orders.spent)
        for name, pause in orders.slowed:
            self._models[name].throttle.slow_down(pause, reported=True)
        if orders.stop:
            while not self._units.empty():
                self._dropped.append(self._units.get_nowait().id)
        if self._holding or not self._units.empty():
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._bell.wait()
            await asyncio.sleep(LINGER_SECONDS)
        self._bell.clear()
        return self._collect()

    def _collect(self) -> News:
        news = News(self._finished, self._dropped, self._tally, self._loan.wanted, self._slowed, self._ends)
        self._finished, self._dropped, self._tally, self._slowed, self._ends = [], [], Tally(), [], None
        return news

    async def close(self) -> News:
        """Abandons what is under way; what it had paid for stays in the cache."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._models.close()
        self._until_closed.close()
        if self._cache is not None:
            with suppress(ParleyError):
                self._cache.close()
        return self._collect()

    def _slow(self, name: str, pause: float) -> None:
        self._slowed.append((name, pause))
        self._bell.set()

    async def _work(self) -> None:
        while True:
            unit = await self._units.get()
            self._holding += 1
            try:
                rows = await run_unit(
                    self._study,
                    unit,
                    self._models,
                    cache=self._cache,
                    budget=self._loan,
                    on_call=self._count,
                )
            except RunStopped as error:
                self._dropped.append(unit.id)
                self._ends = self._ends or str(error)
            else:
                self._finished.append(rows)
            finally:
                self._holding -= 1
                self._bell.set()

    def _count(self, call: Call) -> None:
        self._tally.count(call)
