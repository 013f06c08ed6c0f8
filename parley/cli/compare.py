"""`parley compare RUN_A RUN_B`: two runs, or the two models of one run, on the same units."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from parley.agents import ConfigError
from parley.cli.commands import AddParser
from parley.cli.needs import need_analysis
from parley.cli.report import plain_table, show
from parley.cli.text import visible
from parley.comparisons import compare_sides
from parley.reports import LoadedRun, load_run
from parley.runs import explain_damage

if TYPE_CHECKING:
    import pandas as pd


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", nargs="+", help="two run files, or one with two models")
    parser.add_argument("--models", metavar="A,B", help="the two models to compare, if there are more")
    parser.add_argument("--out", metavar="DIR", help="also write a page and tables to this folder")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    need_analysis()
    paths = [Path(run) for run in parsed.run]
    with explain_damage(*paths):
        return _compare(parsed, paths)


def _compare(parsed: argparse.Namespace, paths: list[Path]) -> int:
    runs = [load_run(path) for path in paths]
    (first_name, first), (second_name, second) = _two_sides(runs, parsed.models)
    report = compare_sides(runs, first, second, (first_name, second_name))
    if not parsed.json:
        Console().print(f"\n[bold]{escape(visible(report.title))}[/bold]", highlight=False)
        table = report.table("comparison")[["what", "first", "second", "difference", "low", "high", "p_adjusted"]]
        Console().print(plain_table(report.tables[0].title, table))
        for line in (*report.cautions, *report.words):
            Console().print(f"- {escape(visible(line))}", highlight=False)
    return show(report, Path(parsed.out) if parsed.out else None, as_json=parsed.json, quiet=True)


def _two_sides(runs: list[LoadedRun], chosen: str | None) -> list[tuple[str, pd.DataFrame]]:
    """The two sides: every model of every run is one, and there must be two."""
    sides = [
        (f"{model} ({run.file})" if len(runs) > 1 else model, model, run.verdicts[run.verdicts["model"] == model])
        for run in runs
        for model in map(str, run.verdicts["model"].unique())
    ]
    if chosen:
        models = [runs[0].addresses.hide(name.strip()) for name in chosen.split(",")]
        sides = [side for name in models for side in sides if name in (side[1], side[1].partition("?")[0])]
    if len(sides) != 2:
        known = ", ".join(dict.fromkeys(model for _, model, _ in sides)) or "none"
        raise ConfigError(f"compare needs two models or runs, got {len(sides)} ({known}); choose with --models A,B")
    return [(name, frame) for name, _, frame in sides]
