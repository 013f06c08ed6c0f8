"""`parley score squad --data FILE --predictions FILE`: SQuAD v2's official scores for answers from any source.

This module imports neither agents nor AutoGen, so that scoring takes a second.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.base.errors import ScenarioError
from parley.base.text import visible
from parley.cli.commands import AddParser
from parley.scenarios.squad import load

if TYPE_CHECKING:
    from parley.analysis.squad.scores import Curve

MAX_LISTED = 5
"""The number of missing questions that are listed on a terminal; --json has them all."""
MAX_ABSOLUTE = 1e300
"""Beyond this a value is refused: infinities, 10^400. NaN fails the comparison, too."""


def add_to(add_parser: AddParser) -> None:
    squad = add_parser()
    squad.add_argument("--data", required=True, metavar="FILE", help="the official JSON of SQuAD v2")
    squad.add_argument(
        "--predictions", required=True, metavar="FILE", help='JSON in the official format: {"id": "text", …}'
    )
    squad.add_argument(
        "--na-prob", metavar="FILE", help='JSON with the probability that there is no answer: {"id": probability, …}'
    )
    squad.add_argument(
        "--na-prob-thresh",
        metavar="P",
        type=float,
        default=1.0,
        help="a question with a higher probability counts as unanswerable (default: %(default)s)",
    )
    squad.add_argument(
        "--pr-curves", metavar="FILE", help="with --na-prob: write the precision-recall curves to this CSV file"
    )
    squad.add_argument("--json", action="store_true", help="print everything as JSON, with the official names")
    squad.set_defaults(handler=_squad)


def _squad(parsed: argparse.Namespace, rest: list[str]) -> int:
    from parley.analysis.squad import scores as squad

    if parsed.pr_curves and not parsed.na_prob:
        raise ScenarioError("--pr-curves needs --na-prob: a curve follows from the probabilities of no answer")
    golds = {question.id: question.answers for question in load(parsed.data).questions}
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


def _write_curves(path: Path, curves: Mapping[str, Curve]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["measure", "threshold", "recall", "precision"])
            for name, curve in curves.items():
                points = zip(("", *curve.thresholds), curve.recalls, curve.precisions, strict=True)
                table.writerows((name, *point) for point in points)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None


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
