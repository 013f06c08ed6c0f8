"""The long form of the chaos tests: every study under faults, with processes killed at random.

    python -m tests.chaos --units 10000 --kills 50 --seed 1

Prints a table: units, calls, processes, how they ended, replies lost with them. If anything is lost, duplicated or
different, it stops with an error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.chaos_run import ChaosRun
from tests.chaos.faults import FaultServer
from tests.chaos.studies import trials

COLUMNS = ("units", "calls", "processes", "signals", "lost", "repeated")
"""The last two: replies lost with a killed process, and replies requested again."""


def _print(name: str, row: Sequence[object], seconds: float | None) -> None:
    duration = "seconds" if seconds is None else f"{seconds:.0f}"
    print(f"\r{name:<19}" + "".join(f"{value:>10}" for value in (*row, duration)), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=1000, help="approximate number of units of all studies together")
    parser.add_argument("--kills", type=int, default=16, help="number of signals, divided among the studies")
    parser.add_argument("--seed", type=int, default=1, help="seed of faults, signals and their times")
    parser.add_argument("--share", type=float, default=0.15, help="share of requests that get a fault")
    parser.add_argument("--executor", default="asyncio", choices=("asyncio", "processes"))
    parser.add_argument("--only", default="", help="only studies whose name contains one of these: A,B")
    parsed = parser.parse_args()
    began = time.monotonic()
    chosen = [trial for trial in trials(parsed.units) if any(word in trial.name for word in parsed.only.split(","))]
    server = FaultServer(seed=parsed.seed, share=parsed.share)
    ended: Counter[str] = Counter()
    rows: list[tuple[int, ...]] = []
    _print("study", COLUMNS, None)
    with tempfile.TemporaryDirectory() as folder:
        for nth, trial in enumerate(chosen):
            start = time.monotonic()
            kills = parsed.kills * (nth + 1) // len(chosen) - parsed.kills * nth // len(chosen)
            chaos_run = ChaosRun(trial, server, Path(folder) / str(nth), parsed.seed, executor=parsed.executor)
            chaos_run.run_undisturbed()
            chaos_run.run_disturbed(
                kills, report=lambda line: print(f"\r{line:<70}", end="", file=sys.stderr, flush=True)
            )
            chaos_run.compare()
            tally = chaos_run.tally
            ended += tally.ended
            rows.append((tally.units, tally.calls, tally.processes, tally.signals, tally.lost, tally.repeated))
            _print(trial.name, rows[-1], time.monotonic() - start)
    _print("all", [sum(column) for column in zip(*rows, strict=True)], time.monotonic() - began)
    print("processes ended:", ", ".join(f"{how} {times}" for how, times in sorted(ended.items())))
    print("faults sent:", ", ".join(f"{name} {times}" for name, times in sorted(server.sent_faults.items())))
    print("units lost: 0, units duplicated: 0, tables that differ: 0")
    server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
