"""`parley report` on a run of 20 scenarios: CPU seconds beyond importing pandas, SciPy and Matplotlib.

    python -m benchmarks.small_report
    python -m benchmarks.small_report --times 5

Run from the repository's root. A simulated judge makes the run first. Each report is a process of its own, which first
imports the three packages and then runs the command; both parts are timed in that process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import parley

TARGET = 1.5
"""CPU seconds beyond the imports."""
CHILD = """
import contextlib, io, json, sys, time
import pandas, scipy.stats, matplotlib.figure, matplotlib.backends.backend_agg
imported = time.process_time()
from parley.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    status = main(["report", sys.argv[1], "--out", sys.argv[2]])
assert status == 0
print(json.dumps([imported, time.process_time() - imported]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU seconds of `parley report` on a run of 20 scenarios")
    parser.add_argument("--times", type=int, default=3, help="number of reports (default: 3)")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "small.sqlite"
        parley.run(
            "malibu",
            model="sim/judge?female=+0.4",
            suite="full",
            per_base=1,
            identities=["gender"],
            controls=False,
            yardstick="brief",
            options=parley.Options(cache=False, out=str(run)),
        )
        reports = [_report(run, Path(folder) / f"report-{nth}") for nth in range(parsed.times)]
    for imports, beyond in reports:
        print(f"imports {imports:.2f} s, the report {beyond:.2f} s")
    median = statistics.median(beyond for _, beyond in reports)
    print(f"median {median:.2f} s of CPU beyond the imports (target: {TARGET} s)")


def _report(run: Path, folder: Path) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(run), str(folder)], check=True, capture_output=True, text=True
    )
    imports, beyond = json.loads(done.stdout.splitlines()[-1])
    return imports, beyond


if __name__ == "__main__":
    main()
