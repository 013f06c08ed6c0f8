"""The permutation test within scenarios: exact where possible, at its nominal level, not changed by repeats."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import cell_means


def panel(rng: np.random.Generator, scenarios: int, identities: int, judges: int, effect: float = 0.0) -> pd.DataFrame:
    """Scores of judges in one conversation: scenario, candidate and judge each have a random effect."""
    shape = scenarios, identities, judges
    scores = (
        rng.normal(0, 1, (scenarios, 1, 1))
        + rng.normal(0, 0.7, (scenarios, identities, 1))
        + rng.normal(0, 0.5, shape)
        + effect * np.arange(identities)[None, :, None]
    )
    scenario, identity, _ = (place.ravel() for place in np.indices(shape))
    return pd.DataFrame({"scenario": scenario, "identity": identity, "score": scores.ravel()})


def effect_of(frame: pd.DataFrame, tests: int = 1) -> Line:
    cells = cell_means(frame["score"], frame["identity"], frame["scenario"])
    return effect_of_cells(cells, n=len(frame), tests=tests)


def p_of(frame: pd.DataFrame) -> float:
    return effect_of(frame).p


# Two identities


def test_two_identities_by_hand() -> None:
    # differences 1, 2, 3: of the eight ways to set signs, only + + + and - - - reach 6
    frame = pd.DataFrame({"f": [5.0, 6.0, 7.0], "m": [4.0, 4.0, 4.0]})
    result = effect_of_cells(frame)
    assert result.p == 2 / 8
    assert result.estimate == 2.0
    assert result.measure == "mean difference, f − m"
    assert (result.low, result.high) == (-math.inf, math.inf), "three clusters can exclude nothing at 95%"
    assert result.note == "3 clusters: p cannot be below 0.25; an interval needs 6"
    assert result.statistic == pytest.approx(2 / stats.sem([1, 2, 3]))
    assert (result.n, result.clusters, result.assumption, result.df) == (6, 3, "clustered", None)
    assert result.method.endswith("exact")


# More identities


def test_three_identities_in_two_clusters_against_all_sign_patterns() -> None:
    cells = np.array([[1.0, 4.0, 2.0], [2.0, 7.0, 3.0]])

    def between(table: np.ndarray) -> float:
        return float(2 * ((table.mean(axis=0) - table.mean()) ** 2).sum())

    centred = cells - cells.mean(axis=1, keepdims=True)
    values = [between(np.array([first, second])[:, None] * centred) for first in (1, -1) for second in (1, -1)]
    result = effect_of_cells(pd.DataFrame(cells))
    assert result.p == np.mean(np.array(values) >= between(centred) - 1e-9)
    assert result.method.endswith("exact")


@pytest.mark.parametrize(("identities", "missing"), [(3, 0), (4, 0), (10, 0), (4, 9), (10, 25)])
def test_f_is_that_of_the_analysis_of_variance_with_blocks(identities: int, missing: int) -> None:
    rng = np.random.default_rng(identities + missing)
    frame = panel(rng, 12, identities, 1, effect=0.1)
    frame = frame.drop(index=rng.choice(len(frame), missing, replace=False))
    table = anova_lm(ols("score ~ C(scenario) + C(identity)", frame).fit(), typ=2)
    result = effect_of(frame)
    assert result.statistic == pytest.approx(table.loc["C(identity)", "F"])
    total = table.loc["C(identity)", "sum_sq"] + table.loc["Residual", "sum_sq"]
    assert result.estimate == pytest.approx(table.loc["C(identity)", "sum_sq"] / total)
    assert 0 <= result.low <= result.estimate <= result.high < 1
    assert result.p == pytest.approx(table.loc["C(identity)", "PR(>F)"], abs=0.06)


def test_a_p_that_no_arrangement_reached_is_a_bound_and_a_large_family_has_enough_arrangements() -> None:
    frame = panel(np.random.default_rng(8), 30, 4, 4, effect=0.5)
    result = effect_of(frame)
    assert result.p == 2.0**-22
    assert result.note == "p ≤ 2.4e-07: none of 4,194,304 arrangements was as extreme"
    assert result.low > 0.1
    assert 5000 * effect_of(frame, tests=5000).p <= 0.05 / 100


# What must not change it


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(-100, 100), st.floats(0.01, 100))
def test_names_order_scale_and_scenario_levels_do_not_matter(seed: int, shift: float, scale: float) -> None:
    rng = np.random.default_rng(seed)
    frame = panel(rng, 5, 3, 2)
    result = effect_of(frame)
    changed = frame.assign(
        score=shift * frame["scenario"] + scale * frame["score"],
        identity=frame["identity"].map({0: "x", 1: "a", 2: "m"}),
    ).sample(frac=1, random_state=seed)
    again = effect_of(changed)
    assert again.p == result.p
    assert (again.statistic, again.estimate) == pytest.approx((result.statistic, result.estimate), rel=1e-6)


def test_repeats_and_judges_do_not_count_as_independent() -> None:
    frame = panel(np.random.default_rng(2), 8, 4, 1)
    assert p_of(pd.concat([frame] * 25)) == p_of(frame)
