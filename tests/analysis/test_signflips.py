"""Sign-flip tests: Fisher's own figures, and every sign pattern counted one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.analysis.stats import signflips
from parley.analysis.stats.signflips import clusters_to_reject, equivalence_p, sign_flip_p, sign_flip_test, upper_tail

# Darwin's maize, cross- minus self-fertilised, in eighths of an inch: R. A. Fisher, The Design of Experiments (1935),
# sections 17 and 21. Of the 32,768 sign patterns, 863 have a sum of 314 or more.
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])


def brute_force(differences: np.ndarray) -> float:
    patterns = np.array(list(itertools.product([1.0, -1.0], repeat=len(differences)))) @ differences
    return float(np.mean(np.abs(patterns) >= abs(differences.sum()) - 1e-9))


def test_fishers_count_of_darwins_maize() -> None:
    assert upper_tail(DARWIN) == 863 / 32768
    assert sign_flip_p(DARWIN) == 1726 / 32768


whole_points = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=11)
any_values = st.lists(st.floats(-10, 10).map(lambda value: round(value, 3)), min_size=1, max_size=11)


@given(st.one_of(whole_points, any_values))
@settings(max_examples=150, deadline=None)
def test_p_is_the_share_of_all_patterns(values: list[float]) -> None:
    assert sign_flip_p(values) == pytest.approx(brute_force(np.array(values)), abs=1e-12)


@given(st.one_of(whole_points, any_values))
@settings(max_examples=100, deadline=None)
def test_the_interval_contains_what_is_not_rejected(values: list[float]) -> None:
    given_values, test = np.array(values), sign_flip_test(values)
    assert (test.low <= 0 <= test.high) == (test.p > 0.05)
    if len(values) < 6:
        assert (test.low, test.high) == (-math.inf, math.inf)
        return
    edge = 2e-4 * (np.ptp(given_values) + 1)
    for end, outwards in ((test.low, -1), (test.high, 1)):
        assert brute_force(given_values - end - outwards * edge) <= 0.05
        if test.high - test.low > 4 * edge:
            assert brute_force(given_values - end + outwards * edge) > 0.05


@pytest.mark.parametrize("size", [37, 60, 200])
def test_many_clusters_agree_with_draws(size: int) -> None:
    rng = np.random.default_rng(size)
    values = rng.normal(0.2, 1.0, size)
    drawn = np.abs((2.0 * rng.integers(0, 2, (200_000, size)) - 1) @ values)
    share = float(np.mean(drawn >= abs(values.sum())))
    assert sign_flip_p(values) == pytest.approx(share, abs=4 * math.sqrt(share / 200_000) + 1e-4)
    assert 2 * signflips._saddlepoint_tail(np.abs(values.sum()) / values.sum() * values) == pytest.approx(
        sign_flip_p(values), rel=0.03
    )


def test_grid_and_count_are_the_same_on_whole_points() -> None:
    values = np.rint(np.random.default_rng(1).normal(0.5, 1.5, 36))
    values = values if values.sum() > 0 else -values
    nonzero = values[values != 0]
    assert signflips._grid_tail(nonzero) == pytest.approx(signflips._counted_tail(nonzero), rel=1e-12)


def test_binomial_tail_of_equal_sizes() -> None:
    """With equal sizes the test is the sign test: 60 of 100 heads, P = 0.0569 two-sided (binomial table)."""
    assert sign_flip_p([1.0] * 60 + [-1.0] * 40) == pytest.approx(0.05688793, abs=1e-7)


def test_a_large_effect_has_no_floor() -> None:
    assert sign_flip_p([3.0 + 0.01 * i for i in range(20)]) == 2.0**-19


def test_a_judge_without_differences_is_equivalent() -> None:
    assert equivalence_p([0.0] * 20, 0.1) == 2.0**-20
    assert equivalence_p([0.0] * 4, 0.1) == 1 / 16, "four clusters cannot show it at 5%"
    assert sign_flip_p([0.0] * 20) == 1.0


def test_too_few_clusters_are_told() -> None:
    assert clusters_to_reject(0.05) == 6
    assert clusters_to_reject(0.05, tests=26) == 11
    assert math.isnan(sign_flip_p([]))
    assert math.isnan(equivalence_p([], 0.1))
