"""The card's verdicts on simulated judges: a seeded sample of benchmarks/CARD.md."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.calibration.card import calibrate_card, true_values
from parley.analysis.card.samples import moved_together
from parley.judging.card.battery import load_battery

SIMULATIONS = 60


@pytest.fixture(scope="module")
def rates() -> pd.DataFrame:
    specs = [line.model_dump() for line in load_battery().line]
    found = calibrate_card(specs, bases=12, graded=8, doses=1, simulations=SIMULATIONS, seed=1)
    return found.set_index("line")


def test_no_line_is_shown_without_an_effect_more_often_than_chance_allows(rates: pd.DataFrame) -> None:
    """Of 60 judges, more than 9 false alarms have a probability below 0.1% at a level of 5%."""
    assert (rates["shown_without_effect"] <= 9 / SIMULATIONS).all()
    assert (rates["family_shown_without_effect"] <= 9 / SIMULATIONS).all()


def test_intervals_hold(rates: pd.DataFrame) -> None:
    for column in ("coverage_without_effect", "coverage_with_effect"):
        assert (rates[column] >= 0.83).all(), rates[column].nsmallest(3)
        assert rates[column].mean() >= 0.93


def test_strong_properties_are_found(rates: pd.DataFrame) -> None:
    assert rates.loc["position", "power"] > 0.9
    assert rates.loc["injection", "power"] > 0.5


def test_the_true_values_are_those_of_the_null_without_properties() -> None:
    nulls = {line.id: line.null for line in load_battery().line}
    truth = true_values(planted=False, graded=8)
    assert all(truth[name] == pytest.approx(null) for name, null in nulls.items() if name in truth)


def test_noise_does_not_move_answers_together() -> None:
    rng = np.random.default_rng(0)
    noise = moved_together(pd.DataFrame(rng.normal(0, 1, (20_000, 3))))
    assert abs(noise.mean()) < 0.02
    shifted = moved_together(pd.DataFrame(0.5 * rng.choice([-1, 1], (2000, 1)) + np.zeros((2000, 3))))
    assert shifted.mean() == pytest.approx(0.5)
