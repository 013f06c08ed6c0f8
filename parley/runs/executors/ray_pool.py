"""`--executor ray`: workers are Ray actors, on this machine or on a cluster (`--ray-address`).

Every unit is one call of an actor; Ray queues and delivers it. A worker that dies is replaced, and its units run again.

No task argument contains a key: on this machine workers inherit the environment, on a cluster every node has its own.
Ray's `runtime_env` is not used for keys, since its dashboard and logs show it.

By default Ray puts its current folder first on the workers' path. This is turned off, and an actor first sets the run's
path.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from parley.agents.models.session import Estimate, Used
from parley.base.errors import ConfigError, ParleyError
from parley.base.tasks import gather_or_cancel
from parley.base.text import plural
from parley.judging import Unit
from parley.runs.executor import RunControl
from parley.runs.executors.ray_connection import CLOSE_SECONDS, RayConnection
from parley.runs.executors.worker import Message, StudySpec, Worker, nth_part
from parley.runs.rows import Rows, Tally

MAX_DEATHS_IN_A_ROW = 5
"""If this many workers die without finishing a unit, the units are the cause, and the run stops. With more workers the
limit is twice their number, since a machine that fails takes all of its workers with it."""
PLACEMENT_SECONDS = 60.0
"""How long a worker may wait for a free CPU before it is given up. It gets no units before it runs."""
ROOM_SECONDS, IDLE_SECONDS = 0.5, 0.05
OTHER_CALLS = 8
"""Calls that an actor serves beside its units: `listen`, `slow_down`, `close`."""
NOT_PLACED = f"Ray found no free CPU for a worker within {PLACEMENT_SECONDS:.0f} seconds (see `ray status`)"


def _actor_class() -> type:
    """A wrapper of `Worker` without a module, which Ray sends as code: it sets the path before it imports `parley`."""

    class RayWorker:
        def __init__(self, path: tuple[str, ...], folder: str, arguments: bytes) -> None:
            import os
            import pickle
            import sys

            # Another machine may have its Python elsewhere: its own entries stay, except the folders Ray has added.
            added = {folder, os.getcwd()}
            kept = [entry for entry in sys.path if entry not in path and os.path.abspath(entry) not in added]
            sys.path[:] = [*filter(os.path.exists, path), *kept]
            worker, *rest = pickle.loads(arguments)
            self._worker = worker(*rest)

        async def call(self, method: str, *arguments: object) -> Any:
            return await getattr(self._worker, method)(*arguments)

    return RayWorker


class WorkerLost(ParleyError):
    """A worker or its machine died."""


class RayHandle:
    """The run's handle on a worker."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self.listener: asyncio.Task[None] | None = None
        self.closing = False
        self.reserved: list[Estimate] = []
        """Expected usage of its calls in progress."""

    def tell(self, method: str, *arguments: object) -> Any:
        """Call a method of the `Worker` without waiting for it."""
        return self._actor.call.remote(method, *arguments)

    async def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the `Worker`; raises `WorkerLost` if it has died."""
        return await self._result(self.tell(method, *arguments))

    async def placed(self) -> None:
        """Wait until Ray has started it."""
        await self._result(self._actor.__ray_ready__.remote())

    async def _result(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return await reference
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            raise WorkerLost(f"a Ray worker died ({type(error).__name__})") from None

    def kill(self) -> None:
        self._ray.kill(self._actor)


class RayPool:
    """Runs units in Ray actors of one core each.

    Args:
        spec: How workers create the study.
        workers: Maximum number of workers. Default: one per free core of the cluster.
        address: The cluster's address. Default: Ray is started on this machine, and stopped after the run.
    """

    def __init__(self, spec: StudySpec, *, workers: int | None = None, address: str | None = None) -> None:
        self._spec, self._requested_workers = spec, workers
        self._connection = RayConnection(address, workers)
        self._workers: list[RayHandle | None] = []
        """The workers by number; None if not yet started."""
        self._returned: deque[Unit] = deque()
        self._deaths = 0

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        assert control.cache is not None, "workers have no cache of their own"
        self._control, self._units, self._cache = control, units, control.cache
        self._handlers: dict[str, Callable[..., Any]] = {
            "give_call_back": control.budget.give_call_back,
            "find": lambda address: self._cache.read(address, str),
            "put_text": self._cache.put_text,
            "commit": self._cache.commit,
            "count": self._count,
            "slow_down": self._slow_down,
        }
        await self._connection.open(control.stopping)
        concurrency = max(1, min(control.concurrency, control.progress.total - control.progress.done))
        workers = await self._count_workers(concurrency)
        self._shares = [nth_part(concurrency, workers, index) for index in range(workers)]
        self._workers = [None] * workers
        while self._more():  # again if a worker died when the others had nothing left to do
            await gather_or_cancel(map(self._keep_busy, range(workers)))
            if self._more() and not any(self._workers):
                raise ConfigError(NOT_PLACED)

    async def close(self) -> None:
        """End the workers, at most a few seconds later."""
        await asyncio.gather(*(self._close(worker) for worker in self._workers if worker is not None))
        await self._connection.close()

    async def _count_workers(self, concurrency: int) -> int:
        """The number requested, or of free CPUs; waits if there are none.

        CPUs that become free later are not used, since concurrency and connections are already divided.
        """
        control, until = self._control, time.monotonic() + PLACEMENT_SECONDS
        while not (room := await self._connection.free_cpus()) and not control.stopping.is_set():
            if time.monotonic() > until:
                raise ConfigError(NOT_PLACED)
            control.progress.waiting = "waiting for a free CPU in the Ray cluster"
            await asyncio.sleep(ROOM_SECONDS)
        control.progress.waiting, room = "", max(1, room)
        wanted = min(self._requested_workers or room, concurrency)
        if room < wanted:
            remark = f"the cluster has room for {room} of {plural(wanted, 'worker')}"
            control.note("workers", remark)
            control.progress.remarks.append(remark)
        return min(room, wanted)

    def _more(self) -> bool:
        """Whether a unit is to be started."""
        if not self._returned and (unit := next(self._units, None)) is not None:
            self._returned.append(unit)
        return bool(self._returned) and not self._control.stopping.is_set()

    def _take(self) -> Unit | None:
        """The next unit. Units of dead workers come last, so that a unit that kills workers does not delay others."""
        if self._control.stopping.is_set():
            return None
        return next(self._units, None) or (self._returned.popleft() if self._returned else None)

    async def _keep_busy(self, index: int) -> None:
        """Run a share of the units in a worker; replace it if it dies."""
        while self._more():
            worker = self._workers[index]
            try:
                worker = worker or await self._start(index)
                if worker is None:
                    return
                await gather_or_cancel(self._run(worker) for _ in range(self._shares[index]))
            except WorkerLost as lost:
                if worker is not None:
                    worker.kill()  # it may only be out of reach
                    for estimate in worker.reserved:
                        self._control.budget.release(estimate, Used(unknown=True))
                    worker.reserved.clear()
                self._workers[index] = None
                self._deaths += 1
                self._control.note("worker lost", f"{lost}; its units are run again")
                if self._deaths >= max(MAX_DEATHS_IN_A_ROW, 2 * len(self._workers)):
                    raise ConfigError(f"{self._deaths} workers died in a row, the last with: {lost}") from None

    async def _run(self, worker: RayHandle) -> None:
        """Run one unit after the other."""
        while (unit := self._take()) is not None:
            try:
                rows: Rows | str | None = await worker.call("run", unit)
            except BaseException:
                self._returned.append(unit)
                raise
            self._deaths = 0
            if isinstance(rows, str):
                self._control.stop(rows)
            elif rows is not None:
                self._control.finish(rows)

    async def _start(self, index: int) -> RayHandle | None:
        """Start a worker, while others run units; None if they left none for it, or Ray had no room."""
        starting = asyncio.create_task(self._open(index))
        try:
            while not starting.done() and self._more():
                await asyncio.wait((starting,), timeout=IDLE_SECONDS)
            return starting.result() if starting.done() else None
        except TimeoutError:
            self._control.note("worker not placed", NOT_PLACED)
            return None
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)

    async def _open(self, index: int) -> RayHandle:
        """Start a worker; raises `TimeoutError` if there was no room in time, `ConfigError` if it cannot work."""
        ray, spec = self._connection.ray, self._spec
        concurrency = self._shares[index] + OTHER_CALLS
        options = {"num_cpus": 1, "max_restarts": 0, "max_concurrency": concurrency, "scheduling_strategy": "SPREAD"}
        place = (socket.gethostname(), str(self._cache.path.resolve()))
        arguments = pickle.dumps((Worker, spec, index, len(self._workers), self._control.budget.limited, place))
        actor = ray.remote(_actor_class()).options(**options).remote(spec.path, spec.folder, arguments)
        worker = RayHandle(ray, actor)
        try:
            async with asyncio.timeout(PLACEMENT_SECONDS):
                await worker.placed()
            if error := await worker.call("open"):  # without a limit: it may load a model's weights
                raise ConfigError(error)
        except BaseException:
            worker.kill()
            raise
        worker.listener = asyncio.create_task(self._listen(worker))
        self._workers[index] = worker
        return worker

    async def _listen(self, worker: RayHandle) -> None:
        """Serve a worker as long as it lives."""
        answers: list[tuple[int, Any]] = []
        with suppress(WorkerLost):
            while not worker.closing:
                answers = self._answer(worker, await worker.call("listen", answers))

    def _answer(self, worker: RayHandle, messages: Iterable[Message]) -> list[tuple[int, Any]]:
        """Handle a worker's messages, and answer its questions."""
        answers = []
        for kind, arguments, number in messages:
            try:
                handler = getattr(self, f"_{kind}") if kind in ("reserve", "release") else None
                answer = handler(worker, *arguments) if handler else self._handlers[kind](*arguments)
            except ParleyError as error:
                answer = error  # raised at the worker: it stops the unit, and so the run
                if number is None:
                    self._control.stop(str(error))
            if number is not None:
                answers.append((number, answer))
        return answers

    def _reserve(self, worker: RayHandle, estimate: Estimate) -> bool:
        has_room = self._control.budget.reserve(estimate)
        if has_room:
            worker.reserved.append(estimate)
        return has_room

    def _release(self, worker: RayHandle, estimate: Estimate, used: Used) -> None:
        if estimate in worker.reserved:  # else the worker was given up
            worker.reserved.remove(estimate)
            self._control.budget.release(estimate, used)

    def _count(self, tally: Tally) -> None:
        budget = self._control.budget
        self._control.progress.merge(tally)
        if not budget.limited:  # else each was counted when it was reserved
            budget.calls += tally.calls - tally.cached
        budget.tokens += tally.tokens
        budget.cost += tally.cost

    def _slow_down(self, index: int, model: str, pause: float) -> None:
        """A 429 at one worker concerns the others."""
        for other, worker in enumerate(self._workers):
            if worker is not None and other != index:
                worker.tell("slow_down", model, pause)

    async def _close(self, worker: RayHandle) -> None:
        """Take the worker's last messages; a worker that does not answer is killed."""
        worker.closing = True
        try:
            with suppress(WorkerLost, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    self._answer(worker, await worker.call("close"))
                    if worker.listener is not None:
                        await worker.listener
        finally:
            worker.kill()
