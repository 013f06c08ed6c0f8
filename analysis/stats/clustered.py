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
from scipy import stats

from parley.analysis.stats.resampling import DRAWS, MIN_DRAWS, TOO_FEW_DRAWS, bootstrap_sums, percentile_interval
from parley.analysis.stats.results import Estimate, Interval
from parley.analysis.stats.tables import Column, Floats, cluster_sums

ASSUMES = "clusters are independent; their means are roughly normal"
INDEPENDENT_CLUSTERS = "clusters are independent of each other"
ONE_CLUSTER = "a single cluster: the spread between clusters cannot be estimated"
NO_VALUES = "there are no values"
NO_SPREAD = "all clusters have the same value: there is no spread to estimate an error from"

Weight = Literal["cluster", "row"]


def cluster_mean(
    values: pd.Series, clusters: pd.Series, level: float = 0.95, scale: tuple[float, float] = (-math.inf, math.inf)
) -> Interval:
    """The mean of cluster means, with Student's t interval over the clusters.

    Args:
        values: One value per row; rows where it is missing are left out.
        clusters: The cluster of each row. Clusters are taken as independent, their means as roughly normal.
        level: Confidence level.
        scale: The lowest and highest possible value; the interval ends there.
    """
    valid = values.notna()
    means = values[valid].groupby(clusters[valid]).mean()
    low, high, _ = t_interval(means.to_numpy(dtype=float), level)
    low, high = (float(np.clip(end, *scale)) for end in (low, high))
    return Interval(
        estimate=float(means.mean()),
        low=low,
        high=high,
        level=level,
        n=int(valid.sum()) if len(means) else 0,
        clusters=len(means),
        method="t interval over cluster means",
        assumes=ASSUMES,
    )


def t_interval(means: Floats, level: float) -> tuple[float, float, str]:
    """Student's t interval over cluster means: lower end, upper end, and "".

    Where the means show no spread the ends are NaN, and the third value says why.
    """
    if len(means) < 2:
        return math.nan, math.nan, ONE_CLUSTER if len(means) else NO_VALUES
    if np.ptp(means) <= 1e-12 * np.abs(means).max():
        return math.nan, math.nan, NO_SPREAD
    half = float(stats.t.ppf((1 + level) / 2, len(means) - 1) * stats.sem(means))
    centre = float(means.mean())
    return centre - half, centre + half, ""


def bootstrap_mean(
    values: Column,
    clusters: Column,
    *,
    weight: Weight = "cluster",
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """A mean, or a proportion of zeros and ones, with a bootstrap over clusters.

    Args:
        values: One value per row; rows where it is missing are left out.
        clusters: The cluster of each row. Clusters are taken as independent.
        weight: "cluster": every cluster has the same weight, as in `cluster_mean`; "row": every value has, as in a
            win rate.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
        level: Confidence level.
    """
    reduced = cluster_sums(values, clusters)
    return _bootstrap(_ratio_columns(reduced.sums, reduced.counts, weight), reduced.n, draws, seed, level)


def _ratio_columns(sums: Floats, counts: Floats, weight: Weight) -> Floats:
    """Numerator and denominator of a mean, by cluster: cluster means and 1, or sums and counts."""
    if weight == "row":
        return np.column_stack([sums, counts])
    means = np.divide(sums, counts, out=np.zeros(len(sums)), where=counts > 0)
    return np.column_stack([means, counts > 0]).astype(float)


def _bootstrap(units: Floats, n: int, draws: int, seed: int, level: float) -> Estimate:
    """The ratio of two column sums, with its bootstrap interval."""
    count = len(units)
    unknown = Estimate(
        method=f"bootstrap over clusters, {draws} draws, seed {seed}, expanded percentiles",
        assumes=INDEPENDENT_CLUSTERS,
        level=level,
        n=n,
        clusters=count,
    )
    estimate = float(_ratios(units.sum(axis=0, keepdims=True))[0]) if count else math.nan
    if not math.isfinite(estimate):
        return replace(unknown, note=NO_VALUES)
    if count < 2:
        return replace(unknown, estimate=estimate, note=ONE_CLUSTER)
    if draws < MIN_DRAWS:
        return replace(unknown, estimate=estimate, note=TOO_FEW_DRAWS)
    drawn = _ratios(bootstrap_sums(units, draws, seed))
    if np.nanmax(drawn) - np.nanmin(drawn) <= 1e-12 * max(1.0, abs(estimate)):
        return replace(unknown, estimate=estimate, note=NO_SPREAD)
    low, high = percentile_interval(drawn, count, level)
    return replace(unknown, estimate=estimate, low=low, high=high)


def _ratios(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Floats = sums[:, 0] / sums[:, 1]
    return ratios
