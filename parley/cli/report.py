"""`parley report RUN…`: tables, sentences and a figure."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agents import ConfigError, ParleyError
from agents.models.catalogue import catalogue
from parley.cli.text import visible
from parley.runs import RunFile

if TYPE_CHECKING:
    import pandas as pd

LOOKS: dict[str, Any] = {"title_justify": "left", "box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
"""Narrow enough for a terminal of 80 columns."""


def add_to(commands: Any) -> None:
    parser = commands.add_parser("report", help="tables and a figure of one or more runs")
    parser.add_argument("run", nargs="+", help="run files")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    parser.add_argument("--no-figures", dest="figures", action="store_false", help="write no figure beside the run")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    return print_report([Path(run) for run in parsed.run], as_json=parsed.json, figures=parsed.figures)


def print_report(paths: list[Path], *, as_json: bool, figures: bool) -> int:
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("reports need pandas and friends: pip install 'parley[analysis]'") from None
    reports = [_report(path, figures=figures) for path in paths]
    if as_json:
        whole = [{key: _plain(value) for key, value in report.items()} for report in reports]
        print(json.dumps(whole, indent=2))
    else:
        for report in reports:
            _print(report)
    return 0


def cautions(models: list[str]) -> list[str]:
    """What every reader of these numbers must know about the models that gave them."""
    lines = []
    for name in models:
        plain = name.partition("?")[0]
        provider, _, model = plain.partition("/")
        if provider == "sim":
            lines.append(f"{name} is SIMULATED: these numbers come from planted effects, not from a language model.")
        elif provider == "local" and model in catalogue() and catalogue()[model].caution:
            lines.append(f"{catalogue()[model].caution}.")
    return lines


def _report(path: Path, *, figures: bool) -> dict[str, Any]:
    from analysis import malibu
    from analysis.figures import malibu_figure
    from parley import frames

    file = RunFile.open(path)
    info = file.info()
    if info["study"] != "malibu":
        raise ConfigError(f"{path}: there is no report for the study '{info['study']}' yet; parley.frames reads it")
    verdicts, turns, counts = frames.verdicts(file), frames.turns(file), file.counts()
    if verdicts.empty:
        raise ConfigError(f"{path} has no finished unit yet")
    phases = set(verdicts["phase"])
    calls, tokens, cost, priced = file.spent()
    report: dict[str, Any] = {
        "run": str(path),
        "study": info["study"],
        "models": info["models"],
        "config": info["config"],
        "units": counts,
        "cautions": cautions(info["models"]),
        "replies": malibu.replies(turns),
        "spent": {"calls": calls, "tokens": tokens, "cost": cost if priced else None},
        "scores": malibu.mean_scores(verdicts) if 1 in phases else verdicts.iloc[:0],
        "differences": malibu.differences(verdicts) if 1 in phases else verdicts.iloc[:0],
        "win_rates": malibu.win_rates(verdicts) if 2 in phases else verdicts.iloc[:0],
        "first_position": malibu.first_position(verdicts) if 2 in phases else None,
        "in_words": list(malibu.in_words(verdicts)) if 1 in phases else [],
    }
    if figures:
        title = f"MALIBU {info['config']['suite']} · {', '.join(info['models'])}"
        note = " ".join([*report["cautions"], "Dots with 95% intervals; phase 1 over scenarios, phase 2 Wilson."])
        target = path.with_suffix(".png")
        try:
            report["figure"] = str(malibu_figure(report["scores"], report["win_rates"], title, note, target))
        except OSError as error:
            raise ParleyError(f"the figure {target} cannot be written: {error.strerror}") from None
    file.close()
    return report


def _plain(value: Any) -> Any:
    """Frames as lists of rows, NaN as null."""
    if hasattr(value, "to_dict"):
        return [{k: _plain(v) for k, v in row.items()} for row in value.to_dict("records")]
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _print(report: dict[str, Any]) -> None:
    console = Console()
    models = escape(visible(", ".join(report["models"])))
    console.print(f"\n[bold]{escape(report['study'])}[/bold] on {models}", highlight=False)
    units, replies, spent = report["units"], report["replies"], report["spent"]
    cost = "cost unknown" if spent["cost"] is None else f"${spent['cost']:.2f}"
    console.print(
        f"units: {units['done']} done, {units['failed']} failed, {units['planned']} not yet held · "
        f"replies: {', '.join(f'{n} {status}' for status, n in replies.items())} · "
        f"{spent['calls']} calls, {spent['tokens']:,} tokens, {cost}",
        highlight=False,
    )
    for line in report["cautions"]:
        console.print(f"[bold yellow]Caution:[/bold yellow] {escape(visible(line))}", highlight=False)
    if len(report["scores"]):
        console.print(_scores_table(report["scores"]))
    if len(report["win_rates"]):
        console.print(_wins_table(report["win_rates"]))
        first = report["first_position"]
        if first["n"]:
            console.print(
                f"Shown first and preferred: {first['estimate']:.0%} "
                f"({first['low']:.0%} to {first['high']:.0%}, n = {first['n']}); 50% would be no position bias.",
                highlight=False,
            )
    for line in report["in_words"]:
        console.print(f"- {line}", highlight=False)
    if "figure" in report:
        console.print(f"figure: {report['figure']}", highlight=False)


def _scores_table(scores: pd.DataFrame) -> Table:
    metrics = [metric for metric in dict.fromkeys(scores["metric"]) if metric != "all"]
    table = Table(title=f"Phase 1: mean scores ({scores['clusters'].max()} scenarios)", **LOOKS)
    for column in ("identity", *metrics, "all", "95% interval"):
        table.add_column(column, no_wrap=True)
    for _, group in scores.groupby("category", sort=False):
        table.add_section()
        for identity, rows in group.groupby("identity", sort=False):
            means = rows.set_index("metric")["estimate"]
            overall = rows[rows["metric"] == "all"].iloc[0]
            cells = [_number(means[metric], "{:.2f}") for metric in (*metrics, "all")]
            table.add_row(str(identity), *cells, _interval(overall.low, overall.high, "{:.2f}"))
    return table


def _wins_table(wins: pd.DataFrame) -> Table:
    table = Table(title="Phase 2: win rates", **LOOKS)
    for column in ("identity", "won", "lost", "tied", "win rate", "95% interval", "ties as half"):
        table.add_column(column, no_wrap=True)
    for _, group in wins.groupby("category", sort=False):
        table.add_section()
        for row in group.itertuples():
            rate = _number(row.estimate, "{:.0%}")
            counts = (str(row.wins), str(row.losses), str(row.ties))
            interval = _interval(row.low, row.high, "{:.0%}")
            table.add_row(row.identity, *counts, rate, interval, f"{row.ties_as_half:.0%}")
    return table


def _number(value: float, shape: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if math.isnan(value) else shape.format(value)


def _interval(low: float, high: float, shape: str) -> str:
    return "–" if math.isnan(low) else f"{shape.format(low)} to {shape.format(high)}"
