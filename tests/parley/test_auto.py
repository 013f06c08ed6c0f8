"""The default executor: this process, and worker processes when one core is the limit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parley.runs import Result
from parley.runs.executors import auto
from parley.runs.executors.processes import ProcessHandle, ProcessPool
from parley.runs.job import Job
from parley.runs.options import Options
from tests.panels import ONE_CELL

MANY = {"suite": "tiny", "phases": [1], "model": "sim/judge", **ONE_CELL}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any process is too busy, and two cores are there."""
    monkeypatch.setattr(auto, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(auto, "BUSY", 0.0)
    monkeypatch.setattr(auto, "WORTH_SECONDS", -1.0)
    monkeypatch.setattr(auto, "cores", lambda: 2)


def run(file: Path, executor: Any = "auto", **settings: Any) -> Result:
    options = Options(out=str(file), cache=False, executor=executor, concurrency=4)
    return asyncio.run(Job.make("malibu", {**MANY, **settings}, options).execute())


def stored(file: Path) -> tuple[list[Any], list[Any]]:
    """What the run said and judged, and what its events say of executors."""
    with closing(sqlite3.connect(file)) as db:
        said = db.execute("SELECT unit, seq, text FROM transcript ORDER BY unit, seq").fetchall()
        judged = db.execute("SELECT * FROM verdicts ORDER BY unit, nth").fetchall()
        return [said, judged], db.execute("SELECT detail FROM events WHERE kind = 'executor'").fetchall()


def slow_units(monkeypatch: pytest.MonkeyPatch, seconds: float, is_over: Callable[[], bool] = lambda: True) -> None:
    """Units of this process take a while, and until `is_over`, so that some are left when the workers are ready."""
    from parley.judging.malibu.study import Malibu

    fast = Malibu.run

    async def slow(self: Any, unit: Any, models: Any) -> Any:
        while True:
            await asyncio.sleep(seconds)
            if is_over():
                return await fast(self, unit, models)

    monkeypatch.setattr(Malibu, "run", slow)


def when_started(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A list that gets an entry when the workers are ready."""
    start_all, started = ProcessPool.start_all, list[bool]()

    async def note(self: Any, control: Any) -> None:
        await start_all(self, control)
        started.append(True)

    monkeypatch.setattr(ProcessPool, "start_all", note)
    return started


def ended_workers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that gets the workers that have ended."""
    kill, ended = ProcessHandle.kill, list[Any]()

    async def record(self: ProcessHandle) -> None:
        await kill(self)
        ended.append(self)

    monkeypatch.setattr(ProcessHandle, "kill", record)
    return ended


@pytest.mark.usefixtures("impatient")
def test_workers_take_over_and_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path / "one.sqlite", "asyncio").complete
    started, ended = when_started(monkeypatch), ended_workers(monkeypatch)
    slow_units(monkeypatch, 0.05, lambda: bool(started))
    assert run(tmp_path / "two.sqlite").complete
    assert len(ended) == 2, "workers outlive their run"
    (one, remarks), (two, moved) = stored(tmp_path / "one.sqlite"), stored(tmp_path / "two.sqlite")
    assert two == one
    assert remarks == []
    assert len(moved) == 1
    assert moved[0][0].endswith("worker processes run the other units")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("model", ["sim/judge", "sim/judge?max_connections=4"])
def test_units_that_are_finished_here_count_towards_the_concurrency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    started, at_once, polls = when_started(monkeypatch), list[int](), count()
    slow_units(monkeypatch, 0.05, lambda: bool(started) and next(polls) % 5 == 4)  # one after the other
    exchange = ProcessHandle.exchange
    make_pool = ProcessPool.__init__

    def keep_pool(self: Any, spec: Any, **settings: Any) -> None:
        make_pool(self, spec, **settings)
        pools.append(self)

    async def note(self: ProcessHandle, instructions: Any) -> Any:
        if elsewhere := pools[0].in_progress_elsewhere():
            at_once.append(elsewhere + sum(len(worker.assigned) for worker in pools[0]._workers))
        return await exchange(self, instructions)

    pools: list[Any] = []
    monkeypatch.setattr(ProcessPool, "__init__", keep_pool)
    monkeypatch.setattr(ProcessHandle, "exchange", note)
    assert run(tmp_path / "run.sqlite", model=model).complete
    assert pools, "workers were started"
    if "max_connections" in model:
        assert not at_once, "there would be more connections than the user set"
    else:
        assert at_once, "workers begin before this process has finished its units"
        assert max(at_once) <= 4


@pytest.mark.usefixtures("impatient")
def test_a_run_stays_in_its_process_if_workers_cannot_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_units(monkeypatch, 0.1)
    monkeypatch.setattr(auto.StudySpec, "of", lambda *_, **__: (_ for _ in ()).throw(OSError("no room")))
    result = run(tmp_path / "run.sqlite")
    assert result.complete
    assert [detail.partition(", ")[2] for (detail,) in stored(tmp_path / "run.sqlite")[1]] == [
        "and the run stays in one process: no room"
    ]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("executor", "cores"), [("asyncio", 2), ("auto", 1)])
def test_no_workers_where_they_are_not_wanted_or_have_no_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str, cores: int
) -> None:
    monkeypatch.setattr(auto, "cores", lambda: cores)
    slow_units(monkeypatch, 0.02)
    assert run(tmp_path / "run.sqlite", executor).complete
    assert stored(tmp_path / "run.sqlite")[1] == []


@pytest.mark.usefixtures("impatient")
def test_workers_that_come_too_late_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = ended_workers(monkeypatch)
    slow_units(monkeypatch, 0.02)
    assert run(tmp_path / "run.sqlite").complete
    assert ended


def test_a_process_that_waits_for_replies_is_not_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(auto, "WORTH_SECONDS", -1.0)
    monkeypatch.setattr(auto, "cores", lambda: 2)
    slow_units(monkeypatch, 0.2)
    assert run(tmp_path / "run.sqlite").complete
    assert stored(tmp_path / "run.sqlite")[1] == []
