"""The permutation test of two groups: against scipy's, and the interval that agrees with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from parley.analysis.stats.two_groups import permuted_difference


def difference(first: np.ndarray, second: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.mean(first, axis=axis) - np.mean(second, axis=axis)


@pytest.mark.parametrize(("sizes", "seed"), [((3, 4), 0), ((5, 5), 1), ((8, 7), 2)])
def test_the_p_value_is_scipys(sizes: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(0.8, 1, sizes[0]), rng.normal(0, 1, sizes[1])
    ours = permuted_difference(first, second)
    theirs = stats.permutation_test((first, second), difference, vectorized=True, n_resamples=np.inf)
    # scipy doubles the smaller tail; ours counts both, which is the same where the groups are as large.
    tails = stats.permutation_test(
        (first, second), lambda x, y, axis=-1: np.abs(difference(x, y, axis)), vectorized=True, n_resamples=np.inf,
        alternative="greater",
    )  # fmt: skip
    assert ours.estimate == pytest.approx(theirs.statistic)
    assert ours.p == pytest.approx(tails.pvalue)
    assert ours.method == "permuted groups, exact"


def test_studentised_the_statistic_is_welchs() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.normal(0.8, 1, 6), rng.normal(0, 3, 5)
    ours = permuted_difference(first, second, studentised=True)

    def welch(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.abs(stats.ttest_ind(x, y, axis=axis, equal_var=False).statistic)

    theirs = stats.permutation_test((first, second), welch, vectorized=True, n_resamples=np.inf, alternative="greater")
    assert ours.p == pytest.approx(theirs.pvalue)
    for end in (ours.low, ours.high):
        moved = [permuted_difference(first - end - step, second, studentised=True).p > 0.05 for step in (-0.01, 0.01)]
        assert sorted(moved) == [False, True], "the interval ends where the test begins to reject"


def test_many_divisions_are_drawn_with_a_seed_that_the_values_fix() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.5, 1, 30), rng.normal(0, 1, 30)
    one, two = (permuted_difference(first, second) for _ in range(2))
    assert one == two
    assert "9,999 drawn" in one.method
    assert one.p == pytest.approx(stats.ttest_ind(first, second).pvalue, abs=0.01)
    low, high = stats.ttest_ind(first, second).confidence_interval()
    assert (one.low, one.high) == pytest.approx((low, high), abs=0.06)


def test_too_few_values_exclude_nothing() -> None:
    test = permuted_difference([1.0, 2.0], [0.0, 0.5])
    assert (test.low, test.high) == (-math.inf, math.inf)
    assert math.isnan(permuted_difference([], [1.0]).p)
