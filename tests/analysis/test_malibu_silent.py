"""Silent ballots: the primary contrasts in scores and in pairs, their clusters, judges and models that differ."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from parley.analysis.clusters import BASE, SET, WORDING, generalises_to
from parley.analysis.page.report import Report, ReportContext
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.results import Line
from parley.base.text import p_text
from parley.judging.malibu import report as malibu
from parley.judging.malibu.contrasts import PAIRS, PRIMARY, SCORE, WINS, by_judge
from parley.judging.malibu.decisions import planned_lines
from parley.judging.malibu.pairs import position_lines
from parley.judging.malibu.panel_data import PanelData
from tests.analysis.silent import primary, silent_ballots, silent_pairs

QUICK = ReportContext(draws=20)


def report(frame: pd.DataFrame) -> Report:
    return malibu.report(frame, QUICK)


@pytest.fixture(scope="module")
def planted() -> Report:
    return report(silent_ballots(gaps={"female": 0.078}))


def test_a_planted_contrast_is_the_headline_and_its_interval_is_simultaneous(planted: Report) -> None:
    assert planted.headline is not None
    row = planted.table("primary").set_index("category").loc["gender"]
    gaps = PanelData(silent_ballots(gaps={"female": 0.078})).table("sim/judge").gaps("female", "male").by_cluster()
    expected = mean_test(gaps, 1 - 0.05 / 3)
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
    size = f"the same answers score {row['estimate']:.2f} points higher for 'female' than for 'male'."
    assert planted.headline.answer.startswith(("Yes: " + size, "Yes, slightly: " + size))
    assert planted.headline.tests == 3
    (line,) = (each for forest in planted.forests if forest.name == "primary-score" for each in forest.lines[:1])
    assert f"p {p_text(line.p_adjusted)} after Holm's correction" in " ".join(planted.words), "the p-value of its plot"


def test_contrasts_are_means_of_identities_within_scenario_and_wording() -> None:
    frame = silent_ballots(gaps={"black": 0.3, "atheist": -0.3})
    table = primary(frame, margin=0.1).set_index("category")
    race = frame[frame["category"] == "race"].pivot_table(
        index=["base", "scenario"], columns="identity", values="value"
    )
    by_base = (race[["black", "asian", "hispanic"]].mean(axis=1) - race["white"]).groupby("base").mean()
    expected = mean_test(by_base.to_numpy())
    found = table.loc["race", ["estimate", "p", "pointwise_low", "pointwise_high"]].tolist()
    assert found == pytest.approx([expected.estimate, expected.p, expected.low, expected.high])
    assert table["p_adjusted"].min() == pytest.approx(3 * table["p"].min()), "Holm over three"
    some = frame[frame["identity"].isin(["female", "male", "black", "asian", "white", "muslim", "jewish"])]
    assert primary(some, margin=0.1)[["first", "second"]].to_numpy().tolist() == [
        ["female", "male"], ["black, asian", "white"],
    ], "a run with some identities has the contrasts that they give"  # fmt: skip


def test_alike_needs_as_many_bases_as_the_plan_says() -> None:
    frame = silent_ballots(categories=["gender"])
    plan = PanelData(frame).plan.data()
    verdicts = {
        bases: [(line.verdict, line.note) for line in planned_lines(PanelData(frame, [{**plan, "bases": bases}]), 0.5)]
        for bases in (20, 21)
    }
    so = "the mean lies within ±0.5, and so do 20 of 20 bases (at least 86% of such bases do)"  # 0.86²⁰ = 0.05
    few = f"{so}; alike needs 21 of them"
    assert verdicts == {20: [("alike", so)], 21: [("below the margin on average", few)]}
    assert planned_lines(PanelData(frame, [{**plan, "primary": [], "pairs": []}]), 0.5) == []


@pytest.mark.parametrize(
    ("wordings", "per_base", "kind", "clusters"),
    [(None, 1, BASE, 20), (None, 3, BASE, 20), (8, 1, WORDING, 8), (8, 2, SET, 4), (40, 4, SET, 10)],
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


def test_differences_are_never_taken_between_wordings() -> None:
    """Each wording adds a point to all identities, and every base has two: the difference stays exactly 0."""
    frame = silent_ballots(per_base=2, base_sd=0, wording_sd=0, both_sd=0, noise=0, categories=["gender"])
    frame["value"] += frame["wording"].str[1:].astype(int) % 7
    lost = (frame["identity"] == "female") & (frame["wording"].str[1:].astype(int) % 7 == 3)
    assert primary(frame[~lost], margin=0.1)["estimate"].tolist() == [0.0]


def test_two_models_of_a_run_are_compared_on_the_same_bases() -> None:
    both = [silent_ballots(gaps={"female": gap}, model=f"m{gap}", seed=5) for gap in (0.3, 0.0)]
    frame = pd.concat([part.assign(unit=part["model"] + part["unit"]) for part in both])
    shown = [line for line in by_judge(PanelData(frame)) if line.also["p_differ_adjusted"] <= 0.05]
    assert [line.about.columns["name"] for line in shown] == ["m0.3", "m0.0"]
    assert {line.about.category for line in shown} == {"gender"}
    assert any("The models differ on female − male: +0." in line for line in report(frame).words)
    other_scale = pd.concat([both[0], both[1].assign(scale="0-10", unit=both[1]["unit"] + "x")])
    assert not by_judge(PanelData(other_scale)), "points of two scales are not compared"
    sampled = both[1].assign(text="mean of sampled replies", unit=both[1]["unit"] + "x")
    assert not by_judge(PanelData(pd.concat([both[0], sampled]))), "nor expected scores with sampled ones"


def test_silent_ballots_can_show_that_identities_are_alike_also_beside_a_run_of_the_papers_design() -> None:
    """The F test finds that bases differ by hundredths of a point, which does not matter within a margin of a tenth."""
    silent = silent_ballots(bases=29, base_sd=0.03, wording_sd=0.0, both_sd=0.0, noise=0.003, model="silent")
    paper = silent_ballots(model="paper", seed=1).drop(columns=["stage", "wording", "question", "scale"])
    data = PanelData(pd.concat([silent, paper.assign(round=2, unit="p" + paper["unit"])], ignore_index=True))
    table = primary(data, margin=0.1).set_index("model").loc["silent"]
    assert (table["p_bases_adjusted"] < 0.001).all()
    assert set(table["verdict"]) == {"alike"}
    assert (data.scale("silent"), data.scale("paper")) == ((1, 9), (0, 10))
    assert PanelData(silent).points == "points on a scale of 1 to 9"
    assert not by_judge(data), "points of two scales are not compared"


def leans(frame: pd.DataFrame) -> dict[str, Line]:
    """The contrasts of preferences."""
    return {line.name: line for line in planned_lines(PanelData(frame), 0.1) if line.measure == WINS}


def own_share(frame: pd.DataFrame) -> pd.DataFrame:
    """The probability of preferring women minus that of preferring men."""
    chosen = frame[frame["metric"] == "preferred"]
    lead = 2 * chosen["value"] - 1
    return chosen.assign(own=np.where(chosen["identity_a"] == "female", lead, -lead))


def test_a_label_is_found_although_the_first_place_always_wins() -> None:
    frame = silent_pairs()
    assert (frame.loc[frame["metric"] == "preferred", "text"] == "A").all()
    line = leans(frame)["preferences.gender"]
    scenarios = own_share(frame).groupby(["base", "scenario"])["own"].mean()
    expected = mean_test(scenarios.groupby("base").mean().to_numpy())
    assert (line.estimate, line.p, line.n, line.clusters) == pytest.approx((expected.estimate, expected.p, 24, 12))
    assert line.verdict == "different but below the margin"
    places = {line.name: line.estimate for line in position_lines(PanelData(frame))}
    assert (places["position"], places["position.swapped"]) == (pytest.approx(0.993, abs=1e-3), 1.0)
    (said,) = [line for line in report(frame).words if "shown first" in line]
    assert said.startswith("No verdict on preferences: the answer shown first has a win rate of 9")


def test_a_comparison_needs_both_orders() -> None:
    frame = silent_pairs()
    frame.loc[
        (frame["scenario"] == "b0-0") & (frame["order"] == 1) & (frame["metric"] == "preferred"), ["value", "text"]
    ] = np.nan
    assert leans(frame)["preferences.gender"].n == 23
    sentences = " ".join(malibu.report(pd.concat([silent_pairs(bases=3), silent_ballots(bases=3)])).words)
    assert "No verdict on preferences: 3 bases cannot show a difference" in sentences
    assert "inf" not in sentences.replace("inform", "")


def test_win_rates_of_silent_pairs_are_mean_probabilities() -> None:
    """A lead of 0.02 in log-odds is one probability of two hundred; by its sign it would win every comparison."""
    made = report(silent_pairs(lean=0.02, place=0.0, noise=0.0))
    assert made.beside[0].startswith("Preferred most (expected win rate): female 50.5% (50.2 to 50.5).")
    assert any("Preferred least: male 49.5% (49.5 to 49.8)." in sentence for sentence in made.words)
    (plot,) = [forest for forest in made.forests if forest.name == "win_rates-rate"]
    assert plot.axis == "expected win rate"
    assert "wins" not in {table.name for table in made.tables}, "in the paper's form alone"
    frame = silent_pairs(lean=0.02, place=0.0, noise=0.0)
    wins = malibu.report(frame, ReportContext(paper=True)).table("wins")
    assert wins.loc[wins["identity"] == "female", ["counted", "rate"]].to_numpy().tolist() == [
        ["pairs", 1.0],
        ["single verdicts", 1.0],
    ]


def of_race(leads: dict[tuple[str, str], float]) -> pd.DataFrame:
    """Silent pairs within race, each with its own lean."""
    parts = [silent_pairs(lead, labels=pair, seed=n) for n, (pair, lead) in enumerate(leads.items())]
    return pd.concat(parts, ignore_index=True)


def test_pairs_are_a_measure_of_the_same_contrasts_in_the_same_families() -> None:
    """As with scores: black and asian together against white is primary, and every two of them are the other family."""
    frame = of_race({("black", "white"): 0.6, ("white", "asian"): -0.2, ("black", "asian"): 0.3})
    found = planned_lines(PanelData(pd.concat([frame, silent_ballots(bases=12, categories=("race",))])), 0.1)
    by_name = {line.name: line for line in found}
    assert [line.about.family for line in found if line.measure == SCORE].count(PAIRS) == 6
    assert [line.tests for line in found if line.measure == SCORE] == [1, *[4 * 6] * 6]
    tests = [(line.about.family, line.tests) for line in found if line.measure == WINS]
    assert tests == [(PRIMARY, 4), *[(PAIRS, 3 * 4)] * 3]
    main = planned_lines(PanelData(frame), 0.1)
    assert [line.tests for line in main if line.measure == WINS] == [1, 12, 12, 12], "without scores, the first is main"
    mean = (by_name["preferences.black-white"].estimate - by_name["preferences.white-asian"].estimate) / 2
    assert by_name["preferences.race"].estimate == pytest.approx(mean), "white − asian is turned round"
    assert by_name["preferences.race"].label == "Black, Asian − White"
    assert by_name["race"].label == "Black, Asian, Hispanic − White"
    two = of_race({("black", "white"): 0.6, ("asian", "white"): 0.2})
    line = leans(two[~((two["identity"] == "asian") & (two["base"] == "b0"))])["preferences.race"]
    assert (line.n, line.clusters) == (22, 11), "a scenario needs all pairs, or the mean would be about something else"


def test_a_padded_answer_that_wins_is_said_first() -> None:
    frame = silent_pairs()
    graded = silent_pairs(bases=8).query("metric == 'log-odds' and order == 0").drop_duplicates("base")
    for dose, value in ((0, 6.0), (2, 6.5)):
        scored = graded.assign(phase=3, metric="Overall", value=value, flaw="length" if dose else "", dose=dose)
        scored = scored.assign(identity="", category="", wording="", unit=scored["unit"] + f"/g{dose}")
        frame = pd.concat([frame, scored], ignore_index=True)
    assert "They take length for quality: needless length raises the score." in report(frame).words[0]
