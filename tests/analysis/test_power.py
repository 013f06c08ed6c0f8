"""Power of the sign-flip test: where no difference can be found, published sample sizes, and the test itself, run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from parley.analysis.stats import power as module
from parley.analysis.stats.power import (
    ScoreSpread,
    clusters_for_equivalence,
    clusters_needed,
    detectable,
    equivalence_power,
    sign_flip_power,
    too_few,
)
from parley.analysis.stats.signflips import equivalence_p, sign_flip_p

# Too few clusters


def test_five_bases_find_nothing() -> None:
    # 2 of 32 sign patterns: p is at least 0.0625, whatever the data are
    assert sign_flip_p([1000.0, 1001.0, 999.0, 1000.5, 1002.0]) == 0.0625
    assert sign_flip_power(5, effect=1000.0, sd=0.1) == 0
    assert detectable(5, sd=0.1) == math.inf
    assert sign_flip_power(6, effect=1000.0, sd=0.1) == 1


def test_the_sentence_on_too_few_bases() -> None:
    assert too_few(5, tests=26) == (
        "with 5 bases the smallest p-value is 0.0625: no difference can be significant; at least 6 are needed, "
        "11 for a family of 26"
    )
    assert too_few(5).endswith("at least 6 are needed")
    assert too_few(8, tests=13) == (
        "with 8 bases the smallest p-value is 0.00781, and the first of 13 tests must reach 0.00385 (Holm): no "
        "difference can be significant; at least 10 are needed"
    )
    assert too_few(1).startswith("with 1 base the smallest p-value is 1:")
    assert too_few(6) == too_few(11, tests=26) == ""


# Published values


@pytest.mark.parametrize(
    ("effect", "sd", "power", "pairs"),
    [
        # G*Power 3.1 (t test, matched pairs, two tails, α 0.05, power 0.80) for Cohen's small, medium, large effect
        *((0.2, 1.0, 0.8, 199), (0.5, 1.0, 0.8, 34), (0.8, 1.0, 0.8, 15)),
        # power.t.test(delta=10, sd=10*sqrt(2), power=0.85, type="paired"): n = 19.96892 (Dalgaard, Introductory
        # Statistics with R, section 8.3)
        (10, 10 * math.sqrt(2), 0.85, 20),
    ],
)
def test_sample_sizes_of_matched_pairs(effect: float, sd: float, power: float, pairs: int) -> None:
    assert clusters_needed(effect, sd, power=power) == pytest.approx(pairs, abs=1)


@pytest.mark.parametrize(("clusters", "effect"), [(20, 0.8), (30, 0.5), (60, 0.5), (99, 0.2)])
def test_one_test_has_the_power_of_students_t(clusters: int, effect: float) -> None:
    """The sign-flip test is asymptotically as efficient: Hoeffding (1952), Annals of Mathematical Statistics 23."""
    theirs = TTestPower().power(effect, clusters, 0.05)
    assert sign_flip_power(clusters, effect, 1.0) == pytest.approx(theirs, abs=0.006)


def test_a_sample_size_for_equivalence() -> None:
    # n = (z(1 - α) + z(1 - β/2))²·σ²/δ² = (1.64485 + 1.28155)²/0.05² = 3425.6 (Chow, Shao and Wang, Sample Size
    # Calculations in Clinical Research, one-sample design, test for equivalence); t instead of z adds one or two
    assert clusters_for_equivalence(1.0, 0.05) == pytest.approx(3425.6, abs=3)
    needed = clusters_for_equivalence(0.5, 0.3, tests=13)
    assert needed is not None
    assert equivalence_power(needed, 0.5, 0.3, tests=13) >= 0.8 > equivalence_power(needed - 1, 0.5, 0.3, tests=13)
    assert clusters_for_equivalence(1.0, 1e-9) is None


# The test itself


@pytest.mark.parametrize(
    ("clusters", "tests", "effect"),
    [
        *((8, 1, 1.0), (20, 13, 0.9)),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in ((6, 1, 1.5), (12, 13, 1.3), (14, 200, 1.8))),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in ((20, 1, 0.5), (20, 200, 1.2))),
    ],
)
def test_the_power_is_how_often_the_test_rejects_and_how_often_equivalence_is_shown(
    clusters: int, tests: int, effect: float
) -> None:
    rng = np.random.default_rng(clusters)
    drawn = rng.normal(0.0, 1.0, (800, clusters))
    rejected = [sign_flip_p(row + effect) <= 0.05 / tests for row in drawn]
    # the standard error of a share of 800 is at most 0.018
    assert sign_flip_power(clusters, 2 * effect, 2.0, tests=tests) == pytest.approx(np.mean(rejected), abs=0.045)
    shown = [equivalence_p(row, effect) <= 0.05 / tests for row in drawn]
    assert equivalence_power(clusters, 3.0, 3 * effect, tests=tests) == pytest.approx(np.mean(shown), abs=0.05)


@pytest.mark.parametrize("tests", [1, 200])
def test_students_t_takes_over_without_a_step(tests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 100 clusters the saddlepoint is used, and beyond it t, which agrees to a thousandth."""
    last = detectable(module.MAX_SADDLEPOINT, 1.0, tests=tests)
    module._ends.cache_clear()
    monkeypatch.setattr(module, "MAX_SADDLEPOINT", 99)
    by_t = detectable(100, 1.0, tests=tests)
    module._ends.cache_clear()
    assert by_t == pytest.approx(last, rel=0.002)


# How they depend on each other


@settings(max_examples=4)
@given(st.integers(13, 200), st.integers(1, 200), st.floats(0.3, 0.95), st.floats(0.01, 10))
def test_effect_power_and_clusters_agree(clusters: int, tests: int, power: float, sd: float) -> None:
    effect = detectable(clusters, sd, tests=tests, power=power)
    assert sign_flip_power(clusters, -effect, sd, tests=tests) == pytest.approx(power, abs=1e-4)
    needed = clusters_needed(effect * 1.01, sd, tests=tests, power=power)
    assert needed is not None
    assert needed <= clusters


def test_differences_that_do_not_vary() -> None:
    assert detectable(6, 0.0) == 0
    assert detectable(5, 0.0) == math.inf
    assert sign_flip_power(20, 0.1, 0.0) == 1
    assert sign_flip_power(20, 0.0, 0.0) == 0, "p is 1 where all differences are 0"
    assert equivalence_power(5, 0.0, 0.1) == 1
    assert equivalence_power(4, 0.0, 0.1) == 0, "1 of 16 sign patterns is above 5%"
    assert clusters_needed(0.1, 0.0) == 6


def test_an_unknown_sd_gives_no_number() -> None:
    assert math.isnan(detectable(20, math.nan))
    assert math.isnan(sign_flip_power(20, 1.0, math.nan))
    assert math.isnan(equivalence_power(20, math.nan, 0.1))
    assert clusters_needed(1.0, math.nan) is None
    assert clusters_for_equivalence(math.nan, 0.1) is None
    assert clusters_needed(0.0, 1.0) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sd": -1.0}, "sd must be"),
        ({"sd": math.inf}, "sd must be"),
        ({"tests": 0}, "tests must be"),
        ({"alpha": 0.0}, "alpha must lie"),
        ({"alpha": math.nan}, "alpha must lie"),
        ({"alpha": 1e-60}, "alpha divided by"),
        ({"power": 0.0}, "power must lie"),
        ({"power": 1.0}, "power must lie"),
        ({"clusters": -1}, "number of clusters"),
    ],
)
def test_impossible_settings(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        detectable(**({"clusters": 20, "sd": 1.0} | settings))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="margin must be above 0"):
        equivalence_power(20, 1.0, 0.0)


# Standard deviations of scores


def test_the_spread_of_a_base_by_hand() -> None:
    # 2·(0.3² + (0.6² + 1²/(4·2))/10) = 2·(0.09 + 0.0485) = 0.277
    spread = ScoreSpread(base=0.3, scenario=0.6, residual=1.0)
    assert spread.of_base(scenarios=10, judges=4, repeats=2) ** 2 == pytest.approx(0.277)
    assert spread.of_base(scenarios=10**9) == pytest.approx(0.3 * math.sqrt(2)), "more scenarios do not replace bases"
