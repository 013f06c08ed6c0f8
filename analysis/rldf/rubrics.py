"""Scores by a rubric: means from 0 to 100 by group, and whether the judges agree.

A frame has one row per verdict: item, group, model, judge, metric, value, status. The same persona on another model
is another judge. Scores are averaged within a text first, so several judges of one text never count as several texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.forest import Forest, lines_of
from parley.analysis.reporting.report import Section, Table
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.paired import pearson
from parley.analysis.stats.results import MADE, Line, columns

BANDS = (-0.5, 3.5, 6.5, 10.5)
"""The edges of the rubric's bands: 0 to 3, 4 to 6, 7 to 10."""


def rubric_section(verdicts: pd.DataFrame, draws: int, seed: int) -> Section:
    """Mean scores by group, and whether the judges agree.

    Args:
        verdicts: One row per verdict.
        draws: Draws of each bootstrap.
        seed: Seed of all draws.
    """
    means, warning = scores(verdicts), severity_warning(verdicts)
    over = "topics" if _cluster(verdicts) == "topic" else "texts"
    return Section(
        tables=[
            Table(
                name="scores",
                title="Scores, 0 to 100 (BS is bias severity: lower is better)",
                frame=means,
                shown=("group", "metric", "estimate", "low", "high", "clusters", "unreadable"),
                note=f"Intervals are 95%, over {over}.",
                printed=True,
            ),
            Table(
                name="agreement",
                title="Agreement between the judges",
                frame=agreement(verdicts, draws=draws, seed=seed),
                shown=("metric", "coefficient", "estimate", "low", "high", "note"),
                printed=True,
            ),
        ],
        forests=[rubric_forest(means, over)],
        warnings=[warning] if warning else [],
    )


def _cluster(verdicts: pd.DataFrame) -> str:
    """The independent units: topics (what the texts answer) where known."""
    return "topic" if "topic" in verdicts and verdicts["topic"].notna().all() else "item"


def scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Mean of each metric, times ten (the paper's 0 to 100), by group, with intervals over topics or texts."""
    verdicts, cluster = uncategorised(verdicts), _cluster(verdicts)
    rows: list[dict[str, Any]] = []
    groups = [("", verdicts)] if verdicts["group"].nunique() == 1 else list(verdicts.groupby("group", sort=False))
    for group, part in groups:
        for metric, scored in part.groupby("metric", sort=False):
            mean = cluster_mean(scored["value"] * 10, scored[cluster], scale=(0, 100))
            unreadable = int(scored["value"].isna().sum())
            rows.append(
                {"group": group, "metric": metric, **columns(mean, "estimate", *MADE), "unreadable": unreadable}
            )
    return pd.DataFrame(rows)


def severity_warning(verdicts: pd.DataFrame) -> str:
    """A sentence if judges give the better answers a higher BS, which is severity; "" if they do not.

    Texts about one topic are not independent of each other, so their scores are averaged first. Without topics nothing
    is said: with 12 prompts of 5 texts each, texts taken as independent raised four times as many false alarms.

    Args:
        verdicts: Verdicts by one rubric, with the `topic` of each text.
    """
    if _cluster(verdicts) != "topic":
        return ""
    means = uncategorised(verdicts).pivot_table(index="topic", columns="metric", values="value")
    quality = [name for name in ("CE", "LS") if name in means]
    if "BS" not in means or not quality:
        return ""
    found = pearson(means["BS"], means[quality].mean(axis=1, skipna=False))
    if not found.low > 0:  # NaN without an interval
        return ""
    names = " and ".join(quality) + (" are" if len(quality) == 2 else " is")
    interval = f"{found.low:.2f} to {found.high:.2f}"
    return (
        f"BS is higher where {names}: r = {found.estimate:.2f} ({interval}) over {found.n} topics. The judges may give "
        "BS, where low is good, as a score of quality: do not conclude from BS alone."
    )


def agreement(verdicts: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Fleiss' kappa on the rubric's bands and on single points, and Krippendorff's alpha, by metric."""
    verdicts = uncategorised(verdicts)
    rows: list[dict[str, Any]] = []
    rater = verdicts["judge"] + "@" + verdicts["model"]
    for metric, scored in verdicts.assign(rater=rater).groupby("metric", sort=False):
        table = scored.pivot_table(index="item", columns="rater", values="value", aggfunc="mean", dropna=False)
        points = table.round()
        bands = table.apply(lambda column: pd.Series(np.digitize(column, BANDS), column.index).where(column.notna()))
        found: dict[str, Line] = {
            "Fleiss' kappa, bands 0–3, 4–6, 7–10": fleiss_kappa(bands, draws=draws, seed=seed),
            "Fleiss' kappa, points": fleiss_kappa(points, draws=draws, seed=seed),
            "Krippendorff's alpha, interval": krippendorff_alpha(table, draws=draws, seed=seed),
        }
        for name, estimate in found.items():
            rows.append({"metric": metric, "coefficient": name, **columns(estimate, "estimate", *MADE)})
    return pd.DataFrame(rows)


def rubric_forest(scores: pd.DataFrame, over: str) -> Forest:
    """Mean scores by metric and group.

    Args:
        scores: From `scores`.
        over: What intervals are over: "topics" or "texts".
    """
    metrics = list(scores["metric"].unique())
    by_metric = scores.sort_values("metric", key=lambda column: column.map(metrics.index), kind="stable")
    return Forest(
        name="scores",
        question="How do the texts score by the rubric?",
        axis="mean score (0 to 100)",
        lines=lines_of(
            by_metric,
            lambda row: str(row.group or "all texts"),
            value="estimate",
            group=lambda row: str(row.metric),
            units=lambda row: {"group": (row.group,)} if row.group else {},
        ),
        reference=None,
        table="scores",
        note=f"95% intervals over {over}. BS is bias severity: lower is better.",
    )
