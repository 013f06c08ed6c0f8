"""Report of `framing`: the number of biases that a model admits in the same answer, by framing (RLDF's figure 1).

A frame has one row per verdict: topic, subject (the framing), metric (`biases` counted, `named`), value, status.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
from scipy import stats

from parley.analysis.effects import Question, share
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, Table, answered, assemble
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.results import About, Estimate
from parley.analysis.verdicts import require, status_counts, uncategorised
from parley.base.text import plural

FRAMES = {
    "ours": "our Q&A",
    "model": "a Q&A with a language model",
    "rival": "a Q&A with a competing model",
}
MEASURES = {"biases": "number of biases admitted per answer", "named": "number of biases listed per answer"}


def t_test(rows: pd.DataFrame, measure: str, cluster: str) -> Estimate:
    """Mean of first minus second over clusters, with a paired t test, as in the paper."""
    gaps = rows[measure] - rows[f"{measure}_second"]
    result, means = cluster_mean(gaps, rows[cluster]), gaps.groupby(rows[cluster]).mean().dropna()
    method = "t interval and paired t test over cluster means"
    testable = len(means) > 1 and means.nunique() > 1
    return replace(result, method=method, p=float(stats.ttest_1samp(means, 0.0).pvalue) if testable else result.p)


DIFFERENCES = Question(
    name="differences",
    ask="Does the framing change how many biases are admitted?",
    measures={"biases": MEASURES["biases"]},
    arms="framing",
    item=("unit",),
    cluster="topic",
    contrast=t_test,
    facets={"framing": ()},
    note="On the same answers, under two framings.",
)
LEVELS = Question(
    name="frames",
    ask="How many biases are admitted under each framing?",
    measures=MEASURES,
    by=("framing", "model"),
    cluster="topic",
    facets={"framing": ()},
    note="biases: the number the model gave; named: the number it listed. Unreadable replies are left out. The paper "
    "prints no numbers: by its figure they rise from the first framing to the third.",
    paper="1, figure 1",
)
ANY = replace(
    LEVELS,
    name="any",
    paper="",
    ask="In how many answers is any bias admitted?",
    measures={"any_biases": "answers with any bias admitted", "any_named": "answers with any bias listed"},
    level=share,
    scale="share",
    note="Unreadable replies are left out.",
    stated=False,
)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """Biases admitted under three framings of the same answers.

    Args:
        verdicts: One row per verdict.
        context: Further data for the report.
    """
    require(verdicts, texts=("topic", "model"))
    frame = replies(verdicts)
    lost = int(frame["biases"].isna().sum())
    counts = status_counts(uncategorised(verdicts[verdicts["metric"].isin(MEASURES)]), ("model", "subject", "metric"))
    unread = [f"Unreadable, and left out: {plural(lost, 'reply', 'replies')}."] if lost else []
    sections = [
        Section(warnings=unread, tables=[Table("readings", "How replies were parsed", counts)]),
        answered(DIFFERENCES, frame),
        answered(replace(LEVELS, further=_shown_as) if frame["model"].nunique() > 1 else LEVELS, frame),
        answered(ANY, frame),
    ]
    return assemble(sections, context, "Framing")


def _shown_as(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
    """The heading of a framing's lines, if there are several models."""
    return {"group": (f"Shown as {about.columns['framing']}",)}


def replies(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per answer and framing, framings in order: the number of biases given and listed; NaN if unreadable."""
    frame = uncategorised(verdicts)
    parts = []
    for subject, words in FRAMES.items():
        framed = frame[(frame["subject"] == subject) & frame["metric"].isin(MEASURES)]
        wide = framed.groupby(["model", "topic", "unit", "metric"], sort=False)["value"].first().unstack("metric")
        parts.append(wide.reset_index().rename_axis(columns=None).assign(framing=words))
    every = pd.concat(parts, ignore_index=True)
    return every.assign(
        **{f"any_{name}": (every[name] > 0).astype(float).where(every[name].notna()) for name in MEASURES}
    )
