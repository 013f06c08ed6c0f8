"""Two systems on the same items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from parley.analysis.stats.paired import mcnemar_p, paired_permutation

# Darwin's maize, eighths of an inch, crossed minus self-fertilised (R: HistData::ZeaMays; used by Fisher, The Design of
# Experiments, and by Wilcoxon 1945).
MAIZE = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], float)
NOTHING = np.zeros(15)


def test_mcnemar_by_hand() -> None:
    # 5 items only the first got right, 1 only the second: 2 · (1 + 6) / 2⁶
    assert mcnemar_p([1] * 5 + [0] + [1, 1, 0, 0], [0] * 5 + [1] + [1, 1, 0, 0]) == pytest.approx(14 / 64)


def test_mcnemar_as_in_r() -> None:
    # S. Aoki, Gunma University: R's binom.test(c(35, 28)) for 48, 28, 35, 53 gives p = 0.45
    first, second = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [48, 28, 35, 53], axis=0).T
    assert round(mcnemar_p(first, second), 4) == 0.45


def test_mcnemar_leaves_out_missing_values_and_needs_zeros_and_ones() -> None:
    assert mcnemar_p([1, None, 0, True], [0, 1, None, True]) == 1, "one pair differs, and two are incomplete"
    assert math.isnan(mcnemar_p([0, 1], [0, 1])), "no item was answered differently"
    with pytest.raises(ValueError, match="needs columns of 0 and 1"):
        mcnemar_p([0.5, 1], [1, 0])


# Sign flips


def test_fisher_s_permutation_of_darwin_s_maize() -> None:
    # Fisher, The Design of Experiments, section 21: 863 of the 2¹⁵ ways to set signs reach the sum 314 on one side
    # (835 beyond, 28 at it), so 1726 on both.
    result = paired_permutation(MAIZE, NOTHING, range(15))
    assert result.p == 1726 / 32768
    assert result.estimate == pytest.approx(314 / 15)
    assert result.statistic == pytest.approx(stats.ttest_1samp(MAIZE, 0).statistic)
    assert result.method == "paired sign-flip test, exact"
    assert (result.n, result.clusters, result.assumption) == (15, 15, "clustered")


def test_clusters_are_averaged_first() -> None:
    first, second = [2.0, 4.0, 5.0, 1.0], [1.0, 1.0, 4.0, 1.0]
    result = paired_permutation(first, second, ["a", "a", "b", "c"])
    # a: (1 + 3) / 2 = 2, b: 1, c: 0
    assert result.estimate == 1.0
    assert result.p == 0.5  # ±2 ±1 ±0: two of the four reach 3
    assert (result.n, result.clusters, result.assumption) == (4, 3, "clustered")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=9))
def test_swapping_the_systems_changes_the_sign_only(gaps: list[int]) -> None:
    forward = paired_permutation(gaps, np.zeros(len(gaps)), range(len(gaps)))
    swapped = paired_permutation(np.zeros(len(gaps)), gaps, range(len(gaps)))
    assert forward.p == pytest.approx(swapped.p, nan_ok=True)
    assert (forward.estimate, forward.low, forward.high) == pytest.approx(
        (-swapped.estimate, -swapped.high, -swapped.low), nan_ok=True
    )
    assert forward.p >= 2 / 2 ** len(gaps)
