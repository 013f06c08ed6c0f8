"""Ratios of means: Fieller's method with sign flips, against his closed form, a grid, and simulated studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from parley.analysis.stats.ratios import ratio_of_means
from parley.analysis.stats.signflips import sign_flip_p, sign_flip_test


def fieller(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Fieller's limits for paired values: the roots of (mean of x - r·y)² = t²·var/n, for 95%."""
    n, t = len(x), stats.t.ppf(0.975, len(x) - 1)
    (vx, vxy), (_, vy) = np.cov(x, y) / n
    a = y.mean() ** 2 - t**2 * vy
    b = x.mean() * y.mean() - t**2 * vxy
    c = x.mean() ** 2 - t**2 * vx
    root = math.sqrt(b**2 - a * c)
    return (b - root) / a, (b + root) / a


def sample(rng: np.random.Generator, n: int, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    shared = rng.normal(0, 0.3, n)  # bases that are hard for both
    return ratio * 1.0 + shared + rng.normal(0, 0.4, n), 1.0 + shared + rng.normal(0, 0.4, n)


def test_with_normal_values_the_limits_are_close_to_fiellers() -> None:
    x, y = sample(np.random.default_rng(2), 24, 0.4)
    expected, actual = fieller(x, y), ratio_of_means(x, y)
    assert actual.estimate == pytest.approx(x.mean() / y.mean())
    width = expected[1] - expected[0]
    assert (actual.low, actual.high) == pytest.approx(expected, abs=0.08 * width)


def test_the_interval_consists_of_the_ratios_that_are_not_rejected() -> None:
    x, y = sample(np.random.default_rng(3), 12, 0.5)
    actual = ratio_of_means(x, y)
    kept = [ratio for ratio in np.linspace(-3, 4, 1401) if sign_flip_p(x - ratio * y) > 0.05]
    assert (actual.low, actual.high) == pytest.approx((min(kept), max(kept)), abs=0.01)


def test_it_excludes_0_exactly_where_the_numerators_are_significant() -> None:
    rng = np.random.default_rng(5)
    outcomes = set()
    for _ in range(60):
        x, y = sample(rng, 12, 0.3)
        ratio, test = ratio_of_means(x, y), sign_flip_test(x)
        outcomes.add(test.p <= 0.05)
        if sign_flip_p(y) <= 0.05:
            assert (ratio.low > 0 or ratio.high < 0) == (test.p <= 0.05)
    assert outcomes == {True, False}, "both occurred"


def test_an_unclear_denominator_gives_no_limits() -> None:
    ratio = ratio_of_means([1.0] * 8, [1.0, -1.0] * 3 + [0.5, 0.1])
    assert (ratio.low, ratio.high, ratio.note) == (-math.inf, math.inf, "the denominator may be 0")


def test_few_clusters_give_no_limits() -> None:
    ratio = ratio_of_means([0.5, 0.6, 0.7], [1.0, 1.1, 0.9])
    assert (ratio.estimate, ratio.low, ratio.clusters) == (pytest.approx(0.6), -math.inf, 3)
    assert ratio.note == "an interval needs 6 clusters"


def test_clusters_that_lack_either_are_left_out_and_nothing_is_nan() -> None:
    x, y = [0.5, 1.0, 1.5, math.nan, 2.0, 2.5, 3.0, 7.0], [1.0, 2.0, 3.0, 1.0, 4.0, 5.0, 6.0, math.nan]
    ratio = ratio_of_means(x, y)
    assert (ratio.estimate, ratio.low, ratio.high, ratio.clusters) == (0.5, 0.5, 0.5, 6)
    assert math.isnan(ratio_of_means([], []).estimate)
