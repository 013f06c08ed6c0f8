"""A planted preference is found, with the right sign and size; without one, none is found.

Twenty scenarios of the shipped suite, one of each base, through the whole of it: plan, debate, run file, analysis.
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


def verdicts(model: str, **settings: Any) -> pd.DataFrame:
    settings = in_design({"suite": "full", "per_base": 1, "controls": False, "yardstick": "off", **settings})
    options = parley.Options(cache=False)
    assert parley.run("malibu", model=model, out="a.sqlite", options=options, **settings).complete
    with RunFile.open(Path("a.sqlite")) as file:
        actual = frames.verdicts(file)
    Path("a.sqlite").unlink()
    return actual


def compared(model: str, **settings: Any) -> pd.DataFrame:
    """Phase 1: first minus second on the same scenarios, within a category, all metrics together."""
    gaps = malibu.differences(verdicts(model, phases=[1], **settings))
    return gaps[gaps["within"].astype(bool) & (gaps["metric"] == "all")]


def won(model: str, **settings: Any) -> pd.DataFrame:
    """Phase 2: how often each identity wins within its category."""
    return malibu.win_rates(verdicts(model, rounds=1, **settings)).set_index("identity")


def truth(row: Any) -> float:
    return PLANTED.get(row.first, 0.0) - PLANTED.get(row.second, 0.0)


def test_the_planted_sign_and_size_come_back_for_each_identity() -> None:
    gaps = compared(JUDGE, seed=1, rounds=1)  # one draw; the nightly test looks at several
    assert len(gaps) == 13
    assert (gaps["clusters"] == 20).all()
    planted = sum(truth(row) != 0 for row in gaps.itertuples())
    # Seven intervals must cover simultaneously: Bonferroni's t over the t of one interval, 19 degrees of freedom.
    wider = stats.t.ppf(1 - 0.025 / planted, 19) / stats.t.ppf(0.975, 19)
    for row in gaps.itertuples():
        if truth(row):
            half = wider * (row.high - row.low) / 2
            assert abs(row.estimate - truth(row)) < half, f"{row.first} - {row.second}: the size"
            assert row.low * row.high > 0, f"{row.first} - {row.second}: the sign is plain"
        else:
            assert row.p_adjusted > 0.01, f"{row.first} - {row.second}: nothing was planted there"
    # 20 bases find all seven after correction for 13 tests in some two of three draws: 4 of the seeds 1 to 6.
    assert sum(row.p_adjusted < 0.05 for row in gaps.itertuples() if truth(row)) >= planted - 2


def test_without_a_planted_effect_nothing_is_significant() -> None:
    gaps = compared("sim/judge?item=0.8&judge=0.8", rounds=1)  # texts differ in quality, and judges in severity
    assert len(gaps) == 13
    assert gaps["p_adjusted"].min() > 0.05


@pytest.mark.nightly
def test_intervals_cover_the_truth_about_as_often_as_they_claim() -> None:
    """Three runs of other seeds, 13 comparisons each: of 39 intervals of 95% some two should miss, and not seven."""
    gaps = pd.concat(compared(JUDGE, rounds=1, seed=seed) for seed in (1, 2, 3))
    missed = [row for row in gaps.itertuples() if not row.low <= truth(row) <= row.high]
    assert len(gaps) == 39
    assert len(missed) < 7
    errors = [row.estimate - truth(row) for row in gaps.itertuples()]
    assert abs(sum(errors) / len(errors)) < 0.05, "and they miss to both sides"


@pytest.mark.nightly
def test_an_effect_of_crossed_identities_is_found_at_their_crossing() -> None:
    gaps = compared("sim/judge?black%20female=-0.7", identities=["race+gender"], rounds=1)
    here = (gaps["first"] == "black female") | (gaps["second"] == "black female")
    assert here.sum() == 4, "black male, and female of three other races: labels that differ in one part"
    assert (gaps[here]["p_adjusted"] < 0.05).all()
    assert (gaps[here]["low"] < -0.7).sum() >= 3
    assert (gaps[here]["high"] > -0.7).sum() >= 3, "one of four intervals may miss, on either side"
    assert gaps[~here]["estimate"].abs().max() < gaps[here]["estimate"].abs().min()


def test_an_effect_can_be_planted_for_your_own_label(place: Path) -> None:
    (place / "ages.toml").write_text('[categories]\nage = ["20-year-old", "70-year-old"]\n')
    (gap,) = compared("sim/judge?70-year-old=-0.5", identities=["ages.toml"], rounds=1).itertuples()
    assert (gap.first, gap.second) == ("20-year-old", "70-year-old")
    assert 0 < gap.low < 0.5 < gap.high


SOME = ["gender", "black", "white", "muslim", "jewish"]


def test_a_favoured_identity_wins_and_the_others_lose() -> None:
    rates = malibu.win_rates(verdicts(JUDGE, rounds=1, phases=[2], identities=SOME)).set_index("identity")
    assert (rates["wins"] + rates["losses"] + rates["ties"] == 20 * 4).all()
    for favoured in ("female", "white", "muslim"):
        assert rates.loc[favoured, ["low", "wilson_low"]].gt(0.5).all(), favoured
    for other in ("male", "black", "jewish"):
        assert rates.loc[other, ["high", "wilson_high"]].lt(0.5).all(), other


def test_neither_the_first_position_nor_a_label_on_both_sides_favours_an_identity() -> None:
    """Why a pair has four cells: the judge prefers the first candidate nearly always, and no identity wins by it. What
    was planted on a label is on both sides of a null control."""
    first = verdicts("sim/judge?position=+1", identities=["gender"], rounds=1, phases=[2])
    assert malibu.position(first).set_index("measure").loc["first", "low"] > 0.8
    rates = malibu.win_rates(first)
    assert (rates["low"] < 0.5).all()
    assert (rates["high"] > 0.5).all()
    actual = verdicts("sim/judge?female=+2", identities=["gender"], controls=True, rounds=1, phases=[2])
    units = malibu.panel_preferences(actual)
    same = units[units["control"] != ""]
    assert set(same["control"]) == {"same label", "no label"}
    decided = same[same["choice"] != "tie"]["choice"]
    assert 0.35 < (decided == "A").mean() < 0.65
    assert malibu.win_rates(actual).set_index("identity").loc["female", "wilson_low"] > 0.9
