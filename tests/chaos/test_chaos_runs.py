"""Every study under random faults, odd replies, signals and a clock that jumps: the results are those of an
undisturbed run.

The long form is `python -m tests.chaos`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.chaos_run import ChaosRun
from tests.chaos.faults import FAULTS, FaultServer
from tests.chaos.studies import Trial, trials

TRIALS = trials(units=100)
KILLS = 2


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    fault_server = FaultServer(seed=5, share=0.1)
    yield fault_server
    fault_server.close()


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.name for trial in TRIALS])
def test_a_study_under_faults_and_signals_gives_the_same_results(
    trial: Trial, server: FaultServer, tmp_path: Path
) -> None:
    chaos_run = ChaosRun(trial, server, tmp_path / "run", seed=5, concurrency=8)
    chaos_run.run_undisturbed()
    chaos_run.run_disturbed(KILLS)
    chaos_run.compare()
    assert chaos_run.tally.units == chaos_run.undisturbed.count()


def test_worker_processes_under_faults_and_signals(server: FaultServer, tmp_path: Path) -> None:
    """With another executor the results are those of the undisturbed run with the default one."""
    own = next(trial for trial in TRIALS if trial.name == "a user's own")
    chaos_run = ChaosRun(own, server, tmp_path / "run", seed=6, concurrency=8, executor="processes")
    chaos_run.run_undisturbed()
    chaos_run.run_disturbed(kills=1)
    chaos_run.compare()


def test_a_run_survives_every_fault(faulty: FaultServer, tmp_path: Path) -> None:
    """The first requests get one fault each, concurrently, and the run file does not differ."""
    own = next(trial for trial in TRIALS if trial.name == "a user's own")
    chaos_run = ChaosRun(own, faulty, tmp_path / "run", seed=1, concurrency=len(FAULTS))
    chaos_run.run_undisturbed()
    faulty.scheduled = list(FAULTS)
    chaos_run.run_disturbed(kills=0)
    chaos_run.compare()
    assert dict(faulty.sent_faults) == dict.fromkeys(FAULTS, 1)
    assert chaos_run.tally.ended == {"exit 0": 1}, "one process survived them all"
    assert chaos_run.tally.repeated == chaos_run.tally.lost == 0, "no reply was paid for twice"
    assert chaos_run.file.one("SELECT sum(attempts) - count(*) FROM calls") == len(FAULTS)
