"""The full suite on a model that answers immediately: units per second, and memory.

python -m benchmarks.malibu_full                                      # both phases, 17,000 units, 136,000 judgements
python -m benchmarks.malibu_full --executors asyncio,auto,processes   # one run by each
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import parley
from benchmarks.workload import verdict
from parley.runs.job import Options

TARGET = 500.0
"""Units per second, with two cores."""


PANEL: dict[str, Any] = {
    "design": "paper",
    "cells": "all",
    "blind": True,
    "speaking_order": "shuffled",
    "ties": True,
    "reasons_first": True,
}
"""Four judges, two rounds, four cells of each pair: what the figures of earlier versions are about."""


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_once(executor: str, per_base: int) -> float:
    """One run; prints its figures, and returns its units per second."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "full.sqlite"
        options = Options.model_validate({"out": str(file), "cache": False, "executor": executor})
        started, own, workers = time.perf_counter(), time.process_time(), children_cpu()
        result = parley.run("malibu", options=options, suite="full", per_base=per_base, model="sim/judge", **PANEL)
        seconds = time.perf_counter() - started
        own, workers = time.process_time() - own, children_cpu() - workers
        size = file.stat().st_size
    done, calls, cpu = result.progress.done, result.progress.calls, own + workers
    print(f"{executor}: {done:,} units, {calls:,} calls in {seconds:.1f} s")
    print(f"  {done / seconds:.0f} units/s, {calls / seconds:.0f} calls/s; {done / cpu:.0f} units per CPU second")
    print(f"  CPU seconds: {own:.1f} of the run's process, {workers:.1f} of its workers")
    print(f"  {1000 * cpu / calls:.2f} ms of CPU per call, including the simulated model's own work")
    print(f"  run file {size / 1e6:.0f} MB")
    return done / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-base", type=int, default=10, help="scenarios of each of the 20 bases")
    parser.add_argument("--executors", default="auto", help="separated by commas")
    arguments = parser.parse_args()
    for executor in arguments.executors.split(","):
        speed = run_once(executor, arguments.per_base)
        print("  " + verdict("units per second", speed, TARGET, at_least=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the run's process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
