"""Run files that others made, and what may stand beside them: reading them changes, deletes and endures nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from parley.base.errors import ConfigError
from parley.runs import RunFile, RunFileError, opening
from parley.runs.opening import JOURNAL_MAGIC
from parley.runs.schema import LONGEST_INFO
from tests.panels import TINY_PANEL
from tests.parley.test_bad_input import SIM, one_line

SLOW = (*TINY_PANEL, "--model", "sim/judge?latency=0.3", "--concurrency", "2")
READS = (("show",), ("show", "--list"), ("report", "--no-files"), ("export", "--format", "transcripts"))


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def journal(run: Path, *, names: Path | None = None) -> bytes:
    """A journal that SQLite rolls back; it may name a super-journal, which SQLite then deletes."""
    head = JOURNAL_MAGIC + struct.pack(">IIIII", 0, 1, run.stat().st_size // 4096, 512, 4096)
    if names is None:
        return head.ljust(512, b"\0")
    name = str(names).encode()
    pending_page = 2**30 // 4096 + 1
    end = struct.pack(">I", pending_page) + name + struct.pack(">II", len(name), sum(name)) + JOURNAL_MAGIC
    return head.ljust(512, b"\0") + end


def test_a_journal_cannot_have_a_file_of_yours_deleted(parley, place, whole):
    mine = place / "mine.txt"
    mine.write_text("years of work")
    Path(f"{whole}-journal").write_bytes(journal(whole, names=mine))
    before = listing(place)
    for command in (*((words[0], whole, *words[1:]) for words in READS), (*SIM, "--out", whole)):
        said = "whole.sqlite is not opened: whole.sqlite-journal next to it names another file"
        one_line(parley(*command), 1, said)
        assert listing(place) == before


def test_an_honest_journal_is_rolled_back_in_a_copy(parley, place, whole):
    """Killed in the middle of a transaction that had reached the file."""
    sound = parley("show", whole).out
    code = (
        "import os, sqlite3; db = sqlite3.connect('whole.sqlite', isolation_level=None); "
        "db.execute('PRAGMA cache_size = 1'); db.execute('PRAGMA cache_spill = 1'); db.execute('BEGIN IMMEDIATE'); "
        "db.execute('DELETE FROM messages'); db.execute('DELETE FROM texts'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    before = listing(place)
    assert len(before["whole.sqlite-journal"]) > 512
    assert parley("show", whole).out == sound
    assert listing(place) == before
    assert parley(*SIM, "--out", whole).status == 0, "and a writer rolls it back"
    assert not Path(f"{whole}-journal").exists()


def test_a_link_beside_a_run_is_not_followed(parley, place, whole):
    mine = place / "mine.txt"
    mine.write_text("years of work " * 100)
    for beside in ("-journal", "-wal"):
        Path(f"{whole}{beside}").symlink_to(mine)
        for result in (parley("show", whole), parley(*SIM, "--out", whole)):
            one_line(result, 1, "whole.sqlite")
        assert mine.read_text() == "years of work " * 100
        Path(f"{whole}{beside}").unlink()


KILLED = """
import os
from pathlib import Path
from parley.runs import RunFile
file = RunFile.open(Path("whole.sqlite"), write=True)
file.note("killed", "")
os._exit(1)
"""


def test_a_killed_run_is_read_with_its_log_and_not_changed(parley, place, whole, mounted, remount):
    with closing(sqlite3.connect(whole)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = listing(place)
    assert parley("show", whole).status == 0
    assert listing(place) == before, "a run last written in WAL mode is read without a trace"

    def killed(path):
        with RunFile.open(path) as file:
            return file.rows("SELECT count(*) FROM events WHERE kind = 'killed'")[1] == [(1,)]

    subprocess.run([sys.executable, "-c", KILLED], check=False)
    assert Path(f"{whole}-wal").stat().st_size > 0
    before = listing(place)
    assert killed(whole)
    after = listing(place)
    assert all(after[name] == content for name, content in before.items() if not name.endswith("-shm"))
    archive = mounted("size=4m")
    for path in (whole, Path(f"{whole}-wal")):
        shutil.copy(path, archive)
    remount(archive, "ro")
    assert killed(archive / whole.name)
    whole.unlink()
    said = "whole.sqlite-wal is left over from a run file that no longer exists; move it away"
    one_line(parley(*SIM, "--out", whole), 1, said)


def test_a_run_that_changes_while_it_is_read_is_not_read_as_a_mixture(whole):
    with RunFile.open(whole) as file:
        file.counts()
        with RunFile.open(whole, write=True) as writer:
            writer.note("look", "meanwhile")
        with pytest.raises(RunFileError, match="was changed while it was read: open it again"):
            file.counts()


def test_a_file_that_takes_more_work_than_its_size_explains_is_not_read(parley, whole, monkeypatch):
    """A few pages, each of which names the next many times, are a table without end."""
    for name, value in (("STEPS", 10), ("STEPS_FREE", 0), ("STEPS_PER_BYTE", 0)):
        monkeypatch.setattr(opening, name, value)
    one_line(parley("show", whole, "--list"), 1, "is damaged: reading it takes more work than its size explains")


def test_what_stands_in_the_locks_place_is_left_alone_unless_a_killed_run_left_it(parley, place, whole):
    mine, lock = place / "mine.txt", place / "whole.sqlite.lock"
    mine.write_text("years of work")
    for make, remove in (
        (lambda: lock.symlink_to(mine), lock.unlink),
        (lambda: lock.write_text("years of work"), lock.unlink),
        (lock.mkdir, lock.rmdir),
    ):
        make()
        one_line(parley(*SIM, "--out", whole), 1, "whole.sqlite cannot be locked", "whole.sqlite.lock", "move it away")
        assert mine.read_text() == "years of work"
        assert lock.is_dir() or lock.read_text() == "years of work"
        remove()
    lock.touch()
    assert parley(*SIM, "--out", whole).status == 0
    assert not lock.exists()


def test_a_run_with_a_hard_link_is_written_under_neither_name(parley, start, place, run_file):
    """Both processes ended with 0, and the file was malformed: each had a lock and a log of its own."""
    file, killed = run_file("killed.sqlite"), place / "killed.sqlite"
    process = start(*SLOW, "--out", file.path)
    process.wait_for(lambda: file.starts() == 1 and file.count() > 3)
    process.kill()
    assert Path(f"{killed}-wal").stat().st_size > 0
    os.link(killed, place / "second.sqlite")
    before = killed.read_bytes()
    both = [start(*SLOW, "--out", name) for name in ("killed.sqlite", "second.sqlite")]
    ends = [process.end() for process in both]
    one_line(ends[0], 1, "killed.sqlite is not written: it has 2 names (hard links; find . -samefile killed.sqlite")
    # The other name has no log beside it: the units in the log would silently be missing.
    one_line(ends[1], 1, "second.sqlite is not read: it has 2 names", "may be in a -wal file there; open that one")
    one_line(parley("report", "second.sqlite"), 1, "second.sqlite is not read")
    assert killed.read_bytes() == before
    assert parley("show", killed, "--list").status == 0


def test_a_link_to_a_run_that_does_not_exist_yet_is_no_second_run(parley, place):
    """The link was replaced by a file: two runs made the same calls, and both were paid."""
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "a.sqlite").symlink_to(place / "a.sqlite")
    one_line(
        parley(*SIM, "--out", "elsewhere/a.sqlite"), 1, "is a symbolic link to a file that does not exist; name that"
    )
    assert (place / "elsewhere" / "a.sqlite").is_symlink()
    assert not (place / "a.sqlite").exists()


def test_a_description_longer_than_any_that_parley_writes_is_not_read(parley, whole):
    """A config of 200 MB took 2.9 GB of memory in `view --export`."""
    with closing(sqlite3.connect(whole)) as db:
        db.execute("UPDATE run SET value = ? WHERE key = 'config'", (f'{{"a": "{"x" * LONGEST_INFO}"}}',))
        db.commit()
    one_line(parley("view", whole, "--export", "a.html"), 1, "is damaged: it has a longer text than Parley writes")
    with pytest.raises(ConfigError, match=r"^this run's config takes more than 33,554,432 bytes"):
        RunFile.create(Path("b.sqlite"), {"config": "x" * LONGEST_INFO}, {}, [])


def test_a_file_mounted_by_itself_is_not_written(parley, mounted, whole):
    """Its log would stay in the folder that it is mounted in, such as a container's, and be gone with it."""
    folder = mounted("size=4m")
    with_a_space = folder / "a run.sqlite"
    with_a_space.touch()
    subprocess.run(["mount", "--bind", str(whole), str(with_a_space)], check=True)
    try:
        assert parley("show", with_a_space).status == 0
        one_line(parley(*SIM, "--out", with_a_space), 1, "a run.sqlite is not written: it is mounted as a single file")
        assert [path.name for path in folder.iterdir()] == ["a run.sqlite"]
    finally:
        subprocess.run(["umount", str(with_a_space)], check=True)
