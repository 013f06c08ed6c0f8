"""Runs that are damaged or packed: what can be read is read or copied, and what cannot is one line."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from parley.cli import main
from parley.runs import RunFile, frames, packing
from parley.runs.notes import NotesFile
from parley.runs.salvage import LOST
from parley.viewer.run_folder import RunFolder
from tests.panels import TINY_PANEL
from tests.parley.test_bad_input import one_line

RUN = (*TINY_PANEL, "--repeats", "12", "--model", "sim/judge")
UNITS = 108


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory):
    """A run that is done, large enough for several pages a table."""
    path = tmp_path_factory.mktemp("sound") / "a.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_HOME", str(path.parent / "home"))
        assert main([*RUN, "--out", str(path)]) == 0
    return path


@pytest.fixture
def run(sound_run, place):
    """A copy to be damaged."""
    return Path(shutil.copy(sound_run, place))


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def spoil(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 4096)


FIRST = "(SELECT id FROM units ORDER BY position LIMIT 1)"
CHANGES = {
    "facets": f"UPDATE units SET facets = replace(facets, 'gender', 'gendes') WHERE id = {FIRST}",
    "a verdict": f"UPDATE verdicts SET value = value + 1 WHERE unit = {FIRST} AND nth = 0",
    "a message": f"UPDATE messages SET speaker = 'Eve' WHERE unit = {FIRST} AND seq = 1",
    "a call": f"UPDATE calls SET prompt_tokens = 1 WHERE unit = {FIRST}",
    "a verdict that is gone": f"DELETE FROM verdicts WHERE unit = {FIRST}",
}


@pytest.mark.parametrize("what", CHANGES)
def test_small_damage_is_noticed_and_the_unit_named(parley, run, what):
    sound = parley("show", run, "--json").json["id"]
    change(run, CHANGES[what])
    line = (
        f"a.sqlite is damaged: unit '{sound}' is not as it was written (its checksum differs); parley import --damaged "
    )
    one_line(parley("show", run, sound), 1, line)
    if what == "facets" or "verdict" in what:
        one_line(parley("report", run, "--no-files"), 1, line)
    result = parley("import", "--damaged", run, "--json")
    assert result.status == 1
    kinds = ("again", "gone") if what != "facets" else ("gone", "again")
    assert (result.json["lost"], result.json[kinds[0]], result.json[kinds[1]]) == (1, 1, 0)
    assert result.json["copied"] == UNITS - 1
    if what == "a verdict":
        assert parley("report", "a.salvaged.sqlite", "--no-files", "--draws", "20").status == 0


TEXT = "UPDATE texts SET text = text || '!' WHERE id = (SELECT text FROM messages WHERE {} AND seq = {})"


def test_a_prompt_that_many_share_does_not_lose_their_verdicts(parley, run, run_file):
    story = run_file(run).story()
    change(run, TEXT.format(f"unit = {FIRST}", 0))
    result = parley("import", "--damaged", run)
    assert result.status == 1
    assert "108 units copied, 0 lost" in result.out
    assert "part of a prompt could not be read in 12 copied units" in result.out
    new = run_file("a.salvaged.sqlite")
    assert new.story()["verdicts"] == story["verdicts"]
    new.check()
    assert LOST in parley("show", "a.salvaged.sqlite").out


def test_a_sound_run_is_copied_whole_and_what_was_lost_is_run_again(parley, run, run_file):
    result, story = parley("import", "--damaged", run), run_file(run).story()
    assert (result.status, result.out) == (0, f"108 units copied, 0 lost: {run.with_name('a.salvaged.sqlite')}\n")
    assert run_file("a.salvaged.sqlite").story() == story
    change(run, CHANGES["a message"])
    result = parley("import", "--damaged", run, "--out", "b.sqlite")
    assert (result.status, result.err) == (1, "")
    assert result.out == (
        "107 units copied, 1 lost: b.sqlite\n"
        "to run the lost units again, add --out b.sqlite to the command that made the run\n"
    )
    assert parley(*RUN, "--out", "b.sqlite").status == 0
    run_file("b.sqlite").check()
    assert run_file("b.sqlite").story() == story


@pytest.mark.parametrize("table", ["units", "verdicts", "texts", "events"])
def test_a_bad_page_loses_its_own_units_only(parley, run, run_file, table):
    story = run_file(run).story()
    with closing(sqlite3.connect(run)) as db:
        last = db.execute("SELECT id FROM units ORDER BY id DESC LIMIT 1").fetchone()[0]
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    data = run.read_bytes()
    at = (root - 1) * 4096
    if data[at] in (2, 5):  # an inner page: the leaf that it names last
        at = (int.from_bytes(data[at + 8 : at + 12], "big") - 1) * 4096
        at = (int.from_bytes(data[at + 8 : at + 12], "big") - 1) * 4096 if data[at] in (2, 5) else at
    spoil(run, at)

    result = parley("import", "--damaged", run, "--json")

    assert result.status == (0 if table in ("checks", "events") else 1), result
    copied, lost = result.json["copied"], result.json["lost"]
    assert copied + lost == UNITS
    assert copied >= (UNITS if table in ("checks", "events") else 40), (table, last)
    new = run_file("a.salvaged.sqlite")
    assert new.count() == copied
    new.check()
    known = new.done()
    for copy, original in zip(
        new.story()["transcript"], [row for row in story["transcript"] if row[0] in known], strict=True
    ):
        told = original[4] == "narrator" and copy[5] == LOST
        assert copy == (*original[:5], LOST if told else original[5], *original[6:])
    assert new.story()["verdicts"] == [row for row in story["verdicts"] if row[0] in known]


def test_a_run_cut_short_gives_what_is_left_of_it(parley, run, run_file):
    os.truncate(run, run.stat().st_size - 5 * 4096)
    one_line(parley("show", run), 1, "a.sqlite is damaged or truncated", "parley import --damaged")
    before = run.read_bytes()
    result = parley("import", "--damaged", run, "--json")
    assert result.status == 1
    assert 20 < result.json["copied"] < UNITS
    run_file("a.salvaged.sqlite").check()
    assert run.read_bytes() == before


def test_nothing_is_written_if_nothing_can_be_read_or_the_copy_fails_or_a_file_is_there(
    parley, run, place, monkeypatch
):
    (place / "b.sqlite").write_text("mine")
    said = "b.sqlite already exists: name another file with --out"
    one_line(parley("import", "--damaged", run, "--out", "b.sqlite"), 2, said)
    assert (place / "b.sqlite").read_text() == "mine"

    def full(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("parley.runs.salvage.copy_units", full)
        with suppress(KeyboardInterrupt):
            parley("import", "--damaged", run)
    change(run, "DELETE FROM units")
    one_line(parley("import", "--damaged", run), 1, "no unit of ", "a.sqlite can be read; nothing was copied")
    assert [path.name for path in place.iterdir() if "salvaged" in path.name] == []


@pytest.fixture
def unpacked(place, finished):
    path = place / "runs" / "a.sqlite"
    path.parent.mkdir()
    path.write_bytes(finished)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path


@pytest.fixture
def packed(unpacked):
    return pack(unpacked)


def pack(run: Path) -> Path:
    """What `gzip` makes of a run file."""
    target = run.with_name(f"{run.name}.gz")
    target.write_bytes(gzip.compress(run.read_bytes()))
    os.utime(target, (run.stat().st_atime, run.stat().st_mtime))
    run.unlink()
    return target


def copies(place: Path) -> list[Path]:
    return sorted((place / "home" / "unpacked").glob("*"))


READING = (
    ("report", "{}", "--json", "--draws", "50"),
    ("show",),
    ("export", "{}", "--format", "transcripts", "--to", "whole.jsonl", "--force"),
    ("compare", "{}", "{}", "--json"),
)


def test_every_command_reads_a_packed_run(parley, unpacked, place):
    expected = [parley(*(part.format("runs/a.sqlite") for part in command)) for command in READING]
    made = (place / "whole.jsonl").read_bytes()
    pack(unpacked)
    for command, plain in zip(READING, expected, strict=True):
        told = parley(*(part.format("runs/a.sqlite.gz") for part in command))
        assert told.status == plain.status == 0, told.err
        assert told.out.replace("a.sqlite.gz", "a.sqlite") == plain.out
    assert (place / "whole.jsonl").read_bytes() == made
    assert [path.name for path in unpacked.parent.iterdir()] == ["a.sqlite.gz"], "reading changes nothing in the folder"
    assert len(copies(place)) == 1


def test_frames_notes_and_the_newest_run(packed, unpacked, place, finished):
    assert len(frames.units(packed)) == 9
    assert NotesFile(packed).path == NotesFile(unpacked).path
    (unpacked.parent / "b.sqlite").write_bytes(finished)
    assert RunFolder(unpacked.parent).names() == ["b.sqlite", "a.sqlite.gz"]
    NotesFile(packed).path.write_bytes(b"")
    assert RunFolder(unpacked.parent).names() == ["b.sqlite", "a.sqlite.gz"]


def test_a_packed_run_is_not_resumed_until_it_is_unpacked(parley, place, server):
    command = (*TINY_PANEL, "--model", server.model(), "--out", "a.sqlite")
    assert parley(*command, "--budget-calls", "20").status == 1
    pack(place / "a.sqlite")
    asked = len(server.asked)
    assert parley(*command).err == "parley: this run is packed; to resume it, first: gunzip a.sqlite.gz\n"
    assert "a run file is not packed while it is run; name b.sqlite" in parley(*command[:-1], "b.sqlite.gz").err
    assert len(server.asked) == asked
    missing = parley("report", "a.sqlite")
    assert missing.err == (
        "parley: there is no run file a.sqlite; it is packed: name a.sqlite.gz, or unpack it with gunzip a.sqlite.gz\n"
    )


def bomb(run: bytes) -> bytes:
    return gzip.compress(run[:16] + bytes(40 * 2**20), 1)


BAD = {
    "truncated": (lambda data, run: data[: len(data) // 2], "is damaged or truncated: its end is missing"),
    "without its checksum": (lambda data, run: data[:-8], "is damaged or truncated: its end is missing"),
    "a changed byte": (lambda data, run: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:], "is damaged (Error -3"),
    "bytes after its end": (lambda data, run: data + b"more", "is damaged: more bytes follow its end"),
    "another file": (lambda data, run: gzip.compress(b"hello"), "is not a packed Parley run"),
    "an empty file": (lambda data, run: gzip.compress(b""), "is not a Parley run file"),
    "another database": (lambda data, run: gzip.compress(run[:100] + bytes(5000)), "a.sqlite.gz is "),
    "packed twice": (lambda data, run: gzip.compress(data), "is not a packed Parley run"),
    "a bomb": (lambda data, run: bomb(run), "is not unpacked: no run becomes over 100 times longer"),
}


def test_a_bad_archive_gives_one_line_and_leaves_nothing(parley, packed, place, finished, monkeypatch):
    monkeypatch.setattr(packing, "EXPANSION_FREE", 2**20)
    sound = packed.read_bytes()
    for change, message in BAD.values():
        packed.write_bytes(change(sound, finished))
        for command in ("report", "show"):
            told = parley(command, packed)
            assert (told.status, len(told.err.splitlines()), len(told.complaints)) == (1, 1, 1)
            assert message in told.err
        assert [path.name for path in packed.parent.iterdir()] == ["a.sqlite.gz"]
        assert [path for path in copies(place) if path.suffix == ".part"] == []
    packed.write_bytes(sound[: len(sound) * 3 // 4])
    told = parley("import", "--damaged", packed, "--out", "copy.sqlite", "--json")
    assert told.json["copied"] + told.json["lost"] == 9, "it is salvaged as far as it goes"


def test_a_full_disk_and_a_home_that_is_not_writable(parley, packed, monkeypatch, place):
    monkeypatch.setattr(packing.shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**20, total=2**40))
    told = parley("show", packed)
    folder = place / "home" / "unpacked"
    assert (told.status, told.err) == (1, f"parley: {packed} is not unpacked: the disk of {folder} would be full\n")
    monkeypatch.undo()
    monkeypatch.setenv("PARLEY_HOME", str(packed))  # a file
    with RunFile.open(packed) as file:
        assert file.counts()["done"] == 9


def test_a_replaced_archive_is_unpacked_again_and_old_copies_are_removed(packed, place, finished, monkeypatch):
    def done():
        with RunFile.open(packed) as file:
            return file.counts()["done"]

    assert (done(), done()) == (9, 9)
    (first,) = copies(place)
    os.utime(first, (1_000_000_000, first.stat().st_mtime))
    packed.write_bytes(gzip.compress(finished))
    assert done() == 9
    (second,) = copies(place)
    assert first != second

    monkeypatch.setattr(packing, "CACHE_BYTES", 0)
    packed.write_bytes(gzip.compress(finished, 1))
    assert done() == 9
    assert len(copies(place)) == 2, "a copy that may be in use stays"
