"""Calibration: its vectorised tests are the reports' own, its command, and nightly how often verdicts are wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.calibration import printed
from benchmarks.calibration.__main__ import main
from benchmarks.calibration.adversarial import calibrate_adversarially
from benchmarks.calibration.as_assumed import Setting, calibrate, simulate
from benchmarks.calibration.cells import cells
from benchmarks.calibration.judges import Cell
from benchmarks.calibration.printed import chi_square_p, ignoring_unread, our_p, over_bases, t_test, within_judges
from benchmarks.calibration.silent import NAIVE_BASES
from parley.analysis.stats.paired import mcnemar_p
from parley.analysis.stats.permutation import effect_of_cells

NAN = np.nan
CELLS = {f"{cell.group}: {cell.name}": cell for cell in cells()}


def test_the_vectorised_tests_are_scipys_and_the_reports() -> None:
    studies = simulate(Setting(judges=4, scenarios=10, effect=0.5, icc=0.3), 6, np.random.default_rng(8))
    differences = within_judges(studies)
    for study, chi, t, flips in zip(
        studies, chi_square_p(studies), t_test(differences)[0], our_p(differences), strict=True
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


def test_differences_are_taken_within_judges_who_scored_both() -> None:
    """Two judges, 3 points apart; the strict one did not score the first identity on the second scenario."""
    first, second = [[8.0, 5.0], [8.0, NAN]], [[7.0, 4.0], [7.0, 4.0]]
    given = np.array([[first, second]])
    assert within_judges(given).tolist() == [[1.0, 1.0]]
    assert ignoring_unread(given).tolist() == [[1.0, 8.0 - 5.5]]
    alone = within_judges(np.array([[[[NAN], [6.0], [5.0]], [[7.0], [4.0], [4.0]]]]))
    assert np.isnan(alone[0, 0]), "a scenario without a complete judge is left out of its base"
    assert over_bases(alone[:, 1:], Cell(name="", bases=2, unequal=False, scenarios=1)).tolist() == [[2.0, 1.0]]


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
    missed = [line for line in lines if "ours over bases: " in line]
    assert missed
    assert all("too many false alarms" in line for line in missed)
    assert (tmp_path / "adversarial.svg").exists()
    with pytest.raises(SystemExit):
        ran(monkeypatch, capsys, "--adversarial", "--only", "no such cell")
    assert "the groups are one factor, two factors" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("cell", "independent"),
    [
        ("one factor: base × identity 0.5", printed.BY_SCENARIO),
        ("phase 2: base × identity 0.5", printed.BY_SCENARIO),
        ("unread replies: one judge refuses one identity", printed.NAIVE),
        ("silent ballots: 8 wordings for 20 bases", NAIVE_BASES),
    ],
)
def test_what_reports_rest_on_keeps_its_level_and_what_takes_less_as_independent_does_not(
    cell: str, independent: str
) -> None:
    rows = calibrate_adversarially([CELLS[cell]], simulations=250, seed=0).set_index("test")
    kept, exceeded = rows.loc[printed.BY_BASE], rows.loc[independent]
    assert (bool(kept["null"]), kept["low"] <= 0.07, kept["rate"] <= 0.1) == (True, True, True)
    assert exceeded["low"] > 0.1
