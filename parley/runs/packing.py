"""Packed runs: run files that gzip compressed to about a fifth. Every command that reads runs opens them.

    sqlite3 runs/try.sqlite "VACUUM INTO 'try.sqlite'" && gzip try.sqlite    # docs/runs.md

The texts within a run file are not compressed: everyone's SQL would have to know, and a view that decompresses is
refused by `trusted_schema = OFF`. gzip and not Zstandard or xz, because every system has `gunzip`.

A packed run that is read is unpacked to a cache in Parley's home, so that its folder is not changed. An archive may be
anybody's: unpacking stops if it is not a SQLite file, does not fit on the disk, or is longer than a run can be.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from parley.base.home import home
from parley.runs.opening import (
    GuardedConnection,
    NotOpened,
    open_to_read,
)

GZIP_MAGIC, SQLITE_MAGIC = b"\x1f\x8b", b"SQLite format 3\x00"
CHUNK = 2**20
MAX_EXPANSION, EXPANSION_FREE = 100, 64 * 2**20
"""An archive may become this many times longer, and this many bytes more. Runs become 4 to 13 times longer."""
MAX_RESERVE = 256 * 2**20
"""Room that is left on the disk, at most; on a small disk a twentieth of it."""
CACHE_BYTES, CACHE_SECONDS = 4 * 2**30, 7 * 24 * 3600
"""Unpacked copies are removed after a week without use, and the oldest ones where all together are longer."""
IN_USE_SECONDS = 3600
"""A copy that was opened so recently is not removed."""


def packed_path(run: Path) -> Path:
    """Where a run is packed to."""
    return run.with_name(f"{run.name}.gz")


def run_stem(run: Path) -> str:
    """The name of a run file without `.sqlite` or `.sqlite.gz`."""
    return Path(run.name.removesuffix(".gz")).stem


def is_packed(run: Path) -> bool:
    """Whether a file is compressed by gzip, whatever its name."""
    with run.open("rb") as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def open_packed(packed: Path, *, salvage: bool = False) -> GuardedConnection:
    """Open a packed run for reading; like `open_to_read`.

    Args:
        packed: The packed run.
        salvage: Read what is left of a damaged one.
    """
    try:
        return open_to_read(_cached_copy(packed), salvage=salvage)
    except NotOpened:
        if not salvage:
            raise
    folder = tempfile.TemporaryDirectory(prefix="parley-")
    try:
        copy = Path(folder.name) / "run.sqlite"
        with copy.open("xb") as out, suppress(NotOpened):
            _inflate(packed, out)
        db = open_to_read(copy, salvage=True)
        db._folder = folder
        return db
    except BaseException:
        folder.cleanup()
        raise


def _inflate(packed: Path, out: BinaryIO) -> None:
    """Decompress an archive of one SQLite file; raises `NotOpened` with all before the error written."""
    with packed.open("rb") as archive:
        limit = MAX_EXPANSION * os.fstat(archive.fileno()).st_size + EXPANSION_FREE
        decoder, written = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS), 0
        try:
            while not decoder.eof:
                block = decoder.unconsumed_tail or archive.read(CHUNK)
                if not block:
                    raise NotOpened("is damaged or truncated: its end is missing")
                data = decoder.decompress(block, CHUNK)
                if written == 0 and data[: len(SQLITE_MAGIC)] != SQLITE_MAGIC[: len(data)]:
                    raise NotOpened("is not a packed Parley run")
                written += len(data)
                if written > limit:
                    raise NotOpened(f"is not unpacked: no run becomes over {MAX_EXPANSION} times longer")
                _refuse_full_disk(Path(out.name).parent)
                out.write(data)
        except zlib.error as error:
            raise NotOpened(f"is damaged ({error})") from None
        if decoder.unused_data or archive.read(1):
            raise NotOpened("is damaged: more bytes follow its end")


def _refuse_full_disk(folder: Path) -> None:
    disk = shutil.disk_usage(folder)
    if disk.free < min(MAX_RESERVE, disk.total // 20):
        raise NotOpened(f"is not unpacked: the disk of {folder} would be full")


def _cached_copy(packed: Path) -> Path:
    """The unpacked run in the cache, which is made if it is not there."""
    folder = _cache_folder()
    copy = folder / f"{_digest(packed)}.sqlite"
    try:
        state = copy.stat()
        os.utime(copy, ns=(time.time_ns(), state.st_mtime_ns))  # the time of the last use; the other is of the content
        return copy
    except FileNotFoundError:
        pass
    part = folder / f"{secrets.token_hex(8)}.part"
    try:
        with part.open("xb") as out:
            _inflate(packed, out)
        part.replace(copy)
    finally:
        part.unlink(missing_ok=True)
    _clean_cache(folder)
    return copy


def _digest(packed: Path) -> str:
    """Changes with the archive: its path, time and size, and its last bytes, which are the content's checksum."""
    with packed.open("rb") as archive:
        state = os.fstat(archive.fileno())
        archive.seek(max(0, state.st_size - 8))
        parts = (str(packed.resolve()), state.st_mtime_ns, state.st_size, archive.read(8))
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def _cache_folder() -> Path:
    for folder in (home() / "unpacked", Path(tempfile.gettempdir()) / "parley-unpacked"):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            ours = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
            if ours and os.access(folder, os.W_OK):  # in a folder that all share, someone else's may be there already
                return folder
    raise NotOpened(f"cannot be unpacked to {home()}: set PARLEY_HOME to a folder that is writable")


def _clean_cache(folder: Path) -> None:
    """Remove copies that were not used for long, and the oldest ones if all together are too long."""
    now, total = time.time(), 0
    states = []
    for path in folder.iterdir():
        with suppress(OSError):
            states.append((path.stat(), path))
    for state, path in sorted(states, key=lambda entry: entry[0].st_atime, reverse=True):
        unused = now - state.st_atime
        total += state.st_size
        if unused > CACHE_SECONDS or (total > CACHE_BYTES and unused > IN_USE_SECONDS):
            with suppress(OSError):
                path.unlink()
