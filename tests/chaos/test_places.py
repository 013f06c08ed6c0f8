"""Places that give way under a run: a quota, a full disk with the reply cache on it, a read-only file, two at once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.faults import FaultServer
from tests.chaos.life import Life
from tests.chaos.studies import own_study
from tests.conftest import File


def command(server: FaultServer, size: int, out: str = "a.sqlite") -> tuple[str, ...]:
    run = ("run", "own.py:Own", "--size", str(size), "--model", server.model(), "--quiet")
    return (*run, "--concurrency", "4", "--out", out)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own, where the machine lets us mount one."""
    target = tmp_path / "disk"
    target.mkdir()
    try:
        tried = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(target)], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if tried.returncode != 0:
        pytest.skip("mounting is not permitted here")
    yield target
    subprocess.run(["umount", "-l", str(target)], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)


def one_complaint(said: str, *words: str) -> None:
    lines = [line for line in said.splitlines() if line.startswith("parley: ")]
    assert len(lines) == 1, said
    assert "Traceback" not in said, said
    assert all(word in lines[0] for word in words), said


def test_a_quota_keeps_what_was_finished(faulty: FaultServer, place: Path) -> None:
    own_study(place)
    file = File(place / "a.sqlite")
    stopped = Life(command(faulty, 150), place, "a", quota=120_000)

    assert stopped.end() == 1
    one_complaint(stopped.said(), "cannot be written")
    kept = file.done()
    assert 0 < len(kept) < 150
    file.check()

    assert Life(command(faulty, 150), place, "a").end() == 0
    assert kept < file.done()
    assert Life(command(faulty, 150, "peace.sqlite"), place, "peace").end() == 0
    assert file.story() == File(place / "peace.sqlite").story()


def test_a_full_disk_with_the_reply_cache_on_it(faulty: FaultServer, disk: Path, place: Path) -> None:
    own_study(disk)
    file = File(disk / "a.sqlite")
    stopped = Life(command(faulty, 250), disk, "a", log=place / "a.log")

    assert stopped.end() == 1
    one_complaint(stopped.said(), "full")
    kept = file.done()
    assert 0 < len(kept) < 250
    file.check()

    remount(disk, "size=30m")
    assert Life(command(faulty, 250), disk, "a").end() == 0
    assert kept < file.done()
    assert file.count() == 250
    file.check()


def test_a_half_done_run_that_became_read_only(
    faulty: FaultServer, disk: Path, parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(disk)
    own_study(disk)
    assert parley(*command(faulty, 10), "--budget-calls", "8").status == 1
    before = File(disk / "a.sqlite").done()
    remount(disk, "ro")

    told = parley(*command(faulty, 10))

    assert told.status == 1
    one_complaint(told.err, "a.sqlite cannot be opened: the place is read-only")
    assert len(faulty.answered[0]) == 8, "nothing was asked that could not be kept"

    remount(disk, "rw")
    assert parley(*command(faulty, 10)).status == 0
    assert before < File(disk / "a.sqlite").done()


@pytest.mark.parametrize("again", range(3))
def test_processes_that_begin_the_same_run_at_once(faulty: FaultServer, place: Path, again: int) -> None:
    """One holds it. Whoever comes second is told so, and puts no empty file in its place."""
    own_study(place)
    lives = [Life(command(faulty, 60), place, f"life{n}") for n in range(5)]

    ends = [life.end() for life in lives]

    assert sorted(set(ends)) in ([0], [0, 1]), [life.said() for life in lives]
    for life, end in zip(lives, ends, strict=True):
        if end == 1:
            one_complaint(life.said(), "by another process")
    file = File(place / "a.sqlite")
    file.check()
    assert file.count() == 60
    assert set(faulty.answered[0].values()) == {1}, "nothing was asked twice"
    assert faulty.total() == file.one("SELECT count(*) FROM calls") == 120


OVERFLOWING = """
from own import Own
from parley.judging import Outcome, Verdict

class Odd(Own):
    name = "odd"

    async def run(self, unit, models):
        held = await super().run(unit, models)
        value = {"guest/3": 10**30, "guest/5": object(), "guest/7": None}.get(unit.id, 1.0)
        return Outcome(held.transcript, (Verdict(judge="Ada", role="debater", round=1, metric="m", value=value),))
"""


def test_a_unit_that_no_file_can_hold_fails_alone(
    faulty: FaultServer, place: Path, parley: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    own_study(place)
    (place / "odd.py").write_text(OVERFLOWING)
    monkeypatch.syspath_prepend(place)
    arguments = ["odd.py:Odd" if one == "own.py:Own" else one for one in command(faulty, 40)]

    told = parley(*arguments)

    assert told.status == 1
    one_complaint(told.err, "2 units failed, the first with: its outcome cannot be written: ")
    file = File("a.sqlite")
    assert file.count() == 38
    assert file.rows("SELECT id FROM units WHERE status = 'failed' ORDER BY id") == [("guest/3",), ("guest/5",)]
    file.check()
