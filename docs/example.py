"""Pack the runs of the example that ships with Parley (`parley view --example`).

    python -m docs.example --silent qwen-silent.sqlite --talking qwen-talk.sqlite

Each run is copied, compacted by SQLite and compressed by xz; together they may have 1.5 MB. Look through them first:
what is in a run file is published, host names and paths too.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import tomli_w

from parley.runs import RunFile
from parley.runs.diagnosis import find_damage
from parley.runs.example import FOLDER, INDEX

MAX_BYTES = 1_500_000
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.example", description="Pack the runs of the example.")
    parser.add_argument("--silent", type=Path, required=True, help="a run of silent ballots with findings")
    parser.add_argument("--talking", type=Path, required=True, help="a run whose judges talk")
    parsed = parser.parse_args()
    print(f"{pack({'silent': parsed.silent, 'talking': parsed.talking}):,} bytes in {TARGET}")
