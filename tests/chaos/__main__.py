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
from collections import Counter
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from tests.chaos.chaos_run import DISK, EXECUTORS, INT, KILL, KILL_WORKER, TERM, ChaosRun, Tally
from tests.chaos.faults import FaultServer
from tests.chaos.ray_cluster import RayCluster
from tests.chaos.studies import all_trials

ABOUT = """\
# Fault table

Every study with every executor, under faults and a clock that jumps, killed and resumed until it is done, and compared
with an undisturbed run. *Lost*: finished units that are missing. *Doubled*: units or calls that are stored twice, and
replies that were stored and paid for again. *Differing*: units, and
tables of the report, that differ from the undisturbed run's. A process that is killed may have received replies that
are not in the cache yet: as many repeated requests as that are not counted as doubled. A run has
several kinds of fault, and counts for each.
"""
OTHERS = ([], [INT], [DISK])
"""Beside SIGKILL and SIGTERM, in turn: so each comes to every executor."""
SHARE = 0.05
"""Of requests that get a fault."""
Runs = dict[tuple[str, str], Tally]


def tries(runs: Runs, kind: str, executor: str) -> int:
    return sum(tally.tries[kind] for (_, name), tally in runs.items() if name == executor)


def kinds(nth: int, executor: str, wanted: int, runs: Runs) -> list[str]:
    """How to disturb a run: what earlier ones were too short for, and at times Ctrl-C, a full disk, a killed worker."""
    others = [*OTHERS[(nth + EXECUTORS.index(executor)) % len(OTHERS)], *([KILL_WORKER] if executor == "ray" else [])]
    due = [[kind] * (wanted - tries(runs, kind, executor)) for kind in (KILL, TERM)]
    return [kind for turn in zip_longest(due[0], others, due[1]) for kind in turn if kind is not None]


def page(runs: Runs, seconds: float) -> str:
    """The fault table: by executor, by kind of fault and by study."""
    every = sum((tally.tries for tally in runs.values()), Counter[str]())
    rows: dict[str, list[Tally]] = {}
    for (study, executor), tally in runs.items():
        faults = [f"{kind} ({every[kind]:,} tries)" for kind in tally.tries if tally.tries[kind]]
        for name in (executor, *faults, study):
            rows.setdefault(name, []).append(tally)
    rows["all"] = list(runs.values())
    units, processes, unstored, repeated = (
        sum(getattr(tally, name) for tally in runs.values()) for name in ("units", "processes", "unstored", "repeated")
    )
    made = (
        f"`python -m tests.chaos {' '.join(sys.argv[1:])}`, {datetime.now(UTC):%d %B %Y}: {units:,} units, {processes} "
        f"processes, {seconds / 60:.0f} minutes. Replies that were lost with a process: {unstored:,}; requested again: "
        f"{repeated:,}.\n"
    )
    lines = [f"| {name} | {len(found)} | {' | '.join(map(str, outcome(found)))} |" for name, found in rows.items()]
    head = ("| | runs | units | lost | doubled | differing |", "| --- | ---: | ---: | ---: | ---: | ---: |")
    return "\n".join((ABOUT, made, *head, *lines, ""))


def outcome(tallies: list[Tally]) -> list[int]:
    return [sum(getattr(tally, name) for tally in tallies) for name in ("units", "lost", "doubled", "differing")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=1000, help="approximate number of units of all runs together")
    parser.add_argument("--signals", type=int, default=5, help="number of SIGKILL, and of SIGTERM, for every executor")
    parser.add_argument("--executors", nargs="+", choices=EXECUTORS, default=EXECUTORS, help="which to run with")
    parser.add_argument("--seed", type=int, default=1, help="seed of faults, signals and their times")
    parser.add_argument("--write", metavar="FILE", help="write the table there too, after every study")
    asked = parser.parse_args()
    chosen = all_trials(asked.units // len(asked.executors))
    server = FaultServer(seed=asked.seed, share=SHARE)
    cluster = RayCluster() if "ray" in asked.executors else None
    runs: Runs = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for nth, trial in enumerate(chosen):
                for executor in asked.executors:
                    place = Path(folder) / f"{nth}-{executor}"
                    run = ChaosRun(trial, server, place, asked.seed, executor=executor, cluster=cluster)
                    try:
                        run.run_undisturbed()
                        run.run_disturbed(kinds(nth, executor, round(asked.signals * (nth + 1) / len(chosen)), runs))
                        run.compare()
                    except AssertionError as error:  # count it, and go on with the others
                        print(f"{trial.name}, {executor}: {error}", flush=True)
                        run.tally.differing += 1
                    runs[trial.name, executor] = run.tally
                    print(trial.name, executor, outcome([run.tally]), f"{time.monotonic() - began:.0f} s", flush=True)
                if asked.write:
                    Path(asked.write).write_text(page(runs, time.monotonic() - began))
        finally:
            server.close()
            if cluster is not None:
                cluster.close()
    print(page(runs, time.monotonic() - began))
    return int(any(outcome(list(runs.values()))[1:]))


if __name__ == "__main__":
    sys.exit(main())
