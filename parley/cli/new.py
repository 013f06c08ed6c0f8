"""`parley new study NAME`: a package to start your own study from."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from parley.cli.commands import AddParser
from parley.scaffold import class_name, new_study


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("what", choices=["study"], help="what to make")
    parser.add_argument("name", help="its name: lower-case words with hyphens")
    parser.add_argument("--to", metavar="DIR", default=".", help="the folder to make it in (default: the current one)")
    parser.add_argument("--json", action="store_true", help="print the paths of the files as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    written = new_study(parsed.name, Path(parsed.to))
    if parsed.json:
        print(json.dumps([str(path) for path in written]))
        return 0
    folder = written[0].parent
    for path in written:
        print(path)
    study = next(path for path in written if path.name == "study.py")
    print(f"\nrun it:      parley run {study}:{class_name(parsed.name)} --model sim/judge --report")
    print(f"install it:  pip install --no-deps -e {folder}    then: parley run {parsed.name}")
    return 0
