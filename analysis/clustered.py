"""Means whose error comes from clusters: verdicts on one scenario are not independent, scenarios are.

Everything within a cluster is averaged first, so repeats, judges and cells never pass for independent data.
"""

from __future__ import annotations

import math

import pandas as pd
from scipy import stats

from analysis.results import Interval

ASSUMES = "clusters are independent; their means are roughly normal"


def cluster_mean(values: pd.Series, clusters: pd.Series, level: float = 0.95) -> Interval:
    """The mean of cluster means, with Student's t interval over the clusters."""
    kept = values.notna()
    means = values[kept].groupby(clusters[kept]).mean()
    count, n = len(means), int(kept.sum())
    method = "t interval over cluster means"
    if count == 0:
        return Interval(math.nan, math.nan, math.nan, level, 0, 0, method, ASSUMES)
    centre = float(means.mean())
    if count < 2:
        return Interval(centre, math.nan, math.nan, level, n, count, method, ASSUMES)
    half = float(stats.t.ppf((1 + level) / 2, count - 1) * means.std(ddof=1) / math.sqrt(count))
    return Interval(centre, centre - half, centre + half, level, n, count, method, ASSUMES)
