"""Calibration: its vectorised tests are the reports' own, its judges are what they are said to be, and its commands.

How often verdicts are wrong is measured nightly, in a seeded sample of benchmarks/CALIBRATION.md and CARD.md.
"""

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
from benchmarks.calibration.as_assumed import Setting, calibrate, simulate
from benchmarks.calibration.card import true_values as card_values
from benchmarks.calibration.cells import cells
from benchmarks.calibration.judges import Cell, model_scores, preferences, scores, unread
from benchmarks.calibration.printed import (
    attainable_level,
    chi_square_p,
    ignoring_unread,
    over_bases,
    sign_flips,
    t_test,
    true_values,
    within_judges,
)
from benchmarks.calibration.silent import NAIVE_BASES
from parley.analysis.card.samples import moved_together
from parley.analysis.stats.paired import mcnemar_p
from parley.analysis.stats.permutation import effect_of_cells
from parley.judging.card.battery import load_battery

NAN = np.nan
CELLS = {f"{cell.group}: {cell.name}": cell for cell in cells()}


# The same tests as in a report


def test_the_vectorised_tests_are_scipys_and_the_reports() -> None:
    studies = simulate(Setting(judges=4, scenarios=10, effect=0.5, icc=0.3), 6, np.random.default_rng(8))
    differences = within_judges(studies)
    for study, chi, t, flips in zip(
        studies, chi_square_p(studies), t_test(differences)[0], sign_flips(differences), strict=True
    ):
        counts = np.array([np.bincount(identity.astype(int).ravel(), minlength=11) for identity in study])
        theirs = stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0], correction=False)
        means = study.mean(axis=2)
        assert chi == pytest.approx(theirs.pvalue)
        assert t == pytest.approx(stats.ttest_rel(means[0], means[1]).pvalue)
        assert flips == pytest.approx(effect_of_cells(pd.DataFrame(means.T)).p)
    constant = np.full((3, 2, 5, 2), 7.0)
    assert np.isnan(chi_square_p(constant)).all()
    assert np.isnan(t_test(within_judges(constant))[0]).all()
    wins, losses = np.array([0, 3, 12, 40, 0]), np.array([4, 3, 5, 61, 0])
    theirs = [
        mcnemar_p(np.repeat([1, 0, 0], n), np.repeat([0, 1, 0], n)) for n in zip(wins, losses, [9] * 5, strict=True)
    ]
    assert printed.binomial_p(wins, losses) == pytest.approx(theirs, nan_ok=True)


@pytest.mark.parametrize(
    "differences",
    [[1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6], [0.5, -1, 1, 0, 2, 2, -3], [1] * 9, [1, 1.25, -0.5] * 4, [0.0] * 5],
)
def test_the_attainable_level_is_that_of_all_sign_patterns(differences: list[float]) -> None:
    sizes = np.abs(np.array(differences))
    sums = np.abs([np.dot(signs, sizes) for signs in product((-1, 1), repeat=len(sizes))])
    levels = [float((sums >= value - 1e-9).mean()) for value in np.unique(sums)]
    expected = max((level for level in levels if level <= 0.05), default=0.0)
    assert attainable_level(np.array(differences, dtype=float)) == pytest.approx(expected)


def test_differences_are_taken_within_judges_who_scored_both() -> None:
    """Two judges, 3 points apart; the strict one did not score the first identity on the second scenario."""
    first, second = [[8.0, 5.0], [8.0, NAN]], [[7.0, 4.0], [7.0, 4.0]]
    given = np.array([[first, second]])
    assert within_judges(given).tolist() == [[1.0, 1.0]]
    assert ignoring_unread(given).tolist() == [[1.0, 8.0 - 5.5]]
    alone = within_judges(np.array([[[[NAN], [6.0], [5.0]], [[7.0], [4.0], [4.0]]]]))
    assert np.isnan(alone[0, 0]), "a scenario without a complete judge is left out of its base"
    assert over_bases(alone[:, 1:], Cell(name="", bases=2, unequal=False, scenarios=1)).tolist() == [[2.0, 1.0]]


# What is simulated


def drawn(studies: int = 300, **settings: object) -> tuple[Cell, np.ndarray]:
    planted = Cell(name="", **{"mean": 5.0, **settings})  # type: ignore[arg-type]
    return planted, scores(planted, studies, np.random.default_rng(0))


def test_planted_effects_are_in_the_scores() -> None:
    assumed = simulate(Setting(judges=8, scenarios=50, effect=0.4, icc=0.5), 200, np.random.default_rng(1))
    assert set(np.unique(assumed)) <= set(range(11)), "whole points from 0 to 10"
    gaps = assumed[:, 0] - assumed[:, 1]
    assert gaps.mean() == pytest.approx(0.4, abs=0.03)
    within = gaps.var(axis=2, ddof=1).mean()
    between = gaps.mean(axis=2).var() - within / 8
    # Of a gap on one scenario the panel's share is `icc`; rounding adds 1/12 to every variance.
    assert between / (between + within) == pytest.approx(0.5 * 1.44 / (1.44 + 1 / 12), abs=0.02)
    varied, by_base = drawn(base_identity=0.5)
    assert (true_values(varied, 0).mean, true_values(varied, 0).sd) == (0, pytest.approx(0.5 * np.sqrt(2), abs=0.02))
    assert within_judges(by_base).mean() == pytest.approx(0, abs=0.03)
    opposite, turned = drawn(opposite=1.5, direction="half")
    assert over_bases(within_judges(turned), opposite).mean(axis=0) == pytest.approx([1.5, -1.5] * 10, abs=0.1)
    leans = drawn(40, judge_identity=0.8, scenarios=100)[1]
    by_judge = (leans[:, 0] - leans[:, 1]).mean(axis=1)
    assert by_judge.std() > 0.5, "judges lean, and the panel does not"
    assert by_judge.mean(axis=1) == pytest.approx(np.zeros(40), abs=0.15)
    better = Cell(name="", model_base=2.0)
    total = model_scores(better, 100, np.random.default_rng(0))
    assert over_bases((total[:, 0] - total[:, 1]).mean(axis=2), better).std() == pytest.approx(2 * np.sqrt(2), abs=0.2)
    place = preferences(Cell(name="", position=np.inf), 5, np.random.default_rng(0))
    assert (place.mean(axis=2) == 0).all(), "a judge who only looks at the place prefers no one"


def test_only_the_first_identity_goes_unread_and_bases_may_be_unequal() -> None:
    complete = scores(Cell(name=""), 20, np.random.default_rng(0))
    for missing, share in (("low scores unread", 0.5), ("most low scores unread", 0.9)):
        given = unread(Cell(name="", missing=missing), complete, np.random.default_rng(1))  # type: ignore[arg-type]
        assert np.isfinite(given[:, 1:]).all()
        assert np.isfinite(given[:, 0][complete[:, 0] > 5]).all()
        assert np.isnan(given[:, 0][complete[:, 0] <= 5]).mean() == pytest.approx(share, abs=0.03)
    refusing = unread(Cell(name="", missing="one judge refuses"), complete, np.random.default_rng(1))
    assert np.isnan(refusing[:, 0]).mean(axis=(0, 1)) == pytest.approx([0.9, 0, 0, 0], abs=0.03)
    unequal = Cell(name="", unequal=True)
    assert (min(unequal.sizes), max(unequal.sizes), len(unequal.sizes)) == (1, 30, 20)
    assert np.bincount(unequal.base_of).tolist() == unequal.sizes.tolist()
    assert len(CELLS) == len(cells()), "cells have names of their own"


def test_the_cards_true_values_and_what_moves_answers_together() -> None:
    nulls = {line.id: line.null for line in load_battery().line}
    truth = card_values(planted=False, graded=8)
    assert all(truth[name] == pytest.approx(null) for name, null in nulls.items() if name in truth)
    rng = np.random.default_rng(0)
    assert abs(moved_together(pd.DataFrame(rng.normal(0, 1, (20_000, 3)))).mean()) < 0.02, "noise does not"
    shifted = moved_together(pd.DataFrame(0.5 * rng.choice([-1, 1], (2000, 1)) + np.zeros((2000, 3))))
    assert shifted.mean() == pytest.approx(0.5)


# Seeds and commands


def test_seeds_belong_to_cells_and_batches_not_to_what_else_is_run() -> None:
    chosen = [CELLS["compare: 20 × 10"], CELLS["phase 2: base × identity 0.3"]]
    both, alone, other = (
        calibrate_adversarially(some, simulations=12, seed=seed)
        for some, seed in ((chosen, 0), (chosen[1:], 0), (chosen[1:], 1))
    )
    pd.testing.assert_frame_equal(both[both["group"] == "phase 2"].reset_index(drop=True), alone)
    assert alone["rejections"].tolist() != other["rejections"].tolist()
    once, again, other = (calibrate((2,), (8,), (0.5,), simulations=60, seed=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(once, again)
    assert once["rejections"].tolist() != other["rejections"].tolist()


def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    """The lines that the command prints."""
    monkeypatch.setattr(sys, "argv", ["calibration", *map(str, words)])
    main()
    return capsys.readouterr().out.splitlines()


NINE_TENTHS = ("--adversarial", "--only", "nine tenths", "--simulations", 24)


def test_the_command_prints_the_table_and_names_what_misses_its_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = ran(monkeypatch, capsys, *NINE_TENTHS, "--workers", 1, "--out", tmp_path)
    assert any(line.startswith("| nine tenths of one identity's low scores | **") for line in lines)
    missed = [line for line in lines if "sign flips over bases: " in line]
    assert missed
    assert all("too many false alarms" in line for line in missed)
    assert (tmp_path / "adversarial.svg").exists()
    with pytest.raises(SystemExit):
        ran(monkeypatch, capsys, "--adversarial", "--only", "no such cell")
    assert "the groups are one factor, two factors" in capsys.readouterr().err


# How often verdicts are wrong


VARIED, OPPOSITE = "one factor: base × identity 0.5", "opposite stereotypes: ±1.5, exactly half of the bases"
REFUSED, LOW = (
    "unread replies: one judge refuses one identity",
    "unread replies: nine tenths of one identity's low scores",
)
PLANTED = "planted differences: difference 0.4, base × identity 0.3, 10 × 5"
PAIRS, COMPARED = "phase 2: base × identity 0.5", "compare: model × scenario 1"
SILENT = ("20 bases, a wording each", "8 wordings for 20 bases", "20 bases × 8 wordings")
ALIKE = ("SD between bases 0.05", "±1.5 by base, 20 bases", "SD 0.2, 20 bases")
UNEVEN = "opposite stereotypes: 0.4 in all bases, directions uneven"


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    names = [VARIED, OPPOSITE, REFUSED, LOW, PLANTED, PAIRS, COMPARED]
    names += [f"silent ballots: {name}" for name in SILENT] + [f"silent, alike: {name}" for name in ALIKE]
    chosen = [*(CELLS[name] for name in names), replace(CELLS[UNEVEN], scenarios=2, judges=1)]
    rows = calibrate_adversarially(chosen, simulations=250, seed=0)
    return rows.assign(place=rows["group"] + ": " + rows["cell"]).set_index(["place", "test"])


KEEPS = [
    *((VARIED, test) for test in (printed.BY_BASE, printed.OMNIBUS, printed.ALIGNED)),
    *((REFUSED, test) for test in (printed.BY_BASE, printed.BETWEEN_BASES)),
    *((PAIRS, printed.BY_BASE), (COMPARED, printed.BY_BASE), (COMPARED, printed.RIGHT_BY_BASE)),
    *((f"silent ballots: {name}", printed.BY_BASE) for name in SILENT),
    (UNEVEN, printed.ALIGNED),
]
EXCEEDS = [
    *((VARIED, printed.BY_SCENARIO, 0.15), (REFUSED, printed.NAIVE, 0.15), (COMPARED, printed.MCNEMAR, 0.07)),
    *((PAIRS, printed.BY_SCENARIO, 0.15), (PAIRS, printed.BINOMIAL, 0.15), (LOW, printed.BY_BASE, 0.3)),
    *((f"silent ballots: {name}", NAIVE_BASES, 0.1) for name in SILENT[1:]),
]


@pytest.mark.nightly
def test_what_reports_rest_on_keeps_its_level_and_what_takes_less_as_independent_does_not(sample: pd.DataFrame) -> None:
    for place, test in KEEPS:
        row = sample.loc[(place, test)]
        assert row["null"]
        assert (row["low"] <= 0.07, row["rate"] <= 0.1) == (True, True), (place, test)
    for place, test, least in EXCEEDS:
        assert sample.loc[(place, test), "low"] > least, (place, test)
    assert "too many false alarms" in sample.loc[(LOW, printed.BY_BASE), "finding"]
    assert sample.loc[(LOW, printed.BOUNDS), "coverage"] == 1, "the worst cases include what happened"
    assert sample.loc[(LOW, printed.BOUNDS_INTERVAL), "coverage"] == 1


@pytest.mark.nightly
def test_intervals_cover_and_only_what_is_alike_is_called_alike(sample: pd.DataFrame) -> None:
    planted = sample.loc[PLANTED]
    for test in (printed.BY_BASE, printed.SD_LIMIT):
        assert planted.loc[test, "coverage_low"] <= 0.97
        assert planted.loc[test, "coverage_high"] >= 0.93
    assert not planted.loc[printed.BY_BASE, "null"]
    assert planted.loc[printed.TOST, "low"] <= 0.05, "at the edge of the margin, 'alike' is a false alarm"
    opposite = sample.loc[OPPOSITE]
    assert opposite.loc[printed.TOST_BY_SCENARIO, "rate"] > 0.9, "what scenarios taken as independent would have said"
    assert (opposite.loc[printed.ALIKE, "rate"], opposite.loc[printed.BETWEEN_BASES, "rate"]) == (0, 1)
    alike = [sample.loc[(f"silent, alike: {name}", printed.ALIKE), "rate"] for name in ALIKE]
    assert (alike[0] > 0.9, alike[1] == 0, alike[2] <= 0.05) == (True,) * 3
