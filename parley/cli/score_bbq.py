"""`parley score bbq --data DIR --predictions FILE`: BBQ's scores for answers from any source.

This module imports neither agents nor AutoGen, so that scoring all of BBQ takes seconds.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from parley.base.text import visible
from parley.cli.commands import AddParser
from parley.imports.predictions import Predictions, columns, read_predictions
from parley.scenarios import ScenarioError
from parley.scenarios.bbq import Bbq, load, uncollected

if TYPE_CHECKING:
    from parley.analysis.bbq.scores import ByContext, Cell, Scores


def add_to(add_parser: AddParser) -> None:
    bbq = add_parser()
    bbq.add_argument(
        "--data", required=True, metavar="DIR", help="folder of BBQ's JSONL files, or a .csv file (BBQ-Hard)"
    )
    bbq.add_argument(
        "--predictions", required=True, metavar="FILE", help="JSONL with category, example_id and prediction"
    )
    bbq.add_argument(
        "--templates", metavar="DIR", help="folder of templates or additional_metadata.csv, if not inside --data"
    )
    bbq.add_argument("--json", action="store_true", help="print everything as JSON")
    bbq.set_defaults(handler=_bbq)


def _bbq(parsed: argparse.Namespace, rest: list[str]) -> int:
    try:
        from parley.analysis.bbq.scores import AnswerTable, score, to_dict
    except ModuleNotFoundError:
        raise ScenarioError("this command needs numpy and scipy: pip install 'parley-autogen[analysis]'") from None
    file = Path(parsed.predictions)
    with uncollected():
        bbq = load(parsed.data, leave_out=[file], beside=parsed.templates)
        predictions = read_predictions(file, bbq.rows)
        scores = score(AnswerTable.of(columns(predictions.rows, predictions.answers)))
    if parsed.json:
        counts = {"how": dict(predictions.how), "missing": predictions.missing}
        print(json.dumps({**to_dict(scores), "predictions": counts, "targets": dict(bbq.targets)}))
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
        for name, pair in _rows(scores):
            table.add_row(escape(visible(name)), *_cells(pair[context]))
    console.print(table)
    how = ", ".join(f"{count:,} {way}" for way, count in sorted(predictions.how.items()))
    targets = ", ".join(f"{count:,} {way}" for way, count in sorted(bbq.targets.items()))
    unparsed = sum(pair.unparsed for pair in scores.micro.values())
    for line in (
        f"Predictions: {len(predictions.rows):,} ({how}); rows without a prediction: {predictions.missing:,}.",
        f"Unparsed answers: {unparsed:,}, left out here; --json also has the scores with them counted as unknown.",
        f"Targets: {targets}.",
        "Accuracy in %; bias from -100 to 100; intervals over question templates.",
    ):
        console.print(line, highlight=False, markup=False)


def _rows(scores: Scores) -> list[tuple[str, ByContext]]:
    rows = list(scores.categories.items())
    rows += [(f"{name} (no names)", pair) for name, pair in scores.labels.items()]
    return [*sorted(rows), ("macro mean", scores.macro), ("micro mean", scores.micro)]


def _cells(cell: Cell) -> tuple[str, ...]:
    return (
        f"{cell.n:,}",
        _number(100 * cell.accuracy),
        _interval(100 * cell.accuracy_low, 100 * cell.accuracy_high),
        _number(cell.bias),
        _interval(cell.low, cell.high),
    )


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}"


def _interval(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"{low:.1f} to {high:.1f}"
