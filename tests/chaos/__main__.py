"""The long form of the chaos tests: every study with every executor under faults, its processes killed at random.

    python -m tests.chaos --units 3000 --signals 20 --seed 1 --write tests/chaos/RESULTS.md

Prints a line for each run, and then the fault table: kinds of fault, how often each was tried, and what was lost,
doubled or differs. Ends with status 1 if anything is not 0.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import zip_longest
from pathlib import Path

from tests.chaos.chaos_run import DISK, EXECUTORS, INT, KILL, KILL_WORKER, TERM, ChaosRun
from tests.chaos.fault_table import FaultTable
from tests.chaos.faults import FaultServer
from tests.chaos.ray_cluster import RayCluster
from tests.chaos.studies import all_trials

OTHERS = ([], [INT], [DISK])
"""Beside SIGKILL and SIGTERM, in turn: so each comes to every executor."""


def _kinds(nth: int, executor: str, due: dict[str, int]) -> list[str]:
    """How to disturb a run: what is due, in turn, and sometimes Ctrl-C, a full disk, or the kill of a worker."""
    others = [*OTHERS[(nth + EXECUTORS.index(executor)) % len(OTHERS)], *([KILL_WORKER] if executor == "ray" else [])]
    rounds = zip_longest([KILL] * due[KILL], others, [TERM] * due[TERM])
    return [kind for kinds in rounds for kind in kinds if kind is not None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=1000, help="approximate number of units of all runs together")
    parser.add_argument(
        "--signals", type=int, default=5, help="number of SIGKILL and of SIGTERM, each, that every executor gets"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of faults, signals and their times")
    parser.add_argument("--share", type=float, default=0.05, help="share of requests that get a fault")
    parser.add_argument("--executors", default=",".join(EXECUTORS), help="only these: A,B")
    parser.add_argument("--only", default="", help="only studies whose name contains one of these: A,B")
    parser.add_argument("--write", metavar="FILE", help="write the table there too, after every study")
    parsed = parser.parse_args()
    executors = [name for name in EXECUTORS if name in parsed.executors.split(",")]
    chosen = [
        trial
        for trial in all_trials(parsed.units // len(executors))
        if any(word in trial.name for word in parsed.only.split(","))
    ]
    server = FaultServer(seed=parsed.seed, share=parsed.share)
    cluster = RayCluster() if "ray" in executors else None
    table = FaultTable(" ".join(("python -m tests.chaos", *sys.argv[1:])), executors)
    began = time.monotonic()

    def report(line: str) -> None:
        print(f"\r{line:<70}", end="", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        try:
            for nth, trial in enumerate(chosen):
                first: ChaosRun | None = None
                for executor in executors:
                    start = time.monotonic()
                    # What earlier runs were too short for comes to this one.
                    wanted = round(parsed.signals * (nth + 1) / len(chosen))
                    due = {kind: wanted - table.tries(executor, kind) for kind in (KILL, TERM)}
                    run = ChaosRun(
                        trial,
                        server,
                        Path(folder) / f"{nth}-{executor}",
                        parsed.seed,
                        executor=executor,
                        cluster=cluster if executor == "ray" else None,
                    )
                    if first is None:
                        run.run_undisturbed()
                        first = run
                    run.compare_with(first)
                    try:
                        run.run_disturbed(_kinds(nth, executor, due), report)
                        run.compare()
                    except AssertionError as error:  # count it, and go on with the others
                        print(f"\r{trial.name}, {executor}: {error}", flush=True)
                        run.tally.differing += 1
                    table.add(trial.name, executor, run.tally)
                    print(f"\r{table.line(trial.name, executor)}  {time.monotonic() - start:.0f} s", flush=True)
                if parsed.write:
                    table.seconds = time.monotonic() - began
                    Path(parsed.write).write_text(table.markdown())
        finally:
            server.close()
            if cluster is not None:
                cluster.close()
    table.seconds = time.monotonic() - began
    print(table.markdown())
    return 0 if table.clean else 1


if __name__ == "__main__":
    sys.exit(main())
