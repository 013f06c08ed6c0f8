"""Power of the test of a mean difference over clusters.

    detectable(20, sd=0.5, tests=13)                  # the smallest difference that 20 clusters find with 80%
    clusters_needed(0.3, sd=0.5, tests=13)            # the clusters that a difference of 0.3 needs

`sd` is the standard deviation of a cluster's mean difference between two identities, over clusters. A test of a family
is taken at Holm's first step (alpha / tests): where other tests of the family are significant too, it is found a little
more easily. All figures are for differences that are normally distributed over clusters, by Student's t, whose
distribution is then noncentral. With few clusters sign flips find less than t does: below 12, or five more than can be
significant at all, figures are shares of 400 simulated studies, tested as in reports. (Above, 80% by t are 73 to 80%.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import nctdtr, nctdtrinc, stdtrit

from parley.analysis.stats.mean_test import mean_p
from parley.analysis.stats.results import clusters_to_reject
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

SIMULATED = 400
"""Simulated studies: a power of 80% is known to within 4 points."""
MAX_CLUSTERS = 10_000_000
LEAST_LEVEL = 1e-50
FAR = 1e6
"""Noncentrality above which the power is 1 and cannot be computed."""


def power_of(clusters: int, effect: float, sd: float, *, tests: int = 1, alpha: float = 0.05) -> float:
    """The chance to find an effect: the test is significant, in the effect's direction; 0 with too few clusters.

    Args:
        clusters: Number of clusters.
        effect: The true mean difference.
        sd: Standard deviation of a cluster's difference; NaN gives NaN.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
    """
    _check(clusters=clusters, sd=sd, tests=tests, alpha=alpha)
    if sd != sd:
        return math.nan
    if clusters < clusters_to_reject(alpha, tests):
        return 0.0
    if sd == 0:  # all differences are equal: significant unless they are 0
        return float(effect != 0)
    if clusters < _normal_from(tests, alpha):
        return _simulated(clusters, abs(effect) / sd, alpha / tests)
    distance = min(abs(effect) / sd * math.sqrt(clusters), FAR)
    return 1 - float(nctdtr(clusters - 1, distance, _critical(clusters, tests, alpha)))


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
    if clusters < clusters_to_reject(alpha, tests):
        return math.inf
    if clusters < _normal_from(tests, alpha):
        return sd * _found_at(clusters, alpha / tests, power)
    distance = float(nctdtrinc(clusters - 1, 1 - power, _critical(clusters, tests, alpha)))
    return max(0.0, distance) * sd / math.sqrt(clusters)  # false alarms alone may reach a power that is low


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
    if not effect or sd != sd:
        return None
    least = clusters_to_reject(alpha, tests)
    return _first(lambda clusters: power_of(clusters, effect, sd, tests=tests, alpha=alpha) >= power, least)


def too_few(clusters: int, *, tests: int = 1, alpha: float = 0.05) -> str:
    """A sentence on clusters that are too few for any finding; "" where there are enough.

    Args:
        clusters: Number of clusters.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
    """
    _check(clusters=clusters, tests=tests, alpha=alpha)
    needed = clusters_to_reject(alpha, tests)
    if clusters >= needed:
        return ""
    return (
        f"{plural(clusters, 'base')}: no difference can be significant, however large; "
        f"{plural(tests, 'test needs', 'tests need')} at least {needed}"
    )


def _normal_from(tests: int, alpha: float) -> int:
    """The fewest clusters at which the noncentral t is used."""
    return max(12, clusters_to_reject(alpha, tests) + 5)


@cache
def _samples(clusters: int) -> Floats:
    """Differences of simulated studies, in standard deviations, without an effect."""
    return np.random.default_rng(clusters).standard_normal((SIMULATED, clusters))


def _simulated(clusters: int, effect: float, level: float) -> float:
    """The share of simulated studies in which an effect, in standard deviations, is found."""
    samples = _samples(clusters) + effect
    return float(np.mean([sample.sum() > 0 and mean_p(sample) <= level for sample in samples]))


@cache
def _found_at(clusters: int, level: float, power: float) -> float:
    """The effect, in standard deviations, that such a share of simulated studies finds."""
    low, high = 0.0, 1.0
    while _simulated(clusters, high, level) < power:
        low, high = high, 2 * high
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (middle, high) if _simulated(clusters, middle, level) < power else (low, middle)
    return high


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


def _critical(clusters: int, tests: int, alpha: float) -> float:
    """The critical value of t."""
    return -float(stdtrit(clusters - 1, alpha / tests / 2))


def _first(enough: Callable[[int], bool], least: int) -> int | None:
    """The smallest sufficient number of clusters, from `least` on; power increases with it."""
    low, high = least - 1, least
    while not enough(high):
        low, high = high, high * 2
        if high > MAX_CLUSTERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
