"""`parley doctor [MODEL…]`: what is installed, which keys are set, which models can be reached, what machine it is."""

from __future__ import annotations

import argparse
import asyncio
import json
import textwrap
from dataclasses import asdict
from itertools import groupby
from typing import get_args

from rich.console import Console

from parley.base.text import plural, visible
from parley.cli.commands import AddParser
from parley.doctor import DISTRIBUTION, SECONDS, Examination, Package, Reached, State, examine

LABEL, STATE = 10, 14
"""Widths of the labels on the left, and of a model's state."""


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        epilog="No model is called: providers whose key is set are asked for their list of models, which is free. "
        "Exit status: 1 if a key is refused, a model that you named cannot be used, a package does not fit, or less "
        "than 1 GB of disk is free; 0 if not."
    )
    parser.add_argument("model", nargs="*", metavar="MODEL", help="models to check by name, as provider/model")
    parser.add_argument("--timeout", type=float, default=SECONDS, help="seconds to wait for an answer (default: 3)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    found = asyncio.run(examine(parsed.model, parsed.timeout))
    if parsed.json:
        print(json.dumps(asdict(found), indent=2))
    else:
        _print(found)
    return 1 if found.problems else 0


def _print(found: Examination) -> None:
    width = Console().width
    _line("parley", f"{_versions(found.packages[:6])}; Python {found.python}, {found.system}", width)
    installed = [name for name, packages in found.extras.items() if all(package.fits for package in packages)]
    _line("extras", ", ".join(f"{name} ({_versions(found.extras[name][:1])})" for name in installed) or "none", width)
    if missing := [name for name in found.extras if name not in installed]:
        _line("", f"not installed: {', '.join(missing)} (pip install '{DISTRIBUTION}[NAME]')", width)
    for what, wanted in (("set", True), ("not set", False)):
        names = [key for key, is_set in found.keys.items() if is_set is wanted]
        _line("keys" if wanted else "", f"{what}: {', '.join(names) or 'none'}", width)
    for number, (state, rows) in enumerate(groupby(sorted(found.models, key=_order), lambda row: row.state)):
        text = ", ".join(_in_words(row) for row in rows)
        _line("" if number else "models", f"{state + ':':<{STATE}}{text}", width, hanging=STATE)
    machine = found.machine
    memory = "" if machine["memory_gb"] is None else f", {machine['memory_gb']} GB memory"
    _line("machine", f"{plural(machine['cores'], 'core')}{memory}, GPU: {', '.join(machine['gpus']) or 'none'}", width)
    for disk in machine["disks"]:
        _line("", f"{disk['free_gb']:,} GB free for {disk['for']}: {visible(disk['path'])}", width)
    for number, problem in enumerate(found.problems):
        _line("" if number else "problems", visible(problem), width)
    if not found.problems:
        _line("", "no problems found", width)


def _order(row: Reached) -> int:
    return get_args(State).index(row.state)


def _in_words(row: Reached) -> str:
    """A model with what is known of it; what a missing key is called stands in the line of keys."""
    return visible(row.name if row.state == "no key" or row.name == "sim/" else f"{row.name} ({row.detail})")


def _line(label: str, text: str, width: int, hanging: int = 0) -> None:
    print(
        textwrap.fill(
            text,
            width,
            initial_indent=f"{label:<{LABEL}}",
            subsequent_indent=" " * (LABEL + hanging),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _versions(packages: list[Package]) -> str:
    return ", ".join(f"{package.name} {package.version}" for package in packages if package.version)
