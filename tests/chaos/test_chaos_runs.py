"""Every study and every executor under random faults, odd replies, signals and a clock that jumps: the results are
those of an undisturbed run. One case is part of the tests; `python -m tests.nightly tests/chaos` runs the others.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.chaos.chaos_run import DISK, EXECUTORS, INT, KILL, KILL_WORKER, TERM, ChaosRun
from tests.chaos.faults import FAULTS
from tests.chaos.ray_cluster import RayCluster
from tests.chaos.studies import all_trials

TRIALS = {trial.name: trial for trial in all_trials(units=100)}
OWN = TRIALS["a user's own"]
KINDS = ([KILL], [TERM, KILL], [INT], [KILL, DISK])
CASES = [
    (OWN, "asyncio", [KILL, DISK, TERM]),
    *(
        (trial, executor, [KILL_WORKER, KILL, TERM] if executor == "ray" else KINDS[nth % len(KINDS)])
        for executor in EXECUTORS
        for nth, trial in enumerate(TRIALS.values())
    ),
]


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    running = RayCluster()
    yield running
    running.close()


@pytest.mark.parametrize(
    ("trial", "executor", "kinds"),
    [pytest.param(*case, marks=pytest.mark.nightly if nth else ()) for nth, case in enumerate(CASES)],
    ids=[f"{trial.name}, {executor}, {nth}" for nth, (trial, executor, _) in enumerate(CASES)],
)
def test_under_faults_and_signals_the_results_are_the_same(trial, executor, kinds, faulty, tmp_path, request):
    """With another executor they are those of the undisturbed run with the default one."""
    faulty.share, faulty.odd = 0.1, 0.1
    cluster = request.getfixturevalue("cluster") if executor == "ray" else None
    chaos_run = ChaosRun(trial, faulty, tmp_path / "run", 6, concurrency=8, executor=executor, cluster=cluster)
    chaos_run.run_undisturbed()
    chaos_run.run_disturbed(kinds)
    nothing_is_wrong(chaos_run)
    assert trial is not OWN or KILL not in kinds or chaos_run.tally.tries[KILL]


def nothing_is_wrong(chaos_run):
    tally = chaos_run.compare()
    assert (tally.lost, tally.doubled, tally.differing) == (0, 0, 0)
    assert tally.units == chaos_run.undisturbed.count()


def test_a_run_survives_every_fault_and_what_is_lost_or_doubled_is_counted(faulty, tmp_path):
    """The first requests get one fault each, concurrently, and the run file does not differ."""
    chaos_run = ChaosRun(OWN, faulty, tmp_path / "run", seed=1, concurrency=len(FAULTS))
    chaos_run.run_undisturbed()
    faulty.scheduled = list(FAULTS)
    chaos_run.run_disturbed([])
    nothing_is_wrong(chaos_run)
    assert dict(faulty.sent_faults) == dict.fromkeys(FAULTS, 1)
    assert chaos_run.tally.ended == {0: 1}, "one process survived them all"
    assert chaos_run.tally.repeated == chaos_run.tally.unstored == 0, "no reply was paid for twice"
    assert chaos_run.file.one("SELECT sum(attempts) - count(*) FROM calls") == len(FAULTS)

    faulty.answered[-1][next(iter(chaos_run.expected))] += 1
    with closing(sqlite3.connect(chaos_run.file.path)) as db, db:
        for table in ("messages", "calls", "verdicts"):
            db.execute(f"DELETE FROM {table} WHERE unit = 'guest/0'")
        db.execute("UPDATE units SET status = 'planned' WHERE id = 'guest/0'")
    tally = chaos_run.compare()
    assert (tally.lost, tally.doubled) == (1, 1)
    assert tally.differing > 1, "the unit, and tables of the report"
