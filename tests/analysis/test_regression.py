"""GEE and the mixed model against tests that they must equal on balanced data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from parley.analysis.stats.regression import gee, mixed_model


def balanced(identities: int, judges: int = 1, seed: int = 0, scenarios: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    shape = scenarios, identities, judges
    scores = (
        5
        + rng.normal(0, 1.5, (scenarios, 1, 1))
        + rng.normal(0, 0.8, (scenarios, identities, 1))
        + rng.normal(0, 0.6, (scenarios, 1, judges))
        + rng.normal(0, 0.5, shape)
    )
    index = pd.MultiIndex.from_product([range(size) for size in shape], names=["scenario", "identity", "judge"])
    frame = pd.Series(scores.ravel(), index=index, name="score").reset_index()
    return frame.assign(identity=frame["identity"].map(lambda number: f"i{number}"))


def test_two_identities_in_a_mixed_model_are_the_paired_t_test() -> None:
    frame = balanced(2)
    first, second = (frame.loc[frame["identity"] == label, "score"].to_numpy() for label in ("i0", "i1"))
    theirs = stats.ttest_rel(first, second)
    result = mixed_model(frame["score"], frame["identity"], frame["scenario"])
    assert result.effect == pytest.approx(np.mean(first - second))
    assert result.effect_name == "mean difference, i0 − i1"
    assert result.p == pytest.approx(theirs.pvalue, abs=1e-4)
    assert result.statistic == pytest.approx(theirs.statistic**2, rel=1e-3)
    ends = theirs.confidence_interval()
    assert (result.low, result.high) == pytest.approx((ends.low, ends.high), abs=1e-3)
    assert (result.df, result.clusters, result.n, result.assumption) == (19, 20, 40, "clustered")


def test_more_identities_in_a_mixed_model_are_the_analysis_of_variance_with_blocks() -> None:
    frame = balanced(4, seed=1)
    theirs = anova_lm(ols("score ~ C(scenario) + C(identity)", frame).fit(), typ=2).loc["C(identity)"]
    result = mixed_model(frame["score"], frame["identity"], frame["scenario"])
    assert result.statistic == pytest.approx(theirs["F"], rel=1e-3)
    assert result.p == pytest.approx(theirs["PR(>F)"], abs=1e-4)
    assert result.df == 19 * 3
    assert "pairwise" in result.note, "no single size for four identities"


def test_judges_as_a_variance_component_do_not_count_as_scenarios() -> None:
    frame = balanced(2, judges=3, seed=2, scenarios=12)
    means = mixed_model(frame["score"], frame["identity"], frame["scenario"])
    result = mixed_model(frame["score"], frame["identity"], frame["scenario"], frame["judge"])
    assert result.effect == pytest.approx(means.effect, abs=1e-6)
    assert result.high - result.low == pytest.approx(means.high - means.low, rel=0.02)
    assert result.n == 72


def test_gee_by_hand() -> None:
    # two identities: the estimate is the mean difference d̄; the robust variance Σ (d - d̄)² / c², and the reduction of
    # its bias (each residual divided by 1 - 1 / c) makes it Σ (d - d̄)² / (c - 1)²
    frame = balanced(2, seed=3)
    wide = frame.pivot(index="scenario", columns="identity", values="score")
    gaps = (wide["i0"] - wide["i1"]).to_numpy()
    error = np.sqrt(((gaps - gaps.mean()) ** 2).sum()) / 19
    result = gee(frame["score"], frame["identity"], frame["scenario"])
    assert result.effect == pytest.approx(gaps.mean())
    assert result.statistic == pytest.approx((gaps.mean() / error) ** 2)
    assert result.p == pytest.approx(2 * stats.t.sf(abs(gaps.mean()) / error, 19))
    assert result.high - result.low == pytest.approx(2 * stats.t.ppf(0.975, 19) * error)


def test_repeats_do_not_change_gee() -> None:
    frame = balanced(3, seed=4)
    once = gee(frame["score"], frame["identity"], frame["scenario"])
    often = pd.concat([frame] * 10)
    again = gee(often["score"], often["identity"], often["scenario"])
    assert again.p == pytest.approx(once.p)
    assert (once.n, again.n) == (60, 600)


def test_the_models_have_the_right_false_positive_rate() -> None:
    wrong = {"gee": 0, "mixed": 0}
    for seed in range(40):
        frame = balanced(2, judges=2, seed=100 + seed, scenarios=10)
        wrong["gee"] += gee(frame["score"], frame["identity"], frame["scenario"]).p <= 0.05
        wrong["mixed"] += mixed_model(frame["score"], frame["identity"], frame["scenario"]).p <= 0.05
    assert max(wrong.values()) <= 7, "2 expected of 40, standard deviation 1.4"
