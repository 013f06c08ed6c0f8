"""Sign-flip tests, equivalence, McNemar's test and corrections: published values, and every pattern counted."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from parley.analysis.reporting.questions import corrected
from parley.analysis.stats import signflips
from parley.analysis.stats.multiplicity import benjamini_hochberg, holm
from parley.analysis.stats.paired import mcnemar_p, paired_permutation
from parley.analysis.stats.results import Line
from parley.analysis.stats.signflips import clusters_to_reject, equivalence_p, sign_flip_p, sign_flip_test, upper_tail

NAN = math.nan
# Darwin's maize, cross- minus self-fertilised, in eighths of an inch: R. A. Fisher, The Design of Experiments (1935),
# sections 17 and 21 (R: HistData::ZeaMays). Of the 32,768 sign patterns, 863 have a sum of 314 or more.
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])
# Student's sleep data (R: `sleep`), the second drug minus the first, ten patients.
SLEEP = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])


def brute_force(differences: np.ndarray) -> float:
    patterns = np.array(list(itertools.product([1.0, -1.0], repeat=len(differences)))) @ differences
    return float(np.mean(np.abs(patterns) >= abs(differences.sum()) - 1e-9))


def test_fishers_count_of_darwins_maize() -> None:
    assert upper_tail(DARWIN) == 863 / 32768
    result = paired_permutation(DARWIN, np.zeros(15), range(15))
    assert result.p == sign_flip_p(DARWIN) == 1726 / 32768
    assert result.estimate == pytest.approx(314 / 15)
    assert result.statistic == pytest.approx(stats.ttest_1samp(DARWIN, 0).statistic)
    assert (result.method, result.assumption) == ("paired sign-flip test, exact", "clustered")
    turned = paired_permutation(np.zeros(15), DARWIN, range(15))
    assert (turned.estimate, turned.low, turned.high) == pytest.approx((-result.estimate, -result.high, -result.low))


def test_clusters_are_averaged_first() -> None:
    result = paired_permutation([2.0, 4.0, 5.0, 1.0], [1.0, 1.0, 4.0, 1.0], ["a", "a", "b", "c"])
    # a: (1 + 3) / 2 = 2, b: 1, c: 0; ±2 ±1 ±0: two of the four reach 3
    assert (result.estimate, result.p, result.n, result.clusters) == (1.0, 0.5, 4, 3)


whole_points = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=11)
any_values = st.lists(st.floats(-10, 10).map(lambda value: round(value, 3)), min_size=1, max_size=11)


@given(st.one_of(whole_points, any_values))
@settings(max_examples=100)
def test_p_is_the_share_of_all_patterns_and_the_interval_what_is_not_rejected(values: list[float]) -> None:
    given_values, test = np.array(values), sign_flip_test(values)
    assert test.p == pytest.approx(brute_force(given_values), abs=1e-12)
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
    drawn = np.abs((2.0 * rng.integers(0, 2, (50_000, size)) - 1) @ values)
    share = float(np.mean(drawn >= abs(values.sum())))
    assert sign_flip_p(values) == pytest.approx(share, abs=4 * math.sqrt(share / 50_000) + 1e-4)
    assert 2 * signflips._saddlepoint_tail(np.abs(values.sum()) / values.sum() * values) == pytest.approx(
        sign_flip_p(values), rel=0.03
    )


@pytest.mark.parametrize(
    ("values", "p"),
    [
        # With equal sizes the test is the sign test: 60 of 100 heads, P = 0.0569 two-sided (binomial table).
        ([1.0] * 60 + [-1.0] * 40, 0.05688793),
        ([3.0 + 0.01 * i for i in range(20)], 2.0**-19),  # a large effect has no floor
        ([0.0] * 20, 1.0),
        ([], NAN),
    ],
)
def test_known_p_values(values: list[float], p: float) -> None:
    assert sign_flip_p(values) == pytest.approx(p, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize(
    ("clusters", "how"), [(36, "exact"), (37, "exact on a grid"), (5000, "exact on a grid"), (5001, "saddlepoint")]
)
def test_the_method_is_named(clusters: int, how: str) -> None:
    assert sign_flip_test(np.ones(clusters)).method == f"sign flips over clusters, {how}"


def test_how_many_clusters_it_takes() -> None:
    assert clusters_to_reject(0.05) == 6
    assert clusters_to_reject(0.05, tests=26) == 11


# McNemar


@pytest.mark.parametrize(
    ("counts", "p"),
    [
        ((2, 5, 1, 2), 14 / 64),  # 5 items only the first got right, 1 only the second: 2 · (1 + 6) / 2⁶
        # S. Aoki, Gunma University: R's binom.test(c(35, 28)) for 48, 28, 35, 53 gives p = 0.45
        ((48, 28, 35, 53), 0.4500),
        ((1, 0, 0, 1), NAN),  # no item was answered differently
    ],
)
def test_mcnemar(counts: tuple[int, ...], p: float) -> None:
    first, second = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0).T
    assert mcnemar_p(first, second) == pytest.approx(p, abs=5e-5, nan_ok=True)
    assert mcnemar_p([*first, None, 1], [*second, 1, None]) == pytest.approx(p, abs=5e-5, nan_ok=True)
    with pytest.raises(ValueError, match="needs columns of 0 and 1"):
        mcnemar_p([0.5, 1], [1, 0])


# Equivalence


def test_tost_by_hand_and_near_that_of_statsmodels() -> None:
    """The nearer edge is 2.5. 2.5 - SLEEP is 1.3, 0.1, 1.2, 1.2, 2.5, 1.5, 0.7, 1.7, -2.1, 1.1, whose sum is 9.2: a
    sign pattern reaches it if the values that it flips sum to 0 or less."""
    flipped = np.array(list(itertools.product([0, 1], repeat=10))) @ (2.5 - SLEEP)
    p = equivalence_p(SLEEP, 2.5)
    assert p == np.mean(flipped <= 1e-9)
    assert p == pytest.approx(ttost_paired(SLEEP, np.zeros(10), -2.5, 2.5)[0], abs=0.015)
    assert equivalence_p(SLEEP, 2.0) > 0.05
    assert equivalence_p([3.0, -3.0, 2.5, -2.6], 0.5) > 0.3, "a mean near zero is not evidence of equivalence"
    assert equivalence_p([0.0] * 20, 0.1) == 2.0**-20
    assert equivalence_p([0.0] * 4, 0.1) == 1 / 16, "four clusters cannot show it at 5%"
    assert math.isnan(equivalence_p([], 0.1))


@settings(max_examples=40)
@given(st.lists(st.floats(-2, 2), min_size=3, max_size=15, unique=True), st.floats(0.1, 3))
def test_differences_are_equivalent_where_the_90_percent_interval_lies_within_the_margin(
    gaps: list[float], margin: float
) -> None:
    interval = sign_flip_test(gaps, 0.9)
    if min(abs(abs(end) - margin) for end in (interval.low, interval.high)) < 1e-4:
        return  # the ends are found to a millionth of the range
    within = -margin < interval.low and interval.high < margin
    assert (equivalence_p(gaps, margin) <= 0.05) == within


# Many tests


def test_corrections_as_published() -> None:
    # Holm by hand: the smallest times five, the next times four, … none below the one before; pingouin's documentation
    assert holm([0.50, 0.003, 0.32, 0.054, 0.0003]) == pytest.approx([0.64, 0.012, 0.64, 0.162, 0.0015])
    # stdlib's padjust, checked there against R's p.adjust
    assert benjamini_hochberg([0.008, 0.03, 0.123, 0.6, 0.2]) == pytest.approx([0.04, 0.075, 0.205, 0.6, 0.25])
    for correct in (holm, benjamini_hochberg):
        first, missing, last = correct(pd.Series([0.01, NAN, 0.04]))
        assert math.isnan(missing), "stays missing, and is not corrected for"
        assert [first, last] == correct([0.01, 0.04])
        assert all(map(math.isnan, correct([NAN, NAN])))
        assert correct([]) == []


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms())
def test_corrections_never_lower_a_p_value_and_keep_the_order(p: list[float], order: object) -> None:
    for correct in (holm, benjamini_hochberg):
        result = np.array(correct(p))
        assert np.all((result >= np.array(p) - 1e-12) & (result <= 1))
        assert np.all(np.diff(result[np.argsort(p)]) >= -1e-12)
        place = sorted(range(len(p)), key=lambda _: order.random())  # type: ignore[attr-defined]
        assert correct([p[k] for k in place]) == pytest.approx(result[place].tolist())
    assert np.all(np.array(holm(p)) >= np.array(benjamini_hochberg(p)) - 1e-12)


def test_lines_are_corrected_in_each_family_and_planned_ones_apart() -> None:
    lines = [Line(p=p, about={"kind": kind}) for kind, p in (("a", 0.01), ("b", 0.04), ("a", 0.03))]
    assert [line.p_adjusted for line in corrected(lines, ("kind",))] == pytest.approx([0.02, 0.04, 0.03])
    assert [line.p_adjusted for line in corrected(lines, ())] == pytest.approx([0.03, 0.06, 0.06])
    planned = corrected([*lines[:2], replace(lines[2], secondary=True)], ())
    numbers = [(line.p, line.p_adjusted, line.tests) for line in planned]
    assert numbers == [(0.01, 0.02, 2), (0.04, 0.04, 2), (0.03, 0.03, 1)]
