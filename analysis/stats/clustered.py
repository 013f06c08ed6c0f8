"""Means with standard errors from clusters: verdicts on one scenario are not independent, scenarios are.

Everything within a cluster is averaged first, so that repeats, judges and cells do not count as independent
observations.

Also a test whether an effect varies between clusters more than scenarios within a cluster explain. A difference of
two identities can be 0 on average because an identity is raised on one base and lowered on another.

    line = heterogeneity([1.5, 1.4, -1.5, -1.6], ["nurse", "nurse", "engineer", "engineer"])
    line.p, line.estimate
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from parley.analysis.stats.resampling import DRAWS, MIN_DRAWS, TOO_FEW_DRAWS, bootstrap_sums, percentile_interval
from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import Column, cluster_sums

ASSUMES = "clusters are independent; their means are roughly normal"
INDEPENDENT_CLUSTERS = "clusters are independent of each other"
ONE_CLUSTER = "a single cluster: the spread between clusters cannot be estimated"
NO_VALUES = "there are no values"
NO_SPREAD = "all clusters have the same value: there is no spread to estimate an error from"

Weight = Literal["cluster", "row"]


def cluster_mean(
    values: pd.Series, clusters: pd.Series, scale: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """The mean of cluster means, with Student's t interval over the clusters.

    Args:
        values: One value per row; rows where it is missing are left out.
        clusters: The cluster of each row. Clusters are taken as independent, their means as roughly normal.
        scale: The lowest and highest possible value; the interval ends there.
    """
    valid = values.notna()
    return mean_of_clusters(values[valid].groupby(clusters[valid]).mean(), int(valid.sum()), scale)


def mean_of_clusters(of_clusters: pd.Series, n: int, scale: tuple[float, float] = (-math.inf, math.inf)) -> Estimate:
    """The mean of cluster means, as `cluster_mean` gives it from rows.

    Args:
        of_clusters: The mean of each cluster.
        n: Number of rows that they are computed from.
        scale: The lowest and highest possible value.
    """
    means = of_clusters.to_numpy(dtype=float)
    estimate = float(means.mean()) if len(means) else math.nan
    low = high = math.nan
    if len(means) > 1 and np.ptp(means) > TOLERANCE * np.abs(means).max():
        half = float(stdtrit(len(means) - 1, (1 + LEVEL) / 2)) * float(means.std(ddof=1)) / math.sqrt(len(means))
        low, high = (float(np.clip(end, *scale)) for end in (estimate - half, estimate + half))
    elif len(means) > 1 and all(map(math.isfinite, scale)):
        low, high = agreeing_ends(estimate, len(means), scale)
    return Estimate(
        estimate=estimate,
        low=low,
        high=high,
        n=n,
        clusters=len(means),
        method="t interval over cluster means",
        assumes=ASSUMES,
    )


def agreeing_ends(value: float, clusters: int, scale: tuple[float, float], level: float = LEVEL) -> tuple[float, float]:
    """The interval of a mean over clusters that all agree: those that are not in the sample may differ.

    If a share of all clusters differed, a sample of n had none of them with probability (1 - share)ⁿ; each of them may
    lie at either end of the scale. An interval without width missed the mean in 42, 29 and 12% of studies of 8, 12 and
    20 bases, if a tenth of all bases lost a point.

    Args:
        value: The value of each cluster.
        clusters: Number of clusters.
        scale: The lowest and the highest possible value.
        level: Confidence level.
    """
    unseen = 1 - ((1 - level) / 2) ** (1 / clusters)
    return value - unseen * (value - scale[0]), value + unseen * (scale[1] - value)


def bootstrap_mean(
    values: Column,
    clusters: Column,
    *,
    weight: Weight = "cluster",
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
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
    unknown = Estimate(
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


TOLERANCE = 1e-12
"""Relative spread below which differences are due to rounding."""


def heterogeneity(differences: Column, bases: Column) -> Estimate:
    """The standard deviation of the bases' effects, and the test that the effect is the same on every base.

    Two scenarios of one base deviate from the mean in the same direction if the base has an effect of its own, so that
    the product of their deviations is positive on average: that average is the effects' variance. p is that of
    Student's t over the bases' mean products, each times the square root of its number of products, so that a base
    with many scenarios counts for more. The noise of scenarios may differ between bases; with unequal noise the
    analysis of variance's F finds an effect in 10 to 55% of studies without one, this test in 1 to 6%
    (`python -m benchmarks.calibration.reviewed`). The estimate is 0 where that of the variance is negative.

    Args:
        differences: One identity minus the other, one per scenario; missing ones are left out.
        bases: The base of each scenario.
    """
    groups = cluster_sums(differences, bases)
    count, n = len(groups.counts), groups.n
    several = groups.counts > 1
    if several.sum() < 2:  # with one scenario per base, effects look like noise
        return Estimate(n=n, clusters=count)
    sizes, squares = groups.counts[several], (groups.means - groups.means.mean())[several] ** 2
    # The squared sum of deviations is the sum of their products and of their squares; those from the mean of so many
    # bases are too small by one part in `count`.
    products = (sizes**2 - sizes) * squares * count / (count - 1) - groups.squares[several]
    weights = np.sqrt(sizes**2 - sizes)
    products /= weights
    mean, spread = float(products.mean()), float(products.std(ddof=1))
    noise = (TOLERANCE * float(np.abs(groups.means).max())) ** 2
    if spread > noise:
        p = float(stdtr(len(products) - 1, -math.sqrt(len(products)) * mean / spread))
    else:
        p = 0.0 if mean > noise else 1.0
    return Estimate(
        estimate=math.sqrt(mean / float(weights.mean())) if mean > noise else 0.0,
        p=p,
        n=n,
        clusters=count,
        method="products of scenarios' deviations, t over bases",
    )
