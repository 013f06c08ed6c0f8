"""Every study and every executor under random faults, odd replies, signals and a clock that jumps: the results are
those of an undisturbed run.

A seeded sample; the long form is `python -m tests.chaos`, whose table is in RESULTS.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.chaos_run import DISK, EXECUTORS, INT, KILL, KILL_WORKER, TERM, ChaosRun
from tests.chaos.faults import FAULTS, FaultServer
from tests.chaos.ray_cluster import RayCluster
from tests.chaos.studies import all_trials

TRIALS = all_trials(units=100)
OWN = next(trial for trial in TRIALS if trial.name == "a user's own")
KINDS = ([KILL], [TERM, KILL], [INT])


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    fault_server = FaultServer(seed=5, share=0.1)
    yield fault_server
    fault_server.close()


@pytest.mark.nightly
@pytest.mark.parametrize("nth", range(len(TRIALS)), ids=[trial.name for trial in TRIALS])
def test_a_study_under_faults_and_signals_gives_the_same_results(nth: int, server: FaultServer, tmp_path: Path) -> None:
    chaos_run = ChaosRun(TRIALS[nth], server, tmp_path / "run", seed=5, concurrency=8)
    chaos_run.run_undisturbed()
    chaos_run.run_disturbed(KINDS[nth % len(KINDS)])
    nothing_is_wrong(chaos_run)


@pytest.mark.parametrize(
    "executor",
    [pytest.param(name, marks=[] if name == "asyncio" else pytest.mark.nightly) for name in EXECUTORS],
)
def test_an_executor_under_faults_and_signals_gives_the_same_results(
    executor: str, server: FaultServer, tmp_path: Path
) -> None:
    """With another executor the results are those of the undisturbed run with the default one."""
    cluster = None
    if executor == "ray":
        pytest.importorskip("ray")
        cluster = RayCluster()
    try:
        chaos_run = ChaosRun(OWN, server, tmp_path / "run", 6, concurrency=8, executor=executor, cluster=cluster)
        chaos_run.run_undisturbed()
        chaos_run.run_disturbed([KILL, DISK, TERM] if cluster is None else [KILL_WORKER, KILL, TERM])
        nothing_is_wrong(chaos_run)
        assert chaos_run.tally.kills > 0
    finally:
        if cluster is not None:
            cluster.close()


def nothing_is_wrong(chaos_run: ChaosRun) -> None:
    tally = chaos_run.compare()
    assert (tally.lost, tally.doubled, tally.differing) == (0, 0, 0)
    assert tally.units == chaos_run.undisturbed.count()


def test_a_run_survives_every_fault(faulty: FaultServer, tmp_path: Path) -> None:
    """The first requests get one fault each, concurrently, and the run file does not differ."""
    chaos_run = ChaosRun(OWN, faulty, tmp_path / "run", seed=1, concurrency=len(FAULTS))
    chaos_run.run_undisturbed()
    faulty.scheduled = list(FAULTS)
    chaos_run.run_disturbed([])
    nothing_is_wrong(chaos_run)
    assert dict(faulty.sent_faults) == dict.fromkeys(FAULTS, 1)
    assert chaos_run.tally.ended == {"exit 0": 1}, "one process survived them all"
    assert chaos_run.tally.repeated == chaos_run.tally.unstored == 0, "no reply was paid for twice"
    assert chaos_run.file.one("SELECT sum(attempts) - count(*) FROM calls") == len(FAULTS)


def test_a_lost_unit_and_a_doubled_reply_are_counted(faulty: FaultServer, tmp_path: Path) -> None:
    chaos_run = ChaosRun(OWN, faulty, tmp_path / "run", seed=1, concurrency=8)
    chaos_run.run_undisturbed()
    chaos_run.run_disturbed([])
    faulty.answered[-1][next(iter(chaos_run.expected))] += 1
    with closing(sqlite3.connect(chaos_run.file.path)) as db:
        for table in ("messages", "calls", "verdicts"):
            db.execute(f"DELETE FROM {table} WHERE unit = 'guest/0'")
        db.execute("UPDATE units SET status = 'planned' WHERE id = 'guest/0'")
        db.commit()

    tally = chaos_run.compare()

    assert (tally.lost, tally.doubled) == (1, 1)
    assert tally.differing > 1, "the unit, and tables of the report"
