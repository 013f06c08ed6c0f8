"""Executors compared: messages per second on a server that answers after 200 ms, with two workers each.

    python -m benchmarks.executors                          # asyncio, ray (if installed)
    python -m benchmarks.executors --executors asyncio,ray --rounds 3

Run from the repository's root. The workload is the panel of `workload`, everything recorded, reply cache off. Time is
measured from the start of the first unit to the end of the last, as the run file has them; starting the workers (five
seconds or more) is shown separately. Rounds alternate, and ratios are taken within rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.panel import run_panels
from benchmarks.server import server
from benchmarks.workload import MESSAGES, median, verdict

TARGET = 0.9
"""The least ratio of an executor's throughput to asyncio's."""


def run_once(executor: str, url: str, conversations: int, waves: int, workers: int) -> dict[str, float]:
    """One run: its messages per second, and the seconds until its first unit started."""
    with tempfile.TemporaryDirectory() as folder:
        model = f"server/bench?base_url={url}&max_connections=4096"
        more = {"executor": executor, "workers": None if executor == "asyncio" else workers}
        requested = time.time()
        asyncio.run(run_panels(folder, conversations * waves, conversations, model, **more))
        with closing(sqlite3.connect(Path(folder) / "run.sqlite")) as db:
            first, last = db.execute("SELECT min(started_at), max(finished_at) FROM units").fetchone()
    return {"messages_a_second": conversations * waves * MESSAGES / (last - first), "start_seconds": first - requested}


def measure(
    executors: Sequence[str], conversations: int = 256, waves: int = 2, rounds: int = 3, workers: int = 2
) -> dict[str, Any]:
    """All figures, and each executor's throughput over asyncio's."""
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in executors}
    with server() as url:
        for _ in range(rounds):
            for name in executors:
                figures[name].append(run_once(name, f"{url}/200/v1", conversations, waves, workers))
    plain = figures[executors[0]]
    ratios = {
        name: median([a["messages_a_second"] / b["messages_a_second"] for a, b in zip(rows, plain, strict=True)])
        for name, rows in figures.items()
    }
    return {"figures": figures, "over_asyncio": ratios, "target": TARGET, "ideal": conversations / 0.2}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = ["asyncio", *(["ray"] if importlib.util.find_spec("ray") else [])]
    parser.add_argument("--executors", default=",".join(known), help="asyncio first: the others are compared with it")
    parser.add_argument("--conversations", type=int, default=256, help="concurrent conversations, eight calls each")
    parser.add_argument("--waves", type=int, default=2, help="conversations in sequence per concurrent slot")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    names = arguments.executors.split(",")
    if names[0] != "asyncio":
        parser.error("asyncio must come first")
    results = measure(names, arguments.conversations, arguments.waves, arguments.rounds, arguments.workers)
    print(f"{'messages per second':<20} {'median':>8} {'min':>8} {'max':>8} {'start s':>8} {'over asyncio':>13}")
    for name, rows in results["figures"].items():
        speed = [row["messages_a_second"] for row in rows]
        start = median([row["start_seconds"] for row in rows])
        ratio = results["over_asyncio"][name]
        print(f"{name:<20} {median(speed):8.0f} {min(speed):8.0f} {max(speed):8.0f} {start:8.1f} {ratio:13.3f}")
    print(f"{'without overhead':<20} {results['ideal']:8.0f}")
    for name in names[1:]:
        print(verdict(f"{name} over asyncio", results["over_asyncio"][name], TARGET, at_least=True))


if __name__ == "__main__":
    main()
