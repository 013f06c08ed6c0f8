"""`python -m tests.fuzz --inputs 100000 --seed 1`: a campaign over every target, with a table at the end.

`--only WORDS` selects the targets whose names contain the words. For each failure, the reduced input and the traceback
are written to fuzz-findings/; the exit status is 1 if there was any.
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
import traceback
from contextlib import suppress
from pathlib import Path

os.environ.setdefault("PARLEY_HOME", tempfile.mkdtemp(prefix="parley-fuzz-home-"))

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from parley.base.text import plural
from tests.fuzz.loop import MAX_MEGABYTES, FuzzCounts, Target, TooLarge, TooSlow, fuzz
from tests.fuzz.targets import all_targets

COLUMNS = ("parser", "inputs", "accepted", "rejected", "failures", f"over {MAX_MEGABYTES} MB", "slowest")
"""`failures` includes inputs that took too much memory; `slowest` is in seconds of processor time."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="of all targets together (default 100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices")
    parser.add_argument("--only", default="", metavar="WORDS", help="only targets whose names contain the words")
    parser.add_argument("--findings", default="fuzz-findings", help="folder for inputs that failed")
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    parsed = parser.parse_args()
    console = Console(stderr=True)
    started = time.perf_counter()
    rows = []
    with all_targets() as targets:
        chosen = [target for target in targets if parsed.only.lower() in target.name.lower()]
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with Progress(console=console) as bar, suppress(KeyboardInterrupt):  # the table shows what was tried until then
            task = bar.add_task("targets", total=len(chosen))
            for target in chosen:
                bar.update(task, description=target.name)
                counts = FuzzCounts()
                inputs = -(-parsed.inputs // len(chosen))
                failures = run_target(target, inputs, parsed.seed, counts, Path(parsed.findings))
                outcomes = (counts.inputs, counts.accepted, counts.rejected, failures, counts.too_large)
                rows.append((target.name, *outcomes, counts.slowest))
                summary = f"{plural(counts.inputs, 'input')}, {plural(failures, 'failure')}"
                bar.console.print(f"{target.name}: {summary}, slowest {counts.slowest:.2f} s", highlight=False)
                bar.advance(task)
    print_table(rows, as_json=parsed.json)
    seconds = f"{time.perf_counter() - started:.0f} s ({time.process_time():.0f} s of processor time)"
    console.print(f"{seconds}, Python {platform.python_version()} on {platform.machine()}, seed {parsed.seed}")
    if failed := sum(row[4] for row in rows):
        console.print(f"{plural(failed, 'failure')}: {parsed.findings}/")
    return 1 if failed else 0


def run_target(target: Target, inputs: int, seed: int, counts: FuzzCounts, findings: Path) -> int:
    """The number of failures, 0 or 1: the first ends the target's campaign."""
    try:
        fuzz(target, inputs, seed, counts)
    except (Exception, TooLarge, TooSlow):
        findings.mkdir(parents=True, exist_ok=True)
        name = "".join(char if char.isalnum() else "-" for char in target.name)
        text = traceback.format_exc()  # includes the input
        (findings / f"{name}.txt").write_text(text, "utf-8", errors="backslashreplace")
        return 1
    return 0


def print_table(rows: list[tuple[str, int, int, int, int, int, float]], *, as_json: bool) -> None:
    total = (
        "all",
        *(sum(row[column] for row in rows) for column in range(1, 6)),
        max((row[6] for row in rows), default=0.0),
    )
    if as_json:
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in (*rows, total)]))
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "parser" else "right", no_wrap=True)
    for row in (*rows, total):
        table.add_row(str(row[0]), *(f"{value:,}" for value in row[1:6]), f"{row[6]:.2f}")
    Console(width=None if sys.stdout.isatty() else 100).print(table)


if __name__ == "__main__":
    sys.exit(main())
