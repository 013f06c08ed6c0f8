"""SQuAD's report: whether search helps, the quality of answers, the search agent's work, and MABRF's table 4."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from parley.analysis.effects import Question, bootstrapped
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, Table, answered, assemble
from parley.analysis.stats.paired import mcnemar_p
from parley.analysis.stats.resampling import words_on_draws
from parley.analysis.systems import cost_sentence, costs
from parley.analysis.verdicts import LOST, MissingColumns, require, status_counts, uncategorised
from parley.base.text import plural
from parley.judging.squad.scores import mark

MEASURES = {"f1": "F1", "exact": "exact match"}
WITH_UNREAD = {
    f"{name}{kind}": f"{words}{counted}"
    for name, words in MEASURES.items()
    for kind, counted in (("", ""), ("_unread_wrong", ", unread counted as wrong"))
}
STORED_AS = {"search": (("search", "arm"),), "question": (("answerable", "answerable_facet"),)}
SEARCH = Question(
    name="between_arms",
    ask="Does search change the score?",
    measures=MEASURES,
    unit="points of 100",
    limits=(0.0, 100.0),
    arms="search",
    item=("question_id", "repeat"),
    cluster="paragraph",
    each="question",
    facets=STORED_AS,
    also={"p_mcnemar": ("exact", lambda first, second: mcnemar_p(first / 100, second / 100))},
    note="On the questions that both arms answered readably. McNemar's test: exact matches, of independent questions.",
)
LEVEL = Question(
    name="scores",
    ask="How good are the answers?",
    measures=MEASURES,
    unit="points of 100",
    by=("model", "search"),
    cluster="paragraph",
    each="question",
    facets=STORED_AS,
    note="Questions on one paragraph are not independent. Unreadable answers are left out.",
)
CLOSED_BOOK = (
    "The models did not see the paragraphs. “Unanswerable” is ill-defined then: such questions have no answer in "
    "their paragraph, but some have one elsewhere, and a model that knows it is counted as wrong."
)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: Further data for the report.
    """
    require(verdicts, texts=("question_id", "paragraph"), numbers=("repeat", "paragraph_shown"))
    frame = answers(verdicts)
    if frame.empty:
        raise MissingColumns("none of its verdicts is an answer")
    readings = status_counts(frame, ("model", "search", "question"))
    measures = WITH_UNREAD if readings[list(LOST)].to_numpy().any() else MEASURES
    level = replace(
        LEVEL,
        measures=measures,
        level=bootstrapped(context.draws, context.seed, by_row=True),
    )
    closed = (frame["paragraph_shown"].astype(float) == 0).any()
    units = context.units
    spent = [] if units is None else [Table("cost", "Cost per question", costs(units, _systems))]
    sections = [
        Section(warnings=[*words_on_draws(context.draws), *([CLOSED_BOOK] if closed else []), *_unread(frame)]),
        answered(replace(SEARCH, measures=measures), frame),
        answered(level, frame),
        Section(
            tables=[
                Table("readings", "How answers were parsed", readings),
                Table("searches", "Searches per item", searches(verdicts), note="Means over items with search."),
                *spent,
            ],
            beside=cost_sentence(units, "question", _systems),
        ),
    ]
    return assemble(sections, context, "SQuAD v2", draws=context.draws, seed=context.seed)


def answers(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per answer, scored by the official rules; NaN if it could not be read."""
    require(verdicts, texts=("answers", "search", "model"), numbers=("answerable",))
    frame = uncategorised(verdicts[verdicts["metric"].astype(str) == "answer"]).reset_index(drop=True)
    marks = [
        (np.nan, np.nan) if pd.isna(value) else mark(text if value else "", json.loads(golds))
        for value, text, golds in zip(frame["value"], frame["text"], frame["answers"], strict=True)
    ]
    frame[["exact", "f1"]] = 100 * np.array(marks, dtype=float).reshape(len(frame), 2)
    is_answerable = frame["answerable"].astype(bool)
    return frame.assign(
        arm=frame["search"].astype(str),
        search=_arms(frame),
        question=np.where(is_answerable, "answerable", "unanswerable"),
        answerable_facet=is_answerable.map({True: "true", False: "false"}),
        **{f"{name}_unread_wrong": frame[name].fillna(0.0) for name in MEASURES},
    )


def comparable(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Values for `compare`: the official measures as shares, answerable and unanswerable separately."""
    scored = answers(verdicts).assign(text=None)
    return pd.concat(
        scored.assign(measure=words, metric=f"{words}, " + scored["question"], value=scored[name] / 100)
        for name, words in reversed(MEASURES.items())
    )


def searches(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The search agent's work by model and arm, as means over items; empty without search."""
    frame = uncategorised(verdicts)
    searched = frame[frame["metric"].str.startswith("search_")].assign(search=_arms(frame))
    if searched.empty:
        return pd.DataFrame()
    searched = searched.assign(metric=searched["metric"].str.removeprefix("search_"))
    by = ["model", "search"]
    table = searched.pivot_table(index=by, columns="metric", values="value", aggfunc="mean", sort=False)
    for what, name in (("queries", "queries_unread"), ("unknown_sources", "summaries_unread")):
        rows = searched[searched["metric"] == what]
        table[name] = rows["status"].isin(LOST).groupby([rows[column] for column in by]).sum()
    return table.reset_index().rename_axis(columns=None)


def _unread(frame: pd.DataFrame) -> Iterator[str]:
    lost = int(frame["exact"].isna().sum())
    if lost:
        yield f"{lost:,} of {plural(len(frame), 'answer')} could not be read and are left out."


def _systems(units: pd.DataFrame) -> pd.Series:
    """The arm, and the model if there are several."""
    arm, model = _arms(units), units["model"].astype(str)
    return arm if model.nunique() == 1 else arm + " · " + model


def _arms(frame: pd.DataFrame) -> pd.Series:
    """The names of the arms; folders without their path, unless two would then have the same name."""
    arm = frame["search"].astype(str)
    short = arm.str.replace(r"^folder:.*[/\\](?=[^/\\])", "folder:", regex=True)
    return short if short.nunique() == arm.nunique() else arm
