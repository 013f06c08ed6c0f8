"""Starts Ray on this machine or connects to a cluster, and disconnects.

Ray's blocking calls run in a thread, so that Ctrl-C always ends a run: `ray.init` may block for minutes in C++, where
Ctrl-C does not reach it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from parley.base.errors import ConfigError, install
from parley.base.plugins import child_environment

T = TypeVar("T")
OBJECT_STORE_BYTES = 200 * 2**20
"""Size of Ray's object store, where finished units stay only briefly; the default is a third of the memory."""
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 5.0

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports to Ray's makers, unless the user sets this
    "RAY_worker_niceness": "0",  # Ray's default of 15 starves the workers on a busy machine
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def import_ray() -> Any:
    """Import `ray` with our settings; `ConfigError` if it is not installed."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError(f"--executor ray needs the package 'ray': {install('ray')}") from None
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
    """Raise `OSError` if nothing listens at the address; Ray would retry for minutes without a message."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _job_config(ray: Any) -> Any:
    """A job config that keeps the current folder off the workers' path, where Ray puts it without a `working_dir`."""

    class JobConfig(ray.job_config.JobConfig):  # type: ignore[misc]
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    return JobConfig()


class RayConnection:
    """A run's connection to Ray.

    Args:
        address: The cluster's address. Default: Ray is started on this machine, and stopped after the run.
        workers: Minimum CPUs of Ray on this machine.
    """

    def __init__(self, address: str | None, workers: int | None) -> None:
        self.ray = import_ray()
        self._address, self._workers = address, workers or 1
        self._connected = False
        self._thread = DaemonThread("ray")

    async def open(self, stopped: asyncio.Event) -> None:
        """Start or connect to Ray; if the run is stopped meanwhile, wait for a few seconds at most."""
        if self.ray.is_initialized():  # started by the calling program, and left running
            return
        connecting = asyncio.ensure_future(self._thread.call(self._initialise))
        stopping = asyncio.ensure_future(stopped.wait())
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
        quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL, "job_config": _job_config(self.ray)}
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        before, safe = dict(os.environ), child_environment()
        os.environ.pop("PYTHONPATH", None)
        os.environ.update(safe)  # Ray's processes inherit it, and an empty entry of PYTHONPATH is the current folder
        try:
            if self._address is not None:
                _check_reachable(self._address)
                self.ray.init(self._address, **quiet)
            else:
                self.ray.init(
                    "local",
                    num_cpus=max(self._workers, os.cpu_count() or 1),
                    object_store_memory=OBJECT_STORE_BYTES,
                    include_dashboard=False,
                    _node_ip_address="127.0.0.1",  # do not accept connections from other machines
                    **quiet,
                )
        except Exception as error:  # Ray raises plain ones too, as when its agent does not start
            why = " ".join(str(error).split())[:200]
            raise ConfigError(
                f"Ray at {self._address} cannot be reached: {why}"
                if self._address
                else f"Ray did not start: {why} (see /tmp/ray/session_latest/logs)"
            ) from None
        finally:
            os.environ.update(before)
        self._connected = True

    async def free_cpus(self) -> int:
        return int((await self._thread.call(self.ray.available_resources)).get("CPU", 0))

    async def close(self) -> None:
        if self._connected:
            self._connected = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._thread.call(self.ray.shutdown), CLOSE_SECONDS)


class DaemonThread:
    """A thread for calls that may block for long: `asyncio.to_thread` would keep the program until the last returns.

    The thread lives until the program ends, since Linux may end the processes that a thread has started with it.
    """

    def __init__(self, name: str) -> None:
        self._functions: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._functions.get()()

    async def call(self, function: Callable[[], T]) -> T:
        outcome = Future[T]()

        def run() -> None:
            if outcome.set_running_or_notify_cancel():
                try:
                    outcome.set_result(function())
                except Exception as error:
                    outcome.set_exception(error)

        self._functions.put(run)
        return await asyncio.wrap_future(outcome)
