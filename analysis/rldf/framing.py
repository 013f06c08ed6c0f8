"""Framing: how many biases a model admits in the same answer, by how the answer is introduced (RLDF's figure 1).

A frame has one row per verdict: topic, subject (the framing), metric (`biases` counted, `named`), value, status.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import combinations
from typing import Any

import pandas as pd
from scipy import stats

from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import holm
from parley.base.text import plural

FRAMES = ("ours", "model", "rival")
LABELS = {"ours": "our Q&A", "model": "with a language model", "rival": "with a competing model"}
LEVEL = 0.05


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
                    **asdict(cluster_mean(replies["value"], replies["topic"])),
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
        rows.append({"first": first, "second": second, **asdict(mean), "p": p})
    gaps = pd.DataFrame(rows)
    return gaps.assign(p_holm=holm(gaps["p"], "framings").adjusted)


def summary(verdicts: pd.DataFrame) -> Iterator[str]:
    """The comparisons in sentences, which claim no more than the tests do."""
    gaps = differences(verdicts)
    significant = gaps[gaps["p_holm"] < LEVEL]
    for row in significant.itertuples():
        more, fewer = (row.second, row.first) if row.estimate > 0 else (row.first, row.second)
        yield (
            f"Shown as '{LABELS[more]}', {abs(row.estimate):.2f} more biases were admitted than as '{LABELS[fewer]}' "
            f"(paired t test over topics, p = {row.p_holm:.2g} after Holm correction for "
            f"{plural(len(gaps), 'comparison')})."
        )
    if significant.empty:
        yield (
            "No two framings differ significantly in the biases admitted. That is not evidence that framing has no "
            "effect."
        )
