"""The folder for data shared between runs: model weights, the reply cache, search indexes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

from parley.base.text import visible


def home() -> Path:
    """PARLEY_HOME if set; else `.parley` in the repository's clone; else the user's cache folder."""
    if chosen := os.environ.get("PARLEY_HOME"):
        return Path(chosen)
    clone = Path(__file__).resolve().parents[2]
    if (clone / "pyproject.toml").is_file() and (clone / "parley").is_dir():
        return clone / ".parley"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parley"


def set_aside(path: Path, label: str, reason: object) -> None:
    """Rename an unreadable file, with SQLite's files next to it, and print a line about it.

    Args:
        path: The unreadable path, which is free afterwards.
        label: Its name in the line.
        reason: Why it cannot be read.
    """
    names = (f"{path}.damaged" if number == 1 else f"{path}.damaged-{number}" for number in count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    for suffix in ("-wal", "-shm", "-journal", ""):  # the file last: a new one must not find the old one's log
        with suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
    say(f"the {label} {path} cannot be read ({reason}); it was set aside as {aside}, and a new one is begun")


def say(line: str) -> None:
    """Print a message about something that does not stop the run."""
    print("parley:", visible(" ".join(line.split())), file=sys.stderr, flush=True)
