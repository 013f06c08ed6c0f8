"""`--executor processes`: workers are processes on this machine, called through pipes. Needs nothing but Python.

A worker exits when its pipe closes, so it never outlives the run. Keys reach it through the environment.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import struct
import sys
import threading
import time
from typing import Any, BinaryIO

from parley.base.errors import ConfigError
from parley.base.plugins import child_environment
from parley.runs.executor import RunControl
from parley.runs.executors.pool import WorkerHandle, WorkerLost, WorkerPool
from parley.runs.executors.worker import Worker, WorkerSlot

_LENGTH = struct.Struct(">Q")
_START = """
import sys
sys.path[:], sys.argv[1:] = sys.argv[1:], []
from parley.runs.executors.processes import serve
serve()
"""
"""The path of the run's process replaces the worker's before anything is imported."""


def _encode(value: object) -> bytes:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


async def _read(stream: asyncio.StreamReader) -> Any:
    size = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))[0]
    return pickle.loads(await stream.readexactly(size))


class ProcessHandle(WorkerHandle):
    """A worker process: method calls go to its stdin, results come from its stdout, both pickled."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._number = 0

    async def call(self, method: str, *args: object) -> Any:
        # Calls are numbered, so that the result of a cancelled call is ignored.
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        self._number += 1
        try:
            stdin.write(_encode((self._number, method, *args)))
            await stdin.drain()
            while True:
                number, result = await _read(stdout)
                if number == self._number:
                    return result
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerLost(f"worker process {self._process.pid} died") from None

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class ProcessPool(WorkerPool):
    """Workers are processes on this machine, one per core unless `workers` says otherwise."""

    async def room(self, control: RunControl) -> int:
        return self._requested_workers or os.cpu_count() or 1

    async def start(self, slot: WorkerSlot) -> ProcessHandle:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _START,
            *self._spec.path,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**24,
            env=child_environment(),
        )
        handle = ProcessHandle(process)
        try:
            error = await handle.call("open", self._spec, slot)
        except BaseException:
            await asyncio.shield(handle.kill())
            raise
        if error:
            await handle.kill()
            raise ConfigError(error)
        return handle


def serve() -> None:
    """The worker's process: serve one call after the other, until the pipe is closed."""
    for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGHUP"):
        if hasattr(signal, name):  # they are for the run's process, which sends instructions
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a study's print() goes to stderr, not between the results
    asyncio.run(_serve(results))


def _exit_with_parent(parent: int) -> None:
    """End this worker when the run's process has died, even if the event loop is busy and does not see the pipe."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


async def _serve(results: BinaryIO) -> None:
    calls = asyncio.StreamReader(limit=2**30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(calls), sys.stdin)
    worker: Worker | None = None
    running: asyncio.Task[None] | None = None  # a reference, or the task could be garbage-collected

    async def answer(number: int, method: str, *args: Any) -> None:
        nonlocal worker
        if method == "open":
            worker = Worker(*args)
        result = await getattr(worker, method)(*args if method == "exchange" else ())
        results.write(_encode((number, result)))
        results.flush()

    while True:
        try:
            call = await _read(calls)
        except asyncio.IncompleteReadError:
            return
        running = asyncio.create_task(answer(*call))
        running.add_done_callback(lambda task: task.cancelled() or task.exception() is None or os._exit(1))
