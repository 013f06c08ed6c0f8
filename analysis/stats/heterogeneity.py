"""Does an effect differ from base to base, more than the scenarios within a base explain?

A difference of two identities can be 0 on average because the identity is favoured on one base and put down on
another. The one-way random-effects analysis of variance of the scenarios' differences shows it, with the upper limit of
Williams and Tukey. Bases are taken as a sample of such bases, their effects and the scenarios' noise as roughly normal.

    found = heterogeneity([1.5, 1.4, -1.5, -1.6], ["nurse", "nurse", "engineer", "engineer"])
    found.p, found.estimate, found.high
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import Column, cluster_sums

TOLERANCE = 1e-12
"""Smallest spread, relative to the largest difference, that is not rounding."""


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
