"""Pack the runs of the example that ships with Parley (`parley view --example`).

    python -m docs.example --silent qwen-silent.sqlite --talking qwen-talk.sqlite \
        --part '{"phases": [1], "yardstick": "off", "identities": ["race", "religion"]}'
    python -m docs.example        # after a change of the report: only the page that is shown at once

Each run is copied, compacted by SQLite and compressed by xz; together they may have 1.45 MB. Look through them first:
what is in a run file is published, host names and paths too. `--part` keeps of the talking run what a run with other
settings would have been, so that it fits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import tomli_w

from parley.runs import RunFile
from parley.runs.diagnosis import find_damage
from parley.runs.example import FOLDER, INDEX, PAGE, example_runs
from parley.runs.job import make_study
from parley.runs.plan import HASH, PLAN, describe, measure
from parley.runs.salvage import copy_units
from parley.viewer.index import SearchIndex
from parley.viewer.reporter import compute

MAX_BYTES = 1_450_000
FIRST = "silent"
"""The run that `parley view --example` opens."""
TARGET = Path(__file__).parents[1] / "parley" / "runs" / FOLDER


def keep_part(run: Path, settings: Mapping[str, Any], target: Path) -> None:
    """Write the part of a run that a run with other settings would have been.

    Args:
        run: The whole run.
        settings: What the part has otherwise, as in the table `run`.
        target: The new run file.
    """
    with RunFile.open(run) as whole:
        info = whole.info()
        study = make_study(info["target"], {**info["config"], **settings})
        planned = list(study.plan())
        stored = {unit: json.loads(facets) for unit, facets in whole.stream("SELECT id, facets FROM units")}
        if other := [unit.id for unit in planned if stored.get(unit.id) != dict(unit.facets)]:
            sys.exit(f"example: {len(other)} units of the part are not in {run}, such as {other[0]}")
        described = describe(study, info["target"], measure(study))
        # What ran it, and on which texts, was true then; that this part was to be analysed alone was not planned.
        described |= {key: info[key] for key in ("versions", "sources")}
        described = {key: value for key, value in described.items() if key not in (PLAN, HASH)}
        with RunFile.create(target, described, dict(whole.stream("SELECT name, text FROM prompts")), planned) as part:
            copy_units(whole, part, [unit.id for unit in planned])
            part.db.executemany("INSERT INTO events VALUES (?, ?, ?)", whole.stream("SELECT * FROM events"))
            part.note("copied", f"{len(planned)} of {len(stored)} units of {run.name}")


def compacted(run: Path) -> bytes:
    """The run file without free pages and write-ahead log."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.sqlite"
        with closing(sqlite3.connect(f"file:{run}?mode=ro", uri=True)) as db:
            db.execute("VACUUM INTO ?", (str(copy),))
        if damage := find_damage(copy):
            sys.exit(f"example: {run} is damaged: {damage}")
        return copy.read_bytes()


def pack(runs: dict[str, Path], target: Path = TARGET) -> int:
    """Write the packed runs and their index, and return how many bytes they have.

    Args:
        runs: The run files by their name in the example.
        target: The folder to write to.
    """
    index, packed = {}, {}
    for name, run in runs.items():
        data = compacted(run)
        packed[name] = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
        with RunFile.open(run) as file:
            index[name] = {"sha256": hashlib.sha256(data).hexdigest(), "models": file.info()["models"]}
    size = sum(map(len, packed.values()))
    if size > MAX_BYTES:
        sys.exit(f"example: {size:,} bytes are more than {MAX_BYTES:,}; choose smaller runs")
    target.mkdir(exist_ok=True)
    for name, data in packed.items():
        (target / f"{name}.sqlite.xz").write_bytes(data)
    (target / INDEX).write_text(f"# Written by python -m docs.example\n{tomli_w.dumps(index)}", "utf-8")
    return size


def pack_page(target: Path = TARGET) -> int:
    """Write what the viewer shows first of the example, as the report is now, and return how many bytes it has.

    Args:
        target: The folder to write to.
    """
    run = example_runs()[FIRST]
    index = SearchIndex(run)
    page = {"headline": compute(run, index), "pictures": index.load("pictures")}
    packed = lzma.compress(json.dumps(page).encode(), preset=9 | lzma.PRESET_EXTREME)
    (target / f"{FIRST}{PAGE}").write_bytes(packed)
    return len(packed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.example", description="Pack the runs of the example.")
    parser.add_argument("--silent", type=Path, help="a run of silent ballots with findings")
    parser.add_argument("--talking", type=Path, help="a run whose judges talk")
    parser.add_argument("--part", type=json.loads, help="settings of a part of it, as JSON (default: all)")
    parsed = parser.parse_args()
    if parsed.silent and parsed.talking:
        with tempfile.TemporaryDirectory() as folder:
            talking = parsed.talking
            if parsed.part:
                talking = Path(folder) / talking.name
                keep_part(parsed.talking, parsed.part, talking)
            print(f"{pack({FIRST: parsed.silent, 'talking': talking}):,} bytes in {TARGET}")
    print(f"{pack_page():,} bytes for the first page")
