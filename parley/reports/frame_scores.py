"""`parley.bbq_scores` and `parley.squad_scores`: scores of any answers in a data frame."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.effects import answer, bootstrapped
from parley.analysis.page.report import as_frame
from parley.analysis.verdicts import MissingColumns, require
from parley.judging.bbq.leaderboard import scored, side_by_side
from parley.judging.bbq.scores import MISSING, TITLES
from parley.judging.squad.report import LEVEL
from parley.judging.squad.scores import mark
from parley.scenarios.bbq import SHARED, match

PLACES = (0, 1, 2)
"""The answers of a question."""
ONE_SYSTEM = {"model": "", "method": "", "repeat": 0}
"""The columns that identify a system in a report: here there is one."""


def bbq_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """BBQ's accuracy and bias of any answers, with 95% intervals over question templates.

        rows = pandas.DataFrame(parley.scenarios.bbq.load("BBQ/data").rows)
        answers = pandas.read_json("mine.jsonl", lines=True)  # category, example_id, prediction
        parley.bbq_scores(rows.merge(answers, on=["category", "example_id"]))

    Args:
        frame: One row per answer: the row of BBQ as `load` gives it, and the answer as `prediction`. The columns are
            `category` ("Age"), `example_id` (0), `question_index` (1), `condition` ("ambig"), `label` (2), `unknown`
            (2), `target` (0, or missing), `names` (False), and `prediction`: a place (2), a text ("The grandson"), or
            missing, which is left out and counted. Texts need `answers` and `question`, too.

    Returns:
        One row per context and category, also for the means over categories (macro) and over rows (micro): `bias` with
        `low` and `high` (−100 to 100), `p` and `p_adjusted`; `accuracy` with `accuracy_low` and `accuracy_high`; both
        with unread answers as unknown (`…_as_unknown`); `n`, `clusters`, `unparsed`, `refused`.
    """
    numbers = ("example_id", "question_index", "label", "unknown", "names")
    require(frame, texts=("category", "condition"), numbers=numbers)
    if missing := {"target", "prediction"} - set(frame):
        raise MissingColumns(f"the frame lacks the column {sorted(missing)[0]}")
    _refuse_others(frame, "condition", TITLES)
    _refuse_others(frame, "label", PLACES)
    _refuse_others(frame, "unknown", PLACES)
    read = [_read_place(row) for row in frame.to_dict("records")]
    answers = frame.assign(
        question=frame["question_index"],
        target=frame["target"].fillna(MISSING).astype(int),
        scenario=frame["category"].astype(str) + "/" + (frame["example_id"].astype(int) // SHARED).astype(str),
        context=frame["condition"].map(TITLES),
        prediction=[place for place, _ in read],
        status=[status for _, status in read],
        **ONE_SYSTEM,
    )
    return side_by_side(scored(answers)).drop(columns=["model", "method", "cut"])


def _refuse_others(frame: pd.DataFrame, column: str, valid: Collection[Any]) -> None:
    if len(strange := frame[column][~frame[column].isin(list(valid))]):
        raise ValueError(f"the {column} must be one of {', '.join(map(str, valid))}, got {str(strange.iloc[0])[:40]!r}")


def _read_place(row: dict[Any, Any]) -> tuple[int, str]:
    """The place of the predicted answer, MISSING if it could not be read, and whether it was refused."""
    prediction = row["prediction"]
    if isinstance(prediction, str):
        place, how = match(prediction, [answer[0] for answer in row["answers"]], row["unknown"], row["question"])
        return MISSING if place is None else place, how
    if prediction is None or prediction != prediction:  # NaN
        return MISSING, "missing"
    if isinstance(prediction, bool) or prediction not in (MISSING, *PLACES):
        where = f"{row['category']} {row['example_id']}"
        raise ValueError(f"{where}: the prediction must be 0, 1, 2 or a text, got {str(prediction)[:40]!r}")
    return int(prediction), "place"


def squad_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Exact match and F1 of any answers by the official rules, with 95% intervals over paragraphs.

        questions = pandas.DataFrame(parley.scenarios.squad.load("dev-v2.0.json").questions)
        answers = json.loads(Path("mine.json").read_text())  # {id: text}, the official form
        parley.squad_scores(questions.assign(prediction=questions["id"].map(answers)))

    Args:
        frame: One row per question: the question as `load` gives it, and the answer. The columns: `paragraph`
            ("Normans/0"); `answers`: the accepted texts (("Rollo",), or () if it has no answer); `prediction`: a text
            ("Rollo"; "" claims that there is no answer), or missing, which is left out.

    Returns:
        One row per measure (`exact` and `f1`, 0 to 100) and `question` (all, answerable, unanswerable): `estimate`,
        `low`, `high`, `n`, and the number of paragraphs (`clusters`).
    """
    require(frame, texts=("paragraph",))
    if missing := {"answers", "prediction"} - set(frame):
        raise MissingColumns(f"the frame lacks the column {sorted(missing)[0]}")
    if frame["answers"].map(lambda texts: isinstance(texts, str)).any():
        raise ValueError("the answers must be a list of accepted texts in each row, and one is a single text")
    answered = frame[frame["prediction"].notna()].reset_index(drop=True)
    if answered.empty:
        raise MissingColumns("no question of the frame has a prediction")
    marks = [mark(text, golds) for text, golds in zip(answered["prediction"], answered["answers"], strict=True)]
    answered[["exact", "f1"]] = 100 * np.array(marks)
    answered["question"] = np.where(answered["answers"].map(len) > 0, "answerable", "unanswerable")
    level = replace(LEVEL, by=("system",), facets={}, level=bootstrapped(by_row=True))
    return as_frame(answer(level, answered.assign(system=""))).drop(columns="system")
