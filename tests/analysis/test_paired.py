"""Two systems on the same items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from parley.analysis.stats.paired import mcnemar, mcnemar_counts, paired_permutation, wilcoxon

# Darwin's maize, eighths of an inch, crossed minus self-fertilised (R: HistData::ZeaMays; used by Fisher, The Design of
# Experiments, and by Wilcoxon 1945).
MAIZE = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], float)
NOTHING = np.zeros(15)
# R's help page of wilcox.test: Hollander and Wolfe (1973), 29f, depression before and after a tranquilizer.
FIRST = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
SECOND = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])


def test_mcnemar_by_hand() -> None:
    # 5 items only the first got right, 1 only the second: 2 · (1 + 6) / 2⁶
    result = mcnemar([1] * 5 + [0] + [1, 1, 0, 0], [0] * 5 + [1] + [1, 1, 0, 0])
    assert result.p == pytest.approx(14 / 64)
    assert (result.statistic, result.effect, result.n) == (1, 0.4, 10)


def test_mcnemar_as_in_r() -> None:
    # S. Aoki, Gunma University: R's binom.test(c(35, 28)) for 48, 28, 35, 53 gives p = 0.45
    assert round(mcnemar_counts(28, 35, 164).p, 4) == 0.45


def test_the_interval_of_paired_proportions_is_that_of_bonett_and_price() -> None:
    # R, statpsych help page: ci.prop.ps(.05, 12, 4, 26, 6) gives 0.2548067 to 0.6251933
    result = mcnemar_counts(26, 4, 48)
    assert (result.low, result.high) == pytest.approx((0.2548067, 0.6251933), abs=1e-7)


def test_mcnemar_leaves_out_missing_values_and_needs_zeros_and_ones() -> None:
    assert mcnemar([1, None, 0, True], [0, 1, None, True]).n == 2
    with pytest.raises(ValueError, match="needs columns of 0 and 1"):
        mcnemar([0.5, 1], [1, 0])


def test_no_item_answered_differently_has_no_p_but_an_interval() -> None:
    result = mcnemar_counts(0, 0, 40)
    assert math.isnan(result.p)
    assert result.note
    assert result.effect == 0.0
    assert result.low < -0.03 < 0.03 < result.high, "40 equal items do not prove that there is no difference"


def test_mcnemar_has_the_right_false_positive_rate_and_its_interval_covers() -> None:
    rng = np.random.default_rng(0)
    wrong = covered = 0
    for only_first, only_second, _ in rng.multinomial(60, [0.2, 0.2, 0.6], size=500):
        result = mcnemar_counts(only_first, only_second, 60)
        wrong += result.p <= 0.05
        covered += result.low <= 0 <= result.high
    assert wrong <= 30
    assert 460 <= covered <= 495


# Sign flips


def test_fisher_s_permutation_of_darwin_s_maize() -> None:
    # Fisher, The Design of Experiments, section 21: 863 of the 2¹⁵ ways to set signs reach the sum 314 on one side
    # (835 beyond, 28 at it), so 1726 on both.
    result = paired_permutation(MAIZE, NOTHING)
    assert result.p == 1726 / 32768
    assert result.effect == pytest.approx(314 / 15)
    assert "exact" in result.name
    assert (result.n, result.clusters, result.assumption) == (15, None, "independent")


def test_the_statistic_is_student_s() -> None:
    assert paired_permutation(MAIZE, NOTHING).statistic == pytest.approx(stats.ttest_1samp(MAIZE, 0).statistic)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.integers(-4, 9), min_size=6, max_size=12), st.floats(-8, 8).map(lambda shift: round(shift, 2)))
def test_the_interval_holds_the_shifts_that_are_not_rejected(gaps: list[int], shift: float) -> None:
    result = paired_permutation(gaps, np.zeros(len(gaps)))
    inside = result.low - 1e-4 <= shift <= result.high + 1e-4
    if abs(shift - result.low) > 1e-3 and abs(shift - result.high) > 1e-3:
        assert inside == (paired_permutation(gaps, np.full(len(gaps), shift)).p > 0.05)


def test_clusters_are_averaged_first() -> None:
    first, second = [2.0, 4.0, 5.0, 1.0], [1.0, 1.0, 4.0, 1.0]
    result = paired_permutation(first, second, ["a", "a", "b", "c"])
    # a: (1 + 3) / 2 = 2, b: 1, c: 0
    assert result.effect == 1.0
    assert result.p == 0.5  # ±2 ±1 ±0: two of the four reach 3
    assert (result.n, result.clusters, result.assumption) == (4, 3, "clustered")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=9))
def test_swapping_the_systems_changes_the_sign_only(gaps: list[int]) -> None:
    forward = paired_permutation(gaps, np.zeros(len(gaps)))
    swapped = paired_permutation(np.zeros(len(gaps)), gaps)
    assert forward.p == pytest.approx(swapped.p, nan_ok=True)
    assert (forward.effect, forward.low, forward.high) == pytest.approx(
        (-swapped.effect, -swapped.high, -swapped.low), nan_ok=True
    )
    assert forward.p >= 2 / 2 ** len(gaps)


@pytest.mark.nightly
def test_sign_flip_p_is_uniform_under_the_null() -> None:
    rng = np.random.default_rng(3)
    p = [paired_permutation(rng.standard_t(3, 20), np.zeros(20)).p for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.08


# Wilcoxon


def test_wilcoxon_as_in_r() -> None:
    result = wilcoxon(FIRST, SECOND)
    # R: wilcox.test(x, y, paired = TRUE, alternative = "greater") gives V = 40, p = 0.01953; two-sided is twice that
    assert result.statistic == 40
    assert result.p == pytest.approx(2 * 10 / 512)
    # R: effectsize::rank_biserial(x, y, paired = TRUE), in its own tests: 0.777, from 0.2953631 to 0.9441559
    assert result.effect == pytest.approx((40 - 5) / 45)
    assert (result.low, result.high) == pytest.approx((0.2953631, 0.9441559), abs=1e-6)


def test_wilcoxon_of_darwin_s_maize() -> None:
    # Wilcoxon (1945), as in the documentation of scipy.stats.wilcoxon: 24 and 96, p = 0.041259765625
    result = wilcoxon(MAIZE, NOTHING)
    assert (result.statistic, result.p) == (96, 0.041259765625)
    assert result.effect == pytest.approx((96 - 24) / 120)


def test_differences_that_are_equal_up_to_rounding_share_a_rank() -> None:
    # 0.5 - 0.525, 0.825 - 0.775, 0.375 - 0.325, 0.5 - 0.55: three are ±0.05 (the example of scipy's documentation)
    result = wilcoxon([0.5, 0.825, 0.375, 0.5], [0.525, 0.775, 0.325, 0.55])
    assert result.statistic == 6.0
    assert result.effect == pytest.approx(2 * 6 / 10 - 1)


def test_one_sign_only_has_no_interval() -> None:
    result = wilcoxon([2, 3, 4, 5, 7], [1, 1, 1, 1, 1])
    assert result.effect == 1
    assert result.p == 2 / 32
    assert math.isnan(result.low)
    assert "same sign" in result.note
