"""Boundaries of group-sequential tests: published values, and properties of any boundary."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from parley.analysis.stats.spending import SPENDING, boundaries, crossing, median_unbiased, nominal_level, stagewise_p


def even(looks: int) -> tuple[float, ...]:
    return tuple((number + 1) / looks for number in range(looks))


# Published values


def test_obrien_and_flemings_boundary_at_twenty_looks_as_in_r() -> None:
    # R, ldbounds: bounds(seq(0.05, 1, length = 20), iuse = c(1, 1), alpha = c(0.025, 0.025)), as a public
    # simulation script quotes it. It cuts the first three at 8, which moves the next two or three in the third digit.
    known = [
        3.942483, 3.638028, 3.394052, 3.193264, 3.024348, 2.879692, 2.753971, 2.643399, 2.545164, 2.457130, 2.377652,
        2.305414, 2.239395, 2.178743, 2.122766,
    ]  # fmt: skip
    assert boundaries("obrien-fleming", 0.05, even(20))[5:] == pytest.approx(known, abs=4e-4)
    assert boundaries("obrien-fleming", 0.05, even(20))[10:] == pytest.approx(known[5:], abs=1e-4)


def test_one_side_of_five_per_cent_is_half_of_a_two_sided_ten() -> None:
    # README of SeqBounds.jl: bounds([0.25, 0.5, 0.75, 1.0], 0.05), one-sided; the other side is never reached
    known = [3.74955, 2.53993, 2.01604, 1.72014]
    assert boundaries("obrien-fleming", 0.10, even(4)) == pytest.approx(known, abs=1e-4)


def test_three_looks_as_in_rpact() -> None:
    # rpact's slides (MCP 2025): asOF, one-sided 0.025, three looks
    assert boundaries("obrien-fleming", 0.05, even(3)) == pytest.approx([3.710, 2.511, 1.993], abs=5e-4)


def test_pococks_first_boundary_by_hand() -> None:
    # α·ln(1 + (e - 1)·t), half of it on each side: t = 0.5 gives 0.05·ln(1.859) = 0.0310
    first = boundaries("pocock", 0.05, even(2))[0]
    assert nominal_level(first) == pytest.approx(0.05 * math.log(1 + (math.e - 1) / 2))


def test_pococks_constant() -> None:
    """2.413 at each of five even looks keeps 5% (Pocock 1977)."""
    assert sum(crossing([2.413] * 5, even(5))) == pytest.approx(0.05, abs=5e-5)


def test_power_of_a_boundary_as_in_reboussin() -> None:
    # ldbounds' example "From Reboussin, et al. (2000)": this drift has a power of 90%
    bounds = (5.3666, 3.7102, 2.9728, 2.5365, 2.2154, 1.9668)
    assert sum(crossing(bounds, (0.13, 0.4, 0.69, 0.9, 0.98, 1.0), 3.242)) == pytest.approx(0.90, abs=1e-3)


# Properties of any boundary


@given(
    st.sampled_from(sorted(SPENDING)),
    st.floats(0.001, 0.2),
    st.lists(st.integers(1, 200), min_size=1, max_size=6, unique=True),
)
@settings(max_examples=40, deadline=None)
def test_exactly_alpha_is_spent(spending: str, alpha: float, clusters: list[int]) -> None:
    information = tuple(sorted(clusters))
    fractions = tuple(count / information[-1] for count in information)
    bounds = boundaries(spending, alpha, tuple(map(float, information)), fractions)
    assert sum(crossing(bounds, fractions)) == pytest.approx(alpha, rel=2e-3)


@given(st.sampled_from(sorted(SPENDING)), st.integers(2, 10), st.floats(0.001, 0.1))
@settings(max_examples=20, deadline=None)
def test_later_looks_change_no_earlier_boundary(spending: str, looks: int, alpha: float) -> None:
    whole = boundaries(spending, alpha, even(looks))
    assert boundaries(spending, alpha, even(looks)[:-1]) == whole[:-1]


def test_a_single_look_is_the_plain_test() -> None:
    for spending in SPENDING:
        assert boundaries(spending, 0.05, (1.0,))[0] == pytest.approx(stats.norm.ppf(0.975))


def test_simulated_paths_cross_as_often_as_computed() -> None:
    rng = np.random.default_rng(1)
    bounds = np.array(boundaries("pocock", 0.05, even(4)))
    z = rng.normal(0, 0.5, (200_000, 4)).cumsum(axis=1) / np.sqrt(even(4))
    assert (np.abs(z) >= bounds).any(axis=1).mean() == pytest.approx(0.05, abs=0.002)


def test_looks_that_do_not_rise_are_refused() -> None:
    with pytest.raises(ValueError, match="must rise"):
        boundaries("pocock", 0.05, (0.5, 0.5, 1.0))


# The median-unbiased estimate


def test_with_a_single_look_the_estimate_is_not_corrected() -> None:
    assert median_unbiased((), (1.0,), 2.2) == pytest.approx(2.2)


def test_half_of_the_corrected_estimates_lie_on_either_side_of_the_truth() -> None:
    """Drift 2, four looks of Pocock's: the plain estimate is too large in most studies, the corrected one in half."""
    rng = np.random.default_rng(2)
    fractions, drift = np.array(even(4)), 2.0
    bounds = boundaries("pocock", 0.05, even(4))
    z = (rng.normal(drift / 4, 0.5, (160, 4)).cumsum(axis=1)) / np.sqrt(fractions)
    ends = [next((k for k in range(4) if abs(path[k]) >= bounds[k]), 3) for path in z]
    plain = [path[k] / math.sqrt(fractions[k]) for path, k in zip(z, ends, strict=True)]
    corrected = [
        math.copysign(median_unbiased(bounds[:k], even(4)[: k + 1], abs(path[k])), path[k])
        for path, k in zip(z, ends, strict=True)
    ]
    assert np.mean(plain) > drift + 0.15
    assert np.mean(np.array(corrected) > drift) == pytest.approx(0.5, abs=0.1)


# P-values by stage-wise ordering


@pytest.mark.parametrize(
    ("looks", "pocock", "obrien_fleming"), [(2, 2.178, 1.977), (3, 2.289, 2.004), (4, 2.361, 2.024), (5, 2.413, 2.040)]
)
def test_on_a_published_boundary_p_is_five_per_cent(looks: int, pocock: float, obrien_fleming: float) -> None:
    # Constants for two-sided 5%: Jennison and Turnbull (2000), Group Sequential Methods, tables 2.1 and 2.3
    assert stagewise_p([pocock] * (looks - 1), even(looks), pocock) == pytest.approx(0.05, abs=1e-4)
    bounds = [obrien_fleming / math.sqrt(fraction) for fraction in even(looks)]
    assert stagewise_p(bounds[:-1], even(looks), bounds[-1]) == pytest.approx(0.05, abs=1e-4)


def test_at_the_first_look_p_is_the_plain_one() -> None:
    # Pocock's nominal level at two looks is 0.0294 (Pocock 1977)
    assert stagewise_p([], [0.5], 2.178) == pytest.approx(0.0294, abs=5e-5)


@pytest.mark.parametrize(("bound", "z"), [(2.797, 2.3), (2.178, 1.2), (2.5, 0.0), (3.0, 4.0)])
def test_two_looks_by_a_bivariate_normal_integral(bound: float, z: float) -> None:
    """P(|Z₁| ≥ b) + P(|Z₁| < b, |Z₂| ≥ |z|), with scipy's distribution function in place of our integration."""
    share = 0.4
    both = stats.multivariate_normal(cov=[[1, math.sqrt(share)], [math.sqrt(share), 1]])
    corners = both.cdf([bound, -z]) - both.cdf([-bound, -z])  # |Z₁| < b and Z₂ ≤ -z; the other side is as likely
    assert stagewise_p([bound], [share, 1.0], z) == pytest.approx(2 * stats.norm.sf(bound) + 2 * corners, abs=1e-5)


@given(st.sampled_from(sorted(SPENDING)), st.integers(1, 6), st.floats(0.01, 0.1))
@settings(max_examples=20, deadline=None)
def test_p_reaches_what_was_spent_exactly_on_the_boundary(spending: str, looks: int, alpha: float) -> None:
    bounds = boundaries(spending, alpha, even(looks))
    for look in range(1, looks + 1):
        if math.isfinite(bounds[look - 1]):
            p = stagewise_p(bounds[: look - 1], even(looks)[:look], bounds[look - 1])
            assert p == pytest.approx(2 * SPENDING[spending](look / looks, alpha / 2), rel=2e-3, abs=1e-9)


def test_simulated_paths_have_uniform_p_values() -> None:
    rng = np.random.default_rng(3)
    bounds = boundaries("pocock", 0.05, even(3))
    z = rng.normal(0, math.sqrt(1 / 3), (4000, 3)).cumsum(axis=1) / np.sqrt(even(3))
    ends = [next((k for k in range(3) if abs(path[k]) >= bounds[k]), 2) for path in z]
    p = [stagewise_p(bounds[:k], even(3)[: k + 1], abs(path[k])) for path, k in zip(z, ends, strict=True)]
    assert stats.kstest(p, "uniform").pvalue > 0.01
