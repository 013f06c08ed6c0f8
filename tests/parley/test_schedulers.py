"""A run ended by a signal or a wall time ends in time, loses nothing, and is resumed; and what Ray's workers need."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.agents import BudgetSpent
from parley.agents.models.session import Estimate
from parley.runs.executors.worker import Line, RunsBudget, RunsCache, StudySpec
from parley.runs.job import make_study
from parley.runs.options import to_seconds
from parley.runs.rows import Tally
from tests.panels import ONE_CELL, RUN_PANEL, TINY_PANEL
from tests.servers import PATIENCE

RUN = (*RUN_PANEL, "--suite", "tiny", "--repeats", "3", "--concurrency", "4")
UNITS = 27
SLACK = 30.0
"""Seconds that a busy machine may take beyond the grace to end a process; by itself none of them would end."""


TIMES = {
    **{"90s": 90, "90m": 5400, "2h": 7200, "2h30m": 9000, "1d12h": 129_600, "02:00:00": 7200, "00:01:30": 90},
    **{"1-12:00:00": 129_600, "1-12:30": 131_400, "2-0": 172_800},
}


def test_times_are_read_as_people_and_slurm_write_them():
    assert {text: to_seconds(text) for text in TIMES} == TIMES


ENDS = {
    "SIGINT": (130, "units in progress have 5 s; press Ctrl-C again to abandon them now", ("interrupted",)),
    "SIGUSR1": (75, "SIGUSR1: no new units are started; those in progress have 290 s", ("SIGUSR1 was received",)),
}


@pytest.mark.parametrize("name", ENDS)
def test_units_that_can_finish_do_and_the_run_is_resumed(parley, start, server, run_file, name):
    status, said, stopped = ENDS[name]
    server.holds_from = 100
    file = run_file("a.sqlite")
    command = (
        *RUN,
        "--model",
        server.model(),
        "--no-cache",
        "--out",
        file.path,
        "--grace",
        "300",
        "--concurrency",
        "4",
    )
    process = start(*command)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0 and len(server.asked) > 100)
    process.process.signal(getattr(signal, name))
    process.wait_for(lambda: said in process.output().err)
    server.holds_from = None
    ended = process.end()
    assert (ended.status, said in ended.err) == (status, True), ended
    assert [line.removeprefix("parley: stopped: ") for line in ended.complaints] == list(stopped)
    assert "run the same command again to resume" in ended.err
    assert "Traceback" not in ended.err
    assert f"{file.count()} of {UNITS} units done" in ended.out
    assert file.count() < UNITS
    assert file.one("SELECT count(*) FROM calls") == len(server.asked), "a unit in progress was not finished"
    file.check()
    assert parley(*command).status == 0
    assert len(server.asked) == UNITS * 8


@pytest.mark.parametrize(
    ("signals", "status"), [(("SIGCONT", "SIGTERM"), 75), (("SIGINT",), 130)], ids=["SLURM", "Ctrl-C"]
)
def test_units_that_cannot_finish_are_left_with_their_replies_in_the_cache(
    parley, start, server, run_file, signals, status
):
    server.holds_from = 100  # these calls never end by themselves
    file = run_file("a.sqlite")
    command = (*RUN, "--model", server.model(), "--out", file.path)
    process = start(*command, "--grace", 2)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0 and len(server.asked) >= 104)
    for name in signals:
        process.process.signal(getattr(signal, name))
    ended = process.end()  # although the server never answers
    assert (ended.status, "Traceback" in ended.err) == (status, False), ended.err
    assert file.one("SELECT count(*) FROM units WHERE status = 'failed'") == 0
    file.check()
    unanswered = len(server.asked) - 100
    server.holds_from = None
    assert parley(*command).status == 0
    assert len(server.asked) == UNITS * 8 + unanswered, "a reply that was in the cache was asked for again"


STUCK = """
import time
from pathlib import Path
from parley.judging.malibu.study import Malibu

class Stuck(Malibu):
    name = "stuck"

    async def run(self, unit, models):
        Path(f"stuck-{unit.id.replace('/', '-')}").touch()
        time.sleep(600)  # the event loop stands still
"""


def test_a_run_that_is_stuck_ends_with_the_grace(start, place):
    (place / "stuck.py").write_text(STUCK)
    command = ("run", "stuck.py:Stuck", *RUN[2:], "--model", "sim/judge", "--out", "a.sqlite", "--grace", "1")
    process = start(*command)
    process.wait_for(lambda: any(place.glob("stuck-*")))
    began = time.monotonic()
    process.process.signal(signal.SIGTERM)
    ended = process.end()
    assert time.monotonic() - began < 1 + SLACK
    assert (ended.status, "run the same command again to resume" in ended.err) == (75, True)


def test_the_wall_time_is_an_option_in_python(server, run_file):
    import parley

    server.silent = True
    options = parley.Options(wall_time="2s", grace=1.0, concurrency=4, out="a.sqlite")
    result = parley.run("malibu", suite="tiny", model=server.model(), options=options, **ONE_CELL)

    assert result.scheduled
    assert not result.complete
    assert result.progress.elapsed < 2 + SLACK
    assert result.stopped == "the wall time of 2s is nearly over"


def test_the_batch_script_of_the_documentation_requeues_itself_until_the_run_is_done(place, server, run_file, parley):
    page = (Path(__file__).parents[2] / "docs/runs.md").read_text("utf-8")
    script = re.search(r"```bash\n(#!/bin/bash\n.*?)```", page, re.S)
    assert script is not None
    command = " ".join((*RUN, "--model", f"'{server.model()}'", "--out", "a.sqlite"))
    body, replaced = re.subn(r"^parley run .*(?= --grace)", lambda _: f"parley {command}", script[1], flags=re.M)
    assert replaced == 1
    (place / "job.sh").write_text(body)
    tools = place / "bin"
    tools.mkdir()
    (tools / "parley").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m parley "$@"\n')
    (tools / "scontrol").write_text('#!/bin/sh\necho "$@" >> requeued\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SLURM_JOB_ID": "4711"}
    server.holds_from = 100
    file = run_file("a.sqlite")

    job = subprocess.Popen(["bash", "job.sh"], env=environment, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: file.starts() == 1 and file.count() > 0)
    job.send_signal(signal.SIGUSR1)
    assert job.stderr is not None
    assert any("no new units are started" in line for line in job.stderr)
    server.holds_from = None
    _, err = job.communicate(timeout=PATIENCE)

    assert job.returncode == 75, err
    assert (place / "requeued").read_text() == "requeue 4711\n"
    assert 0 < file.count() < UNITS

    again = subprocess.run(["bash", "job.sh"], env=environment, timeout=PATIENCE, check=False)
    assert again.returncode == 0
    assert (place / "requeued").read_text() == "requeue 4711\n", "a run that is done is not requeued"
    assert file.count() == UNITS
    assert len(server.asked) == UNITS * 8, "nothing was asked twice"


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize(("command", "status"), [("run", 75), ("report", -signal.SIGTERM)])
def test_a_signal_while_packages_are_loaded(command, status):
    """A job that is stopped in its first seconds is tried again like any other; nothing else changes its status."""
    program = (
        "import os, signal\nimport parley.cli\n"
        "parley.cli.parse = lambda arguments: os.kill(os.getpid(), signal.SIGTERM)\n"
        f"parley.cli.main(['{command}'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert ended.returncode == status, ended.stderr


OWN = "from parley.judging.malibu.study import Malibu\n\n\nclass Own(Malibu):\n    name = 'own'\n"
NOISY = [word for word in TINY_PANEL if word != "--quiet"]


ONE = Estimate((), 1, 0.5)


async def test_a_worker_tells_and_asks_and_gets_answers_and_errors():
    line = Line()
    cache, budget = RunsCache(line), RunsBudget(line)
    cache.put_text(b"1", "sim/m", "one")
    questions = asyncio.gather(
        cache.find(b"1", str), cache.find(b"2", int), budget.take_call(ONE), return_exceptions=True
    )
    said = await line.listen([])
    assert [(kind, arguments) for kind, arguments, _ in said] == [
        ("put_text", (b"1", "sim/m", "one")), ("find", (b"1",)), ("find", (b"2",)), ("reserve", (ONE,))
    ]  # fmt: skip
    line.tally.calls += 1
    answers = zip([number for *_, number in said[1:]], ("one", "no number", BudgetSpent("spent")), strict=True)
    assert await line.listen(answers) == [("count", (Tally(calls=1),), None)]
    found, unreadable, refused = await questions
    assert (found, unreadable) == ("one", None)
    assert isinstance(refused, BudgetSpent)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await budget.take_call(ONE)
    (question,) = await line.listen([])
    assert question.number is not None
    said = await line.listen([(question.number, True)])
    assert [kind for kind, *_ in said] == ["give_call_back", "release"], "the unit that asked has been abandoned"


def test_a_study_is_sent_as_text_with_all_its_settings_and_no_key(place, monkeypatch, server):
    (place / "own.py").write_text(OWN)
    study = make_study("own.py:Own", {"suite": "tiny", "model": ["sim/judge"]})
    spec = StudySpec.of(study, "own.py:Own")
    (place / "own.py").unlink()
    assert [unit.id for unit in spec.make().plan()] == [unit.id for unit in study.plan()]
    monkeypatch.setenv("PARLEY_SERVER_KEY", "planted-key")
    keyed = StudySpec.of(make_study("malibu", {"suite": "tiny", "model": [server.model()]}), "malibu")
    assert "planted-key" not in repr(keyed)
    rows = [{"prompt": {"text": f"Text {n}", "toxicity": n / 10}, "challenging": False} for n in range(10)]
    (place / "rtp.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"data": "rtp.jsonl", "prompts": 2, "model": ["sim/m"], "measure": "none"}
    again = StudySpec.of(make_study("stardtox", settings), "stardtox").make()
    assert again.config.measure == "none", "which a run file leaves out"
