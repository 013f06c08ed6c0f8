"""Judges that break the tests' assumptions: what is simulated, and a seeded sample of benchmarks/CALIBRATION.md."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.calibration import printed
from benchmarks.calibration.__main__ import main
from benchmarks.calibration.adversarial import calibrate_adversarially
from benchmarks.calibration.cells import cells
from benchmarks.calibration.judges import Cell, model_scores, preferences, scores, unread
from benchmarks.calibration.printed import (
    attainable_level,
    ignoring_unread,
    over_bases,
    true_values,
    within_judges,
)
from benchmarks.calibration.silent import NAIVE_BASES
from parley.analysis.stats.paired import mcnemar_p

NAN = np.nan


def cell(name: str) -> Cell:
    (found,) = [cell for cell in cells() if f"{cell.group}: {cell.name}" == name]
    return found


# What is simulated


def test_cells_have_names_of_their_own() -> None:
    names = [f"{cell.group}: {cell.name}" for cell in cells()]
    assert len(set(names)) == len(names)
    for factor in ("base × identity 0.15", "20 × 1", "5 × 10", "10 × 5", "1 judge", "8 judges", "unequal bases"):
        assert f"one factor: {factor}" in names


def test_effects_by_base_have_the_planted_spread_and_no_mean() -> None:
    planted = Cell(name="", base_identity=0.5, mean=5.0)
    truth = true_values(planted, 0)
    assert truth.mean == 0
    assert truth.sd == pytest.approx(0.5 * np.sqrt(2), abs=0.02), "each identity has its own effects"
    differences = within_judges(scores(planted, 500, np.random.default_rng(0)))
    assert differences.mean() == pytest.approx(0, abs=0.03)


def test_opposite_stereotypes_cancel_over_bases() -> None:
    opposite = Cell(name="", opposite=1.5, direction="half", mean=5.0)
    by_base = over_bases(within_judges(scores(opposite, 300, np.random.default_rng(0))), opposite).mean(axis=0)
    assert by_base[::2] == pytest.approx(np.full(10, 1.5), abs=0.1)
    assert by_base[1::2] == pytest.approx(np.full(10, -1.5), abs=0.1)


def test_unequal_bases_have_1_to_30_scenarios() -> None:
    unequal = Cell(name="", unequal=True)
    assert (min(unequal.sizes), max(unequal.sizes), len(unequal.sizes)) == (1, 30, 20)
    assert np.bincount(unequal.base_of).tolist() == unequal.sizes.tolist()


@pytest.mark.parametrize("noise", ["normal", "skewed", "heavy-tailed"])
def test_scores_are_whole_points_of_the_scale(noise: str) -> None:
    points = scores(replace(Cell(name=""), noise=noise), 20, np.random.default_rng(0))  # type: ignore[arg-type]
    assert points.shape == (20, 4, 200, 4)
    assert set(np.unique(points)) <= set(range(11))
    assert points.std() == pytest.approx(1.6, abs=0.25)
    if noise == "skewed":
        assert stats.skew(points.ravel()) < -0.3


def test_judges_lean_to_identities_but_the_panel_does_not() -> None:
    leaning = Cell(name="", judge_identity=0.8, mean=5.0, scenarios=100)
    points = scores(leaning, 40, np.random.default_rng(0))
    by_judge = (points[:, 0] - points[:, 1]).mean(axis=1)
    assert by_judge.std() > 0.5
    assert by_judge.mean(axis=1) == pytest.approx(np.zeros(40), abs=0.15)


def test_only_the_first_identity_goes_unread() -> None:
    complete = scores(Cell(name=""), 20, np.random.default_rng(0))
    for missing, share in (("low scores unread", 0.5), ("most low scores unread", 0.9)):
        given = unread(Cell(name="", missing=missing), complete, np.random.default_rng(1))  # type: ignore[arg-type]
        assert np.isfinite(given[:, 1:]).all()
        assert np.isfinite(given[:, 0][complete[:, 0] > 5]).all()
        assert np.isnan(given[:, 0][complete[:, 0] <= 5]).mean() == pytest.approx(share, abs=0.03)
    refusing = unread(Cell(name="", missing="one judge refuses"), complete, np.random.default_rng(1))
    assert np.isnan(refusing[:, 0]).mean(axis=(0, 1)) == pytest.approx([0.9, 0, 0, 0], abs=0.03)


def test_a_judge_who_only_looks_at_the_place_prefers_no_one() -> None:
    choices = preferences(Cell(name="", position=np.inf), 5, np.random.default_rng(0))
    assert set(np.unique(choices)) == {-1.0, 1.0}
    assert (choices.mean(axis=2) == 0).all(), "both orders cancel on every scenario"


def test_a_model_may_be_better_on_whole_bases() -> None:
    by_base = Cell(name="", model_base=2.0)
    total = model_scores(by_base, 100, np.random.default_rng(0))
    gaps = over_bases((total[:, 0] - total[:, 1]).mean(axis=2), by_base)
    assert gaps.std() == pytest.approx(2.0 * np.sqrt(2), abs=0.2)


# How differences are taken


def test_differences_are_taken_within_judges_who_scored_both() -> None:
    """Two judges, 3 points apart; the strict one did not score the first identity on the second scenario."""
    first, second = [[8.0, 5.0], [8.0, NAN]], [[7.0, 4.0], [7.0, 4.0]]
    given = np.array([[first, second]])
    assert within_judges(given).tolist() == [[1.0, 1.0]]
    assert ignoring_unread(given).tolist() == [[1.0, 8.0 - 5.5]]


def test_a_scenario_without_a_complete_judge_is_left_out_of_its_base() -> None:
    given = np.array([[[[NAN], [6.0], [5.0]], [[7.0], [4.0], [4.0]]]])
    two_bases = Cell(name="", bases=2, unequal=False, scenarios=1)
    differences = within_judges(given)
    assert np.isnan(differences[0, 0])
    assert over_bases(differences[:, 1:], two_bases).tolist() == [[2.0, 1.0]]


# Tests that are not elsewhere


def test_mcnemar_agrees_with_the_reports_test() -> None:
    wins, losses = np.array([0, 3, 12, 40, 0]), np.array([4, 3, 5, 61, 0])
    theirs = [
        mcnemar_p(np.repeat([1, 0, 0], counts), np.repeat([0, 1, 0], counts))
        for counts in zip(wins, losses, [200] * 5, strict=True)
    ]
    assert printed.binomial_p(wins, losses) == pytest.approx(theirs, nan_ok=True)


@pytest.mark.parametrize(
    "differences",
    [[1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6], [0.5, -1, 1, 0, 2, 2, -3], [1] * 9, [1, 1.25, -0.5] * 5],
)
def test_the_attainable_level_is_that_of_all_sign_patterns(differences: list[float]) -> None:
    sizes = np.abs(np.array(differences))
    sums = np.abs([np.dot(signs, sizes) for signs in product((-1, 1), repeat=len(sizes))])
    levels = [float((sums >= value - 1e-9).mean()) for value in np.unique(sums)]
    expected = max((level for level in levels if level <= 0.05), default=0.0)
    assert attainable_level(np.array(differences, dtype=float)) == pytest.approx(expected)


def test_five_bases_can_never_reject_and_six_can() -> None:
    assert attainable_level(np.array([1.0, 2.1, 4.3, 8.2, 16.0])) == 0
    assert attainable_level(np.array([1.0, 2.1, 4.3, 8.2, 16.0, 32.0])) == 2 / 64
    assert attainable_level(np.random.default_rng(0).normal(size=30)) == pytest.approx(0.05, abs=1e-6)
    assert attainable_level(np.zeros(20)) == 0


# A sample of the table

SAMPLE = (
    "one factor: base × identity 0.5",
    "opposite stereotypes: ±1.5, exactly half of the bases",
    "unread replies: one judge refuses one identity",
    "unread replies: nine tenths of one identity's low scores",
    "planted differences: difference 0.4, base × identity 0.3, 10 × 5",
    "phase 2: base × identity 0.5",
    "compare: model × scenario 1",
)


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    rows = calibrate_adversarially([cell(name) for name in SAMPLE], simulations=250, seed=0)
    rows["place"] = rows["group"] + ": " + rows["cell"]
    return rows.set_index(["place", "test"])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("place", "test"),
    [
        (SAMPLE[0], printed.BY_BASE),
        (SAMPLE[0], printed.OMNIBUS),
        (SAMPLE[0], printed.ALIGNED),
        (SAMPLE[2], printed.BY_BASE),
        (SAMPLE[2], printed.BETWEEN_BASES),
        (SAMPLE[5], printed.BY_BASE),
        (SAMPLE[6], printed.BY_BASE),
        (SAMPLE[6], printed.RIGHT_BY_BASE),
    ],
)
def test_what_reports_rest_on_keeps_its_level(sample: pd.DataFrame, place: str, test: str) -> None:
    row = sample.loc[(place, test)]
    assert row["null"]
    assert row["simulations"] == 250
    assert row["low"] <= 0.07, "false alarms are compatible with the target"
    assert row["high"] >= 0.03
    assert row["rate"] <= 0.1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("place", "test", "least"),
    [
        (SAMPLE[0], printed.BY_SCENARIO, 0.15),
        (SAMPLE[2], printed.NAIVE, 0.15),
        (SAMPLE[5], printed.BY_SCENARIO, 0.15),
        (SAMPLE[5], printed.BINOMIAL, 0.15),
        (SAMPLE[6], printed.MCNEMAR, 0.07),
    ],
)
def test_what_takes_less_than_a_base_as_independent_does_not(
    sample: pd.DataFrame, place: str, test: str, least: float
) -> None:
    assert sample.loc[(place, test), "low"] > least


@pytest.mark.nightly
def test_opposite_stereotypes_are_not_called_alike(sample: pd.DataFrame) -> None:
    opposite = sample.loc[SAMPLE[1]]
    assert opposite.loc[printed.TOST_BY_SCENARIO, "rate"] > 0.9, "what scenarios taken as independent would have said"
    assert opposite.loc[printed.ALIKE, "rate"] == 0
    assert opposite.loc[printed.BETWEEN_BASES, "rate"] == 1


@pytest.mark.nightly
def test_scores_that_go_unread_because_they_are_low_cannot_be_corrected_for(sample: pd.DataFrame) -> None:
    unread_low = sample.loc[SAMPLE[3]]
    assert unread_low.loc[printed.BY_BASE, "low"] > 0.3
    assert "too many false alarms" in unread_low.loc[printed.BY_BASE, "finding"]
    assert unread_low.loc[printed.BOUNDS, "coverage"] == 1, "the worst cases include what happened"
    assert unread_low.loc[printed.BOUNDS_INTERVAL, "coverage"] == 1


@pytest.mark.nightly
def test_intervals_over_ten_bases_cover_a_planted_difference(sample: pd.DataFrame) -> None:
    planted = sample.loc[SAMPLE[4]]
    for test in (printed.BY_BASE, printed.SD_LIMIT):
        assert planted.loc[test, "coverage_low"] <= 0.97
        assert planted.loc[test, "coverage_high"] >= 0.93
    assert not planted.loc[printed.BY_BASE, "null"]
    assert planted.loc[printed.TOST, "low"] <= 0.05, "at the edge of the margin, 'alike' is a false alarm"


def test_seeds_belong_to_cells_and_batches_not_to_what_else_is_run() -> None:
    chosen = [cell("compare: 20 × 10"), cell("phase 2: base × identity 0.3")]
    both, alone, other = (
        calibrate_adversarially(some, simulations=70, seed=seed)
        for some, seed in ((chosen, 0), (chosen[1:], 0), (chosen[1:], 1))
    )
    pd.testing.assert_frame_equal(both[both["group"] == "phase 2"].reset_index(drop=True), alone)
    assert alone["rejections"].tolist() != other["rejections"].tolist()


# Silent ballots: a seeded sample of the table in benchmarks/CALIBRATION.md


@pytest.mark.nightly
def test_bases_that_share_wordings_are_no_clusters() -> None:
    names = ("20 bases, a wording each", "8 wordings for 20 bases", "20 bases × 8 wordings")
    chosen = [cell(f"silent ballots: {name}") for name in names]
    rows = calibrate_adversarially(chosen, simulations=400).set_index(["cell", "test"])
    for name in names:
        ours = rows.loc[(name, printed.BY_BASE)]
        assert ours["low"] <= 0.06, name
        assert ours["coverage_high"] >= 0.93, name
    for name in names[1:]:
        assert rows.loc[(name, NAIVE_BASES), "low"] > 0.1, "what a test over bases would have said"


def test_silent_ballots_are_called_alike_where_they_are_and_only_there() -> None:
    names = ("SD between bases 0.05", "±1.5 by base, 20 bases", "SD 0.2, 20 bases")
    chosen = [cell(f"silent, alike: {name}") for name in names]
    rows = calibrate_adversarially(chosen, simulations=150)
    alike = rows[rows["test"] == printed.ALIKE].set_index("cell")["rate"]
    assert alike["SD between bases 0.05"] > 0.9
    assert alike["±1.5 by base, 20 bases"] == 0
    assert alike["SD 0.2, 20 bases"] <= 0.05


@pytest.mark.nightly
def test_a_plain_difference_is_not_called_aligned() -> None:
    """0.4 points on every base, of which three of four coded ones favour the same identity."""
    uneven = cell("opposite stereotypes: 0.4 in all bases, directions uneven")
    rows = calibrate_adversarially([replace(uneven, scenarios=2, judges=1)], simulations=200).set_index("test")
    assert rows.loc[printed.ALIGNED, "null"]
    assert rows.loc[printed.ALIGNED, "low"] <= 0.06


# The command


def test_the_command_prints_the_table_and_names_what_misses_its_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ("calibration", "--adversarial", "--only", "nine tenths", "--simulations", "60")
    for workers in ("1", "2"):
        monkeypatch.setattr(sys, "argv", [*command, "--workers", workers, "--out", str(tmp_path / workers)])
        main()
    printed_lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| nine tenths of one identity's low scores | **") for line in printed_lines)
    missed = [line for line in printed_lines if "sign flips over bases: " in line]
    assert missed
    assert all("too many false alarms" in line for line in missed)
    once, again = ((tmp_path / workers / "adversarial.csv").read_text("utf-8") for workers in ("1", "2"))
    assert once == again, "workers change no result"
    assert (tmp_path / "1" / "adversarial.svg").exists()


def test_the_command_names_the_groups_of_cells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["calibration", "--adversarial", "--only", "no such cell"])
    with pytest.raises(SystemExit):
        main()
    assert "the groups are one factor, two factors" in capsys.readouterr().err


def test_the_plain_command_shows_the_false_positives_of_the_papers_test(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["calibration", "--simulations", "100"])
    main()
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    (of_paper,) = [row[3:] for row in rows if row[:3] == [printed.CHI_SQUARE, "20", "0"]]
    one, _, eight = map(float, of_paper)
    assert one < 10 < eight
