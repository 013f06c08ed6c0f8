"""Every study against every vendor's stand-in, with every kind of reply, as one table.

    python -m tests.vendors --to benchmarks/VENDORS.md
    python -m tests.vendors --only bbq,openai

Ends with status 1 if anything ended otherwise than it should; the faults are listed below the table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.vendors.base import KINDS, standins
from tests.vendors.table import Cell, set_keys, studies, try_out

Cells = Mapping[tuple[str, str, str], Cell]
LEGEND = """\
How every study ends with every vendor's client, if all replies are of one kind. The servers are stand-ins on loopback
that reject what the vendors reject (`tests/vendors`); the thoughts of their models look like answers with other scores.

| word | the run |
|---|---|
| read | has verdicts; for `thinking` and `parts` they are those of `plain` |
| none | is done, has no verdict, says why, and ends with status 1 |
| failed | has no unit that could be done, says what to raise, and ends with status 1 |
| marked | keeps what was said, and every reply is marked as cut |
| said | keeps the refusal as the text it is: this vendor does not mark refusals |

In every cell, no request was rejected, every answered request counts, and no thought was parsed or heard."""


def fill_table(only: list[str], report: bool) -> dict[tuple[str, str, str], Cell]:
    """All cells, by study, kind and vendor."""
    vendors, trials = standins(), studies()
    chosen = {name for name in vendors if name in only} or set(vendors)
    wanted = [trial for trial in trials if any(word in trial.name for word in only)] or trials
    cells: dict[tuple[str, str, str], Cell] = {}
    for trial in wanted:
        for name in sorted(chosen):
            plain = None
            for kind in KINDS:
                cell = cells[trial.name, kind, name] = try_out(trial, vendors[name], kind, plain)
                plain = plain or cell.ending
            if report:
                print(f"\r{trial.name:<20}{name:<20}", end="", file=sys.stderr, flush=True)
    return cells


def lines(cells: Cells) -> Iterator[str]:
    """The table in Markdown."""
    names = sorted({name for _, _, name in cells})
    yield f"| study | replies | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for study in dict.fromkeys(study for study, _, _ in cells):
        for kind in KINDS:
            row = [cells[study, kind, name] for name in names]
            words = (f"**{cell.word}**" if cell.faults else cell.word for cell in row)
            yield f"| {study} | {kind} | {' | '.join(words)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.vendors", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only these studies and vendors: A,B")
    parser.add_argument("--to", type=Path, help="write the table to this file")
    parsed = parser.parse_args()
    set_keys()
    began = time.monotonic()
    cells = fill_table([word for word in parsed.only.split(",") if word], report=sys.stderr.isatty())
    faults = [(key, fault) for key, cell in cells.items() for fault in cell.faults]
    requests = f"{len(cells):,} runs, {len(faults)} faults"
    text = "\n".join(
        ["# Studies and vendors", "", LEGEND, "", *lines(cells), "", f"{requests} (`python -m tests.vendors`)."]
    )
    print(text)
    for key, fault in faults:
        print(f"{', '.join(key)}: {fault}")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    if parsed.to is not None:
        parsed.to.write_text(f"{text}\n", "utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
