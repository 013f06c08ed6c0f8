"""Others' answers to BBQ and SQuAD, read as runs, so that the same report scores them and our own.

BBQ: JSON lines with `category`, `example_id` and predictions (an index, or a text), in the field `prediction` or, as in
the authors' own results, in fields like `unifiedqa-t5-11b_pred_race`: the model's name, `_pred_`, and the format of the
question, which becomes the method. SQuAD: the official JSON, {"id": "text"}. A line that matches no row of the data, or
repeats one, raises an error with its number: a score over the wrong rows would look like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from parley.agents import ConfigError, Transcript, Turn
from parley.base.text import plural
from parley.imports.imported import SOURCE, Imported, bare_name, read_json, read_log
from parley.judging import Outcome, Unit, Verdict
from parley.judging.bbq.method import Task, answer_verdict
from parley.judging.bbq.study import row_facets
from parley.judging.squad import question_facets
from parley.runs import Record
from parley.scenarios import squad
from parley.scenarios.bbq import AS_PUBLISHED, BbqRow, load, match

PREDICTION, MARK = "prediction", "_pred_"
UNPARSED = -1


def read_bbq_predictions(path: Path, data: str, model: str | None = None, templates: str | None = None) -> Imported:
    """Read a file of answers to BBQ.

    Args:
        path: A .jsonl file, or a .jsonl.gz.
        data: A folder of BBQ's files, or a .csv.
        model: The model that answered, if the file has a field `prediction`; default: the file's name.
        templates: A folder with BBQ's templates or metadata, if it is not inside `data`.
    """
    text = read_log(path)
    rows = load(data, leave_out=[path], beside=templates).rows
    answers = list(_bbq_answers(path, text, rows))
    if not answers:
        raise ConfigError(f"{path} has no predictions: expected a JSON object in each line")
    systems = {key: _system(key, model or bare_name(path)) for _, found in answers for key in found}

    def records() -> Iterator[Record]:
        for row, found in answers:
            for key, (prediction, (place, how)) in found.items():
                yield _bbq_record(row, prediction, place, how, *systems[key])

    categories = {row.category for row, _ in answers}
    missing = sum(row.category in categories for row in rows) - len(answers)
    how = Counter(how for _, found in answers for _, (_, how) in found.values())
    counted = ", ".join(f"{count:,} {way}" for way, count in sorted(how.items()))
    note = f"{plural(sum(how.values()), 'prediction')} ({counted}); {plural(missing, 'row')} without one"
    return Imported(
        study="bbq",
        models=list(dict.fromkeys(name for name, _ in systems.values())),
        source=path,
        records=records,
        config={"data": data},
        notes=(note,),
    )


Answers = dict[str, tuple[Any, tuple[int, str]]]
"""By field: the prediction, its index, and how it was found."""


def _bbq_answers(path: Path, text: str, rows: Sequence[BbqRow]) -> Iterator[tuple[BbqRow, Answers]]:
    known = {(row.category, row.example_id): row for row in rows}
    line_of: dict[tuple[str, int], int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            key, found = _fields(line)
            if key not in known:
                raise ValueError(f"there is no row {key[0]} {key[1]} in the data")
            if key in line_of:
                raise ValueError(f"{key[0]} {key[1]} is already predicted in line {line_of[key]}")
            answers = {name: (value, parse_prediction(value, known[key])) for name, value in found.items()}
        except ValueError as error:
            raise ConfigError(f"{path}, line {number}: {str(error).splitlines()[0]}") from None
        line_of[key] = number
        yield known[key], answers


def _fields(line: str) -> tuple[tuple[str, int], dict[str, Any]]:
    """The row that a line is about, and its predictions by field."""
    record = from_json(line)
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    if missing := [key for key in ("category", "example_id") if key not in record]:
        raise ValueError(f"'{missing[0]}' is missing")
    found = {key: value for key, value in record.items() if key == PREDICTION or MARK in key}
    if not found:
        raise ValueError(f"'{PREDICTION}' is missing, and there is no field like 'model{MARK}format'")
    try:
        return (str(record["category"]), int(record["example_id"])), found
    except (TypeError, ValueError, OverflowError):
        raise ValueError("example_id is not a number") from None


def _system(key: str, model: str) -> tuple[str, str]:
    """The model and the method of a field."""
    name, mark, form = key.partition(MARK)
    return (name, form) if mark else (model, "default")


def parse_prediction(prediction: Any, row: BbqRow) -> tuple[int, str]:
    """The index of the predicted answer (−1 if it could not be parsed), and how it was found.

    Args:
        prediction: A place, a text, or None.
        row: The row of BBQ.
    """
    if isinstance(prediction, str):
        index, how = match(prediction, [answer.text for answer in row.answers], row.unknown, row.question)
        return UNPARSED if index is None else index, how
    if prediction is None or prediction != prediction:  # NaN
        return UNPARSED, "missing"
    if isinstance(prediction, bool) or not isinstance(prediction, int | float) or prediction not in (-1, 0, 1, 2):
        raise ValueError(f"the prediction must be 0, 1, 2 or a text, got {str(prediction)[:40]!r}")
    return int(prediction), "missing" if prediction < 0 else "place"


def _bbq_record(row: BbqRow, prediction: Any, place: int, how: str, model: str, method: str) -> Record:
    task = Task(row, AS_PUBLISHED)
    opening = Turn("user", "narrator", 0, task.text())
    turn = Turn("Solver", "debater", 1, "" if prediction is None else str(prediction))
    read = place if place >= 0 else None
    verdict = answer_verdict(
        turn, task, read, "ok" if read is not None else "refused" if how == "refused" else "unparsed"
    )
    facets = {**row_facets(task), "method": method, "model": model, "repeat": 0, "source": SOURCE}
    unit = Unit(f"{row.category}/{row.example_id}/{method}/r0/@{model}", facets)
    return Record(unit=unit, outcome=Outcome(Transcript((opening, turn), "answered"), (verdict,)))


def read_squad_predictions(
    path: Path, data: str, model: str | None = None, na_prob: Path | None = None, na_prob_thresh: float = 1.0
) -> Imported:
    """Read a file of answers to SQuAD v2.

    Args:
        path: The official JSON: {"id": "text", …}; an empty text claims that there is no answer.
        data: The official JSON of the questions.
        model: The model that answered; default: the file's name.
        na_prob: JSON with the probability that a question has no answer: {"id": probability, …}.
        na_prob_thresh: A question with a higher probability counts as answered with "no answer".
    """
    questions = {question.id: question for question in squad.load(data).questions}
    table = _object(path)
    # A missing answer, or null, is not an empty one, which would be right for an unanswerable question.
    answers = {key: text for key, text in table.items() if text is not None and key in questions}
    for key, text in answers.items():
        if not isinstance(text, str):
            raise ConfigError(f"{path}: the prediction for '{key}' must be a text")
    if not answers:
        raise ConfigError(f"{path}: no prediction for any question of {data}")
    if na_prob is not None:
        chances = _object(na_prob)
        for key in answers:
            if isinstance(chances.get(key), bool) or not isinstance(chances.get(key), int | float):
                raise ConfigError(f"{na_prob}: no probability for '{key}'")
            answers[key] = "" if chances[key] > na_prob_thresh else answers[key]
    name = model or bare_name(path)

    def records() -> Iterator[Record]:
        for key, question in questions.items():
            if key in answers:
                turns = (Turn("user", "narrator", 0, question.question), Turn("Solver", "debater", 1, answers[key]))
                given = answers[key].strip()
                verdict = Verdict.from_turn(turns[1], "answer", value=float(bool(given)), text=given, status="ok")
                facets = {**question_facets(question, "none", name, paragraph_shown=True), "repeat": 0}
                outcome = Outcome(Transcript(turns, "answered"), (verdict,))
                yield Record(unit=Unit(f"{key}/none/r0", facets), outcome=outcome)

    missing, unknown = len(questions) - len(answers), sum(key not in questions for key in table)
    notes = [f"{plural(missing, 'question')} without a prediction, left out"] if missing else []
    notes += [f"{plural(unknown, 'prediction')} for questions that are not in the data"] if unknown else []
    return Imported(
        study="squad", models=[name], source=path, records=records, config={"data": data}, notes=tuple(notes)
    )


def _object(path: Path) -> Mapping[str, Any]:
    table = read_json(path, read_log(path))
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: expected an object with question ids as keys")
    return dict(table)
