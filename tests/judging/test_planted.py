"""A planted preference is found, with the right sign and size; without one, none is found.

Exactly, on a judge without noise; how often with noise is tested nightly, on twenty scenarios, one of each base.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

import parley
from parley.analysis import malibu
from parley.runs import RunFile, frames
from tests.panels import in_design

PLANTED = {"female": 0.6, "black": -0.5, "muslim": 0.4}
JUDGE = "sim/judge?female=+0.6&black=-0.5&muslim=+0.4&item=0.5&judge=0.5"
SOME = ["gender", "black", "white", "muslim", "jewish"]


def verdicts(model: str, **settings: Any) -> pd.DataFrame:
    given = {"suite": "full", "per_base": 1, "controls": False, "yardstick": "off", "rounds": 1, **settings}
    options = parley.Options(cache=False)
    assert parley.run("malibu", model=model, out="a.sqlite", options=options, **in_design(given)).complete
    with RunFile.open(Path("a.sqlite")) as file:
        actual = frames.verdicts(file)
    Path("a.sqlite").unlink()
    return actual


def compared(model: str, **settings: Any) -> pd.DataFrame:
    """Phase 1: first minus second on the same scenarios, within a category, all metrics together."""
    gaps = malibu.differences(verdicts(model, phases=[1], **settings))
    return gaps[gaps["within"].astype(bool) & (gaps["metric"] == "all")]


def truth(row: Any) -> float:
    return PLANTED.get(row.first, 0.0) - PLANTED.get(row.second, 0.0)


def test_without_noise_the_planted_effects_come_back_exactly(place):
    """A score of 5, or 7 for a woman; labels of the user's own and crossed labels too. In pairs the favoured wins."""
    (place / "ages.toml").write_text('[categories]\nage = ["20-year-old", "70-year-old"]\n')
    exact = "sim/judge?base=5&noise=0&female=2&70-year-old=-1&black%20male=-3"
    own = {"scenarios": ["law-fire-exit", "music-cello-seam"], "identities": ["gender", "ages.toml", "race+gender"]}
    gaps = compared(exact, **own, suite="full", per_base=None).set_index(["first", "second"])["estimate"]
    assert gaps["female", "male"] == pytest.approx(2)
    assert gaps["20-year-old", "70-year-old"] == pytest.approx(1)
    crossed = gaps[[("female" in first) == ("female" in second) for first, second in gaps.index]]
    assert {pair: gap for pair, gap in crossed.items() if abs(gap) > 1e-9 and "black male" in pair} == {
        ("black male", f"{race} male"): pytest.approx(-3) for race in ("white", "asian", "hispanic")
    }
    two = {"scenarios": own["scenarios"], "per_base": None, "identities": ["gender"], "phases": [2]}
    pairs = verdicts("sim/judge?noise=0&female=2", **two, controls=True)
    rates = malibu.win_rates(pairs).set_index("identity")
    assert rates.loc["female", ["wins", "losses", "ties"]].tolist() == [8, 0, 0], "two texts in four cells"
    first = verdicts("sim/judge?noise=0&position=+1", **two)
    assert malibu.position(first).set_index("measure").loc["first", "estimate"] == 1
    assert malibu.win_rates(first)[["wins", "losses"]].to_numpy().tolist() == [[4, 4], [4, 4]], (
        "why there are four cells"
    )


@pytest.mark.nightly
def test_intervals_cover_the_truth_about_as_often_as_they_claim():
    """Three runs of other seeds, 13 comparisons each: of 39 intervals of 95% some two should miss, and not seven."""
    gaps = pd.concat(compared(JUDGE, seed=seed) for seed in (1, 2, 3))
    missed = [row for row in gaps.itertuples() if not row.low <= truth(row) <= row.high]
    assert (len(gaps), set(gaps["clusters"])) == (39, {20})
    assert len(missed) < 7
    errors = [row.estimate - truth(row) for row in gaps.itertuples()]
    assert abs(sum(errors) / len(errors)) < 0.05, "and they miss to both sides"
    # Seven intervals must cover simultaneously: Bonferroni's t over the t of one interval, 19 degrees of freedom.
    wider = stats.t.ppf(1 - 0.025 / 7, 19) / stats.t.ppf(0.975, 19)
    for row in gaps[:13].itertuples():
        if truth(row):
            assert abs(row.estimate - truth(row)) < wider * (row.high - row.low) / 2, f"{row.first} - {row.second}"
            assert row.low * row.high > 0, f"{row.first} - {row.second}: the sign is plain"
        else:
            assert row.p_adjusted > 0.01, f"{row.first} - {row.second}: nothing was planted there"


@pytest.mark.nightly
def test_a_favoured_identity_wins_and_without_an_effect_nothing_is_significant():
    rates = malibu.win_rates(verdicts(JUDGE, phases=[2], identities=SOME)).set_index("identity")
    for favoured in ("female", "white", "muslim"):
        assert rates.loc[favoured, ["low", "wilson_low"]].gt(0.5).all(), favoured
    for other in ("male", "black", "jewish"):
        assert rates.loc[other, ["high", "wilson_high"]].lt(0.5).all(), other
    gaps = compared("sim/judge?item=0.8&judge=0.8")  # texts differ in quality, and judges in severity
    assert (len(gaps), gaps["p_adjusted"].min() > 0.05) == (13, True)
    controls = malibu.panel_preferences(
        verdicts("sim/judge?female=+2", identities=["gender"], controls=True, phases=[2])
    )
    decided = controls[(controls["control"] != "") & (controls["choice"] != "tie")]["choice"]
    assert 0.35 < (decided == "A").mean() < 0.65, "what was planted on a label is on both sides of a null control"
