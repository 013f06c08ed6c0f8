"""The lock of a run that is being written: an empty file beside it, locked by one process at a time."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from parley.agents import ParleyError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]


class NotLocked(ParleyError):
    """Why a run cannot be locked; the message follows the run file's name."""


class RunLock:
    """Two writers would run the same units. The lock ends with the process.

    It is a separate file, since closing a second handle on the database would drop SQLite's own locks. What is found
    under its name may be anybody's: a link is not followed, nothing is truncated, and only an empty file is taken.
    """

    def __init__(self, run: Path) -> None:
        self.path = run.with_name(run.name + ".lock")
        self._handle: int | None = None
        if fcntl is None:
            return
        while self._handle is None:
            self._take()

    def _take(self) -> None:
        """Open and lock the file, unless its last owner deletes it in between: our lock would protect nothing."""
        foreign = f"cannot be locked: {self.path} is not a lock file of Parley's; move it away"
        if self.path.is_symlink() or self.path.is_dir():
            raise NotLocked(foreign)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode) or state.st_size:
                raise NotLocked(foreign)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(state, self.path.lstat()):
                    self._handle = handle
        except BlockingIOError:
            raise NotLocked("is being run by another process") from None
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
