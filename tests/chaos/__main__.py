"""The long form of the chaos suite: every study under faults, with processes killed at random.

    python -m tests.chaos --units 10000 --kills 50 --seed 1

Ends with a table: units, calls, processes, how they ended, replies that died with them. Anything lost, doubled or
different ends it with an error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.faults import FaultServer
from tests.chaos.ordeal import Ordeal
from tests.chaos.studies import trials

COLUMNS = ("units", "calls", "processes", "signals", "died", "again")
"""Of the replies: those that died with a process, and those that were asked for again."""


def _print(name: str, row: Sequence[object], seconds: float | None) -> None:
    took = "seconds" if seconds is None else f"{seconds:.0f}"
    print(f"\r{name:<19}" + "".join(f"{value:>10}" for value in (*row, took)), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=1000, help="units of all studies together, about")
    parser.add_argument("--kills", type=int, default=16, help="signals, shared out among the studies")
    parser.add_argument("--seed", type=int, default=1, help="of faults, signals and their moments")
    parser.add_argument("--share", type=float, default=0.15, help="of the requests that meet a fault")
    parser.add_argument("--executor", default="asyncio", choices=("asyncio", "processes"))
    parser.add_argument("--only", default="", help="only the studies whose name holds this, or one of these: A,B")
    asked = parser.parse_args()
    began = time.monotonic()
    chosen = [trial for trial in trials(asked.units) if any(word in trial.name for word in asked.only.split(","))]
    server = FaultServer(seed=asked.seed, share=asked.share)
    ended: Counter[str] = Counter()
    rows: list[tuple[int, ...]] = []
    _print("study", COLUMNS, None)
    with tempfile.TemporaryDirectory() as place:
        for nth, trial in enumerate(chosen):
            start = time.monotonic()
            kills = asked.kills * (nth + 1) // len(chosen) - asked.kills * nth // len(chosen)
            ordeal = Ordeal(trial, server, Path(place) / str(nth), asked.seed, executor=asked.executor)
            ordeal.peace()
            ordeal.suffer(kills, tell=lambda line: print(f"\r{line:<70}", end="", file=sys.stderr, flush=True))
            ordeal.compare()
            tally = ordeal.tally
            ended += tally.ended
            rows.append((tally.units, tally.calls, tally.lives, tally.signals, tally.died, tally.again))
            _print(trial.name, rows[-1], time.monotonic() - start)
    _print("all", [sum(column) for column in zip(*rows, strict=True)], time.monotonic() - began)
    print("processes ended:", ", ".join(f"{how} {times}" for how, times in sorted(ended.items())))
    print("faults met:", ", ".join(f"{name} {times}" for name, times in sorted(server.met.items())))
    print("units lost: 0, units doubled: 0, tables that differ: 0")
    server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
