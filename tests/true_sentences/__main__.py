"""`python -m tests.true_sentences --simulations 400 --jobs 16`: the rates of all cells, in tests/TRUE_SENTENCES.md."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

for library in ("OMP", "OPENBLAS", "MKL"):  # before NumPy is loaded: the processes would wait for each other's threads
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import pandas as pd  # noqa: E402

pd.set_option("mode.string_storage", "python")  # a third less time on small tables, and the same numbers

from tests.true_sentences import all_cells, counted, simulate  # noqa: E402

TABLE = Path(__file__).parents[1] / "TRUE_SENTENCES.md"
CHUNK = 5
"""Studies that a process simulates at a time: few, so that none has slow ones left when the others have finished."""


def chunk(number: int, first: int, last: int, seed: int) -> list[bool | None]:
    """Some studies of the cell of this number. Cells hold functions, which cannot be sent to another process."""
    return simulate(all_cells()[number], range(first, last), seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=400, help="studies per cell (default: 400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes; they do not change the table (default: 1)")
    parser.add_argument("--only", default="", help="cells whose sentence or setting contains this; no table is written")
    parser.add_argument("--table", type=Path, default=TABLE, help="where it is written (default: tests/)")
    asked = parser.parse_args()
    command = f"python -m tests.true_sentences --simulations {asked.simulations} --seed {asked.seed}"
    lines = [
        "# How often a sentence is false",
        "",
        f"Made by `{command}`. Each cell simulates studies of which the truth is known. false: the share of studies "
        "that say the sentence in which it is wrong, or whose interval misses the truth; said: the share that say it.",
        "",
        "| sentence | what is true | before | at most | false | said | studies |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    cells = [(n, cell) for n, cell in enumerate(all_cells()) if asked.only in f"{cell.sentence} {cell.setting}"]
    above = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        parts = [
            [
                pool.submit(chunk, number, first, min(first + CHUNK, asked.simulations), asked.seed)
                for first in range(0, asked.simulations, CHUNK)
            ]
            for number, _ in cells
        ]
        for (_, cell), waiting in zip(cells, parts, strict=True):
            found = counted([failed for part in waiting for failed in part.result()])
            lines.append(
                f"| {cell.sentence} | {cell.setting} | {cell.before} | {cell.limit:.0%} | {found.rate:.1%} | "
                f"{found.spoken / found.studies:.0%} | {found.studies} |"
            )
            print(lines[-1], flush=True)
            above += [cell.setting] if found.above(cell.limit) else []
    if not asked.only:
        asked.table.write_text("\n".join([*lines, ""]), encoding="utf-8")
    for setting in above:
        print(f"above its limit: {setting}")
    return bool(above)


if __name__ == "__main__":
    raise SystemExit(main())
