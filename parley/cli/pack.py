"""`parley pack RUN …`, `parley unpack RUN …` and `parley salvage RUN`: run files that are no longer written."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict
from pathlib import Path

from parley.base.text import plural, visible
from parley.cli.shared import AddParser
from parley.runs.packing import pack, run_stem, unpack
from parley.runs.salvage import salvage


def add_pack(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="+", metavar="RUN", help="a run file, which becomes RUN.gz")
    parser.add_argument("--keep", action="store_true", help="keep the run file")
    parser.set_defaults(handler=_pack)


def _pack(parsed: argparse.Namespace) -> int:
    for run in map(Path, parsed.run):
        before = run.stat().st_size if run.is_file() else 0
        packed = pack(run, keep=parsed.keep)
        after = packed.stat().st_size
        print(visible(f"{packed}: {after:,} bytes, {after / before:.0%} of {before:,}"))
    return 0


def add_unpack(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="+", metavar="RUN", help="a packed run, RUN.sqlite.gz")
    parser.add_argument("--keep", action="store_true", help="keep the packed run")
    parser.set_defaults(handler=_unpack)


def _unpack(parsed: argparse.Namespace) -> int:
    for packed in map(Path, parsed.run):
        run = unpack(packed, keep=parsed.keep)
        print(visible(f"{run}: {run.stat().st_size:,} bytes"))
    return 0


def add_salvage(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", help="the damaged run file; it stays as it is")
    parser.add_argument("--to", metavar="FILE", help="the new run file (default: RUN.salvaged.sqlite)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=_salvage)


def _salvage(parsed: argparse.Namespace) -> int:
    damaged = Path(parsed.run)
    target = Path(parsed.to or damaged.with_name(f"{run_stem(damaged)}.salvaged.sqlite"))
    found = salvage(damaged, target)
    status = 1 if found.lost or found.incomplete or not found.has_settings else 0
    if parsed.json:
        print(json.dumps({"run": str(target), "lost": found.lost, **asdict(found)}))
        return status
    print(f"{plural(found.copied, 'unit')} copied, {found.lost:,} lost: {target}")
    if found.incomplete:
        print(f"part of a prompt could not be read in {plural(found.incomplete, 'copied unit')}")
    if found.planned:
        print(f"{plural(found.planned, 'unit')} had not run yet")
    if not found.has_settings:
        print("the study, models and config of the run could not be read")
    elif found.gone:
        print(f"the new file cannot be resumed: the facets of {plural(found.gone, 'unit')} could not be read")
    elif found.again:
        print(f"to run the lost units again, add --out {shlex.quote(str(target))} to the command that made the run")
    return status
