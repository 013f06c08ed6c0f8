"""Storage that fails: disks that are full, read-only or missing, a file that is taken away, two writers."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from parley.runs.store import RunFile
from tests.agents.test_cache import fill, not_a_database, overwritten_pages
from tests.chaos.studies import OWN
from tests.conftest import File
from tests.panels import TINY_PANEL
from tests.parley.test_bad_input import one_line
from tests.process import started


def command(server, size, out="a.sqlite", study="own.py:Own"):
    for name, text in OWN.items():
        Path(name).write_text(text)
    run = ("run", study, "--size", str(size), "--model", server.model(), "--quiet")
    return (*run, "--concurrency", "4", "--out", out)


def one_error(output, *words):
    lines = [line for line in output.splitlines() if line.startswith("parley: ")]
    assert len(lines) == 1, output
    assert "Traceback" not in output, output
    assert all(word in lines[0] for word in words), output


def test_a_full_disk_with_the_reply_cache_on_it(faulty, mounted, remount, place, monkeypatch):
    disk = mounted("size=300k")
    monkeypatch.chdir(disk)
    run, file = command(faulty, 250), File(disk / "a.sqlite")
    stopped = started(run, disk, "a", log=place / "a.log")
    assert stopped.end() == 1
    one_error(stopped.output(), "full")
    done = file.done()
    assert 0 < len(done) < 250
    file.check()
    remount(disk, "size=30m")
    assert started(run, disk, "a").end() == 0
    assert done < file.done()
    assert file.count() == 250
    file.check()


def test_a_run_whose_file_became_read_only(faulty, mounted, remount, parley, monkeypatch):
    disk = mounted("size=300k")
    monkeypatch.chdir(disk)
    run = command(faulty, 10)
    assert parley(*run, "--budget-calls", "8").status == 1
    before = File(disk / "a.sqlite").done()
    remount(disk, "ro")
    result = parley(*run)
    assert result.status == 1
    one_error(result.err, "a.sqlite cannot be opened: the file or its folder is read-only")
    assert len(faulty.answered[0]) == 8, "no reply was requested that could not be stored"
    remount(disk, "rw")
    assert parley(*run).status == 0
    assert before < File(disk / "a.sqlite").done()


def test_processes_that_start_the_same_run_together(faulty, place):
    """One runs it. The others get an error, and do not replace its file."""
    run = command(faulty, 60)
    processes = [started(run, place, f"process{n}") for n in range(5)]
    ends = [process.end() for process in processes]
    assert sorted(set(ends)) in ([0], [0, 1]), [process.output() for process in processes]
    for process, end in zip(processes, ends, strict=True):
        if end == 1:
            one_error(process.output(), "by another process")
    file = File(place / "a.sqlite")
    file.check()
    assert file.count() == 60
    assert set(faulty.answered[0].values()) == {1}, "no request was made twice"
    assert faulty.total() == file.one("SELECT count(*) FROM calls") == 120


OVERFLOWING = """
from own import Own
from parley.judging import Outcome, Verdict

class Odd(Own):
    name = "odd"

    async def run(self, unit, models):
        outcome = await super().run(unit, models)
        value = {"guest/3": 10**30, "guest/5": object(), "guest/7": None}.get(unit.id, 1.0)
        text = 7 if unit.id == "guest/9" else None
        verdict = Verdict(judge="Ada", role="debater", round=1, metric="m", value=value, text=text)
        return Outcome(outcome.transcript, (verdict,))
"""


def test_a_unit_that_cannot_be_stored_fails_alone(faulty, place, parley, monkeypatch):
    (place / "odd.py").write_text(OVERFLOWING)
    monkeypatch.syspath_prepend(place)
    result = parley(*command(faulty, 40, study="odd.py:Odd"))
    assert result.status == 1
    one_error(result.err, "3 units failed, the first with: its outcome cannot be written: ")
    file = File("a.sqlite")
    assert file.count() == 37
    failed = file.rows("SELECT id FROM units WHERE status = 'failed' ORDER BY id")
    assert failed == [("guest/3",), ("guest/5",), ("guest/9",)]
    file.check()


def disturb_after(faulty, process, calls, disturb):
    while faulty.total() < calls:
        assert process.alive, process.output()
        time.sleep(0.005)
    disturb()


@pytest.mark.parametrize("how", ["removed with all that stands beside it", "replaced"])
def test_a_run_whose_file_is_taken_away_keeps_everything_beside_it(faulty, place, how):
    folder, run = place / "runs", command(faulty, 200, "runs/a.sqlite")
    running = started(run, place, "a")

    def take_away():
        if how == "replaced":
            (place / "new").write_text("another file")
            (place / "new").replace(folder / "a.sqlite")
        else:
            shutil.rmtree(folder)

    disturb_after(faulty, running, 60, take_away)
    assert running.end() == 1, running.output()
    one_error(running.output(), "runs/a.sqlite was removed or replaced while it was being run; everything so far is in")
    rescued = File(folder / "a.rescued.sqlite")
    assert f"{rescued.path.relative_to(place)}: rename it to runs/a.sqlite to resume" in running.output()
    assert "run the same command again" not in running.output(), "that would start from the beginning"
    rescued.check()
    assert 0 < rescued.count() < 200
    assert rescued.one("SELECT count(*) FROM calls") == faulty.total(), "every reply that was paid for is kept"
    if how == "replaced":
        assert (folder / "a.sqlite").read_text() == "another file"

    rescued.path.replace(folder / "a.sqlite")
    for beside in folder.glob("a.sqlite-*"):
        beside.unlink()
    assert started(run, place, "a").end() == 0
    assert File(folder / "a.sqlite").count() == 200
    assert faulty.total() == 400
    assert set(faulty.answered[0].values()) == {1}, "no request was made twice"


SIM = (*TINY_PANEL, "--model", "sim/judge")


def test_places_that_cannot_be_written_and_commits_that_are_on_the_disk(parley, place, mounted, remount):
    whole = place / "whole.sqlite"
    assert parley(*SIM, "--out", whole).status == 0
    with RunFile.open(whole, write=True) as file:  # otherwise a power failure would take units that count as done
        assert file.rows("PRAGMA synchronous")[1] == [(2,)], "FULL: the log is synced at every commit"
    (place / "file").write_text("in the way")
    (place / "runs").mkdir()
    for out in ("file/a.sqlite", "/proc/parley/a.sqlite"):
        one_line(parley(*SIM, "--out", out), 1, f"{out} cannot be written: ")
    one_line(parley(*SIM, "--out", "runs"), 2, "runs")
    one_line(parley("report", whole, "--out", "file", "--draws", "20"), 1, "the report cannot be written to file")
    archive = mounted("size=2m")
    shutil.copy(whole, archive / "a.sqlite")
    remount(archive, "ro")
    out = archive / "b.sqlite"
    one_line(parley(*SIM, "--out", out), 1, f"{out} cannot be written: the file or its folder is read-only")
    output = parley("show", archive / "a.sqlite")
    assert (output.status, "Candidate" in output.out) == (0, True), "an archived run can be read"


def test_a_disk_too_full_to_start_leaves_no_file_behind(parley, mounted, remount):
    for size in ("16k", "48k"):
        disk = mounted(f"size={size}")
        one_line(parley(*SIM, "--repeats", "12", "--out", disk / "a.sqlite"), 1, "the disk is full")
        remount(disk, "size=20m")
        again = parley(*SIM, "--out", disk / "a.sqlite")
        assert again.status == 0, again.err


def test_a_run_with_a_damaged_reply_cache_asks_again(parley, server, place, run_file):
    command = (*TINY_PANEL, "--out", "a.sqlite", "--model", server.model())
    assert parley(*command).status == 0
    calls, cache = len(server.asked), place / "home" / "replies.sqlite"
    overwritten_pages(cache)
    (place / "a.sqlite").rename(place / "b.sqlite")
    result = parley(*command)
    assert (result.status, len(result.complaints)) == (0, 1), result.err
    assert f"it was set aside as {cache}.damaged" in result.complaints[0]
    assert len(server.asked) == 2 * calls
    assert run_file("a.sqlite").story() == run_file("b.sqlite").story()
    (place / "a.sqlite").unlink()
    again = parley(*command)
    assert (again.status, again.complaints) == (0, [])
    assert len(server.asked) == 2 * calls, "the new cache has the replies"


def test_a_read_only_disk_leaves_the_cache_alone(parley, mounted, remount, monkeypatch):
    home = mounted("size=20m")
    path = home / "replies.sqlite"
    fill(path, 3)
    before = path.read_bytes()
    remount(home, "ro")
    monkeypatch.setenv("PARLEY_HOME", str(home))
    result = parley(*SIM, "--out", "a.sqlite")
    assert (result.status, len(result.complaints)) == (1, 1), result.err
    assert f"the reply cache {path} cannot be opened (" in result.complaints[0]
    assert "delete" not in result.err
    assert path.read_bytes() == before
    assert parley(*SIM, "--out", "a.sqlite", "--no-cache").status == 0
    remount(home, "rw")
    not_a_database(path)
    remount(home, "ro")
    damaged = parley(*SIM, "--out", "b.sqlite")
    assert (damaged.status, len(damaged.complaints)) == (1, 1), damaged.err
    assert "is damaged" in damaged.err
    assert "cannot be set aside" in damaged.err
