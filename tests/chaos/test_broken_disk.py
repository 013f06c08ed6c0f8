"""A full disk, a quota or an error of any write never costs a finished unit, also while the log is being merged.

A small seeded sample of the points at which a disk can break; the nightly tests try one in five, and
`python -m tests.chaos.broken_disk` all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.runs import RunFile
from tests.chaos.broken_disk import (
    ERRORS,
    FEW_UNITS,
    RAY,
    ROWS_BETWEEN_MERGES,
    UNITS,
    VARIANTS,
    BrokenDisk,
    Tally,
    attempt,
    default_vfs,
    file_quota,
    kill,
)
from tests.chaos.ray_cluster import RayCluster


def nothing_is_lost(tally: Tally, capsys):
    assert dict(tally.problems) == {}, capsys.readouterr().err
    assert tally.stopped > 0


@pytest.mark.parametrize(
    ("how", "variant", "units", "each"),
    [
        ("tmpfs", "asyncio", UNITS, 150),
        ("tmpfs", "--no-cache", FEW_UNITS, 30),
        ("quota", "asyncio", FEW_UNITS, 15),
        *((how, "asyncio", FEW_UNITS, 99) for how in ERRORS),
        *(
            pytest.param(how, variant, FEW_UNITS if how in ERRORS else UNITS, 5, marks=pytest.mark.nightly)
            for how in ("tmpfs", "quota", *ERRORS)
            for variant in VARIANTS
        ),
    ],
)
def test_a_disk_that_breaks_costs_no_finished_unit(how, variant, units, each, place, mounted, capsys):
    if how in ERRORS and default_vfs() is None:
        pytest.skip("this SQLite's system calls cannot be replaced")
    disk = mounted("size=64m") if how == "tmpfs" else place / "disk"
    disk.mkdir(exist_ok=True)
    nothing_is_lost(attempt(BrokenDisk(place, disk, units, VARIANTS[variant]), how, each), capsys)


@pytest.mark.nightly
def test_nor_does_one_of_a_run_with_ray(place, mounted, capsys):
    pytest.importorskip("ray")
    cluster = RayCluster()
    try:
        broken = BrokenDisk(place, mounted("size=64m"), UNITS, (*RAY, "--ray-address", cluster.address), processes=True)
        nothing_is_lost(attempt(broken, "tmpfs", 120), capsys)
    finally:
        cluster.close()


def test_killed_at_random_moments_a_run_loses_nothing(place, capsys):
    (place / "disk").mkdir()
    nothing_is_lost(kill(BrokenDisk(place, place / "disk", processes=True), 4), capsys)


def test_the_log_of_a_half_merged_file_that_was_moved_away_is_kept(place, monkeypatch):
    """Only with it is the file whole."""
    (place / "disk").mkdir()
    broken = BrokenDisk(place, place / "disk", FEW_UNITS)
    path, elsewhere = broken.file.path, place / "elsewhere.sqlite"
    note = RunFile.note

    def moved(file, kind, detail):
        if kind == "stopped":
            path.rename(elsewhere)
        note(file, kind, detail)

    monkeypatch.setattr(RunFile, "note", moved)
    monkeypatch.setattr("parley.runs.store.ROWS_BETWEEN_MERGES", ROWS_BETWEEN_MERGES)
    with file_quota(broken.bytes * 3 // 4):
        status, output = broken.run()
    assert status == 1
    kept = Path(f"{path}-wal.kept")
    assert [*path.parent.iterdir()] == [kept]
    assert f"{kept} has the run's last units" in output
    kept.rename(f"{elsewhere}-wal")
    elsewhere.rename(path)
    Path(f"{elsewhere}-wal").rename(f"{path}-wal")
    monkeypatch.undo()
    assert broken.file.count() > 0
    broken.file.check()
    broken.resumed(broken.file.done(), "moved away")
    assert not broken.tally.problems
