"""Records the lines that a process runs. The copy has this file as its `sitecustomize.py`, for processes of tests."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

LINES = "PARLEY_MUTANTS_LINES"
"""The environment variable with the folder for the lines; its file `sources` says which files' lines are recorded."""


def trace() -> dict[str, set[int]]:
    """Records the lines that this process runs from now on; a process that a test started writes them when it ends."""
    folder = Path(os.environ[LINES])
    tree = folder.parent / "tree"
    ran: dict[str, set[int]] = {source: set() for source in (folder / "sources").read_text().split("\n")}
    tracers: dict[str, Any] = {}

    def tracer_of(filename: str) -> Any:
        real = os.path.realpath(filename)
        numbers = ran.get(os.path.relpath(real, tree)) if real.startswith(f"{tree}{os.sep}") else None
        if numbers is None:
            return None
        add = numbers.add

        def local(frame: Any, event: str, argument: object) -> Any:
            add(frame.f_lineno)
            return local

        return local

    def begin(frame: Any, event: str, argument: object) -> Any:
        filename = frame.f_code.co_filename
        if filename not in tracers:
            tracers[filename] = tracer_of(filename)
        return tracers[filename]

    def write() -> None:
        sys.settrace(None)
        text = json.dumps({source: f"{as_bits(numbers):x}" for source, numbers in ran.items() if numbers})
        with contextlib.suppress(OSError):
            (folder / f"{os.getpid()}.part").write_text(text)
            (folder / f"{os.getpid()}.part").rename(folder / f"{os.getpid()}.json")

    threading.settrace(begin)
    sys.settrace(begin)
    atexit.register(write)  # the tests' own process ends without it
    return ran


def as_bits(numbers: set[int]) -> int:
    """A set of line numbers as one number."""
    return sum(1 << number for number in numbers)


if LINES in os.environ:
    trace()
