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

from tests.chaos.studies import Trial
from tests.vendors.base import KINDS, standins
from tests.vendors.table import Cell, set_keys, studies, try_forms, try_out

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

In every cell, no request was rejected, every answered request counts, and no thought was parsed or heard. `filtered` is
the answer itself, which the vendor says is refused."""
FORMS_LEGEND = """\
## Forms of thought

Every answer has a thought in front of it that looks like an answer with other scores, in a form that some model or chat
template uses (`tests/vendors/attacks.py`, `agents/models/marks.py`). `read`: the run has the verdicts of the plain
answers, for every study. The answers of a run take the forms in turn, so that each form stands before typed answers and
before texts of every study that has them."""


def chosen(only: list[str]) -> Iterator[tuple[Trial, str]]:
    """Every study with every vendor, or those that are named."""
    names = sorted({name for name in standins() if name in only} or standins())
    for trial in [trial for trial in studies() if any(word in trial.name for word in only)] or studies():
        for name in names:
            print(f"{trial.name}, {name}", file=sys.stderr)
            yield trial, name


def fill_table(only: list[str]) -> dict[tuple[str, str, str], Cell]:
    """All cells, by study, kind and vendor."""
    cells: dict[tuple[str, str, str], Cell] = {}
    for trial, name in chosen(only):
        plain = None
        for kind in KINDS:
            cell = cells[trial.name, kind, name] = try_out(trial, standins()[name], kind, plain)
            plain = plain or cell.ending
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


def fill_forms(only: list[str]) -> dict[tuple[str, str, str], Cell]:
    """Cells by form, vendor and study."""
    return {
        (form, name, trial.name): cell
        for trial, name in chosen(only)
        for form, cell in try_forms(trial, standins()[name]).items()
    }


def form_lines(cells: Cells) -> Iterator[str]:
    """The table of forms in Markdown."""
    names = sorted({name for _, name, _ in cells})
    yield f"| form of thought | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for form in dict.fromkeys(form for form, _, _ in cells):
        row = [[cell for (one, vendor, _), cell in cells.items() if (one, vendor) == (form, name)] for name in names]
        wrong = [sum(bool(cell.faults) for cell in here) for here in row]
        words = (f"**{count} wrong**" if count else "read" for count in wrong)
        yield f"| {form} | {' | '.join(words)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.vendors", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only these studies and vendors: A,B")
    parser.add_argument("--to", type=Path, help="write the table to this file")
    parsed = parser.parse_args()
    set_keys()
    began = time.monotonic()
    only = [word for word in parsed.only.split(",") if word]
    cells, forms = fill_table(only), fill_forms(only)
    faults = [(key, fault) for key, cell in [*cells.items(), *forms.items()] for fault in cell.faults]
    parts = ["# Studies and vendors", "", LEGEND, "", *lines(cells), "", FORMS_LEGEND, "", *form_lines(forms), ""]
    runs = f"{len(cells):,} runs and {len(forms):,} cells of form, vendor and study, {len(faults)} faults"
    text = "\n".join([*parts, f"{runs} (`python -m tests.vendors`)."])
    print(text)
    for key, fault in faults:
        print(f"{', '.join(key)}: {fault}")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    if parsed.to is not None:
        parsed.to.write_text(f"{text}\n", "utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
