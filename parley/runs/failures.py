"""What can be wrong with a run file, in one line for people."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from parley.agents import ParleyError
from parley.runs.locking import NotLocked
from parley.runs.opening import NotOpened

MORE_THAN_ITS_SIZE = "is damaged: it takes more to read than its size explains"


class RunFileError(ParleyError):
    """A file that is not a run, or that this version cannot read or write."""


def reason(error: Exception) -> str:
    """Why a file cannot be read or written, as the end of a sentence."""
    text = str(error).lower()
    if "full" in text or getattr(error, "errno", None) == 28:
        return "the disk is full"
    if "readonly" in text or "read-only" in text or getattr(error, "errno", None) in (13, 30):
        return "the file or its folder is read-only"
    if "locked" in text:
        return "another process is writing to it"
    return str(getattr(error, "strerror", None) or error)


def describe_open_error(path: Path, error: Exception) -> str:
    """Why a run file cannot be opened, and what can be done, as a sentence that begins with its path."""
    text = str(error)
    if isinstance(error, NotOpened | NotLocked):
        return f"{path} {text}"
    if "not a database" in text:
        return f"{path} is not a Parley run file"
    if "interrupted" in text or "too big" in text:
        return f"{path} {MORE_THAN_ITS_SIZE}"
    if any(sign in text for sign in ("malformed", "no such", "disk I/O", "decode", "unsupported file format")):
        return f"{path} is damaged or truncated ({text}); parley salvage {quote(str(path))} copies what can be read"
    return f"{path} cannot be opened: {reason(error)}"
