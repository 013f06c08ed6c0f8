"""Bootstrap intervals, sign flips and permutation p-values on a small table of units (clusters or items).

A bootstrap draw is a vector of counts (how often each unit was drawn) times the table of the units' sums, so no draw
touches the rows behind the table. Draws are made in blocks, so that memory does not grow with the number of units.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from parley.analysis.stats.tables import Floats, Ints

DRAWS = 2000
MAX_EXACT = 2**16  # up to this many arrangements, all are enumerated instead of sampled
BLOCK_SIZE = 4_000_000  # floats in memory at a time, about 32 MB


def bootstrap_sums(units: Floats, draws: int, seed: int, counts: Ints | None = None) -> Floats:
    """Column sums over units drawn with replacement.

    Args:
        units: One row per unit.
        draws: Number of bootstrap draws.
        seed: Seed of the random generator.
        counts: How many equal units each row represents; None: one. 250,000 items of 1,000 kinds then cost as much
            as 1,000 items.

    Returns:
        One row of sums per draw.
    """
    rng = np.random.default_rng(seed)
    size = len(units)
    if counts is not None:
        total = int(counts.sum())
        weighted: Floats = rng.multinomial(total, counts / total, size=draws).astype(float) @ units
        return weighted
    block = max(1, BLOCK_SIZE // size)
    sums = np.empty((draws, units.shape[1]))
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        chosen = rng.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
        weights = np.bincount(chosen.ravel(), minlength=rows * size).reshape(rows, size)
        sums[start : start + rows] = weights.astype(float) @ units
    return sums


def percentile_interval(draws: Floats, units: int, level: float) -> tuple[float, float]:
    """The expanded percentile interval: wider where there are few units, so that its coverage is right.

    T. Hesterberg, "What teachers should know about the bootstrap" (2014), arXiv 1411.5279: the normal quantile is
    replaced by Student's t times sqrt(n / (n - 1)). Draws that gave no number are left out, if fewer than half did.

    Args:
        draws: The statistic in each bootstrap draw.
        units: Number of units that were drawn from.
        level: Confidence level.

    Returns:
        Lower and upper end; NaN for fewer than two units.
    """
    known = draws[np.isfinite(draws)]
    if units < 2 or 2 * len(known) <= len(draws):
        return math.nan, math.nan
    tail = stats.norm.cdf(_expanded_quantile(units, level))
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)


def bca_interval(draws: Floats, estimate: float, jackknife: Floats, level: float) -> tuple[float, float]:
    """Efron's bias-corrected and accelerated (BCa) interval, expanded as in `percentile_interval`.

    Args:
        draws: The statistic in each bootstrap draw.
        estimate: The statistic of the data.
        jackknife: The statistic without each unit in turn.
        level: Confidence level.

    Returns:
        Lower and upper end; NaN for fewer than two units or where leaving one out changes nothing.
    """
    units = len(jackknife)
    gaps = jackknife.mean() - jackknife
    spread = float((gaps**2).sum())
    if units < 2 or spread == 0:
        return math.nan, math.nan
    acceleration = float((gaps**3).sum()) / (6 * spread**1.5)
    below = float(np.mean(draws < estimate) + np.mean(draws == estimate) / 2)
    bias = stats.norm.ppf(np.clip(below, 0.5 / len(draws), 1 - 0.5 / len(draws)))
    half = _expanded_quantile(units, level)
    ends = [stats.norm.cdf(bias + (bias + z) / (1 - acceleration * (bias + z))) for z in (half, -half)]
    low, high = np.quantile(draws, ends)
    return float(low), float(high)


def _expanded_quantile(units: int, level: float) -> float:
    """The lower quantile of Student's t over this many units, scaled for use in place of the normal one."""
    return float(math.sqrt(units / (units - 1)) * stats.t.ppf((1 - level) / 2, units - 1))


def monte_carlo_p(draws: Floats, observed: float, scale: float | None = None) -> float:
    """The p-value of random arrangements, (b + 1) / (m + 1) (Phipson and Smyth 2010).

    It is never 0, since the data are one of the arrangements.

    Args:
        draws: The statistic in each random arrangement; large values count against the null hypothesis.
        observed: The statistic of the data.
        scale: Size of the numbers that the statistic was summed from, which bounds its rounding error; None: the
            statistic itself.
    """
    return float((_count_reached(draws, observed, scale) + 1) / (len(draws) + 1))


def exact_p(arrangements: Floats, observed: float, scale: float | None = None) -> float:
    """The share of all arrangements (the data among them) that reach the observed value. See `monte_carlo_p`."""
    return float(_count_reached(arrangements, observed, scale) / len(arrangements))


def _count_reached(values: Floats, observed: float, scale: float | None) -> int:
    """The number of values at or above the observed one; values that differ by rounding only count as equal."""
    return int(np.sum(values >= observed - 1e-9 * (abs(observed) if scale is None else scale)))


def sign_flip_p(differences: Floats, draws: int, seed: int) -> tuple[float, str]:
    """The two-sided p-value of a mean difference when every sign could as well be the other one.

    Args:
        differences: One per cluster or pair, independent of each other.
        draws: Number of random sign patterns, where there are too many to enumerate.
        seed: Seed of the random generator.

    Returns:
        The p-value, and how it was computed: "exact", or the draws and the seed.
    """
    nonzero = differences[differences != 0]  # 0 stays 0 under either sign
    if len(nonzero) == 0:
        return math.nan, "no draws"
    observed, scale = abs(float(nonzero.sum())), float(np.abs(nonzero).sum())
    if 2 ** (len(nonzero) - 1) <= MAX_EXACT:
        sums = nonzero[:1]  # flipping the first sign too gives the same absolute sums
        for difference in nonzero[1:]:
            sums = np.concatenate([sums + difference, sums - difference])
        return exact_p(np.abs(sums), observed, scale), "exact"
    rng = np.random.default_rng(seed)
    block = max(1, BLOCK_SIZE // len(nonzero))
    blocks = [
        np.abs((2.0 * rng.integers(0, 2, (min(block, draws - start), len(nonzero))) - 1) @ nonzero)
        for start in range(0, draws, block)
    ]
    return monte_carlo_p(np.concatenate(blocks), observed, scale), f"{draws} draws, seed {seed}"
