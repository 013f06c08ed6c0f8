"""`parley score squad --data FILE --predictions FILE`: the official scores of anyone's answers to SQuAD v2.

Nothing of the conversations is loaded here, so that scoring takes a second.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parley.cli.commands import AddParser
from parley.scenarios.errors import ScenarioError
from parley.scenarios.squad import load

NAMED = 5
"""So many missing questions are named on a terminal; --json has them all."""
FAR = 1e300
"""What lies beyond is no probability, nor any other number that can be counted with: infinities, 10^400, NaN."""


def add_to(add_parser: AddParser) -> None:
    squad = add_parser()
    squad.add_argument("--data", required=True, metavar="FILE", help="the official JSON of SQuAD v2")
    squad.add_argument("--predictions", required=True, metavar="FILE", help='the official JSON: {"id": "text", …}')
    squad.add_argument("--na-prob", metavar="FILE", help='JSON {"id": probability that there is no answer, …}')
    squad.add_argument(
        "--na-prob-thresh",
        metavar="P",
        type=float,
        default=1.0,
        help="above it a question counts as unanswerable (1.0)",
    )
    squad.add_argument("--json", action="store_true", help="everything as JSON, under the official names")
    squad.set_defaults(handler=_squad)


def _squad(parsed: argparse.Namespace, rest: list[str]) -> int:
    from parley.analysis.squad import scores as squad

    golds = {one.id: one.answers for one in load(parsed.data).questions}
    read = _table(Path(parsed.predictions))
    predictions = {key: text for key, text in read.items() if isinstance(text, str)}
    for key, text in read.items():
        if text is not None and not isinstance(text, str):
            raise ScenarioError(f"{parsed.predictions}: the prediction of '{key}' is not a text")
    missing = [key for key in golds if key not in predictions]
    given = squad.marks(predictions, golds)
    if not given:
        raise ScenarioError(f"{parsed.predictions}: no prediction for any question of {parsed.data}")
    chances = _chances(Path(parsed.na_prob), given) if parsed.na_prob else None
    counted = squad.with_threshold(given, golds, chances, parsed.na_prob_thresh) if chances else given
    scores: dict[str, Any] = squad.summary(counted, golds)
    if chances:
        scores |= squad.best_thresholds(given, golds, predictions, chances)._asdict()
    strangers = sum(key not in golds for key in read)
    if parsed.json:
        print(json.dumps({**scores, "missing": len(missing), "missing_ids": missing, "unknown_ids": strangers}))
        return 0
    for name, value in scores.items():
        print(f"{name:<18}{value:>10,}" if isinstance(value, int) else f"{name:<18}{value:>13.2f}")
    if missing:
        named = ", ".join(missing[:NAMED]) + (", …" if len(missing) > NAMED else "")
        what = "question has no prediction and is" if len(missing) == 1 else "questions have no prediction and are"
        print(f"{len(missing):,} {what} left out: {named}")
    if strangers:
        what = "prediction is for a question that is" if strangers == 1 else "predictions are for questions that are"
        print(f"{strangers:,} {what} not in the data")
    return 0


def _table(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_bytes())
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{path}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError):
        raise ScenarioError(f"{path}: not JSON in UTF-8") from None
    if not isinstance(table, dict):
        raise ScenarioError(f"{path}: an object of ids was expected")
    return table


def _chances(path: Path, given: Mapping[str, object]) -> dict[str, float]:
    table = _table(path)
    for key in given:
        value = table.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -FAR < value < FAR:
            raise ScenarioError(f"{path}: no probability for '{key}'")
    return {key: float(table[key]) for key in given}
