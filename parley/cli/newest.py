"""Which run a command reads if none is named: the newest in the folder `runs`."""

from __future__ import annotations

import sys
from pathlib import Path

from parley.agents import ConfigError, ParleyError
from parley.base.text import visible
from parley.runs import RunFile
from parley.viewer.run_folder import RunFolder

FOLDER = Path("runs")


def newest_runs() -> list[Path]:
    """The run files of the folder `runs`, the one that was written last first."""
    return [FOLDER / name for name in RunFolder(FOLDER).names()] if FOLDER.is_dir() else []


def newest_run() -> Path:
    """The run that was written last, whose name is printed; raises `ConfigError` if there is none."""
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
