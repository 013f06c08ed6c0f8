"""`--executor ray`: workers are Ray actors, on this machine or on a cluster (`--ray-address`).

No task argument contains a key: on this machine workers inherit the environment, on a cluster every node has its own.
Ray's `runtime_env` is not used for keys, since its dashboard and logs show it.

Ray puts the folder that is current when it is started first on the path of its workers. It is told not to, and an actor
first takes the path of the run.

Ray's blocking calls run in a thread, so that Ctrl-C always ends a run: `ray.init` may block for minutes in
C++, where Ctrl-C does not reach it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from parley.base.errors import ConfigError
from parley.judging import Unit
from parley.runs.executor import RunControl
from parley.runs.executors.pool import CLOSE_SECONDS, WorkerHandle, WorkerLost, WorkerNotPlaced, WorkerPool
from parley.runs.executors.worker import Instructions, Worker, WorkerReport, WorkerSlot
from parley.runs.plan import StudySpec

T = TypeVar("T")
OBJECT_STORE_BYTES = 200 * 2**20
"""Finished units stay in it only briefly; Ray's own default is a third of the memory."""
CONNECT_SECONDS = 10.0
PLACEMENT_SECONDS = 60.0
"""How long a worker may wait for a free CPU before it is given up. It gets no units before it runs: those of a worker
that is never placed would never be run."""
ROOM_SECONDS = 0.5
NOT_PLACED = f"Ray found no free CPU for a worker within {PLACEMENT_SECONDS:.0f} seconds (see `ray status`)"

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports to Ray's makers, unless the user sets this
    "RAY_worker_niceness": "0",  # Ray's default of 15 starves the workers on a busy machine
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def import_ray() -> Any:
    """The module `ray`, with our settings; a `ConfigError` if it is not installed."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError("--executor ray needs the package 'ray': pip install 'parley-autogen[ray]'") from None
    return ray


def take_signals_back() -> None:
    """Install Python's handlers again. Ray's C++ replaces that of SIGTERM by one that prints a trace and sets an alarm,
    which aborts the process after three seconds: a scheduler would not see that the run can be resumed."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        if (handler := signal.getsignal(number)) is not None:
            signal.signal(number, handler)


def _check_reachable(address: str) -> None:
    """Raise `OSError` if nothing listens there; Ray would retry for many minutes without a message."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _job_config(ray: Any) -> Any:
    """A job that does not put the current folder on the path of its workers, as Ray does without a `working_dir`."""

    class JobConfig(ray.job_config.JobConfig):  # type: ignore[misc]
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    return JobConfig()


def _actor_class() -> type:
    """A `Worker` behind a class without a module, which Ray sends as code: its first lines set the path, and only then
    is `parley` imported."""

    class RayWorker:
        def __init__(self, path: tuple[str, ...], folder: str, arguments: bytes) -> None:
            import os
            import pickle
            import sys

            # Another machine may have its Python elsewhere: its own entries stay, except the folders Ray has added.
            added = {folder, os.getcwd()}
            own = [entry for entry in sys.path if entry not in path and os.path.abspath(entry) not in added]
            sys.path[:] = [*filter(os.path.exists, path), *own]
            worker, spec, slot = pickle.loads(arguments)
            self._worker = worker(spec, slot)

        async def open(self) -> str | None:
            return await self._worker.open()  # type: ignore[no-any-return]

        async def exchange(self, instructions: Instructions) -> WorkerReport:
            return await self._worker.exchange(instructions)  # type: ignore[no-any-return]

        async def close(self) -> WorkerReport:
            return await self._worker.close()  # type: ignore[no-any-return]

    return RayWorker


class RayHandle(WorkerHandle):
    """A Ray actor."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    async def call(self, method: str, *args: object) -> Any:
        errors = self._ray.exceptions
        try:
            return await getattr(self._actor, method).remote(*args)
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            raise WorkerLost(f"a Ray worker died ({type(error).__name__})") from None

    async def kill(self) -> None:
        self._ray.kill(self._actor)


class RayPool(WorkerPool):
    """Workers are Ray actors of one core each.

    Args:
        spec: How workers create the study.
        workers: How many, at most. Default: one per free core of the cluster.
        address: The cluster's address. Default: Ray is started on this machine, and stopped after the run.
    """

    def __init__(self, spec: StudySpec, *, workers: int | None = None, address: str | None = None) -> None:
        super().__init__(spec, workers=workers)
        self._address = address
        self._ray = import_ray()
        self._connected = False
        self._thread = DaemonThread("ray")

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        if not self._ray.is_initialized():  # otherwise started by the calling program, and left running
            await self._connect(control)
        await super().run_units(units, control)

    async def close(self) -> None:
        await super().close()
        if self._connected:
            self._connected = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._thread.call(self._ray.shutdown), CLOSE_SECONDS)

    async def _connect(self, control: RunControl) -> None:
        """Start or connect to Ray; if the run is stopped meanwhile, wait for a few seconds at most."""
        connecting = asyncio.ensure_future(self._thread.call(self._initialise))
        stopping = asyncio.ensure_future(control.stopping.wait())
        try:
            await asyncio.wait((connecting, stopping), return_when=asyncio.FIRST_COMPLETED)
            async with asyncio.timeout(CLOSE_SECONDS):
                await connecting
        except TimeoutError:
            raise ConfigError("Ray was still starting") from None
        finally:
            connecting.cancel()
            stopping.cancel()
            take_signals_back()

    def _initialise(self) -> None:
        quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL, "job_config": _job_config(self._ray)}
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        try:
            if self._address is not None:
                _check_reachable(self._address)
                self._ray.init(self._address, **quiet)
            else:
                self._ray.init(
                    "local",
                    num_cpus=max(self._requested_workers or 1, os.cpu_count() or 1),
                    object_store_memory=OBJECT_STORE_BYTES,
                    include_dashboard=False,
                    _node_ip_address="127.0.0.1",  # do not accept connections from other machines
                    **quiet,
                )
        except (RuntimeError, ValueError, OverflowError, OSError) as error:
            where = f"Ray at {self._address}" if self._address else "Ray"
            raise ConfigError(f"{where} cannot be reached: {' '.join(str(error).split())[:200]}") from None
        self._connected = True

    async def room(self, control: RunControl) -> int:
        """The free CPUs; if there are none, wait for one.

        Those that become free later are not used: concurrency and connections would have to be divided anew.
        """
        until = time.monotonic() + PLACEMENT_SECONDS
        while not (free := await self._free_cpus()) and not control.stopping.is_set():
            if time.monotonic() > until:
                raise ConfigError(NOT_PLACED)
            control.progress.waiting = "waiting for a free CPU in the Ray cluster"
            await asyncio.sleep(ROOM_SECONDS)
        control.progress.waiting = ""
        return max(1, free)

    async def _free_cpus(self) -> int:
        return int((await self._thread.call(self._ray.available_resources)).get("CPU", 0))

    async def start(self, slot: WorkerSlot) -> RayHandle:
        actor = self._ray.remote(_actor_class()).options(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")
        arguments = pickle.dumps((Worker, self._spec, slot))
        handle = RayHandle(self._ray, actor.remote(self._spec.path, self._spec.folder, arguments))
        try:
            try:
                async with asyncio.timeout(PLACEMENT_SECONDS):
                    await handle.call("__ray_ready__")
            except TimeoutError:
                raise WorkerNotPlaced(NOT_PLACED) from None
            if error := await handle.call("open"):  # without a limit: it may load a model's weights
                raise ConfigError(error)
        except BaseException:
            await handle.kill()
            raise
        return handle


class DaemonThread:
    """A thread for calls that may block for long: `asyncio.to_thread` would keep the program until the last returns.

    The thread lives until the program ends, since Linux may end the processes that a thread has started with it.
    """

    def __init__(self, name: str) -> None:
        self._functions: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            with suppress(RuntimeError):  # the event loop is closed: nobody waits any longer
                self._functions.get()()

    async def call(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def deliver(set_outcome: Callable[[Any], None], outcome: object) -> None:
            if not result.done():
                set_outcome(outcome)

        def run() -> None:
            try:
                outcome = function()
            except Exception as error:
                loop.call_soon_threadsafe(deliver, result.set_exception, error)
            else:
                loop.call_soon_threadsafe(deliver, result.set_result, outcome)

        self._functions.put(run)
        return await result
