"""Memory of a long run: its peak must not grow with the number of units.

    python -m benchmarks.memory

Run from the repository's root. Each size runs in a fresh process, on a model that answers immediately, 64 units
concurrently, everything recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.panel import run_panels
from benchmarks.peers.common import peak_mb

TARGET_MB = 5.0
"""How much more memory a run ten times as long may use."""


def run_once(units: int, concurrency: int) -> None:
    """One run in this process; its figures as one JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run_panels(folder, units, concurrency))
        written = sum(file.stat().st_size for file in Path(folder).iterdir())
    print(json.dumps({"units": units, "peak_mb": peak_mb(), "written_mb": written / 2**20}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--units", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", type=int, metavar="UNITS", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        run_once(arguments.child, arguments.concurrency)
        return
    rows = []
    for units in arguments.units:
        command = [sys.executable, "-m", "benchmarks.memory", "--child", str(units)]
        command += ["--concurrency", str(arguments.concurrency)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    growth = rows[-1]["peak_mb"] - rows[0]["peak_mb"]
    if arguments.json:
        print(json.dumps({"rows": rows, "growth_mb": growth, "target_mb": TARGET_MB}, indent=2))
        return
    print(f"{'units':>8} {'peak MB':>9} {'run file MB':>12}")
    for row in rows:
        print(f"{row['units']:8} {row['peak_mb']:9.1f} {row['written_mb']:12.1f}")
    met = "met" if growth <= TARGET_MB else "MISSED"
    print(f"growth: {growth:.1f} MB (target: at most {TARGET_MB:g} MB; {met})")


if __name__ == "__main__":
    main()
