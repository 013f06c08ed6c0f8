"""Corrections for multiple testing, power, and equivalence."""

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
from parley.analysis.stats.power import (
    design_effect,
    detectable_effect,
    power_with,
    scenarios_needed,
    sd_of_differences,
)

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


# Power


def test_the_design_effect() -> None:
    assert design_effect(1, 0.9) == 1
    assert design_effect(50, 0.05) == pytest.approx(3.45)
    assert design_effect(4, 1) == 4


@pytest.mark.parametrize(
    ("effect", "sd", "power", "design", "per_label"),
    [
        # R: power.t.test(delta=10, sd=10*sqrt(2), power=0.85, type="paired"): n = 19.96892 (Dalgaard, section 8.3)
        (10, 10 * math.sqrt(2), 0.85, "paired", 20),
        # R: power.t.test(delta = 0.75, sd = 2.25, power = 0.9): n = 190.0991 in each group (UVA, PASS in R)
        (0.75, 2.25, 0.9, "independent", 191),
        # R: pwr.t.test(d = 2/3, power = 0.9, type = "two.sample"): n = 48.26427 (Cross Validated)
        (2 / 3, 1, 0.9, "independent", 49),
    ],
)
def test_sample_sizes_as_in_r(effect: float, sd: float, power: float, design: str, per_label: int) -> None:
    result = scenarios_needed(effect, sd=sd, power=power, design=design)  # type: ignore[arg-type]
    assert result.scenarios == per_label * (1 if design == "paired" else 2)
    assert result.power >= power
    fewer = per_label - 1 if design == "paired" else 2 * (per_label - 1)
    assert power_with(fewer, effect, sd=sd, design=design).power < power  # type: ignore[arg-type]


def test_judges_help_only_as_far_as_they_differ() -> None:
    # d 0.3 on one judge's difference; 4 judges at ICC 0.3: variance 1.9 / 4, so d 0.3 / sqrt(0.475)
    result = scenarios_needed(0.3, judges=4, icc=0.3)
    assert result.design_effect == pytest.approx(1.9)
    assert result.standardised == pytest.approx(0.3 / math.sqrt(0.475))
    assert result.scenarios == scenarios_needed(0.3 / math.sqrt(0.475)).scenarios
    alike = [scenarios_needed(0.3, judges=judges, icc=1).scenarios for judges in (1, 4, 20)]
    assert len(set(alike)) == 1, "judges who always agree are one judge"
    assert scenarios_needed(0.3, judges=20, icc=0).scenarios < scenarios_needed(0.3, judges=4, icc=0).scenarios


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(4, 200), st.floats(0.3, 0.95), st.floats(0, 1), st.integers(1, 8), st.booleans())
def test_power_effect_and_scenarios_agree(half: int, power: float, icc: float, judges: int, paired: bool) -> None:
    options = {"sd": 2.0, "icc": icc, "judges": judges, "design": "paired" if paired else "independent"}
    smallest = detectable_effect(2 * half, power=power, **options)  # type: ignore[arg-type]
    assert power_with(2 * half, smallest.effect, **options).power == pytest.approx(power, abs=1e-6)  # type: ignore[arg-type]
    assert scenarios_needed(smallest.effect * 1.0001, power=power, **options).scenarios <= 2 * half  # type: ignore[arg-type]


def test_the_power_agrees_with_simulation() -> None:
    plan = power_with(24, 0.5, sd=1.2, icc=0.4, judges=3)
    rng = np.random.default_rng(0)
    shared = rng.normal(0, math.sqrt(0.4), (4000, 24, 1))
    gaps = 0.5 + 1.2 * (shared + rng.normal(0, math.sqrt(0.6), (4000, 24, 3)))
    result = stats.ttest_1samp(gaps.mean(axis=2), 0, axis=1).pvalue < 0.05
    assert result.mean() == pytest.approx(plan.power, abs=0.025)


def test_the_sd_of_differences() -> None:
    # Dalgaard, section 8.3: the within-person sd times the root of 2 (nothing shared)
    assert sd_of_differences(10, 0) == pytest.approx(14.14214, abs=1e-5)
    assert sd_of_differences(10, 0.5) == pytest.approx(10)


def test_a_plan_that_cannot_be_made_says_why() -> None:
    nothing = scenarios_needed(0)
    assert math.isnan(nothing.scenarios)
    assert "equivalence" in nothing.note
    assert "more than" in scenarios_needed(1e-6).note
    assert math.isnan(power_with(1, 0.5).power)
    assert "two scenarios" in detectable_effect(3, design="independent").note
    with pytest.raises(ValueError, match="icc"):
        power_with(10, 0.5, icc=1.5)
    with pytest.raises(ValueError, match="judges"):
        power_with(10, 0.5, judges=0)


def test_a_huge_effect_is_certain() -> None:
    assert power_with(3000, 50).power == pytest.approx(1)
    assert scenarios_needed(1000).scenarios == 2


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
