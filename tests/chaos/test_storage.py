"""Storage that fails: disks that are full, read-only or missing, a file that is taken away, two writers."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
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
    faulty.holds_from = calls
    while faulty.total() < calls:
        assert process.alive, process.output()
        time.sleep(0.005)
    disturb()
    faulty.holds_from = None


def copied_over(path, other):
    """As `cp` does it: the file keeps its inode, and another program's handles on it."""
    path.write_bytes(other)


def copied_over_with_its_old_time(path, other):
    before = path.stat()
    copied_over(path, other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns - 10**12))


def copied_over_with_the_same_size(path, other):
    copied_over(path, other[:20] + os.urandom(path.stat().st_size - 20))


def moved_over(path, other):
    new = path.with_name("new")
    new.write_bytes(other)
    new.replace(path)


def emptied(path, other):
    os.truncate(path, 0)


def cut(path, other):
    os.truncate(path, path.stat().st_size // 2)


def removed_with_its_folder(path, other):
    shutil.rmtree(path.parent)


TAKEN = {
    "removed": lambda path, other: path.unlink(),
    "removed with its folder": removed_with_its_folder,
    "removed, and a new file made": lambda path, other: (path.unlink(), path.write_bytes(other)),
    "moved over": moved_over,
    "copied over": copied_over,
    "copied over with its old time": copied_over_with_its_old_time,
    "copied over with the same size": copied_over_with_the_same_size,
    "emptied": emptied,
    "cut": cut,
}


@pytest.mark.parametrize(
    ("how", "read"),
    [*((how, False) for how in TAKEN), *((how, True) for how in ("removed", "moved over", "copied over"))],
)
def test_what_stands_in_the_place_of_a_running_run_is_left_alone(faulty, place, how, read, parley):
    """Its write-ahead log would be merged into a backup that is put there, or into the next run."""
    folder, run = place / "runs", command(faulty, 80, "runs/a.sqlite")
    path, backup = folder / "a.sqlite", place / "backup.sqlite"
    assert parley(*command(faulty, 80, "backup.sqlite"), "--budget-calls", "8").status == 1
    running, reader = started(run, place, "a"), None
    stands: list[bytes | None] = []

    def take_away():
        nonlocal reader
        if read:
            reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            reader.execute("SELECT count(*) FROM units").fetchone()
        TAKEN[how](path, backup.read_bytes())
        stands.append(path.read_bytes() if path.exists() else None)

    disturb_after(faulty, running, 30 + faulty.total(), take_away)
    assert running.end() == 1, running.output()
    if reader is not None:
        reader.close()
    one_error(running.output(), "runs/a.sqlite was ", "while it was being run: the file there now is left as it is")
    assert "run the same command again" not in running.output()
    assert (path.read_bytes() if path.exists() else None) == stands[0]
    assert [left.name for left in folder.glob("*")] == (["a.sqlite"] if path.exists() else []), "nor a log"
    if stands[0] == backup.read_bytes():
        File(path).check()
        assert parley("show", path, "--list").out == parley("show", backup, "--list").out
    elif stands[0] is not None:
        one_line(parley("show", path), 1, "a.sqlite is ")
        assert (started(run, place, "again").end(), path.read_bytes()) == (1, stands[0])
        path.unlink()
    assert started(run, place, "a").end() == 0
    assert File(path).count() == 80
    asked = faulty.answered[0]
    assert asked.total() - len(asked) <= 8, "only the backup's were made twice: the others are in the reply cache"


def test_a_running_run_that_is_moved_away_has_all_its_units_there(faulty, place):
    run = command(faulty, 200, "runs/a.sqlite")
    running, path, elsewhere = started(run, place, "a"), place / "runs" / "a.sqlite", place / "kept.sqlite"
    done: list[int] = []

    def move():
        done.append(File(path).count())
        path.rename(elsewhere)

    disturb_after(faulty, running, 60, move)
    assert running.end() == 1
    one_error(running.output(), "runs/a.sqlite was removed while it was being run")
    assert [*path.parent.iterdir()] == []
    File(elsewhere).check()
    assert File(elsewhere).count() >= done[0] > 0


def test_a_run_whose_file_is_only_looked_at_goes_on(faulty, place):
    """Its time is set, it gets another mode, somebody reads it, and somebody reads it to the end of the run."""
    run, path = command(faulty, 150), place / "a.sqlite"
    running = started(run, place, "a")

    def look():
        path.touch()
        path.chmod(0o600)
        subprocess.run([sys.executable, "-c", f"import sqlite3; sqlite3.connect({str(path)!r}).execute('SELECT 1')"])
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            assert reader.execute("SELECT count(*) FROM units").fetchone() == (150,)
        os.utime(path, (10**9, 10**9))

    disturb_after(faulty, running, 60, look)
    assert running.end() == 0, running.output()
    File(path).check()
    assert File(path).count() == 150


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
    one_line(parley("report", whole, "--out", "file", "--draws", "20"), 2, "file already exists")
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
