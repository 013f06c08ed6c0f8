"""What the scripts of all peers share: run the conversations, measure, print one JSON line.

    PYTHON -m benchmarks.peers.raw --url http://127.0.0.1:8080 --latency 200 --conversations 64 --rounds 1

It needs only the standard library, since every peer has its own environment. Without `--url` the model answers
immediately, within the process: then only the framework is measured. With `--resume` that model fails halfway and
comes back, and the figure is the time from the request to resume until the first call.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import gzip
import json
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from benchmarks.workload import NAMES, reply

WARM_UP = 4
"""Conversations before the measurement, so that everything loaded on first use is loaded."""


class ModelGone(Exception):
    """The instant model fails."""


@dataclass
class Instant:
    """The replies of the instant models; after `replies_left` of them, they fail."""

    replies_left: float = float("inf")
    first_at: float | None = None

    def reply(self) -> str:
        self.first_at = self.first_at or time.perf_counter()
        if self.replies_left < 1:
            raise ModelGone("the model is gone")
        self.replies_left -= 1
        return reply()


INSTANT = Instant()
"""For frameworks that create their models themselves."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a peer has to run. `url` ends in /v1; None means the instant model."""

    url: str | None
    conversations: int
    rounds: int
    folder: str
    """The folder for the peer's log."""
    instant: Instant
    at_once: int = WARM_UP
    """The number of concurrent conversations."""
    resume: bool = False
    """Whether to resume from the log in the folder."""

    @property
    def messages(self) -> int:
        return self.rounds * len(NAMES)


RunCase = Callable[[Case], Awaitable[None]]


def peak_mb() -> float:
    """The peak memory of this process. On Linux `getrusage` includes the parent's from before exec; this does not."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def written(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def gzipped(folder: str) -> int:
    """The same compressed, by gzip."""
    return sum(len(gzip.compress(file.read_bytes(), 6)) for file in Path(folder).rglob("*") if file.is_file())


def measured(run: RunCase, case: Case) -> dict[str, float]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(run(case))  # type: ignore[arg-type]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "wall": wall,
        "cpu": cpu,
        "peak_mb": peak_mb(),
        "log_bytes": written(case.folder),
        "gzip_bytes": gzipped(case.folder),
    }


def resumed(run: RunCase, case: Case) -> dict[str, float]:
    half = case.conversations * case.messages // 2
    try:
        asyncio.run(run(replace(case, instant=Instant(half))))  # type: ignore[arg-type]
    except Exception as error:  # each framework wraps the model's failure in its own way
        print(f"failed, as planned: {type(error).__name__}", file=sys.stderr)
    working = Instant()
    start = time.perf_counter()
    asyncio.run(run(replace(case, instant=working, resume=True)))  # type: ignore[arg-type]
    assert working.first_at is not None, "nothing was left to resume"
    return {"first_call_after": working.first_at - start, "wall": time.perf_counter() - start}


def main(run: RunCase, packages: Sequence[str], *, resumes: bool = False) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", help="the server's address; without it, an instant model in this process")
    parser.add_argument("--latency", type=int, default=0, help="milliseconds until the server answers")
    parser.add_argument("--conversations", type=int, default=64)
    parser.add_argument("--at-once", type=int, help="how many of them run concurrently (default: all)")
    parser.add_argument("--rounds", type=int, default=2, help="of four messages each")
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    if arguments.resume and not resumes:
        raise SystemExit("this system cannot resume: it stores nothing")
    address = f"{arguments.url}/{{}}/v1" if arguments.url else None
    with tempfile.TemporaryDirectory() as folder:
        warm_up = Case(
            url=address and address.format(0),
            conversations=WARM_UP,
            rounds=arguments.rounds,
            folder=str(Path(folder) / "warm"),
            instant=Instant(),
        )
        Path(warm_up.folder).mkdir()
        asyncio.run(run(warm_up))  # type: ignore[arg-type]
        case = replace(
            warm_up,
            url=address and address.format(arguments.latency),
            conversations=arguments.conversations,
            at_once=arguments.at_once or arguments.conversations,
            folder=str(Path(folder) / "log"),
        )
        Path(case.folder).mkdir()
        figures = (resumed if arguments.resume else measured)(run, case)
    versions = {package: version(package) for package in packages}
    print(json.dumps({**figures, "messages": case.conversations * case.messages, "versions": versions}))
