"""All targets: what is typed, what is brought, what models say, runs, notes, and requests to a viewer that is up."""

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
from tests.fuzz.loop import Target


@contextmanager
def all_targets() -> Iterator[list[Target]]:
    """With a home of their own, a run of a simulated model, and a viewer that shows it."""
    with tempfile.TemporaryDirectory(prefix="parley-fuzz-") as place:
        home = {"PARLEY_HOME": str(Path(place) / "home")}
        with mock.patch.dict(os.environ, home):
            path = Path(place) / "shown" / "a.sqlite"
            parley.run("malibu", suite="quick", model="sim/judge?female=+0.5", rounds=1, out=str(path))
            with RunFile.open(path) as file:
                units = [unit for (unit,) in file.rows("SELECT id FROM units ORDER BY position")[1]]
            with requests.viewer(path.parent) as address:
                urlopen(f"{address}api/headline?run={path.name}").close()  # the first report loads pandas and friends
                typed = commands.target(Path(place) / "workshop")
                yield [
                    *replies.TARGETS,
                    *files.TARGETS,
                    *imports.TARGETS,
                    runs.target(path),
                    notes.target(path),
                    runs.reports(Path(place) / "workshop"),
                    typed,
                    requests.target(address, path.name, units[:3]),
                ]
