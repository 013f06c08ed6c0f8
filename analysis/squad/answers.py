"""SQuAD's answers by arm: exact match and F1, overall and by answerability."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import ReportContext, Section, Table, format_interval
from parley.analysis.reporting.verdicts import require, uncategorised
from parley.analysis.squad.scores import mark
from parley.analysis.stats.clustered import bootstrap_mean
from parley.base.text import plural

MEASURES = ("exact", "f1")
LABELS = {"exact": "exact match", "f1": "F1"}
ALL = "all"
PARTS = (ALL, "answerable", "unanswerable")
CLUSTERED = "Intervals are 95%, from a bootstrap over paragraphs: questions on one paragraph are not independent."
UNREAD = "Unreadable answers are left out of the scores; the “unread wrong” columns count them as wrong."
CLOSED_BOOK = (
    "The paragraphs were not shown. “Unanswerable” is ill-defined without them: such questions have no answer in their "
    "paragraph, but some have one elsewhere, and a model that knows it is counted as wrong."
)
SCORES = (
    "system", "part", "exact", "exact_low", "exact_high", "f1", "f1_low", "f1_high", "n", "unparsed", "refused", "cut",
    "exact_unread_wrong", "f1_unread_wrong", "calls_an_item",
)  # fmt: skip
SHORT = ["system", "part", "exact", "f1", "n", "unparsed"]
Units = Callable[..., dict[str, tuple[str, ...]]]


def answers(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per answer, scored by the official rules; NaN if it could not be read."""
    require(verdicts, texts=("answers", "search", "model"), numbers=("answerable",))
    frame = uncategorised(verdicts[verdicts["metric"].astype(str) == "answer"]).reset_index(drop=True)
    marks = [
        (np.nan, np.nan) if pd.isna(value) else mark(text if value else "", json.loads(golds))
        for value, text, golds in zip(frame["value"], frame["text"], frame["answers"], strict=True)
    ]
    frame[list(MEASURES)] = 100 * np.array(marks, dtype=float).reshape(len(frame), 2)
    frame["arm"], frame["search"] = frame["search"].astype(str), _arms(frame)
    frame["system"] = systems(frame)
    return frame


def comparable(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What `compare` can compare: the official measures as shares, answerable and unanswerable separately."""
    scored = answers(verdicts).assign(text=None)
    kind = np.where(scored["answerable"].astype(bool), "answerable", "unanswerable")
    return pd.concat(
        [scored.assign(metric=f"{LABELS[name]}, " + pd.Series(kind), value=scored[name] / 100) for name in MEASURES]
    )


def systems(frame: pd.DataFrame) -> pd.Series:
    """The arm, and the model if there are several."""
    arm, model = _arms(frame), frame["model"].astype(str)
    return arm if model.nunique() == 1 else arm + " · " + model


def _arms(frame: pd.DataFrame) -> pd.Series:
    """The names of the arms; folders without their path, unless two would then have the same name."""
    arm = frame["search"].astype(str)
    short = arm.str.replace(r"^folder:.*[/\\](?=[^/\\])", "folder:", regex=True)
    return short if short.nunique() == arm.nunique() else arm


def part_of(frame: pd.DataFrame, part: str) -> pd.DataFrame:
    return frame if part == "all" else frame[frame["answerable"].astype(bool) == (part == "answerable")]


def units_of(frame: pd.DataFrame) -> Units:
    """Gives the facets of the units of a part of the questions, a model and some arms.

    Args:
        frame: One row per answer, from `answers`.
    """
    several = frame["model"].nunique() > 1
    arms = dict(zip(frame["search"], frame["arm"], strict=True))

    def units(part: str, model: str, *names: str) -> dict[str, tuple[str, ...]]:
        kind = {} if part == ALL else {"answerable": (str(part == "answerable").lower(),)}
        return {"search": tuple(arms[name] for name in names), **kind, **({"model": (model,)} if several else {})}

    return units


def scores_section(frame: pd.DataFrame, context: ReportContext) -> Section:
    """How good are the answers of every arm?

    Args:
        frame: One row per answer, from `answers`.
        context: What the report is given.
    """
    table = scores(frame, context.units, draws=context.draws, seed=context.seed)
    closed = (frame["paragraph_shown"].astype(float) == 0).any()
    return Section(
        tables=[
            Table("scores", "SQuAD v2: exact match and F1 (%)", table, SCORES, note=f"{CLUSTERED} {UNREAD}"),
            Table("in_short", "SQuAD v2 (%)", table[SHORT], printed=True),
        ],
        forests=list(_forests(frame, table)),
        warnings=[*([CLOSED_BOOK] if closed else []), *_unread(table)],
        words=list(_words(table)),
    )


def _unread(table: pd.DataFrame) -> Iterator[str]:
    whole = table[table["part"] == ALL]
    lost = int(whole[["unparsed", "refused", "cut"]].to_numpy().sum())
    if lost:
        yield f"{lost:,} of {plural(int(whole['n'].sum()) + lost, 'answer')} could not be read and are left out."


def _words(table: pd.DataFrame) -> Iterator[str]:
    for row in table[table["part"] == ALL].itertuples():
        measured = " and ".join(
            f"{label} is {getattr(row, name):.1f}%{_interval(row, name)}" for name, label in LABELS.items()
        )
        how = "Without search" if row.system == "none" else f"With search by {row.system}"
        yield f"{how}, {measured}, on {plural(row.n, 'question')}."


def _interval(row: Any, name: str) -> str:
    interval = format_interval(getattr(row, f"{name}_low"), getattr(row, f"{name}_high"), ".1f")
    return f" ({interval})" if interval else ""


def _forests(frame: pd.DataFrame, table: pd.DataFrame) -> Iterator[Forest]:
    units, known = units_of(frame), frame.drop_duplicates("system").set_index("system")
    for measure in ("f1", "exact"):
        yield Forest(
            name=f"scores-{measure}",
            question="How good are the answers?",
            axis=f"{LABELS[measure]} (%)",
            lines=lines_of(
                table,
                lambda row: str(row.part),
                value=measure,
                ends=(f"{measure}_low", f"{measure}_high"),
                group=lambda row: f"search: {row.system}",
                units=lambda row: units(row.part, known["model"][row.system], known["search"][row.system]),
            ),
            reference=None,
            table="scores",
            note=CLUSTERED,
        )


def scores(frame: pd.DataFrame, units: pd.DataFrame | None, *, draws: int, seed: int) -> pd.DataFrame:
    """Both measures by system and answerability, with intervals, parse statuses and calls per item."""
    calls = {} if units is None else units.assign(system=systems(units)).groupby("system")["calls"].mean().to_dict()
    rows = []
    for system, answered in frame.groupby("system", sort=False):
        for part in PARTS:
            questions = part_of(answered, part)
            if questions.empty:
                continue
            row: dict[str, Any] = {"system": system, "part": part}
            for measure in MEASURES:
                mean = bootstrap_mean(questions[measure], questions["paragraph"], weight="row", draws=draws, seed=seed)
                row |= {measure: mean.estimate, f"{measure}_low": mean.low, f"{measure}_high": mean.high}
                row[f"{measure}_unread_wrong"] = float(questions[measure].fillna(0.0).mean())
            status = questions["status"].astype(str)
            row |= {"n": int(questions["exact"].notna().sum()), "clusters": questions["paragraph"].nunique()}
            row |= {kind: int((status == kind).sum()) for kind in ("unparsed", "refused", "cut")}
            rows.append({**row, "calls_an_item": calls.get(system, np.nan)})
    return pd.DataFrame(rows)
