"""MALIBU's tests by hand: the paper's χ², and those that respect scenarios; agreement and changed minds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis.malibu import PanelData
from parley.analysis.malibu.scores import PRINTED
from parley.analysis.malibu.unread import unread_shares
from parley.analysis.stats.agreement import ENOUGH_CLUSTERS, fleiss_kappa, krippendorff_alpha
from tests.analysis.verdicts import agreement, preferences, significance, single

CHI, PERMUTED = "χ² of identity", "identity effect"


def vote(scenario: str, choice: str | None, order: int = 0, **others: Any) -> dict[str, Any]:
    """One judge's preference between female and male."""
    labels = ("male", "female") if order else ("female", "male")
    pair = {"phase": 2, "other": "male", "identity_a": labels[0], "identity_b": labels[1], "metric": "preferred"}
    place = {"unit": f"p2/{scenario}/o{order}", "text": choice, "status": "ok"}
    return single(scenario, "female", None) | pair | place | others


def of_family(frame: pd.DataFrame, family: str) -> pd.DataFrame:
    tests = significance(frame)
    return tests[tests["family"].str.startswith(family)]


# The paper's χ²


def test_chi_square_of_the_table_by_hand() -> None:
    scores = {"female": [7] * 6 + [8] * 2, "male": [7] * 2 + [8] * 6}
    rows = [
        single(f"s{n // 2}", identity, float(value), judge=f"J{n % 2}")
        for identity, values in scores.items()
        for n, value in enumerate(values)
    ]
    (row,) = of_family(pd.DataFrame(rows), CHI).to_dict("records")
    # n (ad - bc)² / (product of the margins) = 16 · (36 - 4)² / 8⁴ = 4, df 1; V = sqrt(4 / 16)
    assert (row["statistic"], row["df"]) == pytest.approx((4.0, 1))
    assert row["p"] == pytest.approx(stats.chi2.sf(4, 1))
    assert row["estimate"] == pytest.approx(0.5)
    assert row["n"] == 16, "every judge counts as independent, as in the paper"
    assert row["assumption"] == "independent"
    assert (row["category"], row["metric"]) == ("gender", "Accuracy")


def test_chi_square_counts_final_scores_in_whole_points() -> None:
    """The sampled score counts, not its expectation; first rounds and controls do not."""
    rng = np.random.default_rng(3)
    rows = []
    counts: dict[str, list[int]] = {"black": [0] * 11, "white": [0] * 11, "asian": [0] * 11}
    for scenario in range(15):
        rows.append(single(f"s{scenario}", "", 3.0))
        for identity, levels in counts.items():
            score = int(rng.integers(5, 8))
            levels[score] += 1
            rows.append(single(f"s{scenario}", identity, 1.0, round=1))
            expected = score + 0.4 - 0.8 * (score % 2)
            rows.append(single(f"s{scenario}", identity, expected, sampled=float(score), round=2))
    (row,) = of_family(pd.DataFrame(rows), CHI).to_dict("records")
    table = np.array(list(counts.values()))
    theirs = stats.chi2_contingency(table[:, table.sum(axis=0) > 0], correction=False)
    assert (row["statistic"], row["df"], row["p"]) == pytest.approx((theirs.statistic, theirs.dof, theirs.pvalue))
    assert row["n"] == 45


# Tests that respect scenarios


def scored(**gaps: tuple[float, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [single(f"s{n}", identity, 5 + gap) for identity, values in gaps.items() for n, gap in enumerate(values)]
    )


def test_two_identities_are_tested_by_flipping_signs() -> None:
    frame = scored(female=(1.0, 2.0, 3.0, 2.0), male=(0.0, 0.0, 0.0, 0.0))
    rows = of_family(frame, PERMUTED).set_index("metric")
    assert rows.loc["all", "p"] == 2 / 16, "only all plus and all minus reach the sum"
    assert rows.loc["all", "estimate"] == 2.0
    assert rows.loc["all", "statistic"] == pytest.approx(stats.ttest_1samp([1, 2, 3, 2], 0).statistic)
    assert (rows.loc["all", "n"], rows.loc["all", "clusters"], rows.loc["all", "assumption"]) == (8, 4, "clustered")
    assert rows["p_adjusted"].tolist() == [2 / 16], "one metric is all of them"


def test_three_identities_are_tested_by_flipping_whole_scenarios() -> None:
    frame = scored(black=(1.0, 1.0), white=(2.0, 2.0), asian=(3.0, 3.0))
    rows = of_family(frame, PERMUTED).set_index("metric")
    # two scenarios: the sums are as far apart as seen where both have the same sign, 2 of 4
    assert rows.loc["all", "p"] == 2 / 4
    assert rows.loc["all", "note"], "no spread is left to judge the size by"


def test_scenarios_of_one_base_are_one_cluster() -> None:
    frame = scored(female=(1.0, 2.0, 3.0, 2.0), male=(0.0, 0.0, 0.0, 0.0)).assign(
        base=lambda rows: rows["scenario"].map({"s0": "x", "s1": "x", "s2": "y", "s3": ""})
    )
    rows = of_family(frame, PERMUTED).set_index("metric")
    assert rows.loc["all", "clusters"] == 3, "x, y, and the scenario without a base"
    assert rows.loc["all", "estimate"] == pytest.approx((1.5 + 3 + 2) / 3)
    assert rows.loc["all", "p"] == 2 / 8


def test_preferences_are_tested_scenario_by_scenario() -> None:
    rows = []
    for n in range(5):  # female wins both orders of every scenario
        rows += [vote(f"s{n}", "A", 0), vote(f"s{n}", "B", 1)]
    (row,) = preferences(pd.DataFrame(rows)).to_dict("records")
    assert row["p"] == 2 / 2**5, "five scenarios, not ten verdicts"
    assert (row["estimate"], row["first"], row["second"], row["category"]) == (1.0, "female", "male", "gender")
    assert (row["n"], row["clusters"]) == (5, 5)


def test_a_win_and_a_loss_in_one_scenario_are_a_draw() -> None:
    rows = []
    for n, (first, second) in enumerate([("A", "A"), ("A", "B"), ("A", "tie"), ("B", "A"), ("tie", "tie")]):
        rows += [vote(f"s{n}", first, 0), vote(f"s{n}", second, 1)]
    rows += [vote("s9", None, 0)]
    (row,) = preferences(pd.DataFrame(rows)).to_dict("records")
    # margins of female: (1 - 1) / 2, (1 + 1) / 2, (1 + 0) / 2, (-1 - 1) / 2, 0: their mean is 0.1.
    # |±1 ± 0.5 ± 1| is 2.5, 1.5, 0.5, 0.5: all reach 0.5
    assert row["estimate"] == pytest.approx(0.1)
    assert row["p"] == 1.0
    assert row["clusters"] == 5, "an unreadable reply is not a scenario"


def test_every_family_is_corrected_separately() -> None:
    frame = scored(
        female=(1.0, 2.0, 3.0, 2.0), male=(0.0,) * 4, black=(0.5, -0.5, 1.0, 0.0), white=(0.0, 0.0, 0.0, 0.0)
    )
    for _, family in significance(frame).groupby("family"):
        known = family["p"].dropna().sort_values()
        expected = np.minimum(np.maximum.accumulate(known * np.arange(len(known), 0, -1)), 1)
        assert family.loc[known.index, "p_adjusted"].tolist() == pytest.approx(expected.tolist())


# Agreement, parsing


def test_agreement_on_preferences_by_hand() -> None:
    choices = [("A", "A"), ("B", "B"), ("A", "A"), ("A", "B")]
    rows = [
        vote(f"s{n}", choice, judge=f"J{judge}") for n, pair in enumerate(choices) for judge, choice in enumerate(pair)
    ]
    (row,) = agreement(pd.DataFrame(rows), draws=50).to_dict("records")
    # agreed 3 of 4; by chance (5/8)² + (3/8)² = 34/64; κ = (3/4 - 34/64) / (30/64) = 14/30
    assert (row["metric"], row["measure"]) == ("preferred", "kappa")
    assert row["estimate"] == pytest.approx(14 / 30)
    assert (row["judges"], row["n"]) == (2, 8)


def test_agreement_on_scores_by_hand() -> None:
    pairs = [(1.0, 1.0), (2.0, 2.0), (3.0, 4.0)]
    rows = [
        single(f"s{n}", "female", value, judge=f"J{judge}")
        for n, pair in enumerate(pairs)
        for judge, value in enumerate(pair)
    ]
    (row,) = agreement(pd.DataFrame(rows), draws=50).to_dict("records")
    # seen: 2 · 1²; by chance 2 (6 · 35 - 13²) = 82 over all 6 · 5 ordered pairs; α = 1 - 5 · 2 / 82
    assert row["measure"] == "alpha"
    assert row["estimate"] == pytest.approx(1 - 10 / 82)
    assert np.isnan([row["low"], row["high"]]).all(), "three bases have no interval"


def test_agreement_goes_by_round_without_the_chair_and_each_side_is_an_item() -> None:
    rng = np.random.default_rng(1)
    rows, scores = [], {1: [], 2: []}  # type: tuple[list[dict[str, Any]], dict[int, list[list[float]]]]
    for n in range(ENOUGH_CLUSTERS):
        for round, items in scores.items():
            for side in "AB":
                items.append([float(rng.integers(0, 11)) for _ in range(3)])
                for judge, value in enumerate(items[-1]):
                    more = {"subject": side, "metric": "Accuracy", "value": value, "text": None}
                    rows.append(vote(f"s{n}", None, judge=f"J{judge}", round=round) | more)
        rows.append(vote(f"s{n}", "A", judge="Chair", role="chair", round=2))
    table = agreement(pd.DataFrame(rows), draws=50)
    assert table["metric"].unique().tolist() == ["Accuracy"], "the chair is not one of the judges"
    assert table["round"].tolist() == [1, 2]
    for row in table.itertuples():
        clusters = [f"s{n}" for n in range(ENOUGH_CLUSTERS) for _ in "AB"]
        theirs = krippendorff_alpha(scores[row.round], clusters=clusters, draws=50)
        assert row.low < row.estimate < row.high, "as many bases as an interval needs"
        assert (row.estimate, row.low, row.high) == pytest.approx((theirs.estimate, theirs.low, theirs.high))
        assert row.judges == 3


def test_judges_who_never_differ_have_no_measured_agreement() -> None:
    rows = [vote(f"s{n}", "A", judge=f"J{judge}") for n in range(4) for judge in range(2)]
    (row,) = agreement(pd.DataFrame(rows), draws=50).to_dict("records")
    assert math.isnan(row["estimate"])
    assert row["note"]
    assert math.isnan(fleiss_kappa([["A", "A"]] * 4).estimate), "by hand as well"


def test_replies_are_counted_once_however_many_metrics_they_score() -> None:
    rows = []
    for judge, status in (("J1", "ok"), ("J2", "repaired"), ("J3", "unparsed"), ("J4", "refused"), ("J5", "ok")):
        for metric in ("Accuracy", "Creativity", "Efficiency", "Reliability"):
            rows.append(single("s", "male", 5.0, judge=judge, metric=metric, status=status))
    rows += [vote("s", "A", round=1), vote("s", "B", round=2)]
    lines = {line.label: line.also for line in unread_shares(PanelData(pd.DataFrame(rows)))}
    assert [lines["phase 1"][status] for status in ("ok", "repaired", "unparsed", "refused")] == [2, 1, 1, 1]
    assert [lines["phase 2"][status] for status in ("ok", "repaired", "unparsed", "refused")] == [2, 0, 0, 0]


def test_the_papers_printed_differences_add_up() -> None:
    """Through any third identity, up to the rounding of three printed numbers; only then were they read off rightly."""
    both = PRINTED | {(y, x): (-a, -b) for (x, y), (a, b) in PRINTED.items()}
    for x, y in PRINTED:
        for third in {name for pair in PRINTED for name in pair} - {x, y}:
            if (x, third) in both and (third, y) in both:
                for direct, first, second in zip(both[x, y], both[x, third], both[third, y], strict=True):
                    assert direct == pytest.approx(first + second, abs=0.0151)
