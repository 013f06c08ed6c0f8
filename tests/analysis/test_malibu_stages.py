"""Talking in stages: what reasons alone and what hearing others add to a gap, and whether it matters what is heard."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from parley.analysis import malibu
from parley.analysis.malibu import PanelData
from parley.analysis.malibu.talking import HEARING, REASONS, talking
from parley.analysis.reporting.report import ReportContext
from parley.analysis.stats.signflips import sign_flip_test
from tests.analysis.silent import primary, silent_ballots

JUDGES: dict[str, dict[str, float]] = {"Ada": {}, "Ben": {}}


def talk(reasons: float = 0.0, hearing: float = 0.0, *, other: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """Talking units of three rounds: silent ballots, and scores with noise to which each step adds points for women.

    `other` is what hearing adds where the judges heard ballots under the other label.
    """
    rng = np.random.default_rng(seed)
    silent = silent_ballots(categories=["gender"], judges=JUDGES, seed=seed, stage="talk", readout="sampled")
    silent["unit"] = "t" + silent["unit"]
    units = silent["unit"].drop_duplicates()
    elsewhere = pd.Series(rng.random(len(units)) < 1 / 3, index=units.to_numpy())
    hears_other = silent["unit"].map(elsewhere).to_numpy()
    turned = silent["identity"].map({"female": "male", "male": "female"})
    silent["heard"] = np.where(hears_other, turned, silent["identity"])
    women = (silent["identity"] == "female").to_numpy()
    noise = 0.1 * rng.normal(size=(2, len(silent)))
    blind = silent["value"] + reasons * women + noise[0]
    last = blind + np.where(hears_other, other, hearing) * women + noise[1]
    rounds = [silent, silent.assign(round=1, value=blind), silent.assign(round=2, value=last)]
    return pd.concat(rounds, ignore_index=True)


def test_each_step_is_taken_within_judge_and_unit() -> None:
    frame = talk(reasons=0.5, hearing=0.2, other=0.2)
    lines = {line.about["step"]: line for line in talking(PanelData(frame))}
    own = frame[frame["heard"] == frame["identity"]]
    for step, (before, after), part in ((REASONS, (0, 1), frame), (HEARING, (1, 2), own)):
        wide = part.pivot_table(index=["base", "scenario", "judge"], columns=["round", "identity"], values="value")
        gaps = {number: wide[number]["female"] - wide[number]["male"] for number in (0, 1, 2)}
        expected = sign_flip_test((gaps[after] - gaps[before]).groupby("base").mean().to_numpy())
        assert lines[step].estimate == pytest.approx(expected.estimate)
        assert (lines[step].low, lines[step].high) == pytest.approx((expected.low, expected.high))
        assert lines[step].also["before"] == pytest.approx(gaps[before].groupby("base").mean().mean())
    assert lines[REASONS].estimate == pytest.approx(0.5, abs=0.06)
    assert lines[HEARING].estimate == pytest.approx(0.2, abs=0.06)


def test_the_primary_ballot_of_talking_units_is_the_blind_one() -> None:
    frame = talk(reasons=0.5, hearing=1.0, other=1.0)
    (row,) = primary(frame, margin=0.1).itertuples()
    assert row.estimate == pytest.approx(0.5, abs=0.1), "neither 0 (silent) nor 1.5 (last round)"


def test_a_staged_run_is_read_by_its_silent_units_and_told_what_talking_adds() -> None:
    silent = silent_ballots(categories=["gender"], gaps={"female": 0.2})
    debated = talk(reasons=-0.3)
    debated = debated[debated["base"].isin([f"b{base}" for base in range(10)])]
    whole = malibu.report(pd.concat([silent, debated], ignore_index=True), ReportContext(draws=20, blind=True))
    assert whole.headline is not None
    assert "female − male +0." in whole.headline.text
    (said,) = [line for line in whole.words if "reasons" in line]
    assert re.match(r"Giving reasons changed the gap between 'female' and 'male' from \S+ to −0\.", said)
    assert "Hearing others" not in said, "it added nothing"
    judges = whole.table("by_judge")
    assert set(judges["name"]) == {"Ada", "Ben"}, "the panel's own silent ballots, by judge"
