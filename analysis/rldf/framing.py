"""Framing: how many biases a model admits in the same answer, by how the answer is introduced (RLDF's figure 1).

A frame has one row per verdict: topic, subject (the framing), metric (`biases` counted, `named`), value, status.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pandas as pd
from scipy import stats

from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Section, Table
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALPHA, MADE, columns
from parley.base.text import p_text, plural

FRAMES = ("ours", "model", "rival")
LABELS = {"ours": "our Q&A", "model": "with a language model", "rival": "with a competing model"}


def by_frame(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Mean number of biases by framing, the share of answers with any, and the number of unreadable replies."""
    verdicts = uncategorised(verdicts)
    rows: list[dict[str, Any]] = []
    for frame in FRAMES:
        for metric in ("biases", "named"):
            replies = verdicts[(verdicts["subject"] == frame) & (verdicts["metric"] == metric)]
            known = replies["value"].dropna()
            rows.append(
                {
                    "frame": frame,
                    "metric": metric,
                    **columns(cluster_mean(replies["value"], replies["topic"]), "estimate", *MADE),
                    "any": float((known > 0).mean()) if len(known) else float("nan"),
                    "unreadable": int(replies["value"].isna().sum()),
                }
            )
    return pd.DataFrame(rows)


def differences(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Second framing minus first on the same answers: interval over topics, paired t test, Holm-corrected."""
    counted = uncategorised(verdicts[verdicts["metric"] == "biases"])
    table = counted.pivot_table(index="topic", columns="subject", values="value", aggfunc="mean")
    table = table.reindex(columns=list(FRAMES))
    rows: list[dict[str, Any]] = []
    for first, second in combinations(FRAMES, 2):
        gap = (table[second] - table[first]).dropna()
        known = len(gap) > 1 and gap.nunique() > 1
        p = float(stats.ttest_1samp(gap, 0.0).pvalue) if known else float("nan")
        mean = cluster_mean(gap, gap.index.to_series())
        rows.append({"first": first, "second": second, **columns(mean, "estimate", *MADE), "p": p})
    gaps = pd.DataFrame(rows)
    return gaps.assign(p_holm=holm(gaps["p"]))


def framing_section(verdicts: pd.DataFrame) -> Section:
    """Do framings differ, and how many biases are admitted under each?

    Args:
        verdicts: One row per verdict.
    """
    frames, gaps = by_frame(verdicts), differences(verdicts)
    answers = plural(verdicts["topic"].nunique(), "answer")
    return Section(
        tables=[
            Table(
                name="frames",
                title="Biases admitted, by framing",
                frame=frames,
                shown=("frame", "metric", "estimate", "low", "high", "any", "unreadable"),
                note="biases: the number the model gave; named: the number it listed.",
                printed=True,
            ),
            Table(
                name="differences",
                title="Second framing minus first, on the same answers",
                frame=gaps,
                shown=("first", "second", "estimate", "low", "high", "p", "p_holm", "clusters"),
                note="p: paired t test over topics; p_holm: Holm-corrected for the three comparisons.",
            ),
        ],
        forests=list(framing_forests(gaps, frames, answers)),
        warnings=_unread(frames),
        words=list(_words(gaps, frames)),
    )


def _unread(frames: pd.DataFrame) -> list[str]:
    lost = int(frames.loc[frames["metric"] == "biases", "unreadable"].sum())
    return [f"{plural(lost, 'reply', 'replies')} could not be read and are left out."] if lost else []


def _words(gaps: pd.DataFrame, frames: pd.DataFrame) -> Iterator[str]:
    """The means of the framings, and each difference that was shown."""
    means = frames[(frames["metric"] == "biases") & frames["estimate"].notna()]
    if len(means):
        listed = ", ".join(f"'{LABELS[row.frame]}' {row.estimate:.2f}" for row in means.itertuples())
        yield f"Biases admitted per answer, by framing: {listed}."
    for row in gaps[gaps["p_holm"] <= ALPHA].itertuples():
        more, fewer = (row.second, row.first) if row.estimate > 0 else (row.first, row.second)
        yield (
            f"Shown as '{LABELS[more]}', {abs(row.estimate):.2f} more biases were admitted than as '{LABELS[fewer]}' "
            f"(p {p_text(row.p_holm)} corrected for {plural(len(gaps), 'comparison')})."
        )


def framing_forests(gaps: pd.DataFrame, frames: pd.DataFrame, answers: str) -> Iterator[Forest]:
    """Do framings differ? Then the biases admitted under each.

    Args:
        gaps: Second framing minus first.
        frames: Means by framing.
        answers: How many answers were shown, in words.
    """
    yield Forest(
        name="differences",
        question="Does the framing change how many biases are admitted?",
        axis="difference in biases admitted per answer",
        lines=lines_of(gaps, lambda row: f"{LABELS[row.second]} − {LABELS[row.first]}", value="estimate", p="p_holm"),
        table="differences",
        note="95% intervals and paired t tests over topics; p-values Holm-corrected.",
    )
    yield Forest(
        name="frames",
        question="How many biases are admitted under each framing?",
        axis="biases admitted per answer",
        lines=lines_of(frames[frames["metric"] == "biases"], lambda row: LABELS[row.frame], value="estimate"),
        reference=None,
        table="frames",
        note=f"{answers}, each under all three framings. 95% intervals over topics.",
    )
