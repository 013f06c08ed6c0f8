"""Means with standard errors from clusters: verdicts on one scenario are not independent, scenarios are.

Everything within a cluster is averaged first, so that repeats, judges and cells do not count as independent
observations.

Also a test whether an effect varies between clusters more than scenarios within a cluster explain. A difference of
two identities can be 0 on average because an identity is raised on one base and lowered on another. The one-way
random-effects analysis of variance of the scenarios' differences shows it, with the upper limit of Williams and Tukey.
Bases are taken as a sample of such bases, their effects and the scenarios' noise as roughly normal.

    line = heterogeneity([1.5, 1.4, -1.5, -1.6], ["nurse", "nurse", "engineer", "engineer"])
    line.p, line.estimate, line.high
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy import special
from scipy.special import stdtrit

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
    estimate, half = float(means.mean()) if len(means) else math.nan, math.nan
    if len(means) > 1 and np.ptp(means) > 1e-12 * np.abs(means).max():
        half = float(stdtrit(len(means) - 1, (1 + LEVEL) / 2)) * float(means.std(ddof=1)) / math.sqrt(len(means))
    low, high = (float(np.clip(end, *scale)) for end in (estimate - half, estimate + half))
    return Estimate(
        estimate=estimate,
        low=low,
        high=high,
        n=n,
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

    `high` is its one-sided upper 95% confidence limit. The estimate is 0 where that of the variance is negative.

    F is exact for normal noise, whatever the sizes of the bases. The standard deviation is estimated by the method of
    moments. Its upper limit covers as it should where all bases have as many scenarios (94.5 to 95.5% in simulations);
    elsewhere it is the larger of two, one with the analysis of variance's n0 for the size of a base and one with the
    harmonic mean and unweighted means (Thomas and Hultquist 1978), which cover too little in opposite cases.

    Args:
        differences: One identity minus the other, one per scenario; missing ones are left out.
        bases: The base of each scenario.
    """
    groups = cluster_sums(differences, bases)
    count, n = len(groups.counts), groups.n
    between_df, within_df = count - 1, n - count
    if between_df < 1 or within_df < 1:  # a single base, or one scenario per base: effects look like noise
        return Estimate(n=n, clusters=count)
    means, sizes = groups.means, groups.counts
    between = float((sizes * (means - groups.sums.sum() / n) ** 2).sum()) / between_df
    within = float(groups.squares.sum()) / within_df
    noise = (TOLERANCE * float(np.abs(means).max())) ** 2
    if between <= noise and within <= noise:
        return Estimate(estimate=0.0, high=0.0, p=1.0, n=n, clusters=count)
    if within <= noise:
        within = 0.0
    size = (n - float((sizes**2).sum()) / n) / between_df
    # Williams and Tukey: F bounds what the scenarios' noise adds to the bases' spread, chi-square that spread itself.
    noise_share = within * float(special.fdtri(between_df, within_df, 1 - LEVEL))
    quantile = 2 * float(special.gammaincinv(between_df / 2, 1 - LEVEL)) / between_df
    harmonic = count / float((1 / sizes).sum())
    spreads = ((size, between), (harmonic, harmonic * float(np.var(means, ddof=1))))
    upper = max((spread - noise_share) / (quantile * each) for each, spread in spreads)
    return Estimate(
        estimate=math.sqrt(max(0.0, (between - within) / size)),
        high=math.sqrt(max(0.0, upper)),
        p=float(special.fdtrc(between_df, within_df, between / within)) if within else 0.0,
        n=n,
        clusters=count,
        method="one-way random effects, Williams and Tukey's limit",
    )
