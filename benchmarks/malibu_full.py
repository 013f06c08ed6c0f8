"""The full suite on a model that answers immediately: units per second, and memory.

python -m benchmarks.malibu_full            # both phases, 17,000 units, 136,000 judgements
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import parley
from parley.execute import Options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-base", type=int, default=10, help="scenarios of each of the 20 bases")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options = Options(out=str(Path(folder) / "full.sqlite"), cache=False)
        started, cpu = time.perf_counter(), time.process_time()
        result = parley.run("malibu", options=options, suite="full", per_base=arguments.per_base, model="sim/judge")
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
        size = Path(options.out or "").stat().st_size
    progress = result.progress
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{progress.done:,} units, {progress.calls:,} calls in {seconds:.1f} s ({cpu_seconds:.1f} s of CPU)")
    print(f"{progress.done / seconds:.0f} units/s, {progress.calls / seconds:.0f} calls/s")
    print(f"{1000 * cpu_seconds / progress.calls:.2f} ms of CPU per call, including the simulated model's own work")
    print(f"peak memory {peak:.0f} MB, run file {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
