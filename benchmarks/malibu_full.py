"""The full suite on a model that answers at once: units a second, and memory.

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
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options = Options(out=str(Path(folder) / "full.sqlite"), cache=False)
        started, cpu = time.perf_counter(), time.process_time()
        result = parley.run("malibu", options=options, suite="full", per_base=parsed.per_base, model="sim/judge")
        took, worked = time.perf_counter() - started, time.process_time() - cpu
        size = Path(options.out or "").stat().st_size
    progress = result.progress
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{progress.done:,} units, {progress.calls:,} calls in {took:.1f} s ({worked:.1f} s of CPU)")
    print(f"{progress.done / took:.0f} units/s, {progress.calls / took:.0f} calls/s")
    print(f"{1000 * worked / progress.calls:.2f} ms of CPU a call, the simulated model's own work among it")
    print(f"peak memory {peak:.0f} MB, run file {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
