"""Means and proportions with errors from clusters."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from parley.analysis.stats.clustered import bootstrap_mean, cluster_mean
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.resampling import bootstrap_sums, percentile_interval, words_on_draws
from parley.analysis.stats.tables import cell_means, unique_rows

# Drawing


def test_a_draw_is_a_sum_over_units_drawn_with_replacement() -> None:
    units = np.array([[1.0, 1.0], [10.0, 1.0], [100.0, 1.0]])
    sums = bootstrap_sums(units, 4000, 0)
    assert set(sums[:, 1]) == {3.0}, "as many units as there are, every time"
    possible = {a + 10 * b + 100 * (3 - a - b) for a in range(4) for b in range(4 - a)}
    assert set(sums[:, 0]) == possible
    # all three different: 3! / 3³ of the draws; all the same: 3 / 27
    assert np.mean(sums[:, 0] == 111) == pytest.approx(6 / 27, abs=0.03)
    assert np.mean(np.isin(sums[:, 0], [3, 30, 300])) == pytest.approx(3 / 27, abs=0.02)


def test_an_interval_needs_two_units_forty_draws_and_half_of_them_known() -> None:
    draws = np.linspace(0, 1, 40)
    some = np.where(np.arange(40) < 21, draws, math.nan)
    assert all(map(math.isfinite, (*percentile_interval(draws, 2), *percentile_interval(some, 2))))
    half = np.where(np.arange(40) < 20, draws, math.nan)
    for unusable, units in ((draws, 1), (draws[:39], 2), (half, 2)):
        assert all(map(math.isnan, percentile_interval(unusable, units)))


@pytest.mark.parametrize(("values", "draws"), [([1.0, 1.0], 100), ([1.0], 100), ([0.0, 2.0], 39)])
def test_a_mean_without_an_interval_is_still_a_mean(values: list[float], draws: int) -> None:
    mean = bootstrap_mean(values, range(len(values)), draws=draws)
    assert mean.estimate == 1.0
    assert math.isnan(mean.low)
    assert mean.note


def test_equal_units_may_be_counted_instead_of_listed() -> None:
    units, counts = np.array([[0.0], [1.0]]), np.array([700, 300])
    counted = bootstrap_sums(units, 3000, 1, counts)[:, 0]
    listed = bootstrap_sums(np.repeat(units, counts, axis=0), 3000, 2)[:, 0]
    assert stats.ks_2samp(counted, listed).pvalue > 0.01
    assert counted.std() == pytest.approx(math.sqrt(1000 * 0.3 * 0.7), rel=0.05)


def test_many_units_are_drawn_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    units = np.arange(50.0)[:, None]
    monkeypatch.setattr("parley.analysis.stats.resampling.BLOCK_SIZE", 100)  # two draws per block
    assert bootstrap_sums(units, 501, 0).mean() == pytest.approx(units.sum(), rel=0.02)


def test_every_row_is_mapped_to_its_distinct_row() -> None:
    rows = np.random.default_rng(0).integers(0, 3, (200, 3)).astype(float)
    rows[::7, 1] = np.nan
    distinct, member = unique_rows(rows)
    np.testing.assert_array_equal(distinct[member], rows)
    assert len(distinct) == len({tuple(row) for row in rows.astype(str)})


def test_the_tails_are_hesterbergs() -> None:
    # R, resample::ExpandProbs: z(probs2)·sqrt((n - 1) / n) = t(probs, n - 1). On normal draws with the bootstrap's
    # narrower spread the interval is then Student's.
    draws = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000) * math.sqrt(9 / 10)
    low, high = percentile_interval(draws, 10)
    assert (low, high) == pytest.approx((-2.2622, 2.2622), abs=2e-3)  # t(0.975, 9)


# Means


def test_the_bootstrap_agrees_with_student_on_many_even_clusters() -> None:
    rng = np.random.default_rng(4)
    clusters = pd.Series(np.repeat(np.arange(200), 3))
    values = pd.Series(rng.normal(0, 1, 200)[clusters] + rng.normal(0, 1, 600))
    theirs, ours = cluster_mean(values, clusters), bootstrap_mean(values, clusters, draws=10_000)
    assert ours.estimate == pytest.approx(theirs.estimate)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert (ours.n, ours.clusters) == (600, 200)
    assert "seed 0" in ours.method


def test_clusters_or_rows_may_be_weighted_equally() -> None:
    values, clusters = [1.0, 1.0, 1.0, 5.0], ["a", "a", "a", "b"]
    assert bootstrap_mean(values, clusters).estimate == 3.0
    assert bootstrap_mean(values, clusters, weight="row").estimate == 2.0


@pytest.mark.nightly
@pytest.mark.parametrize(("clusters", "lowest"), [(8, 0.90), (30, 0.92)])
def test_the_bootstrap_covers_at_its_level_even_with_few_clusters(clusters: int, lowest: float) -> None:
    rng = np.random.default_rng(clusters)
    names = np.repeat(np.arange(clusters), 4)
    covered = 0
    for seed in range(400):
        values = 5 + rng.normal(0, 1, clusters)[names] + rng.normal(0, 0.5, len(names))
        result = bootstrap_mean(values, names, draws=400, seed=seed)
        covered += result.low <= 5 <= result.high
    assert lowest <= covered / 400 <= 0.98


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-50, 50)), min_size=2, max_size=30), st.randoms())
def test_the_order_of_rows_and_the_names_of_clusters_do_not_matter(
    rows: list[tuple[int, float]], order: object
) -> None:
    shuffled = sorted(rows, key=lambda _: order.random())  # type: ignore[attr-defined]
    original = bootstrap_mean([v for _, v in rows], [f"s{c}" for c, _ in rows], draws=50)
    changed = bootstrap_mean([v for _, v in shuffled], [f"x{c}" for c, _ in shuffled], draws=50)
    expected = pytest.approx((changed.estimate, changed.low, changed.high), nan_ok=True)
    assert (original.estimate, original.low, original.high) == expected
    assert original.note == changed.note


def test_the_same_seed_gives_the_same_interval() -> None:
    values, clusters = np.arange(20.0), np.repeat(np.arange(10), 2)
    first, same, other = (bootstrap_mean(values, clusters, seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert (first.low, first.high) != (other.low, other.high)


def test_cells_are_means_of_all_their_values() -> None:
    cells = cell_means([1.0, 3.0, None, 8.0], ["b", "b", "b", "a"], ["s2", "s2", "s2", "s1"])
    assert list(cells.columns) == ["b", "a"], "in order of appearance"
    assert list(cells.index) == ["s1", "s2"]
    assert cells.loc["s2", "b"] == 2.0
    assert math.isnan(cells.loc["s1", "b"])


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths: 3, 2"):
        bootstrap_mean([1.0, 2.0, 3.0], ["a", "b"])


# Proportions


def test_a_cluster_proportion_by_hand() -> None:
    # wins and sizes: a 2 of 2, b 1 of 2, c 1 of 4; p = 4 / 8; deviations 1, 0, -1; variance 3 / 2 · 2 / 64 = 0.046875
    # effective n = 0.25 / 0.046875 = 16 / 3; t(0.975, 2) = 4.3027; centre (p + t² / 2n) / (1 + t² / n) = 1 / 2 and
    # half width t / (1 + t² / n) · sqrt(0.25 / n + t² / (4 n²)) = 0.44055
    result = cluster_proportion([1, 1, 1, 0, 1, 0, 0, 0], list("aabbcccc"))
    assert result.estimate == 0.5
    assert (result.low, result.high) == pytest.approx((0.5 - 0.44055, 0.5 + 0.44055), abs=1e-4)
    assert (result.n, result.clusters) == (8, 3)


def test_clusters_of_one_are_nearly_wilson() -> None:
    wins = np.repeat([1.0, 0.0], [130, 270])
    theirs, ours = wilson(130, 400), cluster_proportion(wins, np.arange(400))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-3)


def test_repeating_verdicts_ten_times_does_not_narrow_the_interval() -> None:
    wins, clusters = np.array([1, 0, 1, 1, 0, 1, 1, 0.5]), np.arange(8)
    once, often = cluster_proportion(wins, clusters), cluster_proportion(np.tile(wins, 10), np.tile(clusters, 10))
    assert (often.low, often.high) == pytest.approx((once.low, once.high))
    assert wilson(wins.sum() * 10, 80).low > often.low + 0.1, "Wilson alone would count them as new"


def test_winning_everything_still_has_an_interval() -> None:
    result = cluster_proportion(np.ones(60), np.repeat(np.arange(15), 4))
    assert (result.estimate, result.high) == (1.0, 1.0)
    assert 0.6 < result.low < 0.85, "the interval of 15 independent cases, not of 60"


@pytest.mark.nightly
def test_the_proportion_covers_at_its_level() -> None:
    rng = np.random.default_rng(10)
    covered = 0
    for _ in range(500):
        chance, size = rng.beta(2, 1, 10), rng.integers(2, 9, 10)
        names = np.repeat(np.arange(10), size)
        result = cluster_proportion(rng.random(len(names)) < chance[names], names)
        covered += result.low <= 2 / 3 <= result.high
    assert 455 <= covered <= 495  # 475 expected, standard deviation 4.9


def test_too_few_draws_give_no_interval_and_say_so() -> None:
    result = bootstrap_mean([1.0, 2.0, 4.0], ["a", "b", "c"], draws=1)
    assert result.estimate == pytest.approx(7 / 3)
    assert math.isnan(result.low)
    assert result.note == "an interval needs 40 bootstrap draws or more"
    assert words_on_draws(1) == ("An interval needs 40 bootstrap draws or more, not 1: see --draws.",)
    assert words_on_draws(40) == ()
