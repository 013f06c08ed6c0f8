"""Every study under random faults, odd replies, signals and a clock that jumps: it ends as if nothing had been.

The long form is `python -m tests.chaos`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faults import FAULTS, FaultServer
from tests.chaos.ordeal import Ordeal
from tests.chaos.studies import Trial, trials

TRIALS = trials(units=100)
KILLS = 2


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    serving = FaultServer(seed=5, share=0.1)
    yield serving
    serving.close()


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.name for trial in TRIALS])
def test_a_study_under_faults_and_signals_ends_as_if_nothing_had_been(
    trial: Trial, server: FaultServer, tmp_path: Path
) -> None:
    ordeal = Ordeal(trial, server, tmp_path / "ordeal", seed=5, concurrency=8)
    ordeal.peace()
    ordeal.suffer(KILLS)
    ordeal.compare()
    assert ordeal.tally.units == ordeal.undisturbed.count()


def test_worker_processes_under_faults_and_signals(server: FaultServer, tmp_path: Path) -> None:
    """Whoever holds the units: the run ends as the one that its own process held undisturbed."""
    own = next(trial for trial in TRIALS if trial.name == "a user's own")
    ordeal = Ordeal(own, server, tmp_path / "ordeal", seed=6, concurrency=8, executor="processes")
    ordeal.peace()
    ordeal.suffer(kills=1)
    ordeal.compare()


def test_every_fault_is_outlived(faulty: FaultServer, tmp_path: Path) -> None:
    """The first requests meet one fault each, all at once; nobody who reads the run can tell."""
    own = next(trial for trial in TRIALS if trial.name == "a user's own")
    ordeal = Ordeal(own, faulty, tmp_path / "ordeal", seed=1, concurrency=len(FAULTS))
    ordeal.peace()
    faulty.first = list(FAULTS)
    ordeal.suffer(kills=0)
    ordeal.compare()
    assert dict(faulty.met) == dict.fromkeys(FAULTS, 1)
    assert ordeal.tally.ended == {"exit 0": 1}, "one process outlived them all"
    assert ordeal.tally.again == ordeal.tally.died == 0, "no reply was paid for twice"
    assert ordeal.file.one("SELECT sum(attempts) - count(*) FROM calls") == len(FAULTS)
