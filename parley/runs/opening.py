"""Safely opens SQLite files (runs and notes) that may come from anyone.

    db = open_to_read(path)
    refuse_foreign_schema(db, known)

Reading changes and deletes nothing. A file with nothing next to it is opened as immutable; one with a write-ahead log,
perhaps of a run in progress, with `mode=ro`. A journal of an interrupted transaction is never rolled back in
place, since SQLite then deletes whatever file the journal names as its super-journal: file and journal are copied to a
private folder, and recovered and read there.

A run that is being written has a lock: an empty file next to it, locked by one process at a time. Lock and logs are
named after the file's path. A symbolic link leads to that path; a hard link or a mounted file has a path of its own,
under which nothing is written.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, Literal
from zlib import crc32

from parley.base.errors import ParleyError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The last 8 bytes of a journal that names a super-journal (also the first 8 of any journal)."""
STEPS = 100_000
"""Steps of SQLite's virtual machine between two checks of the limit."""
STEPS_PER_BYTE, STEPS_FREE = 20, 20_000_000
"""Limit of one query, in steps and not seconds, so that it is the same on every machine. The most expensive of ours
takes 0.1 steps per byte of a real run."""
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 256 * 2**20,  # of a text or a row; a model's reply has at most 32 MiB
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
SAMPLED_PAGES = 256
_RECOVERY = ("SQLITE_READONLY", "SQLITE_CANTOPEN")
"""Prefix of SQLite's errors if `mode=ro` cannot recover files next to the database."""
_SPACE = re.compile(r"[ \t\r\n]*([(),])[ \t\r\n]*|[ \t\r\n]+")
SchemaEntry = tuple[str, str, str, str]
"""Type, name, table and SQL of a table, index or view."""


class NotOpened(ParleyError):
    """A file is not opened, not locked or not read further; the message follows the file's name."""


class GuardedConnection(sqlite3.Connection):
    """A connection to an untrusted file, with limits on the work of a query."""

    _path: Path
    _steps = 0
    _stamp: tuple[int, int] | None = None
    """The file's time and size when it was opened as immutable."""
    _folder: tempfile.TemporaryDirectory[str] | None = None
    """The folder of a private copy, deleted with the connection."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._steps = 0
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self._steps = -sys.maxsize  # no limit: what is written is ours, and each row is one search
        return super().executemany(*arguments)

    def close(self) -> None:
        super().close()
        if self._folder is not None:
            self._folder.cleanup()

    def guard(self, path: Path) -> None:
        self._path = path
        for limit, most in LIMITS.items():
            self.setlimit(limit, most)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):
            self.execute(f"PRAGMA {pragma}")
        # A query that takes more steps than the size of the file explains is interrupted: its pages may form a circle.
        self.set_progress_handler(self._count_steps, STEPS)

    def _count_steps(self) -> bool:
        self._steps += STEPS
        return self._steps > STEPS_FREE + STEPS_PER_BYTE * self.size()

    def size(self) -> int:
        """Bytes of the file and its write-ahead log; a query gives fewer rows than that."""
        return sum(_size(Path(f"{self._path}{suffix}")) for suffix in ("", "-wal"))

    def refuse_if_changed(self) -> None:
        """Raise if an immutable file was written since it was opened, since the data read may be inconsistent."""
        if self._stamp is not None and self._stamp != _stamp(self._path):
            raise NotOpened("was changed while it was read: open it again")


def open_to_read(path: Path) -> GuardedConnection:
    """Open a file for reading. Raises `NotOpened`, `sqlite3.Error` or `OSError`.

    A file at rest is opened as immutable, not with `mode=ro`: one last written in WAL mode would get two empty files
    next to it, and could not be read in a read-only folder.
    """
    real = path.resolve()
    for _ in range(3):
        at_rest = not any(_size(Path(f"{real}{suffix}")) for suffix in ("-journal", "-wal"))
        if at_rest and (names := _other_names(real)) and _in_wal_mode(real):
            raise NotOpened(f"is not read: {names}, and the end of the run may be in a -wal file there; open that one")
        try:
            return _connect(real, immutable=at_rest)
        except sqlite3.OperationalError as error:
            if at_rest or not str(getattr(error, "sqlite_errorname", "")).startswith(_RECOVERY):
                raise
        if copy := _open_copy(real):
            return copy
    raise NotOpened("is being written by another process: try again")


def open_to_write(path: Path) -> GuardedConnection:
    """Open a file for writing, after which SQLite may roll a journal back.

    A file with another path is refused: two processes would write two logs, and SQLite would merge either one into the
    file, whatever has happened to it meanwhile. Such a file may also be someone's backup.
    """
    real = path.resolve()
    if names := _other_names(real):
        raise NotOpened(
            f"is not written: {names}, and writing under two names damages it; "
            "copy it, with its -wal file if there is one, and use the copy"
        )
    _refuse_super_journal(Path(f"{real}-journal"))
    return _connect(real, mode="rw")


def _connect(path: Path, *, mode: Literal["ro", "rw"] = "ro", immutable: bool = False) -> GuardedConnection:
    before = _stamp(path)
    uri = f"{path.as_uri()}?mode={mode}{'&immutable=1' * immutable}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5, factory=GuardedConnection)
    try:
        db.guard(path)
        if mode == "ro":
            db.execute("PRAGMA query_only = ON")
            db._stamp = before if immutable else None
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def _open_copy(path: Path) -> GuardedConnection | None:
    """A recovered copy in a private folder; None if the file was written meanwhile."""
    folder = tempfile.TemporaryDirectory(prefix="parley-")
    try:
        copy = Path(folder.name) / path.name
        names = [f"{path}{suffix}" for suffix in ("", "-journal", "-wal")]
        before = [_stamp(Path(name)) for name in names]
        for name, suffix in zip(names, ("", "-journal", "-wal"), strict=True):
            copy_file(Path(name), Path(f"{copy}{suffix}"))
        if before != [_stamp(Path(name)) for name in names]:
            folder.cleanup()
            return None
        _refuse_super_journal(Path(f"{copy}-journal"))
        with closing(_connect(copy, mode="rw")) as recovering:
            recovering.execute("PRAGMA journal_mode = DELETE")
        db = _connect(copy)
        db._folder = folder
        return db
    except BaseException:
        folder.cleanup()
        raise


def _other_names(path: Path) -> str:
    """A clause about a file's other paths; "" if there are none."""
    if (names := path.stat().st_nlink) > 1:
        return f"it has {names} names (hard links; find . -samefile {quote(path.name)} lists them)"
    escaped = re.sub(rb"[ \t\n\\]", lambda match: b"\\%03o" % match[0][0], os.fsencode(path))
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as mounts:  # only on Linux; each line: id, parent, …
        if any(line.split()[4] == escaped for line in mounts):
            return "it is mounted as a single file (mount its folder instead)"
    return ""


def _in_wal_mode(path: Path) -> bool:
    """Whether a writer has the file open, was killed, or could not merge its log because of a reader."""
    with _open_regular(path) as file:
        file.seek(18)
        return bool(file.read(1) == b"\2")


PRIVATE_FILES = (".replies", ".replies-wal", ".replies-shm")
"""Suffix of a run's private reply cache (`--no-cache`)."""


def beside(run: Path, suffix: str) -> Path:
    """A lock or log of a run: next to the file itself, not next to a link to it."""
    file = run.resolve() if run.is_symlink() and run.exists() else run
    return file.with_name(file.name + suffix)


def copy_file(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError), _open_regular(source) as file, target.open("xb") as out:
        shutil.copyfileobj(file, out, 2**20)


def _open_regular(path: Path) -> Any:
    """Open a regular file for reading; not the target of a link, and not a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotOpened(f"is not opened: {path.name} cannot be read ({error.strerror})") from None
    file = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        file.close()
        raise NotOpened(f"is not opened: {path.name} is not a file")
    return file


def _refuse_super_journal(journal: Path) -> None:
    """Raise if a journal names another file, which SQLite would delete when rolling back."""
    with suppress(FileNotFoundError), _open_regular(journal) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(JOURNAL_MAGIC)))
        if size > len(JOURNAL_MAGIC) and file.read() == JOURNAL_MAGIC:
            raise NotOpened(f"is not opened: {journal.name} next to it names another file, which SQLite would delete")


def _size(path: Path) -> int:
    return (_stamp(path) or (0, 0))[1]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def refuse_foreign_schema(db: sqlite3.Connection, allowed: Collection[SchemaEntry]) -> set[str]:
    """Raise unless every table, index and view has exactly our SQL; returns their names.

    A foreign trigger, view or computed column would run its SQL within our queries.
    """
    entries = schema_entries(db)
    for kind, name, table, sql in entries:
        if (kind, name, table, sql) not in allowed:
            raise NotOpened(f"has a {kind} '{name}' that Parley did not write, and is not opened")
    return {name for _, name, _, _ in entries}


@lru_cache(maxsize=8)
def entries_of(script: str) -> frozenset[SchemaEntry]:
    """The entries that SQLite stores for a schema."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(script)
        return frozenset(schema_entries(db))


def schema_entries(db: sqlite3.Connection) -> list[SchemaEntry]:
    rows = db.execute("SELECT type, name, tbl_name, sql FROM main.sqlite_master").fetchall()
    return [(str(kind), str(name), str(table), _normalise(str(sql))) for kind, name, table, sql in rows]


def _normalise(sql: str) -> str:
    """The SQL without insignificant white space, which differs between SQLite's versions."""
    return _SPACE.sub(lambda match: match[1] or " ", sql)


class FileMarks:
    """Detects whether the file under a run's name is still the one that was opened, and which logs belong to it.

    Args:
        run: The run file, opened for writing.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        logs = (Path(f"{run.resolve()}{suffix}") for suffix in ("-wal", "-shm"))
        self._logs = {log: log.stat() for log in logs if log.exists()}
        self._half_merged = False
        # One handle until the end: when a process closes any handle on a file, it loses SQLite's locks on that file.
        self._file = run.open("rb", buffering=0)
        self.renew()

    def renew(self) -> None:
        """Accept the file there now as ours."""
        self._state, self._sample = os.fstat(self._file.fileno()), self._read_sample()

    @contextmanager
    def merging(self) -> Iterator[None]:
        """Inside, the log is merged into the file. A full disk ends that half-way: what was written is still ours, and
        only the log has the units whole."""
        self._sample, self._half_merged = None, True
        try:
            yield
            self._half_merged = False
        finally:
            self.renew()

    def changed(self) -> str:
        """What happened to the file, as a participle; "" if it is unchanged."""
        try:
            now = os.stat(self._run)
        except (FileNotFoundError, NotADirectoryError):
            return "removed"
        except OSError:  # a disk that fails says nothing about the file
            return ""
        if not os.path.samestat(now, self._state):
            return "replaced"
        if (now.st_size, now.st_mtime_ns) != (self._state.st_size, self._state.st_mtime_ns):
            if now.st_size < self._state.st_size:
                return "truncated"
            if None not in (self._sample, sample := self._read_sample()) and self._sample != sample:
                return "overwritten"
            self._state = now  # only its time was set
        return ""

    def _read_sample(self) -> int | None:
        """A checksum of the file's length and of pages spread over it; None if they cannot be read. Only a merge
        changes them."""
        with suppress(OSError):
            size = self._file.seek(0, os.SEEK_END)
            crc = size
            for at in range(0, size, max(4096, size // SAMPLED_PAGES)):
                self._file.seek(at)
                crc = crc32(self._file.read(4096), crc)
            return crc
        return None

    def drop_logs(self, db: sqlite3.Connection) -> Path | None:
        """Close the connection, and leave no log of ours beside the file there now.

        A file that was moved away is still ours and gets the log's contents. If a merge fails half-way, the log is kept
        under another name, which is returned. A file that was overwritten in place would get its contents from SQLite
        when the last connection is closed, unless the log is empty.
        """
        kept, keep, moved = None, self._half_merged, self.changed() in ("removed", "replaced")
        with suppress(sqlite3.Error):
            if moved:
                with self.merging():
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        for log, state in self._logs.items():
            with suppress(OSError):
                if not os.path.samestat(log.stat(), state):
                    continue
                if log.name.endswith("-wal") and moved and (keep or self._half_merged):
                    kept = log.replace(f"{log}.kept")
                    continue
                if log.name.endswith("-wal"):
                    os.truncate(log, 0)
                log.unlink()
        self.close(db)
        return kept

    def close(self, db: sqlite3.Connection) -> None:
        """Close the connection, then the handle."""
        db.close()
        self._file.close()


class RunLock:
    """The lock of a run's writer, which ends with the process: two writers would run the same units.

    It is a separate file, since closing a second handle on the database would drop SQLite's own locks. A file under
    its name may belong to anyone: links are not followed, nothing is truncated, and only an empty file is taken.
    """

    def __init__(self, run: Path) -> None:
        self.path = beside(run, ".lock")
        self._handle: int | None = None
        if fcntl is None:
            return
        while self._handle is None:
            self._take()

    def _take(self) -> None:
        """Open and lock the file, unless its last owner deletes it in between, which would void the lock."""
        foreign = f"cannot be locked: {self.path} is not a Parley lock file; move it away"
        if self.path.is_symlink() or self.path.is_dir():
            raise NotOpened(foreign)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode) or state.st_size:
                raise NotOpened(foreign)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(state, self.path.lstat()):
                    self._handle = handle
        except BlockingIOError:
            raise NotOpened("is being run by another process") from None
        finally:
            if self._handle is None:
                os.close(handle)

    def release(self) -> None:
        """Delete the file while it is still locked, so that another process's is never deleted."""
        if self._handle is not None:
            with suppress(OSError):
                if os.path.samestat(os.fstat(self._handle), self.path.lstat()):
                    self.path.unlink()
            os.close(self._handle)
            self._handle = None


MORE_THAN_ITS_SIZE = "is damaged: reading it takes more work than its size explains"


class RunFileError(ParleyError):
    """A file that is not a run, or that this version cannot read or write."""


class Replaced(RunFileError):
    """The run file was removed, replaced or overwritten since it was opened."""


REASONS = (
    (("full",), (28,), "the disk is full"),
    (("readonly", "read-only"), (13, 30), "the file or its folder is read-only"),
    (("locked",), (), "another process is writing to it"),
    (
        ("disk i/o",),
        (),
        "the disk is full, over its quota or broken (disk I/O error)",
    ),  # what SQLite calls a quota, too
)
"""Parts of an error's text, its numbers, and what it means."""
DAMAGES = {
    "not a database": "is not a Parley run file",
    "interrupted": MORE_THAN_ITS_SIZE,
    "too big": "is damaged: it has a longer text than Parley writes",
}


def reason(error: Exception) -> str:
    """The reason why a file cannot be read or written, as the end of a sentence."""
    text, number = str(error).lower(), getattr(error, "errno", None)
    meant = (words for signs, numbers, words in REASONS if number in numbers or any(sign in text for sign in signs))
    return next(meant, str(getattr(error, "strerror", None) or error))


def describe_open_error(path: Path, error: Exception) -> str:
    """The reason why a run file cannot be opened, with advice, as a sentence that begins with its path."""
    text = str(error)
    if isinstance(error, NotOpened):
        return f"{path} {text}"
    if words := next((words for sign, words in DAMAGES.items() if sign in text), ""):
        return f"{path} {words}"
    truncated = "READ" in str(getattr(error, "sqlite_errorname", ""))  # other I/O errors are the disk's
    if truncated or any(sign in text for sign in ("malformed", "no such", "decode", "unsupported file format")):
        recovery = f"sqlite3 {quote(str(path))} .recover | sqlite3 NEW copies what can be read"
        return f"{path} is damaged or truncated ({text}); {recovery}"
    return f"{path} cannot be opened: {reason(error)}"
