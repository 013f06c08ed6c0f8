"""Memory of a long run: its peak must not grow with the number of units.

    python -m benchmarks.memory

Run from the repository's root. Each size runs in a fresh process, on the model that answers at once, 64 units
under way, everything recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.panel import hold_panels
from benchmarks.peers.common import peak_mb

TARGET_MB = 5.0
"""How much more a run ten times as long may take."""


def hold(units: int, concurrency: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(hold_panels(folder, units, concurrency))
        written = sum(file.stat().st_size for file in Path(folder).iterdir())
    print(json.dumps({"units": units, "peak_mb": peak_mb(), "written_mb": written / 2**20}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--units", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hold", type=int, metavar="UNITS", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.hold is not None:
        hold(wanted.hold, wanted.concurrency)
        return
    rows = []
    for units in wanted.units:
        command = [sys.executable, "-m", "benchmarks.memory", "--hold", str(units)]
        command += ["--concurrency", str(wanted.concurrency)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    growth = rows[-1]["peak_mb"] - rows[0]["peak_mb"]
    if wanted.json:
        print(json.dumps({"rows": rows, "growth_mb": growth, "target_mb": TARGET_MB}, indent=2))
        return
    print(f"{'units':>8} {'peak MB':>9} {'run file MB':>12}")
    for row in rows:
        print(f"{row['units']:8} {row['peak_mb']:9.1f} {row['written_mb']:12.1f}")
    met = "met" if growth <= TARGET_MB else "MISSED"
    print(f"growth: {growth:.1f} MB (at most {TARGET_MB:g} MB wanted: {met})")


if __name__ == "__main__":
    main()
