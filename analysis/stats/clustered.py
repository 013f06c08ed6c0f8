"""Means whose error comes from clusters: verdicts on one scenario are not independent, scenarios are.

Everything within a cluster is averaged first, so repeats, judges and cells never pass for independent data.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.stats.resampling import DRAWS, percentile, resampled_sums
from parley.analysis.stats.results import Estimate, Interval, no_estimate
from parley.analysis.stats.tables import Column, Floats, cell_sums, cluster_sums

ASSUMES = "clusters are independent; their means are roughly normal"
RESAMPLED = "clusters are independent of each other"
ONE_CLUSTER = "a single cluster tells nothing about the spread between clusters"
NO_VALUES = "there are no values"
NO_SPREAD = "all clusters give the same value: the data show no spread to judge by"

Weight = Literal["cluster", "row"]


def cluster_mean(
    values: pd.Series, clusters: pd.Series, level: float = 0.95, scale: tuple[float, float] = (-math.inf, math.inf)
) -> Interval:
    """The mean of cluster means, with Student's t interval over the clusters, which ends where the scale does."""
    kept = values.notna()
    means = values[kept].groupby(clusters[kept]).mean()
    count, n = len(means), int(kept.sum())
    method = "t interval over cluster means"
    if count == 0:
        return Interval(math.nan, math.nan, math.nan, level, 0, 0, method, ASSUMES)
    centre = float(means.mean())
    if count < 2:
        return Interval(centre, math.nan, math.nan, level, n, count, method, ASSUMES)
    low, high, _ = t_interval(means.to_numpy(dtype=float), level)
    low, high = (float(np.clip(end, *scale)) for end in (low, high))
    return Interval(centre, low, high, level, n, count, method, ASSUMES)


def t_interval(means: Floats, level: float) -> tuple[float, float, str]:
    """Student's t interval over cluster means; NaN, and why, where they show no spread."""
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

    `weight="cluster"`: every cluster counts the same, as in `cluster_mean`; "row": every value does, as in a win rate.
    """
    found = cluster_sums(values, clusters)
    return _bootstrapped(_sides(found.sums, found.counts, weight), found.n, draws, seed, level)


def bootstrap_difference(
    values: Column,
    identities: Column,
    clusters: Column,
    first: str,
    second: str,
    *,
    paired: bool = True,
    weight: Weight = "cluster",
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The mean of `first` minus that of `second`, with a bootstrap over clusters.

    `paired` takes only clusters that have both; else each side is averaged over the clusters it has.
    """
    cells = cell_sums(values, identities, clusters)
    return difference_of_cells(cells, first, second, paired=paired, weight=weight, draws=draws, seed=seed, level=level)


def difference_of_cells(
    cells: tuple[pd.DataFrame, pd.DataFrame],
    first: str,
    second: str,
    *,
    paired: bool = True,
    weight: Weight = "cluster",
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """`bootstrap_difference` from sums and counts that `tables.cell_sums` has already computed."""
    sums, counts = (table.reindex(columns=[first, second], fill_value=0).to_numpy(dtype=float) for table in cells)
    kept = (counts > 0).all(axis=1) if paired else (counts > 0).any(axis=1)
    sums, counts = sums[kept], counts[kept]
    units = np.hstack([_sides(sums[:, side], counts[:, side], weight) for side in (0, 1)])
    return _bootstrapped(units, int(counts.sum()), draws, seed, level)


def _sides(sums: Floats, counts: Floats, weight: Weight) -> Floats:
    """Two columns, above and below the line of a ratio: cluster means and 1, or sums and counts."""
    if weight == "row":
        return np.column_stack([sums, counts])
    means = np.divide(sums, counts, out=np.zeros(len(sums)), where=counts > 0)
    return np.column_stack([means, counts > 0]).astype(float)


def _bootstrapped(units: Floats, n: int, draws: int, seed: int, level: float) -> Estimate:
    """A ratio of column sums, or a difference of two ratios, with its bootstrap interval."""
    method = f"bootstrap over clusters, {draws} draws, seed {seed}, expanded percentiles"
    count = len(units)
    estimate = float(_ratios(units.sum(axis=0, keepdims=True))[0]) if count else math.nan
    if not math.isfinite(estimate):
        return no_estimate(method, RESAMPLED, NO_VALUES, level, n, count)
    if count < 2:
        return Estimate(estimate, math.nan, math.nan, level, n, count, method, RESAMPLED, ONE_CLUSTER)
    found = _ratios(resampled_sums(units, draws, seed))
    if np.nanmax(found) - np.nanmin(found) <= 1e-12 * max(1.0, abs(estimate)):
        return Estimate(estimate, math.nan, math.nan, level, n, count, method, RESAMPLED, NO_SPREAD)
    return Estimate(estimate, *percentile(found, count, level), level, n, count, method, RESAMPLED)


def _ratios(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = sums[:, 0::2] / sums[:, 1::2]
    found: Floats = parts[:, 0] - parts[:, 1] if parts.shape[1] == 2 else parts[:, 0]
    return found


def intraclass(values: Column, clusters: Column, level: float = 0.95) -> Estimate:
    """How alike values within a cluster are: ICC(1), from the one-way analysis of variance.

    Interval from the F distribution (Shrout and Fleiss 1979), exact for clusters of equal size; for others the size
    is replaced by n0 = (n - sum of squared sizes / n) / (clusters - 1). It can be negative, and is then left so.
    """
    method = "one-way analysis of variance"
    found = cluster_sums(values, clusters)
    count, n = len(found.counts), found.n
    if count < 2:
        return no_estimate(method, ASSUMES, ONE_CLUSTER if count else NO_VALUES, level, n, count)
    if n == count:
        return no_estimate(method, ASSUMES, "no cluster has two values", level, n, count)
    size = (n - float((found.counts**2).sum()) / n) / (count - 1)
    between = float((found.counts * (found.means - found.sums.sum() / n) ** 2).sum()) / (count - 1)
    within = float(found.squares.sum()) / (n - count)
    if between + (size - 1) * within <= 1e-24 * max(1.0, float(np.abs(found.means).max()) ** 2):
        return no_estimate(method, ASSUMES, "all values are equal", level, n, count)
    estimate = (between - within) / (between + (size - 1) * within)
    if within == 0:
        note = "values within a cluster never differ: the data show no spread to judge by"
        return Estimate(estimate, math.nan, math.nan, level, n, count, method, ASSUMES, note)
    f, tail = between / within, (1 + level) / 2
    low = f / stats.f.ppf(tail, count - 1, n - count)
    high = f * stats.f.ppf(tail, n - count, count - 1)
    low, high = (float((ratio - 1) / (ratio + size - 1)) for ratio in (low, high))
    return Estimate(estimate, low, high, level, n, count, method, ASSUMES)


def observed_design_effect(values: Column, clusters: Column, level: float = 0.95) -> Estimate:
    """By how much clustering multiplies the variance of a mean over rows: 1 + (m - 1)·ICC.

    m is the mean cluster size as a row sees it (Kish): the sum of squared sizes over their sum.
    """
    icc = intraclass(values, clusters, level)
    counts = cluster_sums(values, clusters).counts
    size = float((counts**2).sum() / counts.sum()) if len(counts) else math.nan
    low, estimate, high = (1 + (size - 1) * one for one in (icc.low, icc.estimate, icc.high))
    return Estimate(estimate, low, high, level, icc.n, icc.clusters, "1 + (m - 1)·ICC", ASSUMES, icc.note)
