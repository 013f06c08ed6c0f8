"""Many workers, one run: units are streamed to them, what they finish is streamed back, and the dead are replaced.

How a worker is started and spoken to is a subclass's business (`processes`, `ray_fleet`).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Protocol

from parley.agents import BudgetSpent, ConfigError, ParleyError
from parley.executors.recipe import Recipe
from parley.executors.shared_budget import Ledger
from parley.executors.worker import News, Orders, Place, part
from parley.judging import Unit
from parley.runs import RunControl
from parley.runs.executor import FINISHING

DEATHS_IN_A_ROW = 5
"""So many workers died with no unit finished between them: it is the units that kill them, and the run stops."""
CLOSE_SECONDS = 5.0
IDLE_SECONDS = 0.05


class WorkerLost(ParleyError):
    """A worker died, or its machine did."""


class Handle(Protocol):
    """A worker, from the outside. Both may raise `WorkerLost`."""

    async def exchange(self, orders: Orders) -> News: ...

    async def close(self) -> News: ...

    async def kill(self) -> None: ...


class WorkerPool:
    on_interrupt = FINISHING

    def __init__(self, recipe: Recipe, *, workers: int | None = None) -> None:
        self._recipe = recipe
        self._asked_for = workers

    @abstractmethod
    async def start(self, place: Place) -> Handle:
        """A worker that is ready; a `ConfigError` if it cannot work."""

    @abstractmethod
    def machines(self) -> int:
        """How many workers there is room for."""

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        self._units, self._again = units, deque[Unit]()
        self._left = control.progress.total - control.progress.done
        self._at_once = max(1, min(control.concurrency, self._left))
        workers = min(self._asked_for or self.machines(), self._at_once)
        self._deaths = 0
        self._given: list[dict[str, Unit]] = [{} for _ in range(workers)]
        self._heard: list[list[tuple[str, float]]] = [[] for _ in range(workers)]
        self._ledger = Ledger(control.budget, workers)
        tasks = [asyncio.create_task(self._tend(nth, workers, control)) for nth in range(workers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, most: int) -> list[Unit]:
        """The next units; those that a dead worker had come last, so that a deadly one does not hold up the others."""
        taken = list(islice(self._units, max(0, most)))
        while self._again and len(taken) < most:
            taken.append(self._again.popleft())
        self._left -= len(taken)
        return taken

    async def _tend(self, nth: int, workers: int, control: RunControl) -> None:
        """One place in the fleet: its worker, and after that one's death the next."""
        at_once = part(self._at_once, workers, nth)
        place = Place(nth, workers, at_once, self._ledger.limited, control.cache is not None)
        handle: Handle | None = None
        orders = Orders()
        given = self._given[nth]
        try:
            while True:
                # A few units wait at the worker, so that it never idles, unless there are too few to go round.
                room = at_once + (at_once // 4 + 1 if self._left > self._at_once else 0)
                fresh = [] if control.stopping.is_set() else self._take(room - len(given))
                given.update((unit.id, unit) for unit in fresh)
                if not given:
                    if not any(self._given):
                        return
                    await asyncio.sleep(IDLE_SECONDS)  # another's may come back
                    continue
                heard, self._heard[nth] = self._heard[nth], []
                orders = orders._replace(units=fresh, slowed=heard, stop=control.stopping.is_set())
                try:
                    if handle is None:
                        handle = await self.start(place)
                    orders = self._read(await handle.exchange(orders), nth, control)
                except WorkerLost as lost:
                    handle, orders = None, Orders()
                    self._mourn(lost, given, control)
        finally:
            if handle is not None:
                await asyncio.shield(self._let_go(handle, nth, control))

    def _read(self, news: News, nth: int, control: RunControl) -> Orders:
        """Hand in what is finished; the answer to what was asked."""
        control.progress.merge(news.tally)
        self._ledger.report(news.tally)
        for rows in news.finished:
            if self._given[nth].pop(rows.id, None) is not None:
                control.finish(rows)
                self._deaths = 0
        for name in news.dropped:
            self._given[nth].pop(name, None)
        if news.ends is not None:
            control.end(news.ends)
        for other, heard in enumerate(self._heard):
            if other != nth:
                heard.extend(news.slowed)
        if not news.wanted:
            return Orders()
        try:
            return Orders(calls=self._ledger.lend(news.wanted))
        except BudgetSpent as error:
            return Orders(spent=str(error))

    def _mourn(self, lost: WorkerLost, given: dict[str, Unit], control: RunControl) -> None:
        """The units it had are held again by whoever is free."""
        self._deaths += 1
        control.note("worker lost", f"{lost}; {len(given)} units are held again")
        if self._deaths >= DEATHS_IN_A_ROW:
            raise ConfigError(f"{DEATHS_IN_A_ROW} workers died in a row, the last with: {lost}")
        self._again.extend(given.values())
        self._left += len(given)
        given.clear()

    async def _let_go(self, handle: Handle, nth: int, control: RunControl) -> None:
        """Takes what was finished since the last news; a worker that does not answer is killed."""
        with suppress(WorkerLost, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                self._read(await handle.close(), nth, control)
        await handle.kill()
