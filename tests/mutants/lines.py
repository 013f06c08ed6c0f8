"""Records the lines that a process runs. The copy has this file as its `sitecustomize.py`, for processes of tests."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, Never

LINES = "PARLEY_MUTANTS_LINES"
"""The environment variable with the folder for the lines; its file `sources` says which files' lines are recorded."""


def trace() -> dict[str, set[int]]:
    """Records the lines that this process runs from now on; a process that a test started writes them when it ends."""
    folder = Path(os.environ[LINES])
    tree = folder.parent / "tree"
    ran: dict[str, set[int]] = {source: set() for source in (folder / "sources").read_text().split("\n")}
    sets: dict[str, set[int] | None] = {}
    lines_of: dict[Any, frozenset[int]] = {}

    def set_of(filename: str) -> set[int] | None:
        real = os.path.realpath(filename)
        return ran.get(os.path.relpath(real, tree)) if real.startswith(f"{tree}{os.sep}") else None

    def begin(frame: Any, event: str, argument: object) -> Any:
        code = frame.f_code
        if code.co_filename not in sets:
            sets[code.co_filename] = set_of(code.co_filename)
        if (numbers := sets[code.co_filename]) is None:
            return None
        if code not in lines_of:
            lines_of[code] = frozenset(line for *_, line in code.co_lines() if line)
        if lines_of[code] <= numbers:  # a function that has been seen whole runs at its own pace
            return None

        def local(frame: Any, event: str, argument: object) -> Any:
            numbers.add(frame.f_lineno)
            return local

        return local

    def write() -> None:
        sys.settrace(None)
        text = json.dumps({source: f"{as_bits(numbers):x}" for source, numbers in ran.items() if numbers})
        with contextlib.suppress(OSError):
            (folder / f"{os.getpid()}.part").write_text(text)
            (folder / f"{os.getpid()}.part").rename(folder / f"{os.getpid()}.json")

    threading.settrace(begin)
    sys.settrace(begin)
    atexit.register(write)
    leave = os._exit

    def leave_at_once(status: int) -> Never:
        write()
        leave(status)

    os._exit = leave_at_once  # it is how a run ends whose time is up
    return ran


def as_bits(numbers: set[int]) -> int:
    """A set of line numbers as one number."""
    return sum(1 << number for number in numbers)


if LINES in os.environ:
    trace()
