"""Notes: nobody's first note is lost, whoever is stopped or writes at the same time, and none is written elsewhere."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from itertools import count
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from parley.runs.notes import SCHEMA, NotesError, NotesFile
from tests.servers import PATIENCE

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def first_notes(folder: Path, author: str, together: Barrier, runs: int) -> None:
    rng = random.Random(author)
    for number in range(runs):
        together.wait(PATIENCE)
        time.sleep(rng.uniform(0, 0.003))
        NotesFile(folder / f"{number}.sqlite").add("unit", None, author, "odd", "look")


@forks
def test_two_viewers_write_the_first_note_at_the_same_time(tmp_path: Path) -> None:
    context, runs = get_context("fork"), 50
    together = context.Barrier(2)
    writers = [context.Process(target=first_notes, args=(tmp_path, name, together, runs)) for name in ("ann", "bob")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(PATIENCE)
    assert [writer.exitcode for writer in writers] == [0, 0]
    for number in range(runs):
        authors = {note["author"] for note in NotesFile(tmp_path / f"{number}.sqlite").notes()}
        assert authors == {"ann", "bob"}


@forks
def test_a_note_can_be_written_after_a_first_one_was_killed(tmp_path: Path) -> None:
    rng = random.Random(80)
    for attempt in range(40):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        child = os.fork()
        if not child:
            for number in count():
                NotesFile(folder / f"{number}.sqlite").add("unit", None, "ann", "odd", "look")
        time.sleep(rng.uniform(0.005, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for path in folder.glob("*.notes.sqlite"):
            notes = NotesFile(path.with_name(path.name.replace(".notes", "")))
            assert len(notes.notes()) in (0, 1)
            notes.add("unit", None, "bob", "", "seen")
            assert notes.notes()[-1]["author"] == "bob"


def test_half_of_a_first_note_is_rolled_back(tmp_path: Path) -> None:
    """As a kill leaves it: pages of a table in the file, and a journal beside it that says that the file was empty."""
    notes, half = NotesFile(tmp_path / "a.sqlite"), tmp_path / "half"
    with closing(sqlite3.connect(half, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute(SCHEMA)
        for _ in range(30):  # more than the cache holds
            db.execute("INSERT INTO notes (unit, author, tag, comment, at) VALUES ('', '', '', zeroblob(4000), 0)")
        shutil.copy(half, notes.path)
        shutil.copy(f"{half}-journal", f"{notes.path}-journal")
    assert notes.path.stat().st_size
    assert notes.notes() == []
    assert notes.add("unit", None, "bob", "", "seen") == 1
    assert [note["author"] for note in notes.notes()] == ["bob"]


@pytest.mark.parametrize("exists", [True, False])
def test_notes_that_are_a_link_are_neither_read_nor_written(tmp_path: Path, exists: bool) -> None:
    elsewhere, notes = NotesFile(tmp_path / "b.sqlite"), NotesFile(tmp_path / "a.sqlite")
    if exists:
        elsewhere.add("unit", None, "ann", "odd", "mine")
    before = elsewhere.path.read_bytes() if exists else b""
    notes.path.symlink_to(elsewhere.path)
    for use in (notes.notes, lambda: notes.add("unit", None, "bob", "", "theirs")):
        with pytest.raises(
            NotesError, match=r"^a.notes.sqlite is a link, and is not opened: notes are next to their run"
        ):
            use()
    assert elsewhere.path.exists() is exists
    assert not exists or elsewhere.path.read_bytes() == before
