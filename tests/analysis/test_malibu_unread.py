"""Silent ballots that are unread, or leave the scale, more often for one identity: tested, said, and no verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from parley.analysis import malibu
from parley.analysis.malibu import PanelData
from parley.analysis.malibu.unread import unread, unread_differences
from parley.analysis.reporting.report import Report, ReportContext
from tests.analysis.silent import silent_ballots
from tests.analysis.test_malibu_silent_pairs import pairs


def report(frame: pd.DataFrame) -> Report:
    return malibu.report(frame, ReportContext(draws=20))


def with_masses(frame: pd.DataFrame, masses: np.ndarray) -> pd.DataFrame:
    """The ballots with these shares on their answers; below a half they are unread."""
    lost = masses < 0.5
    given = {name: frame[name].mask(lost) for name in ("value", "sampled", "text") if name in frame}
    return frame.assign(**given, on_scale=masses, status=frame["status"].mask(lost, "unparsed"))


def unread_at(female: float, male: float, seed: int) -> PanelData:
    """A fair judge's ballots, of which these shares are unread at random."""
    frame = silent_ballots(categories=("gender",), seed=seed)
    rate = frame["identity"].map({"female": female, "male": male}).to_numpy(dtype=float)
    lost = np.random.default_rng(seed + 1_000_000).random(len(frame)) < rate
    return PanelData(with_masses(frame, np.where(lost, 0.1, 0.9)))


def test_the_contrast_with_the_unread_identity_has_no_verdict_and_the_others_do() -> None:
    everyone = silent_ballots(gaps={"muslim": 0.5, "jewish": 0.5, "atheist": 0.5})
    lost = np.random.default_rng(0).random(len(everyone)) < 0.6 * (everyone["identity"] == "black")
    whole = report(with_masses(everyone, np.where(lost, 0.2, 1.0)))
    primary = whole.table("primary").set_index("category")
    assert primary["verdict"]["race"] == "not measured"
    assert primary["verdict"]["religion"] == "different"
    assert primary[["low", "high", "p", "p_adjusted"]].loc["race"].isna().all()
    gaps = whole.table("differences").query("metric == 'all' and within").set_index(["first", "second"])
    black = [pair for pair in gaps.index if "black" in pair]
    assert set(gaps.loc[black, "verdict"]) == {"not measured"}
    assert "not measured" not in set(gaps.drop(index=black)["verdict"])
    assert whole.headline.verdict == "different", "religion"
    line, more = (line for line in whole.cautions if "no verdict" in line.lower())
    share = f"{lost.sum() / (everyone['identity'] == 'black').sum() / 3:.0%} and 0%"
    assert line.startswith(
        f"No verdict on black, asian, hispanic − white: {share} of the silent ballots are unread (p "
    )
    assert more == "3 other contrasts have no verdict for the same reason (table unread_differences)."


def test_ballots_that_are_read_but_leave_the_scale_for_one_identity_leave_no_verdict_either() -> None:
    frame = silent_ballots(categories=("gender",), gaps={"female": -1.0})
    mass = np.where(frame["identity"] == "female", 0.7, 1.0)
    whole = report(with_masses(frame, mass))
    (row,) = whole.table("primary").itertuples()
    assert (row.verdict, round(row.estimate)) == ("not measured", -1)
    assert "0% and 0% of the silent ballots are unread (p = 1), and 70% and 100% of the probability is on" in row.note
    assert whole.headline.verdict == "not measured"


def test_a_difference_that_is_shown_to_be_small_blocks_nothing() -> None:
    """SmolLM2 puts 0.1% more on the scale for white than for others, in nearly every base."""
    frame = silent_ballots(categories=("gender",), gaps={"female": -1.0})
    mass = np.where(frame["identity"] == "female", 0.93, 0.94) + np.random.default_rng(0).normal(0, 0.002, len(frame))
    whole = report(with_masses(frame, mass))
    lines = unread_differences(PanelData(with_masses(frame, mass)))
    on_scale = next(line for line in lines if line.measure == "on_scale")
    assert on_scale.verdict == "different but small"
    assert on_scale.p_adjusted < 0.001
    assert whole.headline.verdict == "different"


def test_ballots_that_are_all_nearly_on_the_scale_need_no_test() -> None:
    frame = with_masses(frame := silent_ballots(categories=("gender",)), np.full(len(frame), 0.96))
    assert unread_differences(PanelData(frame)) == []


def test_pairs_are_compared_by_who_is_shown_first() -> None:
    """A judge that prefers what comes first, and is unread where a woman does, seems to prefer men."""
    frame = pairs(lean=0.0)
    lost = (frame["identity_a"] == "female") & (frame["base"] != "b0")
    whole = report(with_masses(frame, np.where(lost, 0.1, 1.0)))
    row = whole.table("unread_differences").iloc[0]
    assert tuple(row[["phase", "first", "measure", "second_share"]]) == (2, "female", "unread", 0)
    assert row["first_share"] == pytest.approx(11 / 12)
    primary = whole.table("primary")
    assert list(primary["measure"]) == ["preferences", "log-odds"]
    assert set(primary["verdict"]) == {"not measured"}
    assert primary["p"].isna().all()
    assert any(
        "of the silent ballots that show the one or the other first are unread" in line for line in whole.cautions
    )


def test_one_order_alone_decides_no_comparison() -> None:
    frame = pairs(lean=0.0)
    data = PanelData(with_masses(frame, np.where(frame["identity_a"] == "female", 0.1, 1.0)))
    assert data.decided_pairs.empty


@pytest.mark.nightly
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
def test_equal_losses_block_about_one_contrast_in_twenty(rate: float) -> None:
    blocked = sum(bool(unread(unread_at(rate, rate, seed)).unequal) for seed in range(200))
    assert blocked <= 20, "of 200; 17 is the upper end of 95% at one in twenty, and two outcomes are tested"


@pytest.mark.nightly
def test_losses_of_a_fifth_on_one_side_are_found() -> None:
    assert sum(bool(unread(unread_at(0.2, 0.0, seed)).unequal) for seed in range(100)) >= 75
