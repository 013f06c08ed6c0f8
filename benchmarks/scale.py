"""Large runs beside what `parley plan` says of them: hours, disk, memory, refusals, predicted and measured.

    python -m benchmarks.scale                     # 10,000 and 100,000 calls; about six minutes on an idle machine
    python -m benchmarks.scale --calls 10000       # the small ones only

Run from the repository's root. Each run is a whole one, everything recorded, reply cache on, in a process of its own,
against the server on loopback: at once, and after 20 ms with a limit on requests a minute. What a call costs in CPU is
taken from the first run (on a busy machine: from its time, since the core is shared), everything else is predicted.
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
from parley.execute import Job, Options
from parley.planning import CHARACTERS_PER_TOKEN, Machine, ProviderLimits, Work, forecast

CONCURRENCY = 64
LIMITS = {10_000: 18_000, 100_000: 36_000}
"""Requests a minute that the server admits, for a run of so many calls."""


def hold(url: str, calls: int) -> None:
    """A whole run; its figures as one JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PARLEY_HOME"] = str(Path(folder) / "home")
        out = Path(folder) / "run.sqlite"
        config = PanelConfig(conversations=calls // MESSAGES, model=f"server/bench?base_url={url}/v1")
        job = Job.of(Panel(config), "benchmarks.panel:Panel", Options(out=str(out), concurrency=CONCURRENCY))
        start, cpu = time.perf_counter(), time.process_time()
        result = asyncio.run(job.execute())
        found = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu, "peak_mb": peak_mb()}
        assert result.complete, result
        cache = sum(file.stat().st_size for file in Path(os.environ["PARLEY_HOME"]).rglob("*") if file.is_file())
        print(json.dumps(found | {"run_bytes": out.stat().st_size, "cache_bytes": cache}))


def measured(calls: int, latency: int, per_minute: int) -> dict[str, Any]:
    with server(per_minute) as url:
        command = [sys.executable, "-m", "benchmarks.scale", "--hold", f"{url}/{latency}", "--calls", str(calls)]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return found | {"refused": counted(url)["refused"] / calls}


def predicted(calls: int, latency: int, per_minute: int, cpu_ms: float) -> dict[str, float]:
    work = Work(calls, MESSAGES, 0, len(reply()) / CHARACTERS_PER_TOKEN)
    provider = ProviderLimits(requests_a_minute=per_minute or float("inf"), latency=latency / 1000)
    found = forecast(work, provider, Machine(CONCURRENCY, cpu_ms))
    return {
        "seconds": found.seconds,
        "refused": found.refused,
        "run_mb": 1000 * found.run_gb,
        "cache_mb": 1000 * found.cache_gb,
        "peak_mb": found.memory_mb,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hold", metavar="URL", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.hold:
        hold(wanted.hold, wanted.calls[0])
        return
    rows, cpu_ms = [], None
    for calls in wanted.calls:
        for latency, per_minute in ((0, 0), (20, LIMITS.get(calls, 18_000))):
            seen = measured(calls, latency, per_minute)
            cpu_ms = cpu_ms or 1000 * seen["seconds"] / calls
            seen |= {"run_mb": seen["run_bytes"] / 1e6, "cache_mb": seen["cache_bytes"] / 1e6}
            case = {"calls": calls, "latency_ms": latency, "requests_a_minute": per_minute, "cpu_ms": cpu_ms}
            rows.append(case | {"predicted": predicted(calls, latency, per_minute, cpu_ms), "measured": seen})
            if not wanted.json:
                _show(rows[-1])
    if wanted.json:
        print(json.dumps(rows, indent=2))


def _show(row: dict[str, Any]) -> None:
    limit = f", {row['requests_a_minute']:,} requests a minute" if row["requests_a_minute"] else ""
    print(f"{row['calls']:,} calls, {row['latency_ms']} ms{limit} ({row['cpu_ms']:.2f} ms of the core a call)")
    print(f"  {'':<22}{'predicted':>11}{'measured':>11}{'ratio':>8}")
    for key, name in (
        ("seconds", "seconds"),
        ("refused", "refused a call"),
        ("run_mb", "run file, MB"),
        ("cache_mb", "reply cache, MB"),
        ("peak_mb", "peak memory, MB"),
    ):
        said, seen = row["predicted"][key], row["measured"][key]
        ratio = f"{said / seen:8.2f}" if seen else f"{'–':>8}"
        print(f"  {name:<22}{said:>11.3f}{seen:>11.3f}{ratio}", flush=True)


if __name__ == "__main__":
    main()
