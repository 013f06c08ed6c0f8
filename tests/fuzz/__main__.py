"""`python -m tests.fuzz --inputs 100000 --seed 1`: a campaign over every target, with a table at the end.

`--only WORDS` takes the targets whose names hold the words. What failed is written to fuzz-findings/, each input with
what happened; the exit status is 1 if anything did.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

os.environ.setdefault("PARLEY_HOME", tempfile.mkdtemp(prefix="parley-fuzz-home-"))

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.fuzz.loop import Campaign
from tests.fuzz.targets import all_targets

ROUNDS = 10
"""A campaign goes over all targets so often, so that one that is cut short has seen them all."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="in all (default 100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of every choice")
    parser.add_argument("--only", default="", help="targets whose names hold these words")
    parser.add_argument("--findings", default="fuzz-findings", help="folder for inputs that failed")
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    asked = parser.parse_args()
    console = Console(stderr=True)
    began = time.perf_counter()
    with all_targets() as targets:
        chosen = [one for one in targets if asked.only.lower() in one.name.lower()]
        weight = sum(one.weight for one in chosen)
        campaigns = [Campaign(one, asked.seed) for one in chosen]
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with Progress(console=console) as bar, suppress(KeyboardInterrupt):  # what was tried until then is told
            task = bar.add_task("inputs", total=asked.inputs)
            for turn in range(ROUNDS):
                for one in campaigns:
                    until = -(-asked.inputs * one.target.weight * (turn + 1) // (weight * ROUNDS))
                    one.go(int(until) - one.tally.inputs)
                    bar.update(
                        task, completed=sum(each.tally.inputs for each in campaigns), description=one.target.name
                    )
    failed = write_findings(campaigns, Path(asked.findings))
    rows = [
        (
            one.target.name,
            one.tally.inputs,
            one.tally.accepted,
            one.tally.rejected,
            len(one.tally.crashes),
            len(one.tally.hangs),
            len(one.tally.large),
            one.tally.slowest,
            one.tally.largest,
            one.tally.lines,
        )
        for one in campaigns
    ]
    tell(rows, as_json=asked.json)
    took = time.perf_counter() - began
    console.print(f"{took:.0f} s, Python {platform.python_version()} on {platform.machine()}, seed {asked.seed}")
    if failed:
        console.print(f"{failed} findings: {asked.findings}/")
    return 1 if failed else 0


COLUMNS = ("parser", "inputs", "taken", "refused", "crash", "hang", "large", "slowest", "MB", "lines")
"""`slowest` is in seconds of processor time, `MB` the most memory an input took; `lines` are lines of ours that were
reached, where that could be seen."""


def tell(rows: list[tuple[str, int, int, int, int, int, int, float, float, int]], *, as_json: bool) -> None:
    whole = (
        "all",
        *(sum(row[at] for row in rows) for at in range(1, 7)),
        max(row[7] for row in rows),
        max(row[8] for row in rows),
        sum(row[9] for row in rows),
    )
    if as_json:
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in (*rows, whole)]))
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "parser" else "right", no_wrap=True)
    for row in (*rows, whole):
        table.add_row(
            str(row[0]),
            *(f"{value:,}" for value in row[1:7]),
            f"{row[7]:.2f}",
            f"{row[8]:.0f}",
            f"{row[9]:,}" if row[9] else "–",
        )
    Console(width=None if sys.stdout.isatty() else 100).print(table)


def write_findings(campaigns: list[Campaign], folder: Path) -> int:
    number = 0
    for one in campaigns:
        for what, found in (("crash", one.tally.crashes), ("hang", one.tally.hangs), ("large", one.tally.large)):
            for given, why in found[:50]:
                folder.mkdir(parents=True, exist_ok=True)
                name = f"{what}-{''.join(c if c.isalnum() else '-' for c in one.target.name)}-{number}"
                content = given if isinstance(given, bytes) else repr(given).encode("utf-8", "backslashreplace")
                (folder / f"{name}.input").write_bytes(content)
                (folder / f"{name}.txt").write_text(f"{why}\n", "utf-8", errors="backslashreplace")
                number += 1
    return sum(len(one.tally.crashes) + len(one.tally.hangs) + len(one.tally.large) for one in campaigns)


if __name__ == "__main__":
    sys.exit(main())
