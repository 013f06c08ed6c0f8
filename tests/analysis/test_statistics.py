"""Proportions and means over clusters against published values, other libraries, and calculations by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.roots import root

# Proportions


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison of seven methods",
        # Statistics in Medicine 17 (1998) 857-872, table I, method 3 (score, no continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    result = wilson(successes, n)
    assert result.estimate == successes / n
    assert (round(result.low, 4), round(result.high, 4)) == (low, high)
    assert (result.n, result.level, result.method) == (n, 0.95, "Wilson")


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (3, 7), (10, 10), (250, 1000), (2.5, 6)])
def test_wilson_ends_are_where_the_score_test_just_rejects(successes: float, n: int) -> None:
    z = stats.norm.ppf(0.975)
    share = successes / n
    for end in (wilson(successes, n).low, wilson(successes, n).high):
        assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-7)


@pytest.mark.parametrize("n", range(1, 40))
def test_the_interval_of_0_starts_at_0_and_that_of_1_ends_at_1(n: int) -> None:
    """Exactly, or a table shows 5.6e-17."""
    assert (wilson(0, n).low, wilson(n, n).high) == (0, 1)
    clusters = list(range(n + 1))
    assert cluster_proportion([0.0] * (n + 1), clusters).low == 0
    assert cluster_proportion([1.0] * (n + 1), clusters).high == 1


def test_wilson_without_cases_is_nan() -> None:
    result = wilson(0, 0)
    assert math.isnan(result.estimate)
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert result.n == 0


# Means over clusters


def test_an_interval_ends_where_the_scale_does() -> None:
    """Means 9, 10, 10 of three clusters: 9.667 ± 4.303 · 0.3333 (t with two degrees of freedom), so 8.232 to 11.101."""
    values, clusters = pd.Series([9.0, 10.0, 10.0]), pd.Series(["a", "b", "c"])
    assert cluster_mean(values, clusters).high == pytest.approx(11.101, abs=5e-4)
    result = cluster_mean(values, clusters, scale=(0, 10))
    assert (result.low, result.high) == (pytest.approx(8.232, abs=5e-4), 10.0)


def test_a_cluster_mean_by_hand() -> None:
    values = pd.Series([6.0, 8.0, 5.0, 9.0, 9.0, 9.0])
    clusters = pd.Series(["a", "a", "b", "c", "c", "c"])
    # cluster means: a = 7, b = 5, c = 9; their mean 7, deviations 0, -2, 2, so s = sqrt(8 / 2) = 2;
    # standard error 2 / sqrt(3) = 1.1547; t(0.975, 2) = 4.3027; half width 4.9683
    result = cluster_mean(values, clusters)
    assert result.estimate == 7.0
    assert (result.low, result.high) == pytest.approx((7 - 4.9683, 7 + 4.9683), abs=1e-4)
    assert (result.n, result.clusters) == (6, 3)
    low, high = stats.t.interval(0.95, 2, loc=7, scale=stats.sem([7, 5, 9]))
    assert (result.low, result.high) == pytest.approx((low, high))


def test_repeating_every_value_does_not_change_the_interval() -> None:
    values, clusters = pd.Series([1.0, 2.0, 4.0, 8.0]), pd.Series(list("abcd"))
    once = cluster_mean(values, clusters)
    twice = cluster_mean(pd.concat([values] * 2, ignore_index=True), pd.concat([clusters] * 2, ignore_index=True))
    assert (twice.estimate, twice.low, twice.high) == pytest.approx((once.estimate, once.low, once.high))
    assert (once.n, twice.n) == (4, 8)


def test_missing_values_are_left_out() -> None:
    result = cluster_mean(pd.Series([1.0, math.nan, 3.0, math.nan]), pd.Series(["a", "a", "b", "c"]))
    assert (result.estimate, result.n, result.clusters) == (2.0, 2, 2)


@pytest.mark.parametrize(("values", "estimate"), [([], math.nan), ([math.nan], math.nan), ([5.0], 5.0)])
def test_fewer_than_two_clusters_have_no_interval(values: list[float], estimate: float) -> None:
    result = cluster_mean(pd.Series(values, dtype=float), pd.Series(["a"] * len(values), dtype=object))
    assert result.estimate == pytest.approx(estimate, nan_ok=True)
    assert math.isnan(result.low)
    assert math.isnan(result.high)


@pytest.mark.nightly
def test_the_interval_covers_the_truth_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(5)
    rounds, scenarios, each = 500, 8, 5
    names = pd.Series(np.repeat(np.arange(scenarios), each))
    covered = naive = 0
    for _ in range(rounds):
        shift = np.repeat(rng.normal(0, 1, scenarios), each)
        values = pd.Series(7 + shift + rng.normal(0, 0.5, scenarios * each))
        result = cluster_mean(values, names)
        covered += result.low <= 7 <= result.high
        low, high = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
        naive += low <= 7 <= high
    # 475 expected, standard deviation 4.9: four of them on both sides
    assert 455 <= covered <= 495
    assert naive < 400, "an interval over verdicts would be too narrow"


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12])
def test_brents_root_takes_scipys_steps(tolerance: float) -> None:
    rng = np.random.default_rng(0)
    for place, below, above in rng.uniform(0.1, 5, (200, 3)):
        for function in (lambda x, a=place: math.tanh(x - a), lambda x, a=place: (x - a) + (x - a) ** 3):
            theirs = optimize.brentq(function, place - below, place + above, xtol=tolerance)
            assert root(function, place - below, place + above, tolerance) == pytest.approx(theirs, abs=1e-14)
    with pytest.raises(ValueError, match="no value"):
        root(lambda x: math.nan, 0.0, 1.0, tolerance)
    with pytest.raises(ValueError, match="same sign"):
        root(lambda x: x + 1, 0.0, 1.0, tolerance)
