"""RLDF at the paper's size: 2,000 topics, 3 roles, 5 rounds and a referee are 40,000 calls, answered after 100 ms.

    python -m benchmarks.rldf                       # the whole plan
    python -m benchmarks.rldf --topics 200          # a tenth of it
    python -m benchmarks.rldf --executor ray  # with two workers

Run from the repository's root. The server is that of all benchmarks; the run is `parley run rldf` in a process of its
own, everything recorded, reply cache on. Shown: time compared with the ideal (calls x latency / concurrency) and with
plain aiohttp, and peak memory of the run's process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from benchmarks.peers.common import peak_mb
from benchmarks.server import server
from benchmarks.workload import verdict

ROLES, ROUNDS = 3, 5
CALLS = (ROLES + 1) * ROUNDS
TARGET = 0.9
"""Share of the ideal speed that a run must reach."""
GROWTH_MB = 10.0
"""How much more memory the second half of a run may use."""


class Plan(NamedTuple):
    """The size of the run and what executes it."""

    topics: int
    concurrency: int
    url: str
    executor: str
    workers: int

    def command(self, file: str) -> list[str]:
        """The command that runs it in a new process."""
        flags = [text for key, value in self._asdict().items() for text in (f"--{key}", str(value))]
        return [sys.executable, "-m", "benchmarks.rldf", "--child", file, *flags]


async def bare(url: str, calls: int, concurrency: int) -> float:
    """Seconds that plain aiohttp takes for prompts as long as a debate's, storing nothing: the upper bound."""
    body = json.dumps({"model": "bench", "messages": [{"role": "user", "content": "word " * 900}]})
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, headers={"Content-Type": "application/json"}) as session:
        numbers = iter(range(calls))

        async def work() -> None:
            for _ in numbers:
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    json.loads(await response.read())

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return time.perf_counter() - began


def run_once(file: str, plan: Plan) -> None:
    """The run itself, in this process: prints its seconds and its memory, halfway and at the end."""
    from parley.runs.job import Job
    from parley.runs.options import Options

    model = f"server/bench?base_url={plan.url}&max_connections={plan.concurrency}"
    config = {"topics": plan.topics, "topics_from": f"{file}.txt", "model": model, "roles": ROLES, "rounds": ROUNDS}
    config |= {"design": "paper", "check": False}
    workers = None if plan.executor == "asyncio" else plan.workers
    options = {"out": file, "concurrency": plan.concurrency, "executor": plan.executor, "workers": workers}
    job = Job.make("rldf", config, Options.model_validate(options))
    half = 0.0

    def watch(progress: Any) -> None:
        nonlocal half
        if not half and progress.done >= plan.topics // 2:
            half = peak_mb()

    began, cpu, since = time.perf_counter(), time.process_time(), time.time()
    result = asyncio.run(job.execute(on_progress=watch))
    with closing(sqlite3.connect(file)) as db:
        first = db.execute("SELECT min(started_at) FROM units").fetchone()[0]
    workers_used = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.complete, result
    figures = {
        "seconds": time.perf_counter() - began,
        "start": first - since,
        "cpu": time.process_time() - cpu + workers_used.ru_utime + workers_used.ru_stime,
        "calls": result.progress.calls - result.progress.cached,
        "cached": result.progress.cached,
        "half_mb": half,
        "peak_mb": peak_mb(),
    }
    print(json.dumps(figures))


def start(folder: Path, name: str, plan: Plan) -> subprocess.Popen[str]:
    """A new run with its own home folder; its topics are numbered questions."""
    file = folder / name
    Path(f"{file}.txt").write_text("".join(f"Is plan number {n} good for the town?\n" for n in range(plan.topics)))
    environment = {**os.environ, "PARLEY_HOME": str(folder / f"home-{name}")}
    return subprocess.Popen(plan.command(str(file)), stdout=subprocess.PIPE, text=True, env=environment)


def finish(process: subprocess.Popen[str]) -> dict[str, float]:
    out, _ = process.communicate()
    assert process.returncode == 0, "the run failed"
    return {key: float(value) for key, value in json.loads(out).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64, help="concurrent debates")
    parser.add_argument("--latency", type=float, default=0.1, help="seconds until the server answers")
    parser.add_argument("--executor", choices=("asyncio", "ray"), default="asyncio")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()

    def plan_for(url: str) -> Plan:
        return Plan(
            topics=arguments.topics,
            concurrency=arguments.concurrency,
            url=url,
            executor=arguments.executor,
            workers=arguments.workers,
        )

    if arguments.child is not None:
        run_once(arguments.child, plan_for(arguments.url))
        return
    topics, concurrency = arguments.topics, arguments.concurrency
    # The last wave is not full: no schedule of whole debates can be faster than this.
    ideal = -(-topics // concurrency) * CALLS * arguments.latency
    with tempfile.TemporaryDirectory() as name, server() as address:
        folder, url = Path(name), f"{address}/{1000 * arguments.latency:.0f}/v1"
        sample = topics * CALLS // 4
        raw = sample * arguments.latency / concurrency / asyncio.run(bare(url, sample, concurrency))
        plan = plan_for(url)
        figures = finish(start(folder, "run.sqlite", plan))
        size = (folder / "run.sqlite").stat().st_size / 2**20
    seconds, half_mb, peak = (figures[key] for key in ("seconds", "half_mb", "peak_mb"))
    calls = topics * CALLS
    print(
        f"{topics:,} topics, {calls:,} calls, {topics * ROLES * ROUNDS:,} statements, {concurrency} concurrent debates"
    )
    executor = arguments.executor
    if executor == "ray":
        executor = f"{executor}, {arguments.workers} workers"
    print(f"executor: {executor}; the first debate started after {figures['start']:.1f} s")
    print(f"ideal {ideal:.1f} s, measured {seconds:.1f} s, CPU {1e3 * figures['cpu'] / calls:.2f} ms per call")
    print(verdict("share of the ideal", ideal / seconds, TARGET, at_least=True))
    print(f"share of the ideal by plain aiohttp, nothing stored: {raw:.3f}")
    print(f"memory: {half_mb:.1f} MB halfway, {peak:.1f} MB at the end; run file {size:.0f} MB")
    print(verdict("growth in MB", peak - half_mb, GROWTH_MB, at_least=False))


if __name__ == "__main__":
    main()
