"""A run with several worker processes: the same file as with one process, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import Budget, BudgetSpent
from parley.runs import Tally
from parley.runs.executors import pool
from parley.runs.executors.worker import CHUNK, SharedBudget
from parley.runs.job import make_study
from parley.runs.plan import StudySpec
from tests.panels import TINY_PANEL

RUN = (*TINY_PANEL, "--repeats", "2", "--seed", "3")
UNITS, CALLS = 18, 144
TWO = ("--executor", "processes", "--workers", "2")

DEADLY = '''
import os
import signal
from pathlib import Path
from parley.judging.malibu.study import Malibu

print("a study may print what it likes")


class Deadly(Malibu):
    """MALIBU; the tenth unit kills the worker that runs it, once."""

    name = "deadly"

    async def run(self, unit, models):
        outcome = await super().run(unit, models)
        marker = Path("killed")
        if [u.id for u in self.plan()].index(unit.id) == 9 and not marker.exists() and Path("armed").exists():
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome
'''
OWN = ("run", "deadly.py:Deadly", *RUN[2:], "--concurrency", "8")


def test_two_processes_write_what_one_writes(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    command = (*RUN, "--model", server.model(), "--no-cache", "--concurrency", "6")
    assert parley(*command, "--out", "one.sqlite").status == 0

    result = parley(*command, "--out", "two.sqlite", *TWO, "--json")

    assert result.status == 0, result.err
    assert (result.json["done"], result.json["calls"], result.json["tokens"]) == (UNITS, CALLS, CALLS * 120)
    assert len(server.asked) == 2 * CALLS
    assert run_file("two.sqlite").story() == run_file("one.sqlite").story()
    run_file("two.sqlite").check()


def test_a_worker_that_is_killed_costs_nothing_but_time(
    parley: Callable[..., Any], place: Path, server: Any, run_file: Any
) -> None:
    (place / "deadly.py").write_text(DEADLY)
    command = (*OWN, "--model", server.model())
    assert parley(*command, "--out", "peace.sqlite", "--no-cache").status == 0
    (place / "armed").touch()

    result = parley(*command, "--out", "killed.sqlite", *TWO)

    assert result.status == 0, result.err
    assert int((place / "killed").read_text()) != os.getpid()
    file = run_file("killed.sqlite")
    assert file.story() == run_file("peace.sqlite").story()
    file.check()
    assert len(file.rows("SELECT detail FROM events WHERE kind = 'worker lost'")) == 1


def test_a_run_interrupted_with_one_executor_is_resumed_with_another(
    parley: Callable[..., Any], server: Any, run_file: Any
) -> None:
    command = (*RUN, "--model", server.model(), "--out", "a.sqlite", "--concurrency", "4")
    assert parley(*command, *TWO, "--budget-calls", "60").status == 1
    assert 0 < run_file("a.sqlite").count() < UNITS

    assert parley(*command).status == 0

    assert len(server.asked) == CALLS, "the replies that workers received were in the cache"
    assert parley(*command[:-4], "--no-cache", "--out", "peace.sqlite").status == 0
    assert run_file("a.sqlite").story() == run_file("peace.sqlite").story()


@pytest.mark.parametrize(
    "budget", [pytest.param(("--budget-calls", "50"), marks=pytest.mark.nightly), ("--budget-cost", "0.06")]
)
def test_one_budget_covers_all_workers(
    parley: Callable[..., Any], server: Any, run_file: Any, budget: tuple[str, str]
) -> None:
    """Each limit is 50 calls of $0.0012; the cost can exceed its limit by the calls in progress."""
    model = server.model("retries=0&price_in=10&price_out=10")

    result = parley(*RUN, "--model", model, "--out", "a.sqlite", "--concurrency", "4", *TWO, *budget)

    assert result.status == 1
    assert "parley: stopped: the budget of " in result.err
    over = 0 if budget[0] == "--budget-calls" else 4
    assert 50 - 4 <= len(server.asked) <= 50 + over
    run_file("a.sqlite").check()


def test_ctrl_c_finishes_the_units_in_progress(
    parley: Callable[..., Any], start: Callable[..., Any], server: Any, run_file: Any
) -> None:
    server.delay = 0.02
    command = (*RUN, "--model", server.model(), "--out", "a.sqlite", "--concurrency", "4", "--no-cache")
    file = run_file("a.sqlite")
    process = start(*command, *TWO)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0)

    process.press_ctrl_c()
    ended = process.end()

    assert ended.status == 130, ended.err
    assert "Traceback" not in ended.err
    assert f"{file.count()} of {UNITS} units done" in ended.out
    assert file.count() < UNITS
    assert file.one("SELECT count(*) FROM calls") == len(server.asked), "a reply that was received is missing"
    assert parley(*command).status == 0


def test_workers_end_with_their_run(start: Callable[..., Any], place: Path, server: Any, run_file: Any) -> None:
    (place / "pid.py").write_text(
        "import os\nfrom pathlib import Path\nfrom parley.judging.malibu.study import Malibu\n\n\nclass Pid(Malibu):\n"
        "    async def run(self, unit, models):\n        Path(f'pid-{os.getpid()}').touch()\n"
        "        return await super().run(unit, models)\n"
    )
    server.delay = 0.3
    command = ("run", "pid.py:Pid", *RUN[2:], "--concurrency", "4", *TWO)  # so that one worker cannot take all units
    process = start(*command, "--model", server.model(), "--out", "a.sqlite")
    process.wait_for(lambda: len(list(place.glob("pid-*"))) == 2)

    process.kill()

    deadline = time.monotonic() + 30
    while left := [path.name for path in place.glob("pid-*") if runs(int(path.name.removeprefix("pid-")))]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_study_that_kills_every_worker_ends_the_run(
    parley: Callable[..., Any], place: Path, run_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_DEATHS_IN_A_ROW", 2)
    (place / "poison.py").write_text(
        "import os, signal\nfrom parley.judging.malibu.study import Malibu\n\n\nclass Poison(Malibu):\n"
        "    async def run(self, unit, models):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    one = ("--executor", "processes", "--workers", "1")
    result = parley("run", "poison.py:Poison", *RUN[2:], "--model", "sim/judge", "--out", "a.sqlite", *one)

    assert result.status == 1
    assert "parley: stopped: 2 workers died in a row, the last with: worker process" in result.err
    assert run_file("a.sqlite").count("planned") == UNITS


def test_a_429_slows_all_workers(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    """The server asks for a pause; no worker sends a request during it, except those sent before."""
    times: list[float] = []

    def answer(nth: int, body: dict[str, Any]) -> web.Response | None:
        times.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": "1.5"}) if nth == 20 else None

    server.answer, server.delay = answer, 0.02
    command = (*RUN, "--model", server.model("retries=2"), "--out", "a.sqlite", "--concurrency", "4", "--no-cache")

    assert parley(*command, *TWO).status == 0

    assert max(later - before for before, later in pairwise(times)) > 0.5, "the other worker did not pause"
    assert run_file("a.sqlite").one("SELECT max(attempts) FROM calls") == 2


def test_flags_without_effect_are_refused(parley: Callable[..., Any]) -> None:
    workers = parley(*RUN, "--model", "sim/judge", "--workers", "2")
    address = parley(*RUN, "--model", "sim/judge", "--executor", "processes", "--ray-address", "auto")
    assert (workers.status, address.status) == (2, 2)
    assert workers.complaints == ["parley: --workers is for --executor processes or ray, not auto"]
    assert address.complaints == ["parley: --ray-address is for --executor ray"]


# The shared budget


@given(
    limit=st.integers(0, 500),
    workers=st.integers(1, 8),
    requests=st.lists(st.integers(1, 200), max_size=60),
)
def test_no_more_calls_are_lent_than_the_budget_has(limit: int, workers: int, requests: list[int]) -> None:
    shared = SharedBudget(Budget(max_calls=limit), workers)
    lent = 0
    for requested in requests:
        try:
            calls = shared.lend(requested)
        except BudgetSpent:
            assert lent == limit, "some calls were left"
            break
        assert 1 <= calls <= max(requested, CHUNK)
        lent += calls
        assert lent <= limit


@given(tokens_per_call=st.integers(1, 300), workers=st.integers(1, 4))
def test_tokens_exceed_the_limit_by_at_most_one_call_per_worker(tokens_per_call: int, workers: int) -> None:
    """Workers report the calls they borrowed before they borrow again."""
    budget = Budget(max_tokens=10_000)
    shared = SharedBudget(budget, workers)
    while budget.tokens < 10_000:
        for calls in [shared.lend(1) for _ in range(workers)]:
            shared.report(Tally(calls=calls, tokens=calls * tokens_per_call))
    with pytest.raises(BudgetSpent):
        shared.lend(1)
    assert 10_000 <= budget.tokens < 10_000 + workers * tokens_per_call


# The study's spec


def test_a_users_own_study_is_sent_as_text(place: Path) -> None:
    (place / "deadly.py").write_text(DEADLY)
    study = make_study("deadly.py:Deadly", {"suite": "tiny", "model": ["sim/judge"]})
    spec = StudySpec.of(study, "deadly.py:Deadly")
    (place / "deadly.py").unlink()

    again = spec.make()

    assert [unit.id for unit in again.plan()] == [unit.id for unit in study.plan()]


def test_a_worker_with_other_data_is_refused(place: Path, parley: Callable[..., Any]) -> None:
    (place / "changing.py").write_text(
        "import os\nfrom parley.judging.malibu.study import Malibu\n\n\nclass Changing(Malibu):\n"
        "    def sources(self):\n        return {'data': str(os.getpid())}\n"
    )

    result = parley("run", "changing.py:Changing", *RUN[2:], "--model", "sim/judge", "--out", "a.sqlite", *TWO)

    assert result.status == 1
    assert len(result.complaints) == 1
    assert "in its version of Parley, or in changing.py:Changing, its prompts, its data" in result.complaints[0]


def test_no_key_is_in_a_study_spec(place: Path, monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
    monkeypatch.setenv("PARLEY_SERVER_KEY", "planted-key")
    study = make_study("malibu", {"suite": "tiny", "model": [server.model()]})
    assert "planted-key" not in repr(StudySpec.of(study, "malibu"))


def test_a_spec_has_the_settings_that_a_run_file_leaves_out(place: Path) -> None:
    rows = [{"prompt": {"text": f"Text {n}", "toxicity": n / 10}, "challenging": False} for n in range(10)]
    (place / "rtp.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"data": "rtp.jsonl", "prompts": 2, "model": ["sim/m"], "measure": "none"}
    again = StudySpec.of(make_study("stardtox", settings), "stardtox").make()
    assert again.config.measure == "none"  # type: ignore[attr-defined]
