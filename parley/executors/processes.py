"""`--executor processes`: workers are processes on this machine, spoken to through pipes. Needs nothing but Python.

A worker ends with its run: when the pipe closes, whoever closed it. Keys reach it through the environment.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import struct
import sys
from typing import Any, BinaryIO

from parley.agents import ConfigError
from parley.executors.pool import WorkerLost, WorkerPool
from parley.executors.worker import News, Orders, Place, Worker

_HEAD = struct.Struct(">Q")
_START = "from parley.executors.processes import serve; serve()"


def _framed(value: object) -> bytes:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _HEAD.pack(len(data)) + data


class ProcessHandle:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked = 0

    async def ask(self, *question: object) -> Any:
        """Answers are numbered: one that nobody waited for any more is passed over."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        self._asked += 1
        try:
            stdin.write(_framed((self._asked, *question)))
            await stdin.drain()
            while True:
                size = _HEAD.unpack(await stdout.readexactly(_HEAD.size))[0]
                nth, answer = pickle.loads(await stdout.readexactly(size))
                if nth == self._asked:
                    return answer
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerLost(f"worker process {self._process.pid} died") from None

    async def exchange(self, orders: Orders) -> News:
        return await self.ask("exchange", orders)  # type: ignore[no-any-return]

    async def close(self) -> News:
        return await self.ask("close")  # type: ignore[no-any-return]

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class ProcessPool(WorkerPool):
    def machines(self) -> int:
        return os.cpu_count() or 1

    async def start(self, place: Place) -> ProcessHandle:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _START,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**24,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or "." for entry in sys.path)},
        )
        handle = ProcessHandle(process)
        try:
            complaint = await handle.ask("open", self._recipe, place)
        except BaseException:
            await asyncio.shield(handle.kill())
            raise
        if complaint:
            await handle.kill()
            raise ConfigError(complaint)
        return handle


def serve() -> None:
    """The worker's own process: one question after the other, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which tells us
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a study prints must not stand between answers
    asyncio.run(_serve(answers))


async def _serve(answers: BinaryIO) -> None:
    questions = asyncio.StreamReader(limit=2**30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(questions), sys.stdin)
    worker: Worker | None = None
    asked: asyncio.Task[None] | None = None

    async def answer(nth: int, what: str, *values: Any) -> None:
        nonlocal worker
        if what == "open":
            worker = Worker(*values)
        answers.write(_framed((nth, await getattr(worker, what)(*values if what == "exchange" else ()))))
        answers.flush()

    while True:
        try:
            size = _HEAD.unpack(await questions.readexactly(_HEAD.size))[0]
            question = pickle.loads(await questions.readexactly(size))
        except asyncio.IncompleteReadError:
            return
        asked = asyncio.create_task(answer(*question))
        asked.add_done_callback(lambda done: done.cancelled() or done.exception() is None or os._exit(1))
