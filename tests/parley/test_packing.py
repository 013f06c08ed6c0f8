"""A run that gzip packed is read by every command; a bad archive gives one clear line."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from parley.runs import RunFile, frames, packing
from parley.runs.notes import NotesFile
from parley.viewer.run_folder import RunFolder
from tests.panels import TINY_PANEL


@pytest.fixture
def run(place, finished):
    path = place / "runs" / "a.sqlite"
    path.parent.mkdir()
    path.write_bytes(finished)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path


@pytest.fixture
def packed(run):
    return pack(run)


def pack(run: Path) -> Path:
    """What `gzip` makes of a run file."""
    target = run.with_name(f"{run.name}.gz")
    target.write_bytes(gzip.compress(run.read_bytes()))
    os.utime(target, (run.stat().st_atime, run.stat().st_mtime))
    run.unlink()
    return target


def copies(place: Path) -> list[Path]:
    return sorted((place / "home" / "unpacked").glob("*"))


@pytest.mark.skipif(shutil.which("gunzip") is None, reason="there is no gunzip")
def test_gunzip_restores_it_and_what_gzip_made_is_read(packed, run, finished):
    subprocess.run(["gunzip", packed], check=True)
    assert run.read_bytes() == finished
    subprocess.run(["gzip", "-9", run], check=True)
    with RunFile.open(packed) as file:
        assert file.counts()["done"] == 9


@pytest.mark.parametrize(
    "command",
    [
        ("report", "{}", "--json", "--draws", "50"),
        ("show",),
        ("export", "{}", "--format", "transcripts", "--to", "whole.jsonl", "--force"),
        ("compare", "{}", "{}", "--json"),
    ],
    ids=" ".join,
)
def test_every_command_reads_a_packed_run(command, parley, run, place):
    expected = parley(*(part.format("runs/a.sqlite") for part in command))
    made = {path.name: path.read_bytes() for path in place.glob("*.*l")}
    pack(run)

    told = parley(*(part.format("runs/a.sqlite.gz") for part in command))

    assert told.status == expected.status == 0, told.err
    assert told.out.replace("a.sqlite.gz", "a.sqlite") == expected.out
    assert {path.name for path in place.glob("*.*l")} == made.keys()
    if "transcripts" in command:
        assert (place / "whole.jsonl").read_bytes() == made["whole.jsonl"]
    assert [path.name for path in run.parent.iterdir()] == ["a.sqlite.gz"], "reading changes nothing in the folder"
    assert len(copies(place)) == 1


def test_frames_notes_and_the_newest_run(packed, run, place, finished):
    assert len(frames.units(packed)) == 9
    assert NotesFile(packed).path == NotesFile(run).path
    (run.parent / "b.sqlite").write_bytes(finished)
    assert RunFolder(run.parent).names() == ["b.sqlite", "a.sqlite.gz"]
    NotesFile(packed).path.write_bytes(b"")
    assert RunFolder(run.parent).names() == ["b.sqlite", "a.sqlite.gz"]


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


@pytest.mark.parametrize("what", BAD)
def test_a_bad_archive_gives_one_line_and_leaves_nothing(what, parley, packed, place, finished, monkeypatch):
    monkeypatch.setattr(packing, "EXPANSION_FREE", 2**20)
    change, message = BAD[what]
    packed.write_bytes(change(packed.read_bytes(), finished))
    for command in (("report", packed), ("show", packed)):
        told = parley(*command)
        assert told.status == 1
        assert len(told.err.splitlines()) == len(told.complaints) == 1
        assert message in told.err
    assert [path.name for path in packed.parent.iterdir()] == ["a.sqlite.gz"]
    assert [path for path in copies(place) if path.suffix == ".part"] == []


def test_a_truncated_archive_is_salvaged_as_far_as_it_goes(parley, packed):
    data = packed.read_bytes()
    packed.write_bytes(data[: len(data) * 3 // 4])
    told = parley("import", "--damaged", packed, "--out", "copy.sqlite", "--json")
    assert told.json["copied"] + told.json["lost"] == 9, told.err


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
