"""A scheduler ends a run with a signal or a wall time: it ends in time, loses nothing, and is resumed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.runs.options import to_seconds
from tests.panels import ONE_CELL, RUN_PANEL

RUN = (*RUN_PANEL, "--suite", "tiny", "--repeats", "3", "--concurrency", "4")
UNITS = 27
STARTING = 240.0
"""Ray takes five seconds to start on an idle machine, and much longer on a busy one."""
SLACK = 3.0
"""Seconds that a busy machine may take beyond the grace to end a process."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("90m", 5400),
        ("2h", 7200),
        ("2h30m", 9000),
        ("1d12h", 129_600),
        ("02:00:00", 7200),
        ("00:01:30", 90),
        ("1-12:00:00", 129_600),
        ("1-12:30", 131_400),
        ("2-0", 172_800),
    ],
)
def test_times_are_read_as_people_and_slurm_write_them(text, seconds):
    assert to_seconds(text) == seconds


@pytest.mark.parametrize("name", ["SIGUSR1", pytest.param("SIGUSR2", marks=pytest.mark.nightly)])
def test_units_that_can_finish_do(start, server, run_file, name):
    server.delay = 0.1
    file = run_file("a.sqlite")
    process = start(*RUN, "--model", server.model(), "--no-cache", "--out", file.path, "--grace", "30")
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0)

    process.process.signal(getattr(signal, name))
    ended = process.end()

    assert ended.status == 75
    assert f"{name}: no new units are started; those in progress have 20 s" in ended.err
    assert ended.complaints == [f"parley: stopped: {name} was received"]
    assert "run the same command again to resume" in ended.err
    assert file.count() < UNITS
    assert file.one("SELECT count(*) FROM calls") == len(server.asked), "a unit in progress was not finished"
    file.check()


@pytest.mark.parametrize("executor", ["asyncio", pytest.param("ray", marks=pytest.mark.nightly)])
def test_units_that_cannot_finish_are_left_with_their_replies_in_the_cache(parley, start, server, run_file, executor):
    """As SLURM does at the limit: SIGCONT and SIGTERM to every process of the job."""
    server.delay = 0.02
    file = run_file("a.sqlite")
    command = (*RUN, "--model", server.model(), "--out", file.path, "--executor", executor)
    if executor == "ray":
        pytest.importorskip("ray")
    grace = 2 if executor == "asyncio" else 5  # Ray's own handler would abort the process after three seconds
    process = start(*command, "--grace", grace)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0, STARTING)
    asked = len(server.asked)
    server.silent = True  # these calls never end by themselves
    process.wait_for(lambda: len(server.asked) >= asked + 4)
    workers = children_of(process.process.pid)
    assert bool(workers) == (executor == "ray")

    began = time.monotonic()
    for pid in (process.process.pid, *workers):
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGTERM)
    ended = process.end()

    assert time.monotonic() - began < grace + SLACK
    assert ended.status == 75, ended.err
    assert "Traceback" not in ended.err
    wait_until(lambda: not any(map(alive, workers)))
    file.check()
    unanswered = len(server.asked) - asked
    server.silent, server.delay = False, 0.0
    assert parley(*command[:-2]).status == 0, "another executor resumes it"
    assert len(server.asked) <= UNITS * 8 + unanswered + 4, "a reply that was in the cache was asked for again"


STUCK = """
import time
from pathlib import Path
from parley.judging.malibu.study import Malibu

class Stuck(Malibu):
    name = "stuck"

    async def run(self, unit, models):
        Path(f"stuck-{unit.id.replace('/', '-')}").touch()
        time.sleep(60)  # the event loop stands still
"""


@pytest.mark.parametrize("executor", ["asyncio", pytest.param("ray", marks=pytest.mark.nightly)])
def test_a_run_that_is_stuck_ends_with_the_grace_and_so_do_its_workers(start, place, executor):
    (place / "stuck.py").write_text(STUCK)
    command = ("run", "stuck.py:Stuck", *RUN[2:], "--model", "sim/judge", "--out", "a.sqlite", "--grace", "1")
    workers = () if executor == "asyncio" else ("--workers", "1")
    if executor == "ray":
        pytest.importorskip("ray")
    process = start(*command, "--executor", executor, *workers)
    process.wait_for(lambda: any(place.glob("stuck-*")), STARTING)
    children = children_of(process.process.pid)

    began = time.monotonic()
    process.process.signal(signal.SIGTERM)
    ended = process.end()

    assert time.monotonic() - began < 1 + SLACK
    assert ended.status == 75
    assert "run the same command again to resume" in ended.err
    wait_until(lambda: not any(map(alive, children)))


@pytest.mark.nightly
def test_the_wall_time_ends_a_run_by_itself(start, server, run_file):
    server.delay = 0.4
    process = start(*RUN, "--model", server.model(), "--out", "a.sqlite", "--wall-time", "5s", "--grace", "2")
    process.wait_for(lambda: run_file("a.sqlite").starts() == 1)
    began = time.monotonic()
    ended = process.end()

    assert time.monotonic() - began < 5 + SLACK
    assert ended.status == 75
    assert ended.complaints == ["parley: stopped: the wall time of 5s is nearly over"]
    assert run_file("a.sqlite").count() < UNITS


def test_the_wall_time_is_an_option_in_python(server, run_file):
    import parley

    server.delay = 0.3
    options = parley.Options(wall_time="2s", grace=1.0, concurrency=4, out="a.sqlite")
    result = parley.run("malibu", suite="tiny", model=server.model(), options=options, **ONE_CELL)

    assert result.scheduled
    assert not result.complete
    assert result.progress.elapsed < 2 + SLACK
    assert result.stopped == "the wall time of 2s is nearly over"


def test_the_batch_script_of_the_documentation_requeues_itself_until_the_run_is_done(place, server, run_file, parley):
    page = (Path(__file__).parents[2] / "docs/cluster.md").read_text("utf-8")
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
    server.delay = 0.05
    file = run_file("a.sqlite")

    job = subprocess.Popen(["bash", "job.sh"], env=environment, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: file.starts() == 1 and file.count() > 0)
    job.send_signal(signal.SIGUSR1)
    _, err = job.communicate(timeout=60)

    assert job.returncode == 75, err
    assert (place / "requeued").read_text() == "requeue 4711\n"
    assert 0 < file.count() < UNITS

    server.delay = 0.0
    again = subprocess.run(["bash", "job.sh"], env=environment, timeout=120, check=False)
    assert again.returncode == 0
    assert (place / "requeued").read_text() == "requeue 4711\n", "a run that is done is not requeued"
    assert file.count() == UNITS
    assert len(server.asked) == UNITS * 8, "nothing was asked twice"


def children_of(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
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
