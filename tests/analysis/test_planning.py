"""Corrections for multiple testing, and equivalence."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.weightstats import ttost_paired

from parley.analysis.reporting.questions import corrected
from parley.analysis.stats.multiplicity import benjamini_hochberg, holm
from parley.analysis.stats.results import Line
from parley.analysis.stats.signflips import equivalence_p, sign_flip_test

NAN = math.nan

# Many tests


def test_holm_by_hand() -> None:
    # the smallest times five, the next times four, … and none below the one before
    # also pingouin.holm's documentation
    assert holm([0.50, 0.003, 0.32, 0.054, 0.0003]) == pytest.approx([0.64, 0.012, 0.64, 0.162, 0.0015])


def test_lines_are_corrected_in_each_family_and_planned_ones_apart() -> None:
    lines = [Line(p=p, about={"kind": kind}) for kind, p in (("a", 0.01), ("b", 0.04), ("a", 0.03))]
    assert [line.p_adjusted for line in corrected(lines, ("kind",))] == pytest.approx([0.02, 0.04, 0.03])
    assert [line.p_adjusted for line in corrected(lines, ())] == pytest.approx([0.03, 0.06, 0.06])
    planned = corrected([*lines[:2], replace(lines[2], secondary=True)], ())
    assert [(line.p, line.p_adjusted, line.tests) for line in planned] == [
        (0.01, 0.02, 2),
        (0.04, 0.04, 2),
        (0.03, 0.03, 1),
    ]


def test_benjamini_hochberg_as_in_r() -> None:
    # stdlib's padjust, checked there against R's p.adjust
    assert benjamini_hochberg([0.008, 0.03, 0.123, 0.6, 0.2]) == pytest.approx([0.04, 0.075, 0.205, 0.6, 0.25])


def test_a_missing_p_value_stays_missing_and_is_not_corrected_for() -> None:
    for correct in (holm, benjamini_hochberg):
        first, missing, last = correct(pd.Series([0.01, NAN, 0.04]))
        assert math.isnan(missing)
        assert [first, last] == correct([0.01, 0.04])
        assert all(map(math.isnan, correct([NAN, NAN])))
        assert correct([]) == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.randoms())
def test_corrections_never_lower_a_p_value_and_keep_the_order(p: list[float], order: object) -> None:
    for correct in (holm, benjamini_hochberg):
        result = np.array(correct(p))
        assert np.all(result >= np.array(p) - 1e-12)
        assert np.all(result <= 1)
        assert np.all(np.diff(result[np.argsort(p)]) >= -1e-12)
        place = sorted(range(len(p)), key=lambda _: order.random())  # type: ignore[attr-defined]
        assert correct([p[k] for k in place]) == pytest.approx(result[place].tolist())
    assert np.all(np.array(holm(p)) >= np.array(benjamini_hochberg(p)) - 1e-12)


# Equivalence

# Student's sleep data (R: `sleep`), the second drug minus the first, ten patients.
SLEEP = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])


def test_tost_by_hand_and_near_that_of_statsmodels() -> None:
    """The nearer edge is 2.5. 2.5 - SLEEP is 1.3, 0.1, 1.2, 1.2, 2.5, 1.5, 0.7, 1.7, -2.1, 1.1, whose sum is 9.2: a
    sign pattern reaches it if the values that it flips sum to 0 or less."""
    gaps = 2.5 - SLEEP
    flipped = np.array(list(itertools.product([0, 1], repeat=10))) @ gaps
    p = equivalence_p(SLEEP, 2.5)
    assert p == np.mean(flipped <= 1e-9)
    assert p == pytest.approx(ttost_paired(SLEEP, np.zeros(10), -2.5, 2.5)[0], abs=0.015)


def test_a_mean_near_zero_is_not_evidence_of_equivalence() -> None:
    assert equivalence_p(SLEEP, 2.0) > 0.05
    assert equivalence_p([3.0, -3.0, 2.5, -2.6], 0.5) > 0.3


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.floats(-2, 2), min_size=3, max_size=15, unique=True), st.floats(0.1, 3))
def test_differences_are_equivalent_where_the_90_percent_interval_lies_within_the_margin(
    gaps: list[float], margin: float
) -> None:
    interval = sign_flip_test(gaps, 0.9)
    if min(abs(abs(end) - margin) for end in (interval.low, interval.high)) < 1e-4:
        return  # the ends are found to a millionth of the range
    within = -margin < interval.low and interval.high < margin
    assert (equivalence_p(gaps, margin) <= 0.05) == within


@pytest.mark.nightly
def test_a_difference_at_the_margin_is_rarely_called_equivalent() -> None:
    rng = np.random.default_rng(1)
    called = sum(equivalence_p(rng.normal(0.3, 0.5, 30), 0.3) <= 0.05 for _ in range(600))
    assert called <= 48  # 5% of 600 are 30, standard deviation 5.3
