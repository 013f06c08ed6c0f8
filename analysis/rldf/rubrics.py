"""Scores by a rubric: means from 0 to 100 by group, and whether the judges agree.

A frame has one row per verdict: item, group, model, judge, metric, value, status. The same persona on another model
is another judge. Scores are averaged within a text first, so several judges of one text never count as several texts.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.paired import pearson
from parley.analysis.stats.results import Estimate

BANDS = (-0.5, 3.5, 6.5, 10.5)
"""The edges of the rubric's bands: 0 to 3, 4 to 6, 7 to 10."""


def scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Mean of each metric, times ten (the paper's 0 to 100), by group, with intervals over texts."""
    verdicts = uncategorised(verdicts)
    rows: list[dict[str, Any]] = []
    groups = [("", verdicts)] if verdicts["group"].nunique() == 1 else list(verdicts.groupby("group", sort=False))
    for group, part in groups:
        for metric, scored in part.groupby("metric", sort=False):
            mean = cluster_mean(scored["value"] * 10, scored["item"], scale=(0, 100))
            unreadable = int(scored["value"].isna().sum())
            rows.append({"group": group, "metric": metric, **asdict(mean), "unreadable": unreadable})
    return pd.DataFrame(rows)


def severity_warning(verdicts: pd.DataFrame) -> str:
    """A sentence if judges give the better answers a higher BS, which is severity; "" if they do not.

    Args:
        verdicts: Of one rubric. Texts about one topic (`topic`, if there is such a column) are not independent of each
            other, so that their scores are averaged first.
    """
    unit = "topic" if "topic" in verdicts else "item"
    means = uncategorised(verdicts).pivot_table(index=unit, columns="metric", values="value")
    quality = [name for name in ("CE", "LS") if name in means]
    if "BS" not in means or not quality:
        return ""
    found = pearson(means["BS"], means[quality].mean(axis=1, skipna=False))
    if not found.low > 0:  # NaN without an interval
        return ""
    names = " and ".join(quality) + (" are" if len(quality) == 2 else " is")
    counted = f"{found.n} {'topics' if unit == 'topic' else 'texts'}"
    interval = f"{found.low:.2f} to {found.high:.2f}"
    return (
        f"BS is higher where {names}: r = {found.effect:.2f} ({interval}) over {counted}. The judges may give BS, "
        "where low is good, as a score of quality: do not conclude from BS alone."
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
        estimates: dict[str, Estimate] = {
            "Fleiss' kappa, bands 0–3, 4–6, 7–10": fleiss_kappa(bands, draws=draws, seed=seed),
            "Fleiss' kappa, points": fleiss_kappa(points, draws=draws, seed=seed),
            "Krippendorff's alpha, interval": krippendorff_alpha(table, scale="interval", draws=draws, seed=seed),
        }
        for name, estimate in estimates.items():
            rows.append({"metric": metric, "coefficient": name, **asdict(estimate)})
    return pd.DataFrame(rows)
