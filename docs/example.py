"""Pack the runs of the example that ships with Parley (`parley view --example`).

    python -m docs.example --silent qwen-silent.sqlite --talking qwen-talk.sqlite
    python -m docs.example        # after a change of the report: only the page that is shown at once

Each run is copied, compacted by SQLite and compressed by xz; together they may have 1.45 MB. Look through them first:
what is in a run file is published, host names and paths too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import tomli_w

from parley.runs import RunFile
from parley.runs.diagnosis import find_damage
from parley.runs.example import FOLDER, INDEX, PAGE, example_runs
from parley.viewer.index import SearchIndex
from parley.viewer.reporter import compute

MAX_BYTES = 1_450_000
FIRST = "silent"
"""The run that `parley view --example` opens."""
TARGET = Path(__file__).parents[1] / "parley" / "runs" / FOLDER


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
    page = {"headline": compute(SearchIndex(run), run)}
    packed = lzma.compress(json.dumps(page).encode(), preset=9 | lzma.PRESET_EXTREME)
    (target / f"{FIRST}{PAGE}").write_bytes(packed)
    return len(packed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.example", description="Pack the runs of the example.")
    parser.add_argument("--silent", type=Path, help="a run of silent ballots with findings")
    parser.add_argument("--talking", type=Path, help="a run whose judges talk")
    parsed = parser.parse_args()
    if parsed.silent and parsed.talking:
        print(f"{pack({FIRST: parsed.silent, 'talking': parsed.talking}):,} bytes in {TARGET}")
    print(f"{pack_page():,} bytes for the first page")
