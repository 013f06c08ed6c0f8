"""All targets: flags, users' files, models' replies, runs, notes, command lines, and requests to a running viewer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock
from urllib.request import urlopen

import parley
from parley.runs import RunFile
from tests.fuzz import commands, files, imports, notes, replies, requests, runs
from tests.fuzz.checking import Target


@contextmanager
def all_targets() -> Iterator[list[Target]]:
    """With a temporary home, a run of a simulated model, and a viewer that serves it."""
    with tempfile.TemporaryDirectory(prefix="parley-fuzz-") as folder:
        home = {"PARLEY_HOME": str(Path(folder) / "home")}
        with mock.patch.dict(os.environ, home):
            path = Path(folder) / "shown" / "a.sqlite"
            parley.run("malibu", suite="tiny", model="sim/judge?female=+0.5", rounds=1, out=str(path))
            with RunFile.open(path) as file:
                units = [unit for (unit,) in file.rows("SELECT id FROM units ORDER BY position")[1]]
            with requests.viewer(path.parent) as address:
                urlopen(f"{address}api/headline?run={path.name}").close()  # the first report imports pandas
                command_line = commands.target(Path(folder) / "workshop")
                yield [
                    *replies.TARGETS,
                    *files.TARGETS,
                    *imports.TARGETS,
                    runs.target(path),
                    runs.report_target(Path(folder) / "workshop"),
                    notes.target(path),
                    command_line,
                    requests.target(address, path.name, units[:3]),
                ]
