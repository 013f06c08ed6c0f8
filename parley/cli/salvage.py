"""`parley salvage RUN [--to FILE]`: copy what can be read of a damaged run file to a new one."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict
from pathlib import Path

from parley.base.text import plural
from parley.cli.commands import AddParser
from parley.runs.packing import run_stem
from parley.runs.salvage import salvage


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", help="the damaged run file, which is not changed")
    parser.add_argument("--to", metavar="FILE", help="the new run file (default: RUN.salvaged.sqlite)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    damaged = Path(parsed.run)
    target = Path(parsed.to or damaged.with_name(f"{run_stem(damaged)}.salvaged.sqlite"))
    found = salvage(damaged, target)
    status = 1 if found.lost or found.incomplete or not found.has_settings else 0
    if parsed.json:
        print(json.dumps({"run": str(target), "lost": found.lost, **asdict(found)}))
        return status
    print(f"{plural(found.copied, 'unit')} copied, {found.lost:,} lost: {target}")
    if found.incomplete:
        print(f"{plural(found.incomplete, 'unit')} among them lack a text of their prompts, which could not be read")
    if found.planned:
        print(f"{plural(found.planned, 'unit')} had not been run")
    if not found.has_settings:
        print("its study, models and config could not be read")
    elif found.gone:
        print(f"the facets of {plural(found.gone, 'unit')} could not be read: the new file cannot be resumed")
    elif found.again:
        print(f"to run what was lost: the command that made the run, with --out {shlex.quote(str(target))}")
    return status
