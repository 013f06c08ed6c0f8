"""`parley compare BASELINE RUN`: two runs, or the two models of one run, on the same units: second minus first."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from parley.base.errors import ConfigError
from parley.base.text import visible
from parley.cli.leaderboard import are_cards, compare_cards
from parley.cli.report import show
from parley.cli.shared import AddParser, need_analysis, newest_run, newest_runs, study_of
from parley.cli.tables import plain_table
from parley.runs import RunFile, explain_damage

if TYPE_CHECKING:
    from parley.analysis.reporting.report import Report

SHOWN = ("what", "first", "second", "estimate", "low", "high", "p_adjusted")


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "run",
        nargs="*",
        metavar="RUN",
        help="two run files, the baseline first, or one run with two models (default: the newest run in runs/; if it "
        "has one model, also the previous run of the same study); or judges' cards (.json), or folders of them",
    )
    parser.add_argument("--models", metavar="A,B", help="the two models to compare, if there are more")
    parser.add_argument("--cards", action="store_true", help="compare judges' cards; without any, the shipped ones")
    parser.add_argument("--no-shipped", action="store_true", help="of cards: leave out those that ship with Parley")
    parser.add_argument("--out", metavar="DIR", help="also write a page and tables to this folder")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    need_analysis()
    named = [Path(run) for run in parsed.run]
    if parsed.cards or are_cards(named):
        out = Path(parsed.out) if parsed.out else None
        answer = compare_cards(named, out, shipped=not parsed.no_shipped)
        for line in [json.dumps(answer.data, indent=1, ensure_ascii=False)] if parsed.json else answer.lines:
            print(visible(line))
        return 0
    paths = named or _newest()
    with explain_damage(*paths):
        return _compare(parsed, paths)


def _newest() -> list[Path]:
    """The newest run if it has several models, otherwise also the one before it of the same study."""
    newest = newest_run()
    with RunFile.open(newest) as file:
        info = file.info()
    models = info["config"].get("model") if isinstance(info["config"], dict) else None
    if isinstance(models, list) and len(models) > 1:
        return [newest]
    for path in newest_runs():
        if path != newest and study_of(path) == info["study"]:
            print(visible(f"compared with the run before it: {path}"), file=sys.stderr)
            return [path, newest]
    raise ConfigError(f"{newest} has one model, and no other run in runs/ is of {info['study']}: name two run files")


def _compare(parsed: argparse.Namespace, paths: list[Path]) -> int:
    from parley.reports import compare_runs  # loads pandas and matplotlib

    report = compare_runs(paths, parsed.models)
    if not parsed.json:
        _print(report)
    return show(report, Path(parsed.out) if parsed.out else None, as_json=parsed.json, quiet=True)


def _print(report: Report) -> None:
    """Cautions and sentences, then a table for each question."""
    console = Console()
    console.print(f"\n[bold]{escape(visible(report.title))}[/bold]", highlight=False)
    if report.headline:
        console.print(escape(visible(report.headline.text)), highlight=False)
    for line in report.cautions:
        console.print(f"[bold yellow]Caution:[/bold yellow] {escape(visible(line))}", highlight=False)
    for line in report.words:
        console.print(f"- {escape(visible(line))}", highlight=False)
    for table in report.tables:
        if table.printed:
            console.print(plain_table(f"\n{table.title}", table.frame[list(SHOWN)]))
