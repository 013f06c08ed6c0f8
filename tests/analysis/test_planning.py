"""Corrections for multiple testing, and equivalence."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from parley.analysis.stats.equivalence import equivalence, equivalent_identities
from parley.analysis.stats.multiplicity import benjamini_hochberg, holm

NAN = math.nan

# Many tests


def test_holm_by_hand() -> None:
    # the smallest times five, the next times four, … and none below the one before
    result = holm([0.50, 0.003, 0.32, 0.054, 0.0003], family="gender, phase 1")
    assert result.adjusted == pytest.approx((0.64, 0.012, 0.64, 0.162, 0.0015))  # also pingouin.holm's documentation
    assert (result.name, result.method, result.tests) == ("gender, phase 1", "Holm", 5)


def test_benjamini_hochberg_as_in_r() -> None:
    # stdlib's padjust, checked there against R's p.adjust
    result = benjamini_hochberg([0.008, 0.03, 0.123, 0.6, 0.2], family="pairs")
    assert result.adjusted == pytest.approx((0.04, 0.075, 0.205, 0.6, 0.25))


def test_a_missing_p_value_stays_missing_and_is_not_corrected_for() -> None:
    for correct in (holm, benjamini_hochberg):
        with_gap, without = correct(pd.Series([0.01, NAN, 0.04]), "f"), correct([0.01, 0.04], "f")
        assert math.isnan(with_gap.adjusted[1])
        assert (with_gap.adjusted[0], with_gap.adjusted[2]) == without.adjusted
        assert with_gap.tests == 2
        assert correct([NAN, NAN], "f").tests == 0
        assert correct([], "f").adjusted == ()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms())
def test_corrections_never_lower_a_p_value_and_keep_the_order(p: list[float], order: object) -> None:
    for correct in (holm, benjamini_hochberg):
        result = np.array(correct(p, "f").adjusted)
        assert np.all(result >= np.array(p) - 1e-12)
        assert np.all(result <= 1)
        assert np.all(np.diff(result[np.argsort(p)]) >= -1e-12)
        place = sorted(range(len(p)), key=lambda _: order.random())  # type: ignore[attr-defined]
        assert correct([p[k] for k in place], "f").adjusted == pytest.approx(tuple(result[place]))
    assert np.all(np.array(holm(p, "f").adjusted) >= np.array(benjamini_hochberg(p, "f").adjusted) - 1e-12)


# Equivalence

# Student's sleep data (R: `sleep`), the second drug minus the first, ten patients.
SLEEP = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])


def test_tost_by_hand_and_near_that_of_statsmodels() -> None:
    """The nearer edge is 2.5. 2.5 - SLEEP is 1.3, 0.1, 1.2, 1.2, 2.5, 1.5, 0.7, 1.7, -2.1, 1.1, whose sum is 9.2: a
    sign pattern reaches it if the values that it flips sum to 0 or less."""
    gaps = 2.5 - SLEEP
    flipped = np.array(list(itertools.product([0, 1], repeat=10))) @ gaps
    result = equivalence(SLEEP, range(10), margin=2.5)
    assert result.effect == pytest.approx(1.58)
    assert result.p == np.mean(flipped <= 1e-9)
    assert result.p == pytest.approx(ttost_paired(SLEEP, np.zeros(10), -2.5, 2.5)[0], abs=0.015)
    assert (result.low, result.high) == pytest.approx(
        stats.t.interval(0.9, 9, loc=1.58, scale=stats.sem(SLEEP)), abs=0.15
    )
    assert (result.level, result.df, result.margin, result.verdict) == (0.9, None, 2.5, "equivalent within ±2.5")


def test_without_evidence_the_verdict_is_not_shown() -> None:
    assert equivalence(SLEEP, range(10), margin=2.0).verdict == "not shown"
    wide = equivalence([3.0, -3.0, 2.5, -2.6], list("abcd"), margin=0.5)
    assert wide.verdict == "not shown", "a mean near 0 is not evidence of equivalence"
    assert wide.p > 0.3


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.floats(-2, 2), min_size=3, max_size=15, unique=True), st.floats(0.1, 3))
def test_the_verdict_is_whether_the_interval_lies_within_the_margin(gaps: list[float], margin: float) -> None:
    result = equivalence(gaps, range(len(gaps)), margin)
    if min(abs(abs(end) - margin) for end in (result.low, result.high)) < 1e-4:
        return  # the ends are found to a millionth of the range
    within = -margin < result.low and result.high < margin
    assert result.verdict == (f"equivalent within ±{margin:g}" if within else "not shown")


def test_identities_are_compared_on_common_scenarios() -> None:
    scores = [5.0, 5.2, 6.0, 6.1, 7.0, 6.9, 9.0]
    identities = ["f", "m", "f", "m", "f", "m", "f"]
    result = equivalent_identities(scores, identities, [1, 1, 2, 2, 3, 3, 4], "f", "m", margin=0.5)
    theirs = equivalence([-0.2, -0.1, 0.1], [1, 2, 3], margin=0.5)
    assert (result.p, result.effect, result.clusters, result.n) == pytest.approx((theirs.p, theirs.effect, 3, 6))


def test_a_difference_at_the_margin_is_rarely_called_equivalent() -> None:
    rng = np.random.default_rng(1)
    called = sum(
        equivalence(rng.normal(0.3, 0.5, 30), range(30), margin=0.3).verdict != "not shown" for _ in range(600)
    )
    assert called <= 48  # 5% of 600 are 30, standard deviation 5.3


def test_a_judge_without_differences_is_equivalent_given_enough_clusters() -> None:
    result = equivalence([0.0] * 8, range(8), margin=0.5)
    assert (result.p, result.effect, result.low, result.high) == (2.0**-8, 0.0, 0.0, 0.0)
    assert result.verdict == "equivalent within ±0.5"
    few = equivalence([0.0] * 4, range(4), margin=0.5)
    assert (few.verdict, few.p) == ("not shown", 1 / 16)
    assert few.note == "p cannot be below 0.062: that takes 5 clusters"


def test_a_margin_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="margin"):
        equivalence(SLEEP, range(10), margin=0)
