"""Large runs compared with the forecasts of `parley run --dry-run --limits`: time, disk, memory and refused requests.

    python -m benchmarks.scale                     # 10,000 and 100,000 calls; about six minutes on an idle machine
    python -m benchmarks.scale --calls 10000       # the small ones only

Run from the repository's root. Each run is complete, everything recorded, reply cache on, in its own process, against
the server on loopback: without latency, and with 20 ms and a limit on requests per minute. The time per call is taken
from the first run; everything else is predicted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.panel import Panel, PanelConfig
from benchmarks.peers.common import peak_mb
from benchmarks.server import counted, server
from benchmarks.workload import MESSAGES, reply
from parley.jobs.forecast import CHARACTERS_PER_TOKEN, Machine, ProviderLimits, Work, forecast
from parley.runs.job import Job
from parley.runs.options import Options

CONCURRENCY = 64
LIMITS = {10_000: 18_000, 100_000: 36_000}
"""Requests per minute that the server accepts, by the number of calls of the run."""


def run_once(url: str, calls: int) -> None:
    """A complete run in this process; its figures as one JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PARLEY_HOME"] = str(Path(folder) / "home")
        out = Path(folder) / "run.sqlite"
        config = PanelConfig(conversations=calls // MESSAGES, model=f"server/bench?base_url={url}/v1")
        job = Job.of(
            Panel(config), "benchmarks.panel:Panel", Options(out=str(out), concurrency=CONCURRENCY, executor="asyncio")
        )
        start, cpu = time.perf_counter(), time.process_time()
        result = asyncio.run(job.execute())
        figures = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu, "peak_mb": peak_mb()}
        assert result.complete, result
        cache = sum(file.stat().st_size for file in Path(os.environ["PARLEY_HOME"]).rglob("*") if file.is_file())
        print(json.dumps(figures | {"run_bytes": out.stat().st_size, "cache_bytes": cache}))


def measured(calls: int, latency: int, per_minute: int) -> dict[str, Any]:
    with server(per_minute) as url:
        command = [sys.executable, "-m", "benchmarks.scale", "--child", f"{url}/{latency}", "--calls", str(calls)]
        figures: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return figures | {"refused": counted(url)["refused"] / calls}


def predicted(calls: int, latency: int, per_minute: int, cpu_ms: float) -> dict[str, float]:
    work = Work(calls, MESSAGES, 0, len(reply()) / CHARACTERS_PER_TOKEN)
    provider = ProviderLimits(requests_a_minute=per_minute or float("inf"), latency=latency / 1000)
    prediction = forecast(work, provider, Machine(CONCURRENCY, cpu_ms))
    return {
        "seconds": prediction.seconds,
        "refused": prediction.refused,
        "run_mb": 1000 * prediction.run_gb,
        "cache_mb": 1000 * prediction.cache_gb,
        "peak_mb": prediction.memory_mb,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--child", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_once(arguments.child, arguments.calls[0])
        return
    cpu_ms = None
    for calls in arguments.calls:
        for latency, per_minute in ((0, 0), (20, LIMITS.get(calls, 18_000))):
            actual = measured(calls, latency, per_minute)
            cpu_ms = cpu_ms or 1000 * actual["seconds"] / calls
            actual |= {"run_mb": actual["run_bytes"] / 1e6, "cache_mb": actual["cache_bytes"] / 1e6}
            case = {"calls": calls, "latency_ms": latency, "requests_a_minute": per_minute, "cpu_ms": cpu_ms}
            _show(case | {"predicted": predicted(calls, latency, per_minute, cpu_ms), "measured": actual})


def _show(row: dict[str, Any]) -> None:
    limit = f", {row['requests_a_minute']:,} requests per minute" if row["requests_a_minute"] else ""
    print(f"{row['calls']:,} calls, {row['latency_ms']} ms{limit} ({row['cpu_ms']:.2f} ms per call)")
    print(f"  {'':<22}{'predicted':>11}{'measured':>11}{'ratio':>8}")
    for key, name in (
        ("seconds", "seconds"),
        ("refused", "refused per call"),
        ("run_mb", "run file, MB"),
        ("cache_mb", "reply cache, MB"),
        ("peak_mb", "peak memory, MB"),
    ):
        expected, actual = row["predicted"][key], row["measured"][key]
        ratio = f"{expected / actual:8.2f}" if actual else f"{'–':>8}"
        print(f"  {name:<22}{expected:>11.3f}{actual:>11.3f}{ratio}", flush=True)


if __name__ == "__main__":
    main()
