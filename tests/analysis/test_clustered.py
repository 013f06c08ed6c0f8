"""Means and proportions over clusters, against published values, other libraries, and calculations by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis.stats.clustered import bootstrap_mean, cluster_mean
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.resampling import bootstrap_sums, percentile_interval, words_on_draws
from parley.analysis.stats.tables import cell_means, unique_rows

NAN = math.nan

# Proportions


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison of seven methods",
        # Statistics in Medicine 17 (1998) 857-872, table I, method 3 (score, no continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (0, 0, NAN, NAN),
    ],
)
def test_wilson_gives_the_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    result = wilson(successes, n)
    assert (round(result.low, 4), round(result.high, 4)) == pytest.approx((low, high), nan_ok=True)
    assert result.estimate == pytest.approx(successes / n if n else NAN, nan_ok=True)
    assert (result.n, result.level, result.method) == (n, 0.95, "Wilson")


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (3, 7), (10, 10), (250, 1000), (2.5, 6)])
def test_wilson_ends_are_where_the_score_test_just_rejects(successes: float, n: int) -> None:
    z, share = stats.norm.ppf(0.975), successes / n
    for end in (wilson(successes, n).low, wilson(successes, n).high):
        assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-7)


@pytest.mark.parametrize("n", [1, 2, 7, 20, 39])
def test_the_interval_of_0_starts_at_0_and_that_of_1_ends_at_1(n: int) -> None:
    """Exactly, or a table shows 5.6e-17."""
    assert (wilson(0, n).low, wilson(n, n).high) == (0, 1)
    assert cluster_proportion([0.0] * (n + 1), range(n + 1)).low == 0
    assert cluster_proportion([1.0] * (n + 1), range(n + 1)).high == 1


def test_a_cluster_proportion_by_hand() -> None:
    # wins and sizes: a 2 of 2, b 1 of 2, c 1 of 4; p = 4 / 8; deviations 1, 0, -1; variance 3 / 2 · 2 / 64 = 0.046875
    # effective n = 0.25 / 0.046875 = 16 / 3; t(0.975, 2) = 4.3027; centre (p + t² / 2n) / (1 + t² / n) = 1 / 2 and
    # half width t / (1 + t² / n) · sqrt(0.25 / n + t² / (4 n²)) = 0.44055
    result = cluster_proportion([1, 1, 1, 0, 1, 0, 0, 0], list("aabbcccc"))
    assert result.estimate == 0.5
    assert (result.low, result.high) == pytest.approx((0.5 - 0.44055, 0.5 + 0.44055), abs=1e-4)
    assert (result.n, result.clusters) == (8, 3)


def test_a_proportion_is_wilsons_with_as_many_cases_as_there_are_clusters() -> None:
    wins = np.repeat([1.0, 0.0], [130, 270])
    theirs, ours = wilson(130, 400), cluster_proportion(wins, np.arange(400))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-3)
    some, clusters = np.array([1, 0, 1, 1, 0, 1, 1, 0.5]), np.arange(8)
    once, often = cluster_proportion(some, clusters), cluster_proportion(np.tile(some, 10), np.tile(clusters, 10))
    assert (often.low, often.high) == pytest.approx((once.low, once.high)), "ten times the same is nothing new"
    won = cluster_proportion(np.ones(60), np.repeat(np.arange(15), 4))
    assert (won.estimate, won.high) == (1.0, 1.0)
    assert won.low == pytest.approx(15 / (15 + stats.t.ppf(0.975, 14) ** 2), abs=1e-3), "of 15 cases, not of 60"


# Means


@pytest.mark.parametrize(
    ("values", "clusters", "scale", "expected"),
    [
        # cluster means: a = 7, b = 5, c = 9; their mean 7, deviations 0, -2, 2, so s = sqrt(8 / 2) = 2;
        # standard error 2 / sqrt(3) = 1.1547; t(0.975, 2) = 4.3027; half width 4.9683
        ([6.0, 8.0, 5.0, 9.0, 9.0, 9.0], "aabccc", None, (7, 7 - 4.9683, 7 + 4.9683, 6, 3)),
        # Means 9, 10, 10: 9.667 ± 4.303 · 0.3333 (t with two degrees of freedom), so 8.232 to 11.101
        ([9.0, 10.0, 10.0], "abc", None, (29 / 3, 8.2324, 11.1009, 3, 3)),
        ([9.0, 10.0, 10.0], "abc", (0, 10), (29 / 3, 8.2324, 10.0, 3, 3)),
        ([1.0, NAN, 3.0, NAN], "aabc", None, (2, 2 - 12.7062, 2 + 12.7062, 2, 2)),  # missing values are left out
        ([], "", None, (NAN, NAN, NAN, 0, 0)),
        ([NAN], "a", None, (NAN, NAN, NAN, 0, 0)),
        ([5.0], "a", None, (5, NAN, NAN, 1, 1)),
    ],
)
def test_a_cluster_mean_by_hand(values: list[float], clusters: str, scale: Any, expected: tuple[float, ...]) -> None:
    given_values, given_clusters = pd.Series(values, dtype=float), pd.Series(list(clusters), dtype=object)
    result = cluster_mean(given_values, given_clusters, **({"scale": scale} if scale else {}))
    found = (result.estimate, result.low, result.high, result.n, result.clusters)
    assert found == pytest.approx(expected, abs=1e-4, nan_ok=True)
    twice = cluster_mean(*(pd.concat([column] * 2, ignore_index=True) for column in (given_values, given_clusters)))
    if not scale:
        assert (twice.low, twice.high) == pytest.approx((result.low, result.high), nan_ok=True)


def test_clusters_or_rows_may_be_weighted_equally() -> None:
    values, clusters = [1.0, 1.0, 1.0, 5.0], ["a", "a", "a", "b"]
    assert bootstrap_mean(values, clusters).estimate == 3.0
    assert bootstrap_mean(values, clusters, weight="row").estimate == 2.0
    with pytest.raises(ValueError, match="different lengths: 3, 2"):
        bootstrap_mean([1.0, 2.0, 3.0], ["a", "b"])
    with pytest.raises(ValueError, match="different lengths: 2, 1, 1"):
        cell_means([1.0, 2.0], ["a"], ["s"])


def test_a_proportion_over_two_crossed_samples_has_the_error_of_both() -> None:
    """20 bases × 4 wordings, of which one loses everywhere: over bases there is no spread at all."""
    base, wording = (place.ravel() for place in np.indices((20, 4)))
    won = (wording > 0).astype(float)
    assert cluster_proportion(won, base).note.startswith("all clusters have the same proportion")
    crossed = cluster_proportion(won, base, crossed=wording)
    assert (crossed.estimate, crossed.clusters) == (0.75, 4)
    assert crossed.low < 0.3


def test_one_small_cluster_that_loses_does_not_make_59_that_win_sure() -> None:
    sizes = np.array([1, *[10] * 59])
    clusters, won = np.repeat(np.arange(60), sizes), np.repeat([0.0, *[1.0] * 59], sizes)
    found = cluster_proportion(won, clusters)
    assert (found.low, found.high) == pytest.approx((0.935, 1.0), abs=0.01), "as 60 cases, not as 591"


# Drawing


def test_a_draw_is_a_sum_over_units_drawn_with_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    units = np.array([[1.0, 1.0], [10.0, 1.0], [100.0, 1.0]])
    sums = bootstrap_sums(units, 4000, 0)
    assert set(sums[:, 1]) == {3.0}, "as many units as there are, every time"
    assert set(sums[:, 0]) == {a + 10 * b + 100 * (3 - a - b) for a in range(4) for b in range(4 - a)}
    # all three different: 3! / 3³ of the draws; all the same: 3 / 27
    assert np.mean(sums[:, 0] == 111) == pytest.approx(6 / 27, abs=0.03)
    assert np.mean(np.isin(sums[:, 0], [3, 30, 300])) == pytest.approx(3 / 27, abs=0.02)
    monkeypatch.setattr("parley.analysis.stats.resampling.BLOCK_SIZE", 100)  # two draws of 50 units per block
    many = np.arange(50.0)[:, None]
    assert bootstrap_sums(many, 501, 0).mean() == pytest.approx(many.sum(), rel=0.02)


def test_an_interval_needs_two_units_forty_draws_and_half_of_them_known() -> None:
    draws = np.linspace(0, 1, 40)
    for known, units, usable in ((40, 2, True), (21, 2, True), (20, 2, False), (40, 1, False)):
        some = np.where(np.arange(40) < known, draws, NAN)
        assert all(map(math.isfinite, percentile_interval(some, units))) == usable
    assert all(map(math.isnan, percentile_interval(draws[:39], 2)))
    # R, resample::ExpandProbs: z(probs2)·sqrt((n - 1) / n) = t(probs, n - 1). On normal draws with the bootstrap's
    # narrower spread the interval is then Student's.
    normal = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000) * math.sqrt(9 / 10)
    assert percentile_interval(normal, 10) == pytest.approx((-2.2622, 2.2622), abs=2e-3), "Hesterberg's: t(0.975, 9)"


@pytest.mark.parametrize(("values", "draws"), [([1.0, 1.0], 100), ([1.0], 100), ([0.0, 2.0], 39)])
def test_a_mean_without_an_interval_is_still_a_mean(values: list[float], draws: int) -> None:
    mean = bootstrap_mean(values, range(len(values)), draws=draws)
    assert (mean.estimate, math.isnan(mean.low), bool(mean.note)) == (1.0, True, True)
    assert (mean.note == "an interval needs 40 bootstrap draws or more") == (draws == 39)
    said = "An interval needs 40 bootstrap draws or more, not 39: see --draws."
    assert words_on_draws(draws) == ((said,) if draws == 39 else ())


# Tables and roots


def test_cells_are_means_of_all_their_values() -> None:
    cells = cell_means([1.0, 3.0, None, 8.0], ["b", "b", "b", "a"], ["s2", "s2", "s2", "s1"])
    assert (list(cells.columns), list(cells.index)) == (["b", "a"], ["s1", "s2"]), "columns in order of appearance"
    assert cells.loc["s2", "b"] == 2.0
    assert math.isnan(cells.loc["s1", "b"])
    rows = np.random.default_rng(0).integers(0, 3, (200, 3)).astype(float)
    rows[::7, 1] = np.nan
    distinct, member = unique_rows(rows)
    np.testing.assert_array_equal(distinct[member], rows)
    assert len(distinct) == len({tuple(row) for row in rows.astype(str)})
