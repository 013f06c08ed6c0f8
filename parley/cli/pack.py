"""`parley pack RUN …`: compress run files that are no longer written."""

from __future__ import annotations

import argparse
from pathlib import Path

from parley.base.text import visible
from parley.cli.commands import AddParser
from parley.runs.packing import pack


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="+", metavar="RUN", help="a run file; it becomes RUN.gz")
    parser.add_argument("--keep", action="store_true", help="do not remove the run file")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    for run in map(Path, parsed.run):
        before = run.stat().st_size if run.is_file() else 0
        packed = pack(run, keep=parsed.keep)
        after = packed.stat().st_size
        print(visible(f"{packed}: {after:,} bytes, {after / before:.0%} of {before:,}"))
    return 0
