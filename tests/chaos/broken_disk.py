"""A disk that is full, over its quota or broken at every point of a run: nothing that was finished is lost.

    python -m tests.chaos.broken_disk --write tests/chaos/BROKEN_DISK.md       # everything, 15 minutes
    python -m tests.chaos.broken_disk --each 5 --kills 10                      # a sample

A run on a simulated model merges its log three times or more. It is stopped by a small disk, by a quota, by an error of
each of SQLite's writes and syncs, or by SIGKILL; tried again while nothing has changed; and resumed when there is room.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import io
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from parley.cli import main as parley
from parley.runs import RunFile
from parley.runs.opening import FileMarks
from tests.chaos.ray_cluster import RayCluster
from tests.conftest import File
from tests.process import started

UNITS, FEW_UNITS = 120, 16
PAGE = 4096
ROWS_BETWEEN_MERGES = 90
"""With few units: so that they too are merged three times."""
HALF_OF_THE_WRITES = 120
VARIANTS: dict[str, tuple[str, ...]] = {"asyncio": (), "--no-cache": ("--no-cache",)}
RAY = ("--executor", "ray", "--workers", "1")
ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EIO once", "EIO of a sync", "ENOSPC on resume", "EIO on resume")
ABOUT = """\
# Broken disks

A run that merges its log at least three times, on a disk that is full, over its quota or broken at one of many
points, or killed. It is then tried again on the same disk, and resumed on a sound one. *Stopped*: runs that ended
early, and those of them that had begun to merge the log. *Lost*: units reported as done that are missing. *Damaged*:
files that SQLite or Parley cannot read whole, or that are left of a run that could not begin. *Differing*: resumed runs
that differ from an undisturbed one. To SQLite, EDQUOT and EFBIG are the same as EIO.
"""


@dataclass
class Tally:
    tries: int = 0
    stopped: int = 0
    merged: int = 0
    """Runs that were stopped after they had merged the log."""
    problems: Counter[str] = field(default_factory=Counter)

    def row(self, name: str) -> str:
        problems = [self.problems[kind] for kind in ("lost", "damaged", "differing", "message")]
        return f"| {name} | {self.tries} | {self.stopped} | {self.merged} | {' | '.join(map(str, problems))} |"


HEAD = (
    "| | tries | stopped | after a merge | lost | damaged | differing | wrong message |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
)


class VFS(ctypes.Structure):
    """SQLite's `sqlite3_vfs`."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("version", "file_size", "longest_name")),
        *((name, ctypes.c_void_p) for name in ("next", "name", "data", "open")),
        *((f"method{n}", ctypes.c_void_p) for n in range(12)),
        ("set_system_call", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
        ("get_system_call", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)),
    )


WRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong, use_errno=True
)
OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
METHODS, SYNC_METHOD = 19, 5
"""Words of SQLite's `sqlite3_io_methods`, and which of them is `xSync`."""
SQLITE_IOERR_FSYNC = 1034


def default_vfs() -> VFS | None:
    """SQLite's default file system, if it lets its system calls be replaced."""
    if not Path("/proc/self/fd").exists():
        return None
    import _sqlite3

    try:
        library = ctypes.CDLL(_sqlite3.__file__)  # which is linked to it, or contains it
        library.sqlite3_vfs_find.restype = ctypes.POINTER(VFS)
        found = library.sqlite3_vfs_find(None)
    except (OSError, AttributeError):
        return None
    return found.contents if found and found.contents.version >= 3 and found.contents.set_system_call else None


@contextmanager
def failing_writes(folder: Path, at: int, error: str) -> Iterator[Counter[str]]:
    """SQLite's writes, or syncs, below a folder fail from this one on, or only this one; counts them all.

    Half of the first write that fails is made: disks become full in the middle of a page.
    """
    vfs, counts, inside = default_vfs(), Counter[str](), str(folder.resolve())
    assert vfs is not None
    number = getattr(errno, error.split()[0], 0)
    kind, once = "sync" if "sync" in error else "write", "once" in error

    def is_due(event: str) -> bool:
        counts[event] += 1
        return event == kind and at > 0 and (counts[event] == at or (counts[event] > at and not once))

    def write(handle: int, data: int, size: int, position: int) -> int:
        if not os.readlink(f"/proc/self/fd/{handle}").startswith(inside):
            return int(original_write(handle, data, size, position))
        if not is_due("write"):
            return int(original_write(handle, data, size, position))
        if counts["write"] == at:
            original_write(handle, data, size // 2, position)
        ctypes.set_errno(number)
        return -1

    def sync(file: int, flags: int) -> int:
        return SQLITE_IOERR_FSYNC if is_due("sync") else int(original_sync[file](file, flags))

    original_sync: dict[int, Callable[[int, int], int]] = {}
    kept = []

    def open_file(address: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        status = int(original_open(address, name, file, flags, out))
        if status == 0 and name is not None and os.fsdecode(ctypes.string_at(name)).startswith(inside):
            methods = ctypes.cast(file, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p * METHODS)))
            original_sync[file] = SYNC(methods[0].contents[SYNC_METHOD])
            copy = (ctypes.c_void_p * METHODS)(*methods[0].contents)
            copy[SYNC_METHOD] = ctypes.cast(callbacks[1], ctypes.c_void_p).value
            methods[0] = ctypes.pointer(copy)
            kept.append(copy)
        return status

    call = b"pwrite64" if vfs.get_system_call(ctypes.addressof(vfs), b"pwrite64") else b"pwrite"
    before, before_open = vfs.get_system_call(ctypes.addressof(vfs), call), vfs.open
    original_write, original_open = WRITE(before), OPEN(before_open)
    callbacks = (WRITE(write), SYNC(sync), OPEN(open_file))
    vfs.set_system_call(ctypes.addressof(vfs), call, ctypes.cast(callbacks[0], ctypes.c_void_p))
    vfs.open = ctypes.cast(callbacks[2], ctypes.c_void_p).value
    try:
        yield counts
    finally:
        vfs.set_system_call(ctypes.addressof(vfs), call, ctypes.c_void_p(before))
        vfs.open = before_open


@contextmanager
def file_quota(size: int) -> Iterator[None]:
    """No file of this process may grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def counted_merges() -> Iterator[list[int]]:
    """A list with an entry for every merge of a log that began."""
    merges: list[int] = []
    merging = FileMarks.merging

    def count(marks: FileMarks) -> object:
        merges.append(1)
        return merging(marks)

    with patch.object(FileMarks, "merging", count):
        yield merges


class BrokenDisk:
    """The run, its undisturbed twin, and what happened to it.

    Args:
        folder: A folder for everything.
        disk: Where the disturbed run is stored.
        units: Number of units.
        flags: Further flags of the run.
        processes: Whether it runs in a process of its own.
    """

    def __init__(
        self, folder: Path, disk: Path, units: int = UNITS, flags: Sequence[str] = (), processes: bool = False
    ) -> None:
        self.folder, self.disk, self.processes = Path(tempfile.mkdtemp(dir=folder)), disk, processes
        self.units = units
        texts = self.folder / "texts.txt"
        texts.write_text("".join(f"Text {n}, on a topic that somebody wrote about.\n" for n in range(units)))
        run = ("run", "rubric", "--data", texts, "--limit", units, "--model", "sim/any", "--quiet", "--concurrency", 4)
        self.file, self.undisturbed = File(disk / "a.sqlite"), File(self.folder / "undisturbed.sqlite")
        self.command = [*map(str, (*run, *flags, "--out", self.file.path))]
        self.tally = Tally()
        self.clear()
        with redirect_stdout(io.StringIO()):
            assert parley([*map(str, (*run, "--out", self.undisturbed.path))]) == 0
        self.bytes = self.undisturbed.path.stat().st_size
        self.story = self.undisturbed.story()

    def run(self, quota: int | None = None) -> tuple[int, str]:
        """Run it, or resume it; returns status and output."""
        if self.processes:
            process = started(self.command, self.folder, "process", quota=quota)
            return process.end(), process.output()
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            status = parley(self.command)
        return status, out.getvalue()

    def clear(self) -> None:
        for path in [*self.disk.glob("a.sqlite*"), *self.disk.glob(".a.sqlite*")]:
            path.unlink()

    def problem(self, kind: str, text: str) -> None:
        self.tally.problems[kind] += 1
        print(f"{kind}: {text}", file=sys.stderr, flush=True)

    def check(self, status: int, output: str, before: Collection[str], what: str) -> set[str]:
        """Check the file that a run left; returns the units that are done."""
        lines = [line for line in output.splitlines() if line.startswith("parley: ")]
        blamed = "disk" in output and "overwritten" not in output and "damaged" not in output
        if status not in (0, 1) or "Traceback" in output or (status == 1 and (len(lines) != 1 or not blamed)):
            self.problem("message", f"{what}: status {status}: {output}")
        if not self.file.path.exists():
            if left := [path.name for path in self.disk.glob("a.sqlite*")]:
                self.problem("damaged", f"{what}: {left} is left")
            return set()
        try:
            with RunFile.open(self.file.path) as file:
                stored = {row[0] for row in file.rows("SELECT id FROM units WHERE status = 'done'")[1]}
                file.check_verdicts()
            with closing(sqlite3.connect(self.file.path)) as db:
                assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        except Exception as error:  # count it, and go on
            self.problem("damaged", f"{what}: {type(error).__name__}: {error}")
            return set()
        reported = [int(line.split()[0]) for line in output.splitlines() if " units done: " in line]
        if set(before) - stored or (reported and len(stored) < reported[0]):
            self.problem("lost", f"{what}: {len(stored)} of {len(before)} and {reported}")
        return stored

    def stopped(
        self, status: int, output: str, merges: int, what: str, before: Collection[str] = frozenset()
    ) -> set[str]:
        done = self.check(status, output, before, what)
        self.tally.tries += 1
        self.tally.stopped += status != 0
        self.tally.merged += status != 0 and merges > 0
        return done

    def resumed(self, before: set[str], what: str) -> None:
        """Resume it on a sound disk, and compare it."""
        status, output = self.run()
        if status != 0:
            self.problem("damaged", f"{what}: it cannot be resumed: {output}")
            return
        self.check(status, output, before, what)
        if self.file.story() != self.story or [path.name for path in self.disk.glob("a.sqlite*")] != ["a.sqlite"]:
            self.problem("differing", f"{what}: {[path.name for path in self.disk.glob('a.sqlite*')]}")

    def on_a_small_disk(self, size: int) -> None:
        """On a tmpfs of this size."""
        self.clear()
        resize(self.disk, size)
        what = f"a disk of {size} bytes"
        with counted_merges() as merges:
            done = self.stopped(*self.run(), len(merges), what)
        again = self.check(*self.run(), done, f"{what}, again")
        resize(self.disk, 2**26)
        self.resumed(again, what)

    def with_a_quota(self, size: int) -> None:
        self.clear()
        what = f"a quota of {size} bytes"
        with counted_merges() as merges:
            done = self.stopped(*self._within(size), len(merges), what)
        again = self.check(*self._within(size), done, f"{what}, again")
        self.resumed(again, what)

    def _within(self, size: int) -> tuple[int, str]:
        if self.processes:
            return self.run(quota=size)
        with file_quota(size):
            return self.run()

    def writes(self, kind: str) -> int:
        """The number of writes, or syncs, of an undisturbed run."""
        self.clear()
        if "on resume" in kind:
            self._half_done()
        with failing_writes(self.disk, 0, kind) as counts:
            assert self.run()[0] == 0
        return counts["sync" if "sync" in kind else "write"]

    def with_an_error(self, at: int, error: str) -> None:
        self.clear()
        what, done = f"{error} at {at}", set()
        if "on resume" in error:
            done = self._half_done()
        with counted_merges() as merges, failing_writes(self.disk, at, error):
            status, output = self.run()
        self.resumed(self.stopped(status, output, len(merges), what, done), what)

    def _half_done(self) -> set[str]:
        """Stop the run by a full disk; returns the units that are done."""
        with failing_writes(self.disk, HALF_OF_THE_WRITES, "ENOSPC"):
            status, output = self.run()
        return self.check(status, output, (), "half of a run")

    def killed(self, after: float) -> None:
        """Killed after so many seconds, and again as it resumes."""
        self.clear()
        done: set[str] = set()
        for _ in range(2):
            process = started(self.command, self.folder, "process")
            time.sleep(after)
            process.signal(signal.SIGKILL)
            status = process.end()
            if status == -signal.SIGKILL:
                self.tally.stopped += 1
                self.tally.merged += self.file.path.exists() and self.file.path.stat().st_size > self.bytes // 4
            self.tally.tries += 1
            if self.file.path.exists():
                done = self.check(0, "", done, f"killed after {after:.3f} s")
        self.resumed(done, f"killed after {after:.3f} s")


def resize(disk: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A tmpfs; None if we may not mount one."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def attempt(broken: BrokenDisk, how: str, each: int, seed: int = 1) -> Tally:
    """Break the disk in this way at every possible point, or at one in `each`, chosen at random.

    Args:
        broken: The run.
        how: tmpfs, quota, or one of ERRORS.
        each: One point in so many is tried.
        seed: Seed of the choice.
    """
    broken.tally = Tally()
    often = broken.units == FEW_UNITS
    few = patch("parley.runs.store.ROWS_BETWEEN_MERGES", ROWS_BETWEEN_MERGES) if often else nullcontext()
    with few:
        if how == "tmpfs":
            points, fails = range(4 * PAGE, 3 * broken.bytes, PAGE), broken.on_a_small_disk
        elif how == "quota":
            points, fails = range(4 * PAGE, broken.bytes + 2 * PAGE, PAGE), broken.with_a_quota
        else:
            points, fails = range(1, broken.writes(how) + 1), lambda at: broken.with_an_error(at, how)
        for point in sorted(
            random.Random(f"{seed} {how}").sample(points, min(len(points), max(3, len(points) // each)))
        ):
            fails(point)
    return broken.tally


def kill(broken: BrokenDisk, kills: int, seed: int = 1) -> Tally:
    """Kill the run at random moments, each time twice, until this many processes were killed."""
    broken.tally, rng = Tally(), random.Random(seed)
    for _ in range(2):  # only the second is quick
        broken.clear()
        began = time.monotonic()
        assert broken.run()[0] == 0
        whole = time.monotonic() - began
    while broken.tally.stopped < kills:
        broken.killed(rng.uniform(0, whole))
    return broken.tally


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.broken_disk", description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=1, help="try one point in so many")
    parser.add_argument("--kills", type=int, default=100, help="number of SIGKILL")
    parser.add_argument(
        "--ray", type=int, default=24, help="one point in so many, of those tried, with Ray; 0 for none"
    )
    parser.add_argument("--write", metavar="FILE", help="write the table there too")
    options = parser.parse_args(words)
    began, rows = time.monotonic(), []
    problems = Counter[str]()

    def add(name: str, tally: Tally) -> None:
        rows.append(tally.row(name))
        problems.update(tally.problems)
        print(rows[-1], f"{time.monotonic() - began:.0f} s", flush=True)
        made = f"`python -m tests.chaos.broken_disk {' '.join(words)}`, {datetime.now(UTC):%d %B %Y}, "
        page = "\n".join((ABOUT, f"{made}{(time.monotonic() - began) / 60:.0f} minutes.\n", *HEAD, *rows, ""))
        if options.write:
            Path(options.write).write_text(page)

    with tempfile.TemporaryDirectory() as name, small_disk(Path(name)) as disk:
        folder = Path(name)
        os.environ["PARLEY_HOME"] = str(folder / "home")
        place = disk or folder
        limits = (["tmpfs"] if disk else []) + ["quota"]
        for variant, flags in VARIANTS.items():
            for how in (*limits, *(ERRORS if default_vfs() else ())):
                units = FEW_UNITS if how in ERRORS else UNITS
                add(f"{how}, {variant}", attempt(BrokenDisk(folder, place, units, flags), how, options.each))
        add("SIGKILL", kill(BrokenDisk(folder, place, UNITS, processes=True), options.kills))
        if options.ray:
            cluster = RayCluster()
            for how in limits:
                flags = (*RAY, "--ray-address", cluster.address)
                broken = BrokenDisk(folder, place, UNITS, flags, processes=True)
                add(f"{how}, Ray", attempt(broken, how, options.each * options.ray))
            cluster.close()
    return int(any(problems.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
