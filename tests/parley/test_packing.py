"""A packed run is read by every command, is resumed, and restored byte for byte; a bad archive gives one clear line."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parley.runs import RunFile, frames, packing
from parley.runs.notes import NotesFile
from parley.viewer.run_folder import RunFolder
from tests.panels import RUN_PANEL, TINY_PANEL


@pytest.fixture
def run(place: Path, finished: bytes) -> Path:
    path = place / "runs" / "a.sqlite"
    path.parent.mkdir()
    path.write_bytes(finished)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path


@pytest.fixture
def packed(run: Path) -> Path:
    return packing.pack(run)


def copies(place: Path) -> list[Path]:
    return sorted((place / "home" / "unpacked").glob("*"))


def test_packing_and_unpacking_restore_the_same_file(parley: Callable[..., Any], run: Path, finished: bytes) -> None:
    told = parley("pack", run)

    packed = run.with_name("a.sqlite.gz")
    assert told.status == 0
    assert told.out.startswith(f"{packed}: {packed.stat().st_size:,} bytes, ")
    assert sorted(path.name for path in run.parent.iterdir()) == ["a.sqlite.gz"]
    assert gzip.decompress(packed.read_bytes()) == finished
    assert packed.stat().st_mtime == 1_600_000_000, "packing must not make it the newest run"
    assert packed.stat().st_size < len(finished) / 3

    assert parley("unpack", packed).status == 0
    assert sorted(path.name for path in run.parent.iterdir()) == ["a.sqlite"]
    assert run.read_bytes() == finished
    assert run.stat().st_mtime == 1_600_000_000


@pytest.mark.skipif(shutil.which("gunzip") is None, reason="there is no gunzip")
def test_gunzip_restores_it_and_what_gzip_made_is_read(packed: Path, run: Path, finished: bytes) -> None:
    subprocess.run(["gunzip", packed], check=True)
    assert run.read_bytes() == finished
    subprocess.run(["gzip", "-9", run], check=True)
    with RunFile.open(packed) as file:
        assert file.counts()["done"] == 9


def test_keep_keeps_both_and_the_folder_lists_one(parley: Callable[..., Any], run: Path) -> None:
    assert parley("pack", run, "--keep").status == 0
    assert RunFolder(run.parent).names() == ["a.sqlite"]
    again = parley("pack", run)
    assert again.err == f"parley: {run}.gz already exists: move it away first\n"
    assert (again.status, run.exists()) == (2, True)


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
def test_every_command_reads_a_packed_run(
    command: tuple[str, ...], parley: Callable[..., Any], run: Path, place: Path
) -> None:
    expected = parley(*(part.format("runs/a.sqlite") for part in command))
    made = {path.name: path.read_bytes() for path in place.glob("*.*l")}
    packing.pack(run)

    told = parley(*(part.format("runs/a.sqlite.gz") for part in command))

    assert told.status == expected.status == 0, told.err
    assert told.out.replace("a.sqlite.gz", "a.sqlite") == expected.out
    assert {path.name for path in place.glob("*.*l")} == made.keys()
    if "transcripts" in command:
        assert (place / "whole.jsonl").read_bytes() == made["whole.jsonl"]
    assert [path.name for path in run.parent.iterdir()] == ["a.sqlite.gz"], "reading changes nothing in the folder"
    assert len(copies(place)) == 1


def test_frames_notes_and_the_newest_run(packed: Path, run: Path, place: Path, finished: bytes) -> None:
    assert len(frames.units(packed)) == 9
    assert NotesFile(packed).path == NotesFile(run).path
    (run.parent / "b.sqlite").write_bytes(finished)
    assert RunFolder(run.parent).names() == ["b.sqlite", "a.sqlite.gz"]
    NotesFile(packed).path.write_bytes(b"")
    assert RunFolder(run.parent).names() == ["b.sqlite", "a.sqlite.gz"]


def test_a_packed_run_is_resumed_and_packed_again(
    parley: Callable[..., Any], place: Path, run_file: Any, server: Any
) -> None:
    command = (*TINY_PANEL, "--model", server.model())
    assert parley(*command, "--out", "a.sqlite", "--budget-calls", "20").status == 1
    assert parley("pack", "a.sqlite").status == 0

    told = parley(*command, "--out", "a.sqlite", "--pack")

    assert told.status == 0
    assert told.err == "parley: unpacked a.sqlite.gz to resume it\n"
    assert "9 of 9 units done: a.sqlite.gz" in told.out
    assert "parley report a.sqlite.gz" in told.out
    assert not (place / "a.sqlite").exists()
    assert len(server.asked) == 72
    assert parley(*command, "--out", "a.sqlite.gz").status == 0
    assert (len(server.asked), (place / "a.sqlite.gz").exists()) == (72, True)
    missing = parley("report", "a.sqlite")
    assert missing.err == (
        "parley: there is no run file a.sqlite; it is packed: name a.sqlite.gz, or unpack it with parley unpack "
        "a.sqlite.gz\n"
    )


def test_a_killed_run_is_packed_with_its_log(
    parley: Callable[..., Any], start: Callable[..., Any], run_file: Any, place: Path
) -> None:
    command = (*RUN_PANEL, "--suite", "tiny", "--quiet", "--model", "sim/judge?latency=0.05", "--out", "a.sqlite")
    file = run_file("a.sqlite")
    process = start(*command, "--concurrency", "2")
    process.wait_for(lambda: file.starts() == 1 and file.count() > 0)
    refused = parley("pack", "a.sqlite")
    assert refused.err == "parley: a.sqlite is being run by another process\n"
    process.kill()
    done = file.done()

    assert parley("pack", "a.sqlite").status == 0
    with RunFile.open(place / "a.sqlite.gz") as opened:
        assert {unit for (unit,) in opened.rows("SELECT id FROM units WHERE status = 'done'")[1]} == done
    assert sorted(path.name for path in place.glob("a.sqlite*")) == ["a.sqlite.gz"]


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
def test_a_bad_archive_gives_one_line_and_leaves_nothing(
    what: str, parley: Callable[..., Any], packed: Path, place: Path, finished: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "EXPANSION_FREE", 2**20)
    change, message = BAD[what]
    packed.write_bytes(change(packed.read_bytes(), finished))
    for command in (("report", packed), ("show", packed), ("unpack", packed)):
        told = parley(*command)
        assert told.status == 1
        assert len(told.err.splitlines()) == len(told.complaints) == 1
        assert message in told.err
    assert [path.name for path in packed.parent.iterdir()] == ["a.sqlite.gz"]
    assert [path for path in copies(place) if path.suffix == ".part"] == []


def test_a_truncated_archive_is_salvaged_as_far_as_it_goes(parley: Callable[..., Any], packed: Path) -> None:
    data = packed.read_bytes()
    packed.write_bytes(data[: len(data) * 3 // 4])
    told = parley("salvage", packed, "--to", "copy.sqlite", "--json")
    assert told.json["copied"] + told.json["lost"] == 9, told.err


def test_a_full_disk_and_a_home_that_is_not_writable(
    parley: Callable[..., Any], packed: Path, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setattr(packing.shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**20, total=2**40))
    told = parley("show", packed)
    folder = place / "home" / "unpacked"
    assert (told.status, told.err) == (1, f"parley: {packed} is not unpacked: the disk of {folder} would be full\n")
    monkeypatch.undo()
    monkeypatch.setenv("PARLEY_HOME", str(packed))  # a file
    with RunFile.open(packed) as file:
        assert file.counts()["done"] == 9


def test_a_replaced_archive_is_unpacked_again_and_old_copies_are_removed(
    packed: Path, place: Path, finished: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done() -> int:
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


def test_a_run_that_cannot_be_packed_is_left_alone(
    parley: Callable[..., Any], run: Path, finished: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = run.with_name("text.sqlite")
    text.write_text("hello")
    assert parley("pack", text).err == f"parley: {text} is not a Parley run file\n"
    assert parley("pack", "none.sqlite").err == "parley: there is no run file none.sqlite\n"
    assert parley("unpack", run).err == f"parley: {run} is not packed\n"
    text.unlink()

    compress = zlib.compressobj

    def wrong(*arguments: Any) -> Any:
        """As on a disk that loses a byte."""
        real = compress(*arguments)
        return SimpleNamespace(compress=lambda data: real.compress(data[:-1] + b"?"), flush=real.flush)

    monkeypatch.setattr(gzip.zlib, "compressobj", wrong)
    told = parley("pack", run)
    assert told.status == 1
    assert len(told.complaints) == 1
    assert run.read_bytes() == finished
    assert [path.name for path in run.parent.iterdir()] == ["a.sqlite"]
