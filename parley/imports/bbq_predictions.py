"""Published answers to BBQ, read as a run: JSON lines with `category`, `example_id` and one prediction or several.

Predictions are in the field `prediction`, or, as in the authors' own results, in fields like
`unifiedqa-t5-11b_pred_race`: the model's name, `_pred_`, and the format of the question, which becomes the method.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parley.agents import ConfigError, Transcript, Turn
from parley.imports.imported import SOURCE, UNREADABLE, Imported, bare_name, read_json, read_log
from parley.imports.predictions import parse_prediction
from parley.judging import Outcome, Unit
from parley.judging.bbq.method import Task, answer_verdict
from parley.judging.bbq.study import row_facets
from parley.runs import Record
from parley.scenarios.bbq import AS_PUBLISHED, BbqRow, load

PREDICTION, MARK = "prediction", "_pred_"


def read_bbq_predictions(path: Path, data: str, model: str | None = None) -> Imported:
    """Read a file of answers to BBQ.

    Args:
        path: A .jsonl file, or a .jsonl.gz.
        data: A folder of BBQ's files, or a .csv.
        model: The model that answered, if the file has a field `prediction`; default: the file's name.
    """
    rows = {(row.category, row.example_id): row for row in load(data, leave_out=[path]).rows}
    lines = [read_json(path, line) for line in read_log(path).split("\n") if line.strip()]
    if not lines or not isinstance(lines[0], dict):
        raise ConfigError(f"{path} has no predictions: expected a JSON object in each line")
    systems = {key: _system(key, model or bare_name(path)) for key in lines[0] if key == PREDICTION or MARK in key}
    if not systems:
        raise ConfigError(f"{path}: its lines have neither a field 'prediction' nor one like 'model{MARK}format'")

    def records() -> Iterator[Record]:
        for number, line in enumerate(lines, 1):
            try:
                row = rows[str(line["category"]), int(line["example_id"])]
                for key, (name, method) in systems.items():
                    yield _record(row, line[key], name, method)
            except UNREADABLE as error:
                raise ConfigError(f"{path}, line {number} cannot be read ({error!r})") from None

    models = list(dict.fromkeys(name for name, _ in systems.values()))
    return Imported(study="bbq", models=models, source=path, records=records, config={"data": data})


def _system(key: str, model: str) -> tuple[str, str]:
    """The model and the method of a field."""
    name, mark, form = key.partition(MARK)
    return (name, form) if mark else (model, "default")


def _record(row: BbqRow, prediction: Any, model: str, method: str) -> Record:
    task = Task(row, AS_PUBLISHED)
    place, how = parse_prediction(prediction, row)
    opening = Turn("user", "narrator", 0, task.text())
    turn = Turn("Solver", "debater", 1, "" if prediction is None else str(prediction))
    read = place if place >= 0 else None
    verdict = answer_verdict(
        turn, task, read, "ok" if read is not None else "refused" if how == "refused" else "unparsed"
    )
    facets = {**row_facets(task), "method": method, "model": model, "repeat": 0, "source": SOURCE}
    unit = Unit(f"{row.category}/{row.example_id}/{method}/r0/@{model}", facets)
    outcome = Outcome(Transcript((opening, turn), "answered"), (verdict,))
    return Record(unit=unit, outcome=outcome)
