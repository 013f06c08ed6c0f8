"""`--executor ray`: workers are Ray actors, on this machine or on a cluster (`--ray-address`).

No argument of a task holds a key: on this machine workers inherit the environment, on a cluster the nodes have their
own. Ray's `runtime_env` is not used for that, since its dashboard and logs show it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

from parley.agents import ConfigError
from parley.executors.pool import WorkerLost, WorkerPool
from parley.executors.recipe import Recipe
from parley.executors.worker import News, Orders, Place, Worker
from parley.judging import Unit
from parley.runs import RunControl

OBJECT_STORE_BYTES = 200 * 2**20
"""Finished units pass through it and are gone at once; Ray's own default is a third of the memory."""

KNOCK_SECONDS = 10.0

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to Ray's makers, unless the user wants it
    "RAY_worker_niceness": "0",  # Ray's 15 starves workers on a busy machine: they do all the work here
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def need_ray() -> Any:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError("--executor ray needs the package 'ray': pip install 'parley-autogen[ray]'") from None
    return ray


def _knock(address: str) -> None:
    """Ray tries an address at which nobody listens for many minutes, without a word."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()


class RayHandle:
    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    async def ask(self, method: str, *values: object) -> Any:
        errors = self._ray.exceptions
        try:
            return await getattr(self._actor, method).remote(*values)
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            raise WorkerLost(f"a worker of Ray's is gone ({type(error).__name__})") from None

    async def exchange(self, orders: Orders) -> News:
        return await self.ask("exchange", orders)  # type: ignore[no-any-return]

    async def close(self) -> News:
        return await self.ask("close")  # type: ignore[no-any-return]

    async def kill(self) -> None:
        self._ray.kill(self._actor)


class RayPool(WorkerPool):
    def __init__(self, recipe: Recipe, *, workers: int | None = None, address: str | None = None) -> None:
        super().__init__(recipe, workers=workers)
        self._address = address
        self._ray = need_ray()

    async def run_units(self, units: Iterator[Unit], control: RunControl) -> None:
        if self._ray.is_initialized():  # the user's own, in Python: neither started nor ended here
            await super().run_units(units, control)
            return
        self._connect()
        try:
            await super().run_units(units, control)
        finally:
            self._ray.shutdown()

    def _connect(self) -> None:
        """Ray puts handlers of its own in the place of ours; ours come back."""
        ours = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        try:
            if self._address is not None:
                _knock(self._address)
                self._ray.init(self._address, **quiet)
            else:
                self._ray.init(
                    "local",
                    num_cpus=max(self._asked_for or 1, os.cpu_count() or 1),
                    object_store_memory=OBJECT_STORE_BYTES,
                    include_dashboard=False,
                    _node_ip_address="127.0.0.1",  # nothing listens to other machines
                    **quiet,
                )
        except (RuntimeError, ValueError, OverflowError, OSError) as error:
            where = f"Ray at {self._address}" if self._address else "Ray"
            raise ConfigError(f"{where} cannot be reached: {' '.join(str(error).split())[:200]}") from None
        finally:
            for number, handler in ours.items():
                signal.signal(number, handler)

    def machines(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 1))

    async def start(self, place: Place) -> RayHandle:
        kind = self._ray.remote(Worker).options(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")
        handle = RayHandle(self._ray, kind.remote(self._recipe, place))
        if complaint := await handle.ask("open"):
            await handle.kill()
            raise ConfigError(complaint)
        return handle
