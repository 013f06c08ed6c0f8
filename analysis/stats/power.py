"""Power of the sign-flip test over clusters: what a design can find.

    detectable(20, sd=0.5, tests=13)                  # the smallest difference that 20 clusters find with 80%
    clusters_needed(0.3, sd=0.5, tests=13)            # the clusters that a difference of 0.3 needs

`sd` is the standard deviation of a cluster's mean difference between two identities, over clusters. A test of a family
is taken at Holm's first step (alpha / tests): where other tests of the family are significant too, it is found a little
more easily. All figures are for differences that are normally distributed over clusters.

How it is computed. The test of a difference of 0 is significant exactly if the interval that inverts it lies above 0,
and adding a constant to all differences moves the interval by that constant. Of standard normal differences, the mean,
the standard deviation and the *shape* (the differences with mean 0 and standard deviation 1) are independent of each
other. So the lower end of the interval is simulated for a few hundred shapes; mean and standard deviation, which cause
most of the variation, are integrated. The seed is fixed: the same design always has the same power.

The end of an interval is the k-th smallest mean of all subsets of the differences, k = alpha·2ⁿ (J. A. Hartigan, 1969,
Journal of the American Statistical Association 64, 1303-1317). It is found by listing subsets where clusters are few or
k is small, and is that of Student's t beyond: for 3 tests the detectable effect then differs by less than 0.2%, for 12
by less than 1%.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv, ndtr, stdtrit

from parley.analysis.stats.mean_test import clusters_to_reject, smallest_p
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

SHAPES = 200
"""Simulated shapes, each also with opposite signs: ends vary by a few percent, their mean by a few thousandths."""
SPREADS = 200
"""Points of the integral over the standard deviation."""
MAX_LISTED = 14
"""Not Student's t below this: few clusters cannot reject, which it ignores."""
MAX_CLUSTERS = 10_000_000
LEAST_LEVEL = 1e-50
SEED = 0


def sign_flip_power(clusters: int, effect: float, sd: float, *, tests: int = 1, alpha: float = 0.05) -> float:
    """The chance to find an effect: the test is significant, in the effect's direction.

    Args:
        clusters: Number of clusters.
        effect: The true mean difference.
        sd: Standard deviation of a cluster's difference; NaN gives NaN.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
    """
    _check(clusters=clusters, sd=sd, tests=tests, alpha=alpha)
    return _power(clusters, abs(effect), sd, alpha / tests / 2)


def detectable(clusters: int, sd: float, *, tests: int = 1, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest effect that is found with this power; infinite where the clusters are too few (see `too_few`).

    Args:
        clusters: Number of clusters.
        sd: Standard deviation of a cluster's difference; NaN gives NaN.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
        power: The chance to find the effect.
    """
    _check(clusters=clusters, sd=sd, tests=tests, alpha=alpha, power=power)
    tail = alpha / tests / 2
    if not _ends(clusters, tail).size:
        return math.inf
    if not sd > 0:
        return sd
    return sd * _smallest(lambda effect: _power(clusters, effect, 1.0, tail), power)


def clusters_needed(effect: float, sd: float, *, tests: int = 1, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """The fewest clusters that find an effect with this power; None for an effect of 0 or more than 10 million.

    Args:
        effect: The true mean difference.
        sd: Standard deviation of a cluster's difference.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
        power: The least chance to find the effect.
    """
    _check(sd=sd, tests=tests, alpha=alpha, power=power)
    tail = alpha / tests / 2
    return _fewest(lambda clusters: _power(clusters, abs(effect), sd, tail), power) if effect and sd == sd else None


def too_few(clusters: int, *, tests: int = 1, alpha: float = 0.05) -> str:
    """A sentence on clusters that can never give a significant difference; "" where there are enough.

    Args:
        clusters: Number of clusters.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
    """
    _check(clusters=clusters, tests=tests, alpha=alpha)
    alone, needed = clusters_to_reject(alpha), clusters_to_reject(alpha, tests)
    if clusters >= needed:
        return ""
    start = f"with {plural(clusters, 'base')} the smallest p-value is {smallest_p(clusters):.3g}"
    if clusters >= alone:
        return (
            f"{start}, and the first of {tests:,} tests must reach {alpha / tests:.3g} (Holm): no difference can be "
            f"significant; at least {needed} are needed"
        )
    family = f", {needed} for a family of {tests:,}" if needed > alone else ""
    return f"{start}: no difference can be significant; at least {alone} are needed{family}"


def _check(*, clusters: int = 1, sd: float = 1.0, tests: int = 1, alpha: float = 0.05, power: float = 0.8) -> None:
    problems = {
        "the number of clusters must be at least 0": clusters < 0,
        "sd must be at least 0 and finite": sd < 0 or math.isinf(sd),
        "tests must be at least 1": tests < 1,
        "alpha must lie between 0 and 1": not 0 < alpha < 1,
        f"alpha divided by the number of tests must be at least {LEAST_LEVEL:g}": alpha < LEAST_LEVEL * tests,
        "power must lie between 0 and 1": not 0 < power < 1,
    }
    for message, wrong in problems.items():
        if wrong:
            raise ValueError(message)


def _power(clusters: int, effect: float, sd: float, tail: float) -> float:
    lows = _ends(clusters, tail)
    if not lows.size or sd != sd:
        return 0.0 if sd == sd else math.nan
    if sd == 0:  # all differences are equal: significant unless they are 0
        return float(effect > 0)
    return float(ndtr(math.sqrt(clusters) * (effect / sd + lows)).mean())


@lru_cache(maxsize=512)
def _ends(clusters: int, tail: float) -> Floats:
    """The lower end of the interval of differences with mean 0, standard normal else; empty where it is infinite.

    Args:
        clusters: Number of differences.
        tail: Level of each one-sided test.
    """
    count = math.floor(tail * 2.0 ** min(clusters, 1000) + 1e-9)
    if count < 1 or clusters < 2:
        return np.zeros(0)
    spreads = np.sqrt(2 * gammaincinv((clusters - 1) / 2, (np.arange(SPREADS) + 0.5) / SPREADS) / (clusters - 1))
    return np.outer(_shape_ends(clusters, tail, count), spreads).ravel()


def _shape_ends(clusters: int, tail: float, count: int) -> Floats:
    """The lower end of the interval of each shape: the count-th smallest mean of all subsets.

    Only the `count` smallest differences can be in its subset. For a subset whose largest difference is the j-th
    smallest of all, at least j - 1 others have a smaller mean: another difference below in place of the largest, or
    without its largest, its two largest, and so on.
    """
    if min(clusters, count) > MAX_LISTED:
        return np.full(1, stdtrit(clusters - 1, tail) / math.sqrt(clusters))
    drawn = np.random.default_rng(SEED).standard_normal((SHAPES, clusters))
    drawn -= drawn.mean(axis=1, keepdims=True)
    drawn /= drawn.std(axis=1, ddof=1, keepdims=True)
    smallest = np.sort(np.concatenate([drawn, -drawn]), axis=1)[:, :count]
    sums, sizes = np.zeros((len(smallest), 1)), np.zeros(1)
    for column in smallest.T:
        sums = np.concatenate([sums, sums + column[:, None]], axis=1)
        sizes = np.concatenate([sizes, sizes + 1])
    means = sums[:, 1:] / sizes[1:]
    ends: Floats = np.partition(means, count - 1, axis=1)[:, count - 1]
    return ends


def _smallest(power_of: Callable[[float], float], power: float) -> float:
    top = 1.0
    while power_of(top) < power:
        top *= 2
    if power_of(0.0) >= power:  # false alarms alone reach the power that is asked for
        return 0.0
    from scipy.optimize import brentq  # it takes longer to load than most tables take to make

    return float(brentq(lambda effect: power_of(effect) - power, 0.0, top, xtol=1e-6))


def _fewest(power_of: Callable[[int], float], power: float) -> int | None:
    """The fewest clusters with this power, which grows with them."""
    low, high = 0, 1
    while power_of(high) < power:
        low, high = high, high * 2
        if high > MAX_CLUSTERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle) >= power else (middle, high)
    return high
