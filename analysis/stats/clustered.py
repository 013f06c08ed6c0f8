"""Means with errors from clusters: verdicts on one scenario are not independent, scenarios are.

Everything within a cluster is averaged first, so that repeats, judges and cells do not count as independent
observations.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from parley.analysis.stats.resampling import DRAWS, MIN_DRAWS, TOO_FEW_DRAWS, bootstrap_sums, percentile_interval
from parley.analysis.stats.results import LEVEL, Line
from parley.analysis.stats.tables import Column, cluster_sums

ASSUMES = "clusters are independent; their means are roughly normal"
INDEPENDENT_CLUSTERS = "clusters are independent of each other"
ONE_CLUSTER = "a single cluster: the spread between clusters cannot be estimated"
NO_VALUES = "there are no values"
NO_SPREAD = "all clusters have the same value: there is no spread to estimate an error from"

Weight = Literal["cluster", "row"]


def cluster_mean(values: pd.Series, clusters: pd.Series, scale: tuple[float, float] = (-math.inf, math.inf)) -> Line:
    """The mean of cluster means, with Student's t interval over the clusters.

    Args:
        values: One value per row; rows where it is missing are left out.
        clusters: The cluster of each row. Clusters are taken as independent, their means as roughly normal.
        scale: The lowest and highest possible value; the interval ends there.
    """
    valid = values.notna()
    means = values[valid].groupby(clusters[valid]).mean().to_numpy(dtype=float)
    estimate, half = float(means.mean()) if len(means) else math.nan, math.nan
    if len(means) > 1 and np.ptp(means) > 1e-12 * np.abs(means).max():
        half = float(stdtrit(len(means) - 1, (1 + LEVEL) / 2)) * float(means.std(ddof=1)) / math.sqrt(len(means))
    low, high = (float(np.clip(end, *scale)) for end in (estimate - half, estimate + half))
    return Line(
        estimate=estimate,
        low=low,
        high=high,
        n=int(valid.sum()) if len(means) else 0,
        clusters=len(means),
        method="t interval over cluster means",
        assumes=ASSUMES,
    )


def bootstrap_mean(
    values: Column,
    clusters: Column,
    *,
    weight: Weight = "cluster",
    draws: int = DRAWS,
    seed: int = 0,
) -> Line:
    """A mean, or a proportion of zeros and ones, with a bootstrap over clusters.

    Args:
        values: One value per row; rows where it is missing are left out.
        clusters: The cluster of each row. Clusters are taken as independent.
        weight: "cluster": every cluster has the same weight, as in `cluster_mean`; "row": every value has, as in a
            win rate.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    reduced = cluster_sums(values, clusters)
    count = len(reduced.counts)
    unknown = Line(
        method=f"bootstrap over clusters, {draws} draws, seed {seed}, expanded percentiles",
        assumes=INDEPENDENT_CLUSTERS,
        n=reduced.n,
        clusters=count,
    )
    if not count:
        return replace(unknown, note=NO_VALUES)
    # Numerator and denominator of the mean, by cluster.
    parts = (reduced.sums, reduced.counts) if weight == "row" else (reduced.means, np.ones(count))
    units = np.column_stack(parts)
    total, size = units.sum(axis=0)
    estimate = float(total / size)
    if count < 2:
        return replace(unknown, estimate=estimate, note=ONE_CLUSTER)
    if draws < MIN_DRAWS:
        return replace(unknown, estimate=estimate, note=TOO_FEW_DRAWS)
    sums = bootstrap_sums(units, draws, seed)
    drawn = sums[:, 0] / sums[:, 1]
    if np.ptp(drawn) <= 1e-12 * max(1.0, abs(estimate)):
        return replace(unknown, estimate=estimate, note=NO_SPREAD)
    low, high = percentile_interval(drawn, count)
    return replace(unknown, estimate=estimate, low=low, high=high)
