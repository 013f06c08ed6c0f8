"""The Bradley–Terry model against Agresti's baseball, Stigler's journals and R."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from statsmodels.api import GLM, families

from parley.analysis.stats.ranking import bradley_terry

# Agresti, Categorical Data Analysis (2002), p. 438: American League East, 1987 (R: BradleyTerry2's `baseball`).
# Rows: home team; home wins-away wins against the others in the order of TEAMS.
TEAMS = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
BASEBALL = [
    ["", "4-3", "4-2", "4-3", "6-1", "4-2", "6-0"],
    ["3-3", "", "4-2", "4-3", "6-0", "6-1", "4-3"],
    ["2-5", "4-3", "", "2-4", "4-3", "4-2", "6-0"],
    ["3-3", "5-1", "2-5", "", "4-3", "4-2", "6-1"],
    ["5-1", "2-5", "3-3", "4-2", "", "5-2", "6-0"],
    ["2-5", "3-3", "3-4", "4-3", "4-2", "", "2-4"],
    ["2-5", "1-5", "1-6", "2-4", "1-6", "3-4", ""],
]
# Stigler (1994), in Agresti (2002), p. 448 (R: BradleyTerry2's `citations`): cited journal, citing journal, citations.
JOURNALS = [
    ("Comm Statist", "Biometrika", 33), ("JASA", "Biometrika", 320), ("JRSS-B", "Biometrika", 284),
    ("Biometrika", "Comm Statist", 730), ("JASA", "Comm Statist", 813), ("JRSS-B", "Comm Statist", 276),
    ("Biometrika", "JASA", 498), ("Comm Statist", "JASA", 68), ("JRSS-B", "JASA", 325),
    ("Biometrika", "JRSS-B", 221), ("Comm Statist", "JRSS-B", 17), ("JASA", "JRSS-B", 142),
]  # fmt: skip


def games() -> pd.DataFrame:
    rows = []
    for home, line in zip(TEAMS, BASEBALL, strict=True):
        for away, result in zip(TEAMS, line, strict=True):
            won, lost = (int(part) for part in result.split("-")) if result else (0, 0)
            rows += [(home, away, 1.0)] * won + [(home, away, 0.0)] * lost
    return pd.DataFrame(rows, columns=["home", "away", "won"])


def simulate(rng: np.random.Generator, rows: int, clusters: int, position: float = 0.0) -> pd.DataFrame:
    strengths = np.array([0.6, 0.0, -0.2, -0.4])
    first = rng.integers(0, 4, rows)
    second = (first + rng.integers(1, 4, rows)) % 4
    odds = strengths[first] - strengths[second] + position
    won = (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(float)
    won[rng.random(rows) < 0.1] = 0.5
    names = np.array(["a", "b", "c", "d"])
    columns = {"first": names[first], "second": names[second], "won": won}
    return pd.DataFrame({**columns, "scenario": rng.integers(0, clusters, rows)})


def test_baseball_without_home_advantage() -> None:
    frame = games()
    result = bradley_terry(frame["home"], frame["away"], frame["won"], np.arange(len(frame)), draws=200)
    last = result.strengths["Baltimore"].estimate
    # R: BTm(cbind(home.wins, away.wins), home.team, away.team), in BradleyTerry2's tests
    theirs = {"Boston": 1.1077, "Cleveland": 0.6839, "Detroit": 1.4364, "Milwaukee": 1.5814, "New York": 1.2476}
    theirs["Toronto"] = 1.2945
    for team, ability in theirs.items():
        assert result.strengths[team].estimate - last == pytest.approx(ability, abs=1e-4)
    assert list(result.strengths) == TEAMS, "strongest first, which is the table's order"
    assert sum(strength.estimate for strength in result.strengths.values()) == pytest.approx(0, abs=1e-9)
    assert result.position is None


def test_baseball_with_home_advantage() -> None:
    frame = games()
    result = bradley_terry(frame["home"], frame["away"], frame["won"], np.arange(len(frame)), position=True)
    assert result.position is not None
    # R: at.home 0.3023, standard error 0.1309; Agresti's table 10.11 has 0.302
    assert result.position.estimate == pytest.approx(0.3023, abs=1e-4)
    assert (result.position.high - result.position.low) / (2 * 1.96) == pytest.approx(0.1309, rel=0.12)
    # Agresti, table 10.11: shares of exp(strength)
    worth = np.exp([strength.estimate for strength in result.strengths.values()])
    assert np.round(worth / worth.sum(), 3).tolist() == [0.220, 0.190, 0.164, 0.157, 0.137, 0.088, 0.044]


def test_journals_as_in_r() -> None:
    frame = pd.DataFrame(JOURNALS, columns=["cited", "citing", "times"])
    frame = frame.loc[frame.index.repeat(frame["times"])]
    result = bradley_terry(frame["cited"], frame["citing"], np.ones(len(frame)), np.arange(len(frame)), draws=300)
    # R: BTabilities with sum-to-zero contrasts, and standard errors, in BradleyTerry2's tests
    theirs = {
        "JRSS-B": (1.0588761, 0.05304699),
        "Biometrika": (0.7899221, 0.04333047),
        "JASA": (0.3103523, 0.04164102),
        "Comm Statist": (-2.1591504, 0.07257974),
    }
    assert list(result.strengths) == list(theirs)
    for journal, (ability, error) in theirs.items():
        strength = result.strengths[journal]
        assert strength.estimate == pytest.approx(ability, abs=1e-6)
        assert (strength.high - strength.low) / (2 * 1.96) == pytest.approx(error, rel=0.15)


def test_a_tie_is_half_a_win_for_each() -> None:
    clusters = range(6)
    tied = bradley_terry(list("aaabbb"), list("bbbaaa"), [1, 1, 0.5, 0.5, 0, 1], clusters)
    # a has 1 + 1 + ½ + ½ + 1 + 0 of 6: the log odds are log(4 / 2), split around 0
    assert tied.strengths["a"].estimate == pytest.approx(math.log(2) / 2)
    assert tied.strengths["b"].estimate == pytest.approx(-math.log(2) / 2)


def test_position_as_in_a_logistic_regression() -> None:
    frame = simulate(np.random.default_rng(0), 600, 40, position=0.5)
    result = bradley_terry(frame["first"], frame["second"], frame["won"], frame["scenario"], position=True)
    marks = pd.get_dummies(frame["first"], dtype=float) - pd.get_dummies(frame["second"], dtype=float)
    design = np.column_stack([marks[["a", "b", "c"]], np.ones(600)])
    theirs = GLM(frame["won"], design, family=families.Binomial()).fit().params
    assert result.position is not None
    assert result.position.estimate == pytest.approx(theirs.iloc[3], abs=1e-6)
    gap = result.strengths["a"].estimate - result.strengths["d"].estimate
    assert gap == pytest.approx(theirs.iloc[0], abs=1e-6)


def test_a_preference_for_the_first_place_does_not_make_a_winner() -> None:
    # "a" is always shown first, by design wrong; half the comparisons of b and c tell the position apart
    rng = np.random.default_rng(2)
    first, second = np.repeat(["a", "b", "c", "b"], 100), np.repeat(["b", "c", "b", "a"], 100)
    won = (rng.random(400) < 0.7).astype(float)
    plain = bradley_terry(first[:300], second[:300], won[:300], np.arange(300), draws=100)
    fair = bradley_terry(first, second, won, np.arange(400), position=True, draws=300)
    assert plain.strengths["a"].estimate > 0.5
    assert fair.strengths["a"].low < 0 < fair.strengths["a"].high
    assert fair.position is not None
    assert fair.position.low > 0.4


def test_the_order_of_rows_and_of_labels_does_not_matter() -> None:
    frame = simulate(np.random.default_rng(3), 300, 20)
    plain = bradley_terry(frame["first"], frame["second"], frame["won"], frame["scenario"], draws=100)
    turned = frame.sample(frac=1, random_state=0)
    swapped = bradley_terry(turned["second"], turned["first"], 1 - turned["won"], turned["scenario"], draws=100)
    for label, result in plain.strengths.items():
        again = swapped.strengths[label]
        assert (again.estimate, again.low, again.high) == pytest.approx(
            (result.estimate, result.low, result.high), abs=1e-8
        )


def test_the_interval_comes_from_scenarios_and_not_from_rows() -> None:
    frame = simulate(np.random.default_rng(4), 200, 25)
    once = bradley_terry(frame["first"], frame["second"], frame["won"], frame["scenario"])
    often = pd.concat([frame] * 10)
    again = bradley_terry(often["first"], often["second"], often["won"], often["scenario"])
    assert (again.strengths["a"].low, again.strengths["a"].high) == pytest.approx(
        (once.strengths["a"].low, once.strengths["a"].high), abs=1e-8
    )
    assert (once.n, again.n, again.clusters) == (200, 2000, 25)


@pytest.mark.nightly
def test_strengths_are_covered_at_their_level() -> None:
    covered = 0
    for seed in range(120):
        rng = np.random.default_rng(1000 + seed)
        first = rng.integers(0, 3, 240)
        second = (first + rng.integers(1, 3, 240)) % 3
        scenario = np.repeat(np.arange(20), 12)
        mood = rng.normal(0, 0.5, (20, 3))  # each scenario has its own favourites
        strength = np.array([0.4, 0.0, -0.4]) + mood[scenario]
        odds = strength[np.arange(240), first] - strength[np.arange(240), second]
        won = rng.random(240) < 1 / (1 + np.exp(-odds))
        result = bradley_terry(first, second, won.astype(float), scenario, draws=300, seed=seed).strengths["1"]
        covered += result.low <= 0 <= result.high
    assert 106 <= covered <= 120  # 114 expected, standard deviation 2.4


def test_a_label_that_wins_everything_has_no_strength() -> None:
    result = bradley_terry(["a", "a", "b"], ["b", "c", "c"], [1, 1, 0.5], [1, 2, 3])
    assert "won or lost every comparison" in result.note
    assert all(math.isnan(strength.estimate) for strength in result.strengths.values())
    assert set(result.strengths) == {"a", "b", "c"}


def test_a_label_that_nearly_wins_everything_has_no_interval_and_says_so() -> None:
    result = bradley_terry(["a"] * 8 + ["b"], ["b"] * 8 + ["a"], [1] * 8 + [1], range(9))
    assert math.isfinite(result.strengths["a"].estimate)
    assert math.isnan(result.strengths["a"].high)
    assert "won or lost everything" in result.strengths["a"].note


def test_a_covariate_that_cannot_be_told_apart_is_refused() -> None:
    result = bradley_terry(["a"] * 6, ["b"] * 6, [1, 0, 1, 0, 1, 1], range(6), position=True)
    assert "cannot be told apart" in result.note


def test_an_outcome_above_1_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0"):
        bradley_terry(["a", "b"], ["b", "a"], [2, 0], [1, 2])
