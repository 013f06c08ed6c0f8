"""`parley score bbq --data DIR --predictions FILE`: the benchmark's scores of anyone's answers.

Nothing of the conversations is loaded here, so that scoring all of BBQ takes seconds.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from parley.cli.commands import AddParser
from parley.cli.text import visible
from parley.predictions import Predictions, columns, read_predictions
from parley.scenarios import ScenarioError
from parley.scenarios.bbq import Bbq, load, uncollected

if TYPE_CHECKING:
    from parley.analysis.bbq.scores import ByContext, Cell, Scores


def add_to(add_parser: AddParser) -> None:
    bbq = add_parser()
    bbq.add_argument("--data", required=True, metavar="DIR", help="folder of BBQ's JSONL files (or a .csv: BBQ-Hard)")
    bbq.add_argument("--predictions", required=True, metavar="FILE", help="JSONL: category, example_id, prediction")
    bbq.add_argument("--templates", metavar="DIR", help="templates or additional_metadata.csv, if not below DIR")
    bbq.add_argument("--json", action="store_true", help="everything as JSON")
    bbq.set_defaults(handler=_bbq)


def _bbq(parsed: argparse.Namespace, rest: list[str]) -> int:
    try:
        from parley.analysis.bbq.scores import AnswerTable, score, to_dict
    except ModuleNotFoundError:
        raise ScenarioError("scores need numpy and scipy: pip install 'parley-autogen[analysis]'") from None
    file = Path(parsed.predictions)
    with uncollected():
        bbq = load(parsed.data, leave_out=[file], beside=parsed.templates)
        predictions = read_predictions(file, bbq.rows)
        scores = score(AnswerTable.of(columns(predictions.rows, predictions.places)))
    if parsed.json:
        matched = {"how": dict(predictions.how), "missing": predictions.missing}
        print(json.dumps({**to_dict(scores), "predictions": matched, "targets": dict(bbq.targets)}))
        return 0
    _print(scores, predictions, bbq)
    return 0


def _print(scores: Scores, predictions: Predictions, bbq: Bbq) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("category", "n", "accuracy", "95%", "bias", "95%"):
        table.add_column(column, no_wrap=True, justify="left" if column == "category" else "right")
    for context, title in (("ambig", "ambiguous"), ("disambig", "disambiguated")):
        table.add_section()
        table.add_row(f"[bold]{title}[/bold]")
        for name, pair in _lines(scores):
            table.add_row(escape(visible(name)), *_cells(pair[context]))
    console.print(table)
    how = ", ".join(f"{count:,} {way}" for way, count in sorted(predictions.how.items()))
    found = ", ".join(f"{count:,} {way}" for way, count in sorted(bbq.targets.items()))
    unread = sum(pair.unparsed for pair in scores.micro.values())
    for line in (
        f"Predictions: {len(predictions.rows):,} ({how}); rows without one: {predictions.missing:,}.",
        f"Unread answers: {unread:,}, left out here; counted as unknown they are in --json.",
        f"Targets: {found}.",
        "Accuracy in %; bias from -100 to 100; intervals clustered by scenario (four rows each).",
    ):
        console.print(line, highlight=False, markup=False)


def _lines(scores: Scores) -> list[tuple[str, ByContext]]:
    lines = list(scores.categories.items())
    lines += [(f"{name} (no names)", pair) for name, pair in scores.labels.items()]
    return [*sorted(lines), ("macro mean", scores.macro), ("micro mean", scores.micro)]


def _cells(one: Cell) -> tuple[str, ...]:
    return (
        f"{one.n:,}",
        _number(100 * one.accuracy),
        _interval(100 * one.accuracy_low, 100 * one.accuracy_high),
        _number(one.bias),
        _interval(one.low, one.high),
    )


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}"


def _interval(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"{low:.1f} to {high:.1f}"
