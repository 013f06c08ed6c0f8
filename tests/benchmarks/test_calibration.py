"""Simulated studies, and the vectorised tests against the plain ones on the same data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.calibration.as_assumed import T_BY_SCENARIO, Setting, calibrate, simulate
from benchmarks.calibration.printed import BY_SCENARIO, CHI_SQUARE, chi_square_p, sign_flips, t_test, within_judges
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.tables import Floats


def studies(scenarios: int, judges: int = 4, effect: float = 0.5, simulations: int = 6) -> Floats:
    return simulate(
        Setting(judges=judges, scenarios=scenarios, effect=effect, icc=0.3), simulations, np.random.default_rng(8)
    )


# The same tests as in a report


def test_chi_square_agrees_with_scipy() -> None:
    scores = studies(30)
    for study, p in zip(scores, chi_square_p(scores), strict=True):
        counts = np.array([np.bincount(identity.astype(int).ravel(), minlength=11) for identity in study])
        theirs = stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0], correction=False)
        assert p == pytest.approx(theirs.pvalue)


def test_t_over_scenario_means_agrees_with_scipy() -> None:
    scores = studies(30)
    for study, p in zip(scores, t_test(within_judges(scores))[0], strict=True):
        means = study.mean(axis=2)
        assert p == pytest.approx(stats.ttest_rel(means[0], means[1]).pvalue)


def test_sign_flips_agree_with_the_reports_test() -> None:
    scores = studies(10)
    for study, p in zip(scores, sign_flips(within_judges(scores)), strict=True):
        assert p == pytest.approx(effect_of_cells(pd.DataFrame(study.mean(axis=2).T)).p)


def test_a_p_value_has_no_floor() -> None:
    assert sign_flips(within_judges(studies(20, effect=6.0))).min() == 2.0**-19, "two of all patterns of 20 signs"


def test_studies_without_any_spread_have_no_p_value_of_a_model() -> None:
    scores = np.full((3, 2, 5, 2), 7.0)
    assert np.isnan(chi_square_p(scores)).all()
    assert np.isnan(t_test(within_judges(scores))[0]).all()


# What is simulated


def test_the_planted_effect_is_in_the_scores() -> None:
    scores = studies(50, effect=0.4, simulations=400)
    assert scores.shape == (400, 2, 50, 4)
    assert set(np.unique(scores)) <= set(range(11)), "whole points from 0 to 10"
    gap = scores[:, 0].mean() - scores[:, 1].mean()
    assert gap == pytest.approx(0.4, abs=0.02)


def test_judges_of_one_panel_are_as_alike_as_planted() -> None:
    """Of a gap between labels on one scenario, the panel's share is `icc`; rounding adds 1/12 to every variance."""
    scores = simulate(Setting(judges=8, scenarios=50, effect=0.0, icc=0.5), 200, np.random.default_rng(1))
    gaps = scores[:, 0] - scores[:, 1]
    within = gaps.var(axis=2, ddof=1).mean()
    between = gaps.mean(axis=2).var() - within / 8
    assert between / (between + within) == pytest.approx(0.5 * 1.44 / (1.44 + 1 / 12), abs=0.02)


# Calibration


@pytest.fixture(scope="module")
def null() -> pd.DataFrame:
    """The null hypothesis a thousand times, at the command's own defaults."""
    rows = calibrate((1, 4, 8), (50,), (0.0,), simulations=1000, seed=0)
    return rows.set_index(["test", "judges"])


@pytest.mark.nightly
@pytest.mark.parametrize("judges", [1, 4, 8])
def test_our_tests_have_a_false_positive_rate_of_five_percent(null: pd.DataFrame, judges: int) -> None:
    for name in (BY_SCENARIO, T_BY_SCENARIO):
        assert null.loc[(name, judges), "simulations"] == 1000
        assert 0.03 <= null.loc[(name, judges), "rate"] <= 0.07


@pytest.mark.nightly
def test_the_false_positive_rate_of_the_papers_test_grows_with_the_judges(null: pd.DataFrame) -> None:
    rates = [null.loc[(CHI_SQUARE, judges), "rate"] for judges in (1, 4, 8)]
    assert rates[0] < rates[1] < rates[2]
    assert null.loc[(CHI_SQUARE, 8), "low"] > 0.10, "significantly more than twice the nominal rate"


@pytest.mark.nightly
def test_power_grows_with_effect_and_scenarios() -> None:
    rows = calibrate((4,), (10, 40), (0.0, 0.4, 1.2), simulations=200, seed=2)
    ours = rows[rows["test"] == BY_SCENARIO].set_index(["scenarios", "effect"])["rate"]
    assert ours[(40, 0.0)] < ours[(40, 0.4)] < ours[(40, 1.2)]
    assert ours[(10, 0.4)] < ours[(40, 0.4)]
    assert ours[(40, 1.2)] == 1.0


def test_the_same_seed_gives_the_same_rates() -> None:
    once, again, other = (calibrate((2,), (8,), (0.5,), simulations=60, seed=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(once, again)
    assert once["rejections"].tolist() != other["rejections"].tolist()
