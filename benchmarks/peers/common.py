"""What the scripts of all peers share: hold so many conversations, measure, print one JSON line.

    PYTHON -m benchmarks.peers.raw --url http://127.0.0.1:8080 --latency 200 --conversations 64 --rounds 1

It needs nothing but Python, since every peer has an environment of its own. Without `--url` the model is one that
answers at once, within the process: then the figures are the framework's alone. With `--resume` that model is gone
halfway, comes back, and what is measured is the time from asking to go on until the first call.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
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
"""Conversations held before anything is measured, so that what is loaded on first use is loaded."""


class Gone(Exception):
    """The model that answers at once is out of reach."""


@dataclass
class Instant:
    """What the models that answer at once say; after so many replies they are gone."""

    replies_left: float = float("inf")
    first_at: float | None = None

    def reply(self) -> str:
        self.first_at = self.first_at or time.perf_counter()
        if self.replies_left < 1:
            raise Gone("the model is gone")
        self.replies_left -= 1
        return reply()


INSTANT = Instant()
"""For frameworks that make their models themselves."""


@dataclass(frozen=True)
class Case:
    """What a peer is asked to do. `url` ends in /v1; None means the model that answers at once."""

    url: str | None
    conversations: int
    rounds: int
    folder: str
    """Where the peer may write its log."""
    instant: Instant
    at_once: int = WARM_UP
    """Conversations under way at once."""
    again: bool = False
    """Whether this is the second time: go on with what stands in the folder."""

    @property
    def messages(self) -> int:
        return self.rounds * len(NAMES)


Hold = Callable[[Case], Awaitable[None]]


def peak_mb() -> float:
    """The most memory this process has held (Linux counts it afresh after exec only here, not in `getrusage`)."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def written(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def measured(hold: Hold, case: Case) -> dict[str, float]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(hold(case))  # type: ignore[arg-type]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "log_bytes": written(case.folder)}


def resumed(hold: Hold, case: Case) -> dict[str, float]:
    half = case.conversations * case.messages // 2
    try:
        asyncio.run(hold(replace(case, instant=Instant(half))))  # type: ignore[arg-type]
    except Exception as error:  # each framework wraps the loss of its model in its own way
        print(f"gone, as it should be: {type(error).__name__}", file=sys.stderr)
    again = Instant()
    start = time.perf_counter()
    asyncio.run(hold(replace(case, instant=again, again=True)))  # type: ignore[arg-type]
    assert again.first_at is not None, "nothing was left to do"
    return {"first_call_after": again.first_at - start, "wall": time.perf_counter() - start}


def main(hold: Hold, packages: Sequence[str], *, resumes: bool = False) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", help="the server's address; without it the model answers at once")
    parser.add_argument("--latency", type=int, default=0, help="milliseconds until the server answers")
    parser.add_argument("--conversations", type=int, default=64)
    parser.add_argument("--at-once", type=int, help="of them (default: all; only for those that can go on)")
    parser.add_argument("--rounds", type=int, default=2, help="of four messages each")
    parser.add_argument("--resume", action="store_true")
    wanted = parser.parse_args()
    if wanted.resume and not resumes:
        raise SystemExit("it keeps nothing to go on from")
    at = f"{wanted.url}/{{}}/v1" if wanted.url else None
    with tempfile.TemporaryDirectory() as folder:
        cold = Case(at and at.format(0), WARM_UP, wanted.rounds, str(Path(folder) / "warm"), Instant())
        Path(cold.folder).mkdir()
        asyncio.run(hold(cold))  # type: ignore[arg-type]
        case = replace(
            cold,
            url=at and at.format(wanted.latency),
            conversations=wanted.conversations,
            at_once=wanted.at_once or wanted.conversations,
            folder=str(Path(folder) / "log"),
        )
        Path(case.folder).mkdir()
        found = (resumed if wanted.resume else measured)(hold, case)
    versions = {package: version(package) for package in packages}
    print(json.dumps({**found, "messages": case.conversations * case.messages, "versions": versions}))
