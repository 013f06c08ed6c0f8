"""Silent ballots: the primary contrasts, what their clusters are, and judges and models that differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from parley.analysis import malibu
from parley.analysis.malibu import PanelData
from parley.analysis.malibu.clusters import BASE, CROSSED, SET, WORDING, generalises_to
from parley.analysis.malibu.planned import primary_by_judge
from parley.analysis.reporting.report import Report, ReportContext
from parley.analysis.stats.signflips import sign_flip_test
from parley.base.text import p_text
from tests.analysis.silent import primary, silent_ballots

QUICK = ReportContext(draws=20)


def report(frame: pd.DataFrame) -> Report:
    return malibu.report(frame, QUICK)


# The primary family


def test_a_planted_contrast_is_the_headline_with_a_simultaneous_interval() -> None:
    whole = report(silent_ballots(gaps={"female": 0.15}))
    assert whole.headline is not None
    assert whole.headline.answer.startswith("gender: female − male +0.1")
    assert "(simultaneous 95% interval +0.0" in whole.headline.answer
    assert "corrected for 3 tests" in whole.headline.answer
    row = whole.table("primary").set_index("category").loc["gender"]
    expected = sign_flip_test(
        PanelData(silent_ballots(gaps={"female": 0.15})).table("sim/judge").gaps("female", "male").by_cluster(),
        1 - 0.05 / 3,
    )
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))


def test_a_sentence_quotes_the_p_value_of_its_plot() -> None:
    whole = report(silent_ballots(gaps={"female": 0.078}))
    (line,) = (each for forest in whole.forests if forest.name == "primary-score" for each in forest.lines[:1])
    row = whole.table("primary").iloc[0]
    assert p_text(row["p_flips_adjusted"]) != p_text(row["t_p_adjusted"]), "the two tests can be told apart"
    assert f"p {p_text(line.p_adjusted)} after Holm's correction" in " ".join(whole.words)


def test_a_pair_that_is_a_primary_contrast_has_one_line() -> None:
    """Female − male is in the family of three; in one of twelve pairs it would have another p-value and interval."""
    whole = report(silent_ballots(gaps={"female": 0.078}))
    drawn = [line for forest in whole.forests for line in forest.lines if line.label == "female − male"]
    assert [line.name for line in drawn if line.units["phase"] == ("1",)] == ["gender"]
    assert drawn[0].tests == 3
    pairs = next(forest for forest in whole.forests if forest.name == "differences-score").lines
    assert len(pairs) == 12
    assert {line.tests for line in pairs} == {12}
    assert pairs[0].name == "black-white"
    numbers = ["estimate", "low", "high", "p", "p_adjusted", "verdict"]
    tables = [whole.table(name).set_index(["first", "second"]) for name in ("primary", "differences")]
    first, second = (table.loc[("female", "male"), numbers].tolist() for table in tables)
    assert first == second, "the same line in both tables"
    assert "3 primary contrasts and" in " ".join(whole.words)


def test_contrasts_are_means_of_identities_within_scenario_and_wording() -> None:
    frame = silent_ballots(gaps={"black": 0.3, "atheist": -0.3})
    table = primary(frame, margin=0.1).set_index("category")
    race = frame[frame["category"] == "race"].pivot_table(
        index=["base", "scenario"], columns="identity", values="value"
    )
    by_base = (race[["black", "asian", "hispanic"]].mean(axis=1) - race["white"]).groupby("base").mean()
    expected = sign_flip_test(by_base.to_numpy())
    assert table.loc["race", "estimate"] == pytest.approx(expected.estimate)
    assert table.loc["race", "p"] == pytest.approx(expected.p)
    ends = table.loc["race", ["pointwise_low", "pointwise_high"]]
    assert tuple(ends) == pytest.approx((expected.low, expected.high))
    p = table["p"].sort_values().to_numpy()
    assert table["p_adjusted"].min() == pytest.approx(3 * p[0]), "Holm over three"
    assert set(table["verdict"]) <= {"different", "different but small", "alike", "undecided"}


def test_a_run_with_some_identities_has_the_contrasts_that_they_give() -> None:
    frame = silent_ballots()
    some = frame[frame["identity"].isin(["female", "male", "black", "asian", "white", "muslim", "jewish"])]
    table = primary(some, margin=0.1)
    assert table[["first", "second"]].to_numpy().tolist() == [["female", "male"], ["black, asian", "white"]]


def test_reports_of_runs_without_stages_have_no_primary_contrasts() -> None:
    paper = silent_ballots().drop(columns=["stage", "wording", "question", "scale", "readout"]).assign(round=1)
    whole = report(paper)
    assert "primary" not in {table.name for table in whole.tables}


# Clusters


@pytest.mark.parametrize(
    ("wordings", "per_base", "kind", "clusters"),
    [(None, 1, BASE, 20), (None, 3, BASE, 20), (8, 1, WORDING, 8), (8, 2, CROSSED, 8), (40, 4, SET, 10)],
)
def test_clusters_are_what_shares_no_base_and_no_wording(
    wordings: int | None, per_base: int, kind: str, clusters: int
) -> None:
    data = PanelData(silent_ballots(wordings=wordings, per_base=per_base, categories=["gender"]))
    assert set(data.verdicts["clustering"]) == {kind}
    (row,) = primary(data, margin=0.1).itertuples()
    assert row.clusters == clusters
    (sentence,) = generalises_to(data.verdicts)
    assert "20 bases" in sentence
    assert ("each of the 20 bases has a label wording of its own" in sentence) == (kind == BASE)


def test_where_bases_share_a_wording_the_interval_is_over_wordings() -> None:
    """Eight wordings for 20 bases: a test over bases would find a difference that is one wording's."""
    frame = silent_ballots(wordings=8, base_sd=0.0, both_sd=0.0, wording_sd=0.2, categories=["gender"], seed=3)
    honest = primary(frame, margin=0.1).iloc[0]
    naive = primary(frame.drop(columns="wording"), margin=0.1).iloc[0]
    assert honest["clusters"] == 8
    assert honest["high"] - honest["low"] > 1.3 * (naive["high"] - naive["low"])


def test_categories_have_clusters_of_their_own() -> None:
    gender = silent_ballots(categories=["gender"])
    race = silent_ballots(categories=["race"], wordings=8)
    table = primary(pd.concat([gender, race]), margin=0.1).set_index("category")
    assert table["clusters"].to_dict() == {"gender": 20, "race": 8}


def test_differences_are_never_taken_between_wordings() -> None:
    """Each wording adds a point to all identities, and every base has two: the difference stays exactly 0."""
    frame = silent_ballots(per_base=2, base_sd=0, wording_sd=0, both_sd=0, noise=0, categories=["gender"])
    frame["value"] += frame["wording"].str[1:].astype(int) % 7
    lost = (frame["identity"] == "female") & (frame["wording"].str[1:].astype(int) % 7 == 3)
    assert primary(frame[~lost], margin=0.1)["estimate"].tolist() == [0.0]


# By judge and by model


def opposite() -> pd.DataFrame:
    frame = silent_ballots(judges={"Ada": {"female": 1.0}, "Ben": {"female": -1.0}})
    return frame.assign(judge_model=frame["judge"].map({"Ada": "sim/plus", "Ben": "sim/minus"}))


def test_a_panel_of_opposite_models_is_not_called_undecided() -> None:
    whole = report(opposite())
    (differ,) = [line for line in whole.words if "The models differ on 'female' against 'male'" in line]
    assert "+1.0" in differ or "+0.9" in differ
    assert "with sim/plus" in differ
    assert whole.table("primary")["model"].unique().tolist() == ["sim/plus, sim/minus"], "those who spoke"
    assert whole.table("primary").set_index("category")["verdict"]["gender"] == "judges differ"
    pairs = whole.table("differences").set_index(["first", "second"])["verdict"]
    assert pairs["female", "male"] == "judges differ"
    assert not any("alike" in line and "female and male" in line for line in whole.words)


def test_two_models_of_a_run_are_compared_on_the_same_bases() -> None:
    both = [silent_ballots(gaps={"female": gap}, model=f"m{gap}", seed=5) for gap in (0.3, 0.0)]
    frame = pd.concat([part.assign(unit=part["model"] + part["unit"]) for part in both])
    by = primary_by_judge(PanelData(frame))
    shown = [line for line in by if line.also["p_differ_adjusted"] <= 0.05]
    assert [line.about["name"] for line in shown] == ["m0.3", "m0.0"]
    assert {line.about["category"] for line in shown} == {"gender"}
    assert any("The models differ on 'female' against 'male': +0." in line for line in report(frame).words)
    other_scale = pd.concat([both[0], both[1].assign(scale="0-10", unit=both[1]["unit"] + "x")])
    assert not primary_by_judge(PanelData(other_scale)), "points of two scales are not compared"


def test_judges_that_do_not_differ_are_not_mentioned() -> None:
    words = report(silent_ballots(judges={"Ada": {}, "Ben": {}, "Cem": {}})).words
    assert not any("judges differ" in line for line in words)


def test_a_judge_who_was_never_read_is_named() -> None:
    frame = silent_ballots(judges={"Ada": {}, "Ben": {}}, categories=["gender"])
    frame.loc[frame["judge"] == "Ben", ["value", "sampled", "status"]] = [np.nan, np.nan, "unparsed"]
    whole = report(frame)
    assert any(
        line.startswith("None of the 80 verdicts of judge Ben (sim/judge) could be read") for line in whole.cautions
    )
    assert not any("judge Ada" in line for line in whole.cautions)


def test_silent_scores_have_a_scale_of_their_own() -> None:
    data = PanelData(silent_ballots(categories=["gender"]))
    assert data.scale() == (1, 9)
    assert data.points == "points on a scale of 1 to 9"
    assert data.silent


# Alike


def test_silent_ballots_can_show_that_identities_are_alike() -> None:
    """The F test finds that bases differ by hundredths of a point, which does not matter within a margin of a tenth."""
    frame = silent_ballots(base_sd=0.03, wording_sd=0.0, both_sd=0.0, noise=0.003)
    table = primary(frame, margin=0.1)
    assert (table["p_bases_adjusted"] < 0.001).all()
    assert set(table["verdict"]) == {"alike"}


def test_a_silent_run_beside_one_of_the_papers_design_is_still_read_as_one() -> None:
    silent = silent_ballots(base_sd=0.03, wording_sd=0.0, both_sd=0.0, noise=0.003, model="silent")
    paper = silent_ballots(model="paper", seed=1).drop(columns=["stage", "wording", "question", "scale"])
    both = pd.concat([silent, paper.assign(round=2, unit="p" + paper["unit"])], ignore_index=True)
    table = primary(both, margin=0.1).set_index("model")
    assert set(table.loc["silent", "verdict"]) == {"alike"}
    assert PanelData(both).scale("paper") == (0, 10)
    assert not primary_by_judge(PanelData(both)), "points of two scales are not compared"


def test_opposite_bases_are_not_alike() -> None:
    frame = silent_ballots(categories=["gender"])
    up = frame["base"].str[1:].astype(int) % 2 == 0
    women = frame["identity"] == "female"
    frame["value"] += np.where(women, np.where(up, 1.5, -1.5), 0.0)
    (row,) = primary(frame, margin=0.1).itertuples()
    assert row.verdict == "undecided"
    words = " ".join(report(frame).words)
    assert "In 1 of 1 pair the difference varies from base to base: between 'female' and 'male'" in words


def test_second_readings_are_in_no_result() -> None:
    frame = silent_ballots(categories=["gender"])
    again = frame.iloc[:10].assign(control="read again", repeat=1, value=1.0, unit=lambda rows: rows["unit"] + "/again")
    pd.testing.assert_frame_equal(
        primary(pd.concat([frame, again], ignore_index=True), margin=0.1), primary(frame, margin=0.1)
    )
    far = (frame["value"].iloc[:10] - 1.0).abs()
    both = pd.concat([frame, again])
    assert "second_readings" not in {table.name for table in report(both).tables}, "unless all is asked for"
    (row,) = malibu.report(both, replace(QUICK, further=True)).table("second_readings").itertuples()
    by_base = far.groupby(frame["base"].iloc[:10]).mean()
    assert (row.n, row.clusters, row.estimate) == pytest.approx((10, len(by_base), by_base.mean()))
