"""Two systems on the same items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from parley.analysis.stats.paired import mcnemar, mcnemar_counts, paired_permutation, wilcoxon
from parley.analysis.stats.resampling import bca_interval, bootstrap_sums

# Darwin's maize, eighths of an inch, crossed minus self-fertilised (R: HistData::ZeaMays; used by Fisher, The Design of
# Experiments, and by Wilcoxon 1945).
MAIZE = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], float)
NOTHING = np.zeros(15)
# R's help page of wilcox.test: Hollander and Wolfe (1973), 29f, depression before and after a tranquilizer.
FIRST = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
SECOND = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])


def test_mcnemar_by_hand() -> None:
    # 5 items only the first got right, 1 only the second: 2 · (1 + 6) / 2⁶
    found = mcnemar([1] * 5 + [0] + [1, 1, 0, 0], [0] * 5 + [1] + [1, 1, 0, 0])
    assert found.p == pytest.approx(14 / 64)
    assert (found.statistic, found.effect, found.n) == (1, 0.4, 10)


def test_mcnemar_as_in_r() -> None:
    # S. Aoki, Gunma University: R's binom.test(c(35, 28)) for 48, 28, 35, 53 gives p = 0.45
    assert round(mcnemar_counts(28, 35, 164).p, 4) == 0.45


def test_the_interval_of_paired_proportions_is_that_of_bonett_and_price() -> None:
    # R, statpsych help page: ci.prop.ps(.05, 12, 4, 26, 6) gives 0.2548067 to 0.6251933
    found = mcnemar_counts(26, 4, 48)
    assert (found.low, found.high) == pytest.approx((0.2548067, 0.6251933), abs=1e-7)


def test_mcnemar_leaves_out_what_is_missing_and_refuses_what_is_not_right_or_wrong() -> None:
    assert mcnemar([1, None, 0, True], [0, 1, None, True]).n == 2
    with pytest.raises(ValueError, match="needs columns of 0 and 1"):
        mcnemar([0.5, 1], [1, 0])


def test_no_item_answered_differently_has_no_p_but_an_interval() -> None:
    found = mcnemar_counts(0, 0, 40)
    assert math.isnan(found.p)
    assert found.note
    assert found.effect == 0.0
    assert found.low < -0.03 < 0.03 < found.high, "40 equal items do not prove that there is no difference"


def test_mcnemar_holds_its_level_and_its_interval_covers() -> None:
    rng = np.random.default_rng(0)
    wrong = held = 0
    for only_first, only_second, _ in rng.multinomial(60, [0.2, 0.2, 0.6], size=500):
        found = mcnemar_counts(only_first, only_second, 60)
        wrong += found.p <= 0.05
        held += found.low <= 0 <= found.high
    assert wrong <= 30
    assert 460 <= held <= 495


# Sign flips


def test_fisher_s_permutation_of_darwin_s_maize() -> None:
    # Fisher, The Design of Experiments, section 21: 863 of the 2¹⁵ ways to set signs reach the sum 314 on one side
    # (835 beyond, 28 at it), so 1726 on both.
    found = paired_permutation(MAIZE, NOTHING)
    assert found.p == 1726 / 32768
    assert found.effect == pytest.approx(314 / 15)
    assert "exact" in found.name
    assert (found.n, found.clusters, found.assumption) == (15, None, "independent")


def test_the_t_interval_is_student_s() -> None:
    found = paired_permutation(MAIZE, NOTHING, interval="t")
    ends = stats.ttest_1samp(MAIZE, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.statistic == pytest.approx(stats.ttest_1samp(MAIZE, 0).statistic)


def test_bca_agrees_with_scipy() -> None:
    gaps = np.random.default_rng(1).exponential(2, 150) - 1
    theirs = stats.bootstrap((gaps,), np.mean, n_resamples=20_000, method="BCa", rng=0).confidence_interval
    ours = paired_permutation(gaps, np.zeros(150), draws=20_000)
    width = theirs.high - theirs.low
    # ours is wider by sqrt(n / (n - 1)) · t / z = 1.0116
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.03 * width)
    assert (ours.high - ours.effect) > 1.05 * (ours.effect - ours.low), "it leans the way the data do"


def test_bca_covers_a_skewed_mean() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for seed in range(300):
        gaps = rng.exponential(1, 25)
        draws = bootstrap_sums(gaps[:, None], 400, seed)[:, 0] / 25
        low, high = bca_interval(draws, float(gaps.mean()), (gaps.sum() - gaps) / 24, 0.95)
        held += low <= 1 <= high
    assert 270 <= held <= 297


def test_clusters_are_averaged_first() -> None:
    first, second = [2.0, 4.0, 5.0, 1.0], [1.0, 1.0, 4.0, 1.0]
    found = paired_permutation(first, second, ["a", "a", "b", "c"], interval="t")
    # a: (1 + 3) / 2 = 2, b: 1, c: 0
    assert found.effect == 1.0
    assert found.p == 0.5  # ±2 ±1 ±0: two of the four reach 3
    assert (found.n, found.clusters, found.assumption) == (4, 3, "clustered")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=9))
def test_swapping_the_systems_turns_the_sign_and_nothing_else(gaps: list[int]) -> None:
    one = paired_permutation(gaps, np.zeros(len(gaps)), interval="t")
    other = paired_permutation(np.zeros(len(gaps)), gaps, interval="t")
    assert one.p == pytest.approx(other.p, nan_ok=True)
    assert (one.effect, one.low, one.high) == pytest.approx((-other.effect, -other.high, -other.low), nan_ok=True)
    if not one.note.startswith("all pairs"):
        assert one.p >= 2 / 2 ** len(gaps)


def test_sign_flip_p_is_uniform_under_the_null() -> None:
    rng = np.random.default_rng(3)
    p = [paired_permutation(rng.standard_t(3, 20), np.zeros(20), interval="t", draws=199, seed=s).p for s in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.08


# Wilcoxon


def test_wilcoxon_as_in_r() -> None:
    found = wilcoxon(FIRST, SECOND)
    # R: wilcox.test(x, y, paired = TRUE, alternative = "greater") gives V = 40, p = 0.01953; two-sided is twice that
    assert found.statistic == 40
    assert found.p == pytest.approx(2 * 10 / 512)
    # R: effectsize::rank_biserial(x, y, paired = TRUE), in its own tests: 0.777, from 0.2953631 to 0.9441559
    assert found.effect == pytest.approx((40 - 5) / 45)
    assert (found.low, found.high) == pytest.approx((0.2953631, 0.9441559), abs=1e-6)


def test_wilcoxon_of_darwin_s_maize() -> None:
    # Wilcoxon (1945), as in the documentation of scipy.stats.wilcoxon: 24 and 96, p = 0.041259765625
    found = wilcoxon(MAIZE, NOTHING)
    assert (found.statistic, found.p) == (96, 0.041259765625)
    assert found.effect == pytest.approx((96 - 24) / 120)


def test_differences_that_rounding_splits_share_a_rank() -> None:
    # 0.5 - 0.525, 0.825 - 0.775, 0.375 - 0.325, 0.5 - 0.55: three are ±0.05 (the example of scipy's documentation)
    found = wilcoxon([0.5, 0.825, 0.375, 0.5], [0.525, 0.775, 0.325, 0.55])
    assert found.statistic == 6.0
    assert found.effect == pytest.approx(2 * 6 / 10 - 1)


def test_one_sign_only_has_no_interval() -> None:
    found = wilcoxon([2, 3, 4, 5, 7], [1, 1, 1, 1, 1])
    assert found.effect == 1
    assert found.p == 2 / 32
    assert math.isnan(found.low)
    assert "same sign" in found.note
