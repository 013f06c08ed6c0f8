"""`parley score bbq` and `parley score squad`: the scores of two benchmarks for answers from any source.

This module imports neither agents nor AutoGen, so that scoring all of BBQ takes seconds.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.analysis.squad import scores as squad
from parley.base.errors import ScenarioError, explain_unwritable
from parley.base.text import plural, visible
from parley.imports.predictions import Predictions, columns, read_predictions
from parley.scenarios.bbq import Bbq, uncollected
from parley.scenarios.bbq import load as load_bbq
from parley.scenarios.squad import load as load_squad

if TYPE_CHECKING:
    from parley.analysis.bbq.scores import ByContext, Scores
    from parley.analysis.stats.results import Line
    from parley.cli.shared import AddParser

MAX_LISTED = 5
"""The number of missing questions that are listed on a terminal; --json has them all."""
MAX_ABSOLUTE = 1e300
"""Larger values are refused: infinities, 10^400. NaN fails the comparison too."""


def add_bbq(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "--data", required=True, metavar="DIR", help="folder of BBQ's JSONL files, or a .csv file (BBQ-Hard)"
    )
    parser.add_argument(
        "--predictions", required=True, metavar="FILE", help="JSONL with category, example_id and prediction"
    )
    parser.add_argument(
        "--templates",
        metavar="DIR",
        help="folder of BBQ's templates or additional_metadata.csv, if it is not inside --data",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(handler=_bbq)


def _bbq(parsed: argparse.Namespace) -> int:
    try:
        from parley.analysis.bbq.scores import AnswerTable, score, to_dict
    except ModuleNotFoundError:
        raise ScenarioError("this command needs numpy and scipy: pip install 'parley-autogen[analysis]'") from None
    file = Path(parsed.predictions)
    with uncollected():
        bbq = load_bbq(parsed.data, leave_out=[file], beside=parsed.templates)
        predictions = read_predictions(file, bbq.rows)
        scores = score(AnswerTable.of(columns(predictions.rows, predictions.answers)))
    if parsed.json:
        counts = {"how": dict(predictions.how), "missing": predictions.missing}
        print(json.dumps({**to_dict(scores), "predictions": counts, "targets": dict(bbq.targets)}))
        return 0
    _print_bbq(scores, predictions, bbq)
    return 0


def _print_bbq(scores: Scores, predictions: Predictions, bbq: Bbq) -> None:
    from rich.console import Console

    from parley.cli.tables import cell_table

    console = Console()
    for context, title in (("ambig", "Ambiguous contexts"), ("disambig", "Disambiguated contexts")):
        rows = [(name, *_cells(**pair[context])) for name, pair in _rows(scores)]
        console.print(cell_table(("category", "n", "accuracy", "95% interval", "bias", "95% interval"), rows, title))
    how = ", ".join(f"{count:,} {way}" for way, count in sorted(predictions.how.items()))
    targets = ", ".join(f"{count:,} {way}" for way, count in sorted(bbq.targets.items()))
    unparsed = sum(int(lines["bias"].also["unparsed"]) for lines in scores.micro.values())
    for line in (
        f"{plural(len(predictions.rows), 'prediction')} ({how}); {plural(predictions.missing, 'row')} without one.",
        f"{plural(unparsed, 'unparsed answer')} left out; --json also has the scores with them counted as unknown.",
        f"Targets: {targets}.",
        "Accuracy is in %, bias from -100 to 100. Intervals are over question templates.",
    ):
        console.print(line, highlight=False, markup=False)


def _rows(scores: Scores) -> list[tuple[str, ByContext]]:
    rows = list(scores.categories.items())
    rows += [(f"{name} (no names)", pair) for name, pair in scores.labels.items()]
    return [*sorted(rows), ("macro mean", scores.macro), ("micro mean", scores.micro)]


def _cells(accuracy: Line, bias: Line) -> tuple[str, ...]:
    from parley.cli.tables import interval, number  # they load rich, which SQuAD's scores do without

    return (
        f"{bias.n:,}",
        number(100 * accuracy.estimate, 1),
        interval(100 * accuracy.low, 100 * accuracy.high),
        number(bias.estimate, 1),
        interval(bias.low, bias.high),
    )


def add_squad(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("--data", required=True, metavar="FILE", help="the official JSON of SQuAD v2")
    parser.add_argument(
        "--predictions", required=True, metavar="FILE", help='JSON in the official format: {"id": "text", …}'
    )
    parser.add_argument(
        "--na-prob", metavar="FILE", help='JSON with the probability that there is no answer: {"id": probability, …}'
    )
    parser.add_argument(
        "--na-prob-thresh",
        metavar="P",
        type=float,
        default=1.0,
        help="a question with a higher probability counts as unanswerable (default: %(default)s)",
    )
    parser.add_argument(
        "--pr-curves", metavar="FILE", help="with --na-prob: write precision-recall curves to this CSV file"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON, with the official names")
    parser.set_defaults(handler=_squad)


def _squad(parsed: argparse.Namespace) -> int:
    if parsed.pr_curves and not parsed.na_prob:
        raise ScenarioError("--pr-curves needs --na-prob: a curve is made from the probabilities of no answer")
    golds = {question.id: question.answers for question in load_squad(parsed.data).questions}
    table = _read_table(Path(parsed.predictions))
    predictions = {key: text for key, text in table.items() if isinstance(text, str)}
    for key, text in table.items():
        if text is not None and not isinstance(text, str):
            raise ScenarioError(f"{parsed.predictions}: the prediction for '{key}' must be a text")
    missing = [key for key in golds if key not in predictions]
    marks = squad.marks(predictions, golds)
    if not marks:
        raise ScenarioError(f"{parsed.predictions}: no prediction for any question of {parsed.data}")
    no_answer = _read_probabilities(Path(parsed.na_prob), marks) if parsed.na_prob else None
    final = squad.with_threshold(marks, golds, no_answer, parsed.na_prob_thresh) if no_answer else marks
    scores: dict[str, Any] = squad.summary(final, golds)
    if no_answer:
        scores |= squad.best_thresholds(marks, golds, predictions, no_answer)._asdict()
        curves = squad.precision_recall(marks, golds, no_answer)
        scores |= {f"pr_{name}_ap": curve.average for name, curve in curves.items()}
        if parsed.pr_curves:
            _write_curves(Path(parsed.pr_curves), curves)
    unknown = sum(key not in golds for key in table)
    if parsed.json:
        print(json.dumps({**scores, "missing": len(missing), "missing_ids": missing, "unknown_ids": unknown}))
        return 0
    for name, value in scores.items():
        print(f"{name:<18}{value:>10,}" if isinstance(value, int) else f"{name:<18}{value:>13.2f}")
    if missing:
        listed = ", ".join(missing[:MAX_LISTED]) + (", …" if len(missing) > MAX_LISTED else "")
        what = "question has no prediction and is" if len(missing) == 1 else "questions have no prediction and are"
        print(f"{len(missing):,} {what} left out: {listed}")
    if unknown:
        what = "prediction is for a question that is" if unknown == 1 else "predictions are for questions that are"
        print(f"{unknown:,} {what} not in the data")
    if parsed.pr_curves:
        print(visible(f"written to {parsed.pr_curves}"))
    return 0


def _write_curves(path: Path, curves: Mapping[str, squad.Curve]) -> None:
    with explain_unwritable(path, ScenarioError), path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["measure", "threshold", "recall", "precision"])
        for name, curve in curves.items():
            points = zip(("", *curve.thresholds), curve.recalls, curve.precisions, strict=True)
            table.writerows((name, *point) for point in points)


def _read_table(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_bytes())
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{path}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError):
        raise ScenarioError(f"{path}: not JSON in UTF-8") from None
    if not isinstance(table, dict):
        raise ScenarioError(f"{path}: expected an object with question ids as keys")
    return table


def _read_probabilities(path: Path, questions: Mapping[str, object]) -> dict[str, float]:
    table = _read_table(path)
    for key in questions:
        value = table.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_ABSOLUTE < value < MAX_ABSOLUTE:
            raise ScenarioError(f"{path}: no probability for '{key}'")
    return {key: float(table[key]) for key in questions}
