"""`python -m tests.true_sentences --simulations 400`: the rates of all cells, as a table in tests/TRUE_SENTENCES.md."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.true_sentences import all_cells, measure

TABLE = Path(__file__).parents[1] / "TRUE_SENTENCES.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=400, help="studies per cell (default: 400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cells whose sentence or setting contains this; no table is written")
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
    cells = [cell for cell in all_cells() if asked.only in f"{cell.sentence} {cell.setting}"]
    above = []
    for cell in cells:
        found = measure(cell, asked.simulations, asked.seed)
        lines.append(
            f"| {cell.sentence} | {cell.setting} | {cell.before} | {cell.limit:.0%} | {found.rate:.1%} | "
            f"{found.spoken / found.studies:.0%} | {found.studies} |"
        )
        print(lines[-1], flush=True)
        above += [cell.setting] if found.above(cell.limit) else []
    if not asked.only:
        TABLE.write_text("\n".join([*lines, ""]), encoding="utf-8")
    for setting in above:
        print(f"above its limit: {setting}")
    return bool(above)


if __name__ == "__main__":
    raise SystemExit(main())
