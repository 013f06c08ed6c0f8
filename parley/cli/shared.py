"""Shared by several commands: the type of `add_to`'s argument, unknown flags, the newest run."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from parley.base.errors import ConfigError, ParleyError, install
from parley.base.text import visible
from parley.runs import RunFile

AddParser = Callable[..., argparse.ArgumentParser]
"""`add_parser` of the subparsers, with the command's name and help filled in."""
FOLDER = Path("runs")
"""The default folder of runs."""


def refuse_unknown(rest: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Raise an error that names the unknown arguments and the flag most like the first of them."""
    words = [word for action in parser._actions for word in action.option_strings]
    flag = rest[0].partition("=")[0]
    similar = [word for word in words if word.startswith(flag)] or difflib.get_close_matches(flag, words, n=1)
    hint = f"did you mean {' or '.join(similar)}? " if rest[0].startswith("--") and similar else ""
    every = "--help-all" if "--help-all" in words else "--help"
    raise ConfigError(f"unknown arguments: {' '.join(rest)} ({hint}`{parser.prog} {every}` lists all flags)")


def need_analysis() -> None:
    """Raise an error if the extra `analysis` is not installed."""
    try:
        import pandas  # noqa: F401
        import scipy  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError(f"this command needs the extra 'analysis': {install('analysis')}") from None


def newest_runs() -> list[Path]:
    """The run files of the folder `runs`, newest first."""
    from parley.viewer.run_folder import RunFolder  # `parley run` does without the viewer

    return [*RunFolder(FOLDER).paths().values()] if FOLDER.is_dir() else []


def newest_run() -> Path:
    """The newest run, whose name is printed; `ConfigError` if there is none."""
    for path in newest_runs():
        if study_of(path) is not None:
            print(visible(f"newest run: {path}"), file=sys.stderr)
            return path
    raise ConfigError(f"there is no run in {FOLDER}/ yet: name a run file, or begin with `parley run`")


def study_of(path: Path) -> str | None:
    """The study of a run file; None if it cannot be read."""
    try:
        with RunFile.open(path) as file:
            return str(file.info()["study"])
    except (ParleyError, KeyError, ValueError, TypeError):
        return None
