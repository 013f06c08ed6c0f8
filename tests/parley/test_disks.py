"""Disks that are full, read-only or missing: one line of error each."""

from __future__ import annotations

import shutil

import pytest

from parley.runs import RunFile
from tests.panels import TINY_PANEL
from tests.parley.test_bad_input import one_line

SIM = (*TINY_PANEL, "--model", "sim/judge")


def test_places_that_cannot_be_written(parley, place, whole, mounted, remount):
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


MANY = (
    *("run", "malibu", "--yardstick", "off", "--suite", "tiny", "--repeats", "12"),
    *("--quiet", "--model", "sim/judge", "--concurrency", "2"),
)


def test_a_full_disk_loses_no_finished_unit_and_the_run_resumes_when_there_is_room(parley, mounted, remount, run_file):
    disk = mounted("size=400k")
    file = run_file(disk / "a.sqlite")

    result = parley(*MANY, "--out", file.path)

    assert result.status == 1
    assert len(result.complaints) == 1
    assert "the disk is full; units finished before are stored" in result.err
    assert "run the same command again to resume" in result.err
    assert "Traceback" not in result.err
    done = file.done()
    assert 0 < len(done) < 145
    assert result.out == f"{len(done)} of 145 units done: {file.path}\n"
    file.check()

    remount(disk, "size=20m")
    assert parley(*MANY, "--out", file.path).status == 0
    assert done <= file.done()
    assert file.count() == 145


@pytest.mark.parametrize("size", ["16k", "48k"])
def test_a_disk_too_full_to_start_leaves_no_file_behind(parley, mounted, remount, size):
    disk = mounted(f"size={size}")
    one_line(parley(*MANY, "--out", disk / "a.sqlite"), 1, "the disk is full")

    remount(disk, "size=20m")

    again = parley(*SIM, "--out", disk / "a.sqlite")
    assert again.status == 0, again.err


def test_a_commit_of_finished_units_is_on_the_disk_when_it_returns(whole):
    """Otherwise a power failure would take units that the run had counted as done."""
    with RunFile.open(whole, write=True) as file:
        assert file.rows("PRAGMA synchronous")[1] == [(2,)], "FULL: the log is synced at every commit"
