"""`parley unpack RUN …`: restore packed runs as SQLite files."""

from __future__ import annotations

import argparse
from pathlib import Path

from parley.base.text import visible
from parley.cli.commands import AddParser
from parley.runs.packing import unpack


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="+", metavar="RUN", help="a packed run, RUN.sqlite.gz")
    parser.add_argument("--keep", action="store_true", help="do not remove the packed run")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    for packed in map(Path, parsed.run):
        run = unpack(packed, keep=parsed.keep)
        print(visible(f"{run}: {run.stat().st_size:,} bytes"))
    return 0
