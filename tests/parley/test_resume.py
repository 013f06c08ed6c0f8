"""A run interrupted at any moment and in any way is resumed by the same command, and ends with the same file."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.panels import RUN_PANEL

RUN = (*RUN_PANEL, "--quiet", "--seed", "3")
FIVE = ("--suite", "full", "--scenarios", "fitness", "--per-base", "5", "--cells", "all")
LONG = (*RUN, *FIVE, "--identities", "female,male,black,white")
SILENT = ("run", "malibu", "--yardstick", "off", "--suite", "tiny", "--quiet", "--out", "a.sqlite")
KILLS = 10


@pytest.mark.nightly
def test_a_run_killed_again_and_again_equals_an_undisturbed_one(
    parley: Callable[..., Any], start: Callable[..., Any], run_file: Any
) -> None:
    """While it starts, too. The daily kills are in tests/chaos, of processes that have imported everything."""
    command = (*LONG, "--model", "sim/judge?latency=0.02&malformed=0.05&refuse=0.02", "--concurrency", "8")
    assert parley(*command, "--out", "peace.sqlite").status == 0
    peace = run_file("peace.sqlite")

    file = run_file("killed.sqlite")
    moments = random.Random(20)
    done: set[str] = set()
    stages: list[int] = []
    for kill in range(KILLS):
        begun = file.starts()
        process = start(*command, "--out", file.path)
        if kill % 5 == 2:  # while it starts: imports, opening the file, the plan
            time.sleep(moments.uniform(0.0, 1.0))
        elif kill % 2:  # once it has finished a further unit
            process.wait_for(lambda before=done: file.done() > before)
        else:  # while it works
            process.wait_for(lambda begun=begun: file.starts() > begun)
            time.sleep(moments.uniform(0.0, 0.35))
        process.kill()
        now = file.done()
        assert done <= now, "a unit that was done is no longer done"
        file.check()
        done = now
        stages.append(len(done))
    assert 0 < len(done) < peace.count(), "the kills missed the run"
    assert len(set(stages)) > KILLS / 4, "the kills all hit the same moment"

    ended = start(*command, "--out", file.path).end()

    assert ended.status == 0, ended.err
    assert file.count() == peace.count() == 5 * (5 + 2 * 4 + 5 * 2)
    file.check()
    assert file.story() == peace.story()


def test_ctrl_c_finishes_the_units_in_progress_and_says_how_to_resume(
    parley: Callable[..., Any], start: Callable[..., Any], server: Any, run_file: Any
) -> None:
    server.delay = 0.01
    command = (*RUN_PANEL, "--suite", "tiny", "--repeats", "3", "--model", server.model())
    command = (*command, "--concurrency", "4", "--no-cache")
    file = run_file("stopped.sqlite")
    process = start(*command, "--out", file.path)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0)

    process.press_ctrl_c()
    ended = process.end()

    assert ended.status == 130
    assert "finishing the units in progress; press Ctrl-C again to abandon them" in ended.err
    assert "run the same command again to resume" in ended.err
    assert "Traceback" not in ended.err
    assert f"{file.count()} of 27 units done" in ended.out
    assert file.count() < 27
    assert file.one("SELECT count(*) FROM calls") == len(server.asked), "a reply that had come was thrown away"
    file.check()

    assert parley(*command, "--out", file.path).status == 0
    assert len(server.asked) == 27 * 8
    assert parley(*command, "--out", "peace.sqlite").status == 0
    assert file.story() == run_file("peace.sqlite").story()


def test_ctrl_c_twice_abandons_the_units_in_progress_and_loses_no_finished_one(
    parley: Callable[..., Any], start: Callable[..., Any], server: Any, run_file: Any
) -> None:
    server.delay = 0.05
    command = (*RUN_PANEL, "--suite", "tiny", "--repeats", "3", "--model", server.model())
    command = (*command, "--concurrency", "8")
    file = run_file("stopped.sqlite")
    process = start(*command, "--out", file.path)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0)
    before = file.done()
    silent_from = len(server.asked)
    server.silent = True  # the calls in progress would never end by themselves
    process.wait_for(lambda: len(server.asked) > silent_from)

    process.press_ctrl_c()
    process.wait_for(lambda: "press Ctrl-C again to abandon them" in process.output().err)
    process.press_ctrl_c()
    ended = process.end()

    assert ended.status == 130
    assert "run the same command again to resume" in ended.err
    assert "Traceback" not in ended.err
    assert before <= file.done()
    assert file.count() < 27
    assert file.one("SELECT count(*) FROM calls") < len(server.asked)
    file.check()

    server.silent, server.delay = False, 0.0
    assert parley(*command, "--out", file.path).status == 0
    assert parley(*command, "--no-cache", "--out", "peace.sqlite").status == 0
    assert file.story() == run_file("peace.sqlite").story()


def test_a_finished_run_is_left_alone(parley: Callable[..., Any], server: Any, run_file: Any) -> None:
    command = (*SILENT, "--model", server.model())
    assert parley(*command).status == 0
    first, asked = run_file("a.sqlite").story(), len(server.asked)

    again = parley(*command)

    assert again.status == 0
    assert "18 of 18 units done" in again.out
    assert len(server.asked) == asked
    assert run_file("a.sqlite").story() == first


def test_a_finished_run_loads_no_model(parley: Callable[..., Any], monkeypatch: Any) -> None:
    async def load(client: Any) -> None:
        raise AssertionError("weights were loaded for nothing")

    command = (*SILENT, "--model", "sim/judge")
    assert parley(*command).status == 0
    monkeypatch.setattr("parley.agents.models.sim.SimClient.prepare", load)
    assert parley(*command).status == 0


SLOW_PLAN = """
import os
import time
from parley.judging.malibu.study import Malibu

class Slow(Malibu):
    name = "slow"
    passes = 0

    def plan(self):
        Slow.passes += 1
        for unit in super().plan():
            if Slow.passes == 2 and not os.path.exists("writing"):  # the pass that makes the new file
                open("writing", "w").close()
                time.sleep(60)
            yield unit
"""


def test_a_run_killed_while_its_file_is_created_starts_again(
    parley: Callable[..., Any], start: Callable[..., Any], place: Path, run_file: Any
) -> None:
    (place / "slow.py").write_text(SLOW_PLAN)
    command = ("run", "slow.py:Slow", *SILENT[2:], "--model", "sim/judge")
    process = start(*command)
    process.wait_for((place / "writing").exists)
    process.kill()

    ended = parley(*command)

    assert ended.status == 0, ended.err
    assert run_file("a.sqlite").count() == 18
    assert [path.name for path in place.glob("a.sqlite*")] == ["a.sqlite"], "nothing is left of the first attempt"
