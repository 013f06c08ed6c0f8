"""Bootstrap draws, sign flips and p-values, as matrix products on a small table of units (clusters, items).

A bootstrap draw is a row of counts (how often each unit was drawn) times the table of the units' sums: no draw ever
touches the rows behind the table. Draws are made in blocks, so that memory stays small however many units there are.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from parley.analysis.stats.tables import Floats, Ints

DRAWS = 2000
EXACT = 2**16  # up to so many arrangements, all of them are looked at
BLOCK = 4_000_000  # numbers held at once, about 32 MB


def resampled_sums(units: Floats, draws: int, seed: int, times: Ints | None = None) -> Floats:
    """Column sums over units drawn with replacement: one row a draw.

    `times` says how many equal units a row of `units` stands for: 250,000 items of 1,000 kinds cost no more than 1,000.
    """
    rng = np.random.default_rng(seed)
    count = len(units)
    if times is not None:
        total = int(times.sum())
        found: Floats = rng.multinomial(total, times / total, size=draws).astype(float) @ units
        return found
    size = max(1, BLOCK // count)
    sums = np.empty((draws, units.shape[1]))
    for start in range(0, draws, size):
        rows = min(size, draws - start)
        chosen = rng.integers(0, count, (rows, count)) + count * np.arange(rows)[:, None]
        weights = np.bincount(chosen.ravel(), minlength=rows * count).reshape(rows, count)
        sums[start : start + rows] = weights.astype(float) @ units
    return sums


def percentile(draws: Floats, units: int, level: float) -> tuple[float, float]:
    """The expanded percentile interval: wider where there are few units, so that it holds its level.

    T. Hesterberg, "What teachers should know about the bootstrap" (2014), arXiv 1411.5279: the tail is cut where
    z·sqrt((n - 1) / n) is Student's t. Draws that gave no number are left out, if they are fewer than half.
    """
    known = draws[np.isfinite(draws)]
    if units < 2 or 2 * len(known) <= len(draws):
        return math.nan, math.nan
    tail = stats.norm.cdf(_expanded(units, level))
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)


def bca(draws: Floats, estimate: float, left_out: Floats, level: float) -> tuple[float, float]:
    """Efron's bias-corrected and accelerated interval, its tails expanded as in `percentile`.

    `left_out` holds the estimate without each unit in turn.
    """
    units = len(left_out)
    gaps = left_out.mean() - left_out
    spread = float((gaps**2).sum())
    if units < 2 or spread == 0:
        return math.nan, math.nan
    skew = float((gaps**3).sum()) / (6 * spread**1.5)
    below = float(np.mean(draws < estimate) + np.mean(draws == estimate) / 2)
    bias = stats.norm.ppf(np.clip(below, 0.5 / len(draws), 1 - 0.5 / len(draws)))
    half = _expanded(units, level)
    ends = [stats.norm.cdf(bias + (bias + z) / (1 - skew * (bias + z))) for z in (half, -half)]
    low, high = np.quantile(draws, ends)
    return float(low), float(high)


def _expanded(units: int, level: float) -> float:
    """The lower normal quantile that stands for Student's t over so many units."""
    return float(math.sqrt(units / (units - 1)) * stats.t.ppf((1 - level) / 2, units - 1))


def monte_carlo_p(draws: Floats, observed: float, scale: float | None = None) -> float:
    """(b + 1) / (m + 1): never 0, since the data are one of the arrangements (Phipson and Smyth 2010)."""
    return float((_reached(draws, observed, scale) + 1) / (len(draws) + 1))


def exact_p(everything: Floats, observed: float, scale: float | None = None) -> float:
    """The share of all arrangements that reach the observed value (itself among them)."""
    return float(_reached(everything, observed, scale) / len(everything))


def _reached(values: Floats, observed: float, scale: float | None) -> int:
    """How many values are at least the observed one; what differs by rounding only counts as equal."""
    return int(np.sum(values >= observed - 1e-9 * (abs(observed) if scale is None else scale)))


def sign_flip_p(differences: Floats, draws: int, seed: int) -> tuple[float, str]:
    """Two-sided p of a mean difference when every sign could as well be the other; and how it was found.

    All arrangements where there are few, else `draws` random ones.
    """
    moving = differences[differences != 0]  # 0 stays 0 under either sign
    if len(moving) == 0:
        return math.nan, "no draws"
    observed, scale = abs(float(moving.sum())), float(np.abs(moving).sum())
    if 2 ** (len(moving) - 1) <= EXACT:
        sums = moving[:1]  # the other sign of the first gives the same absolute sums
        for one in moving[1:]:
            sums = np.concatenate([sums + one, sums - one])
        return exact_p(np.abs(sums), observed, scale), "exact"
    rng = np.random.default_rng(seed)
    size = max(1, BLOCK // len(moving))
    found = [
        np.abs((2.0 * rng.integers(0, 2, (min(size, draws - start), len(moving))) - 1) @ moving)
        for start in range(0, draws, size)
    ]
    return monte_carlo_p(np.concatenate(found), observed, scale), f"{draws} draws, seed {seed}"
