"""MALIBU's phase 1 by hand: the panel's score, means, differences on the same answers, and conclusions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.scores import FIGURE_4, _means, differences, mean_scores
from parley.judging.malibu.significance import significance_lines
from tests.analysis.verdicts import GENDER, as_table, comparison, pair_facets, single, study

CHAIR = {"role": "chair", "judge": "Chair"}


@pytest.mark.parametrize(
    ("verdicts", "scores"),
    [
        ([("u", 2, {}), ("u", 6, {"round": 2}), ("u", 8, {"round": 2, "judge": "K"})], {"u": 7}),
        ([("short", 4, {}), ("long", 2, {}), ("long", 9, {"round": 3})], {"short": 4, "long": 9}),
        ([("with", 2, {}), ("with", 9, CHAIR), ("without", 5, {})], {"with": 9, "without": 5}),
        ([("u", 8, {}), ("u", None, {"judge": "K"})], {"u": 8}),
    ],
    ids=["the last round counts", "each unit has its own", "the chair counts where there is one", "unread is not 0"],
)
def test_the_panels_score(verdicts: list[tuple[str, float | None, dict[str, Any]]], scores: dict[str, float]) -> None:
    frame = pd.DataFrame([single("s", "male", value, **{"unit": unit, **more}) for unit, value, more in verdicts])
    assert dict(PanelData(frame).scores[["unit", "value"]].to_numpy()) == scores


SCORED = {
    **{("s1", "female"): (8, 6), ("s1", "male"): (7, 6), ("s1", ""): (5, 5)},
    **{("s2", "female"): (6, None), ("s2", "male"): (5, 3), ("s2", ""): (4, 4)},
}
"""Two scenarios, two labels and the control, two metrics; one reply could not be read."""


def scored() -> pd.DataFrame:
    return pd.DataFrame(
        [
            single(scenario, identity, value, metric=metric)
            for (scenario, identity), pair in SCORED.items()
            for metric, value in zip(("Accuracy", "Creativity"), pair, strict=True)
        ]
    )


def test_mean_scores_by_hand() -> None:
    table = mean_scores(scored()).set_index(["identity", "metric"])
    # female: s1 (8 + 6) / 2 = 7, s2 only 6; mean 6.5, half width t(0.975, 1) * 0.5 = 6.3531; the scale ends at 10
    female = table.loc[("female", "all"), ["mean", "low", "high", "n", "clusters"]].tolist()
    assert female == pytest.approx([6.5, 6.5 - 6.3531, 10.0, 3, 2], abs=1e-4)
    assert table.loc[("female", "Accuracy"), "mean"] == 7.0
    assert table.loc[("female", "Creativity"), ["mean", "clusters"]].tolist() == [6.0, 1]
    assert math.isnan(table.loc[("female", "Creativity"), "low"])
    # male: s1 6.5, s2 4; control: s1 5, s2 4
    assert table.loc[("male", "all"), "mean"] == 5.25
    assert table.loc[("(no label)", "all"), ["mean", "category"]].tolist() == [4.5, ""]


def test_means_of_both_answers_of_debated_pairs_are_of_the_last_round() -> None:
    """In the second pair the female answer stands at B, and one judge's last score is unread."""
    rows = [
        {**facets, "judge": judge, "round": rank, "subject": side, "metric": "Accuracy", "value": value, "text": None}
        for facets, given in (
            (pair_facets("female", "male", "s1", 0, 0), {("J", 1): (9, 1), ("J", 2): (4, 6), ("K", 2): (6, 8)}),
            (pair_facets("female", "male", "s2", 0, 1), {("J", 2): (2, 7), ("K", 2): (None, 9)}),
        )
        for (judge, rank), pair in given.items()
        for side, value in zip("AB", pair, strict=True)
    ]
    frame = pd.DataFrame([{**row, "role": "debater", "status": "ok"} for row in rows])
    frame = pd.concat([frame, pd.DataFrame(comparison("female", "male", "A", scenario="s1"))])
    means = _means(data := PanelData(frame), data.pair_scores).set_index(["identity", "metric"])["mean"].to_dict()
    assert means == {("female", "all"): 6.5, ("male", "all"): 4.5}  # (5 + 8) / 2 and (7 + 2) / 2


def test_differences_by_hand() -> None:
    table = differences(scored()).set_index("metric")
    row = table.loc["all"]
    assert row[["category", "first", "second", "within"]].tolist() == ["gender", "female", "male", True]
    # Within a metric: s1 8 - 7 and 6 - 6, mean 0.5; s2 only 6 - 5, since female's Creativity could not be read.
    # Signs: |±0.5 ± 1| reaches 1.5 in two of four arrangements; two scenarios exclude no difference.
    assert row[["estimate", "p", "low", "high", "n", "clusters"]].tolist() == [0.75, 0.5, -math.inf, math.inf, 2, 2]
    assert table.loc["Accuracy", ["estimate", "p"]].tolist() == [1.0, 0.5]
    assert table.loc["Creativity", ["clusters", "p"]].tolist() == [1, 1.0]
    assert table.loc["Creativity", "note"]
    assert set(table["first"]) | set(table["second"]) == {"female", "male"}, "not the control"


GAPS = {"female": (1.0, 2.0, 3.0, 2.0), "male": (0.0,) * 4, "black": (0.5, -0.5, 1.0, 0.0), "white": (0.0,) * 4}


def crossed(gaps: Mapping[str, tuple[float, ...]] = GAPS, **others: Any) -> pd.DataFrame:
    """Four scenarios, two categories: female - male is 1, 2, 3, 2; black - white is 0.5, -0.5, 1, 0."""
    rows = [single(f"s{n}", label, 5 + gap, **others) for label, values in gaps.items() for n, gap in enumerate(values)]
    return pd.DataFrame(rows)


def test_p_values_by_hand_are_corrected_in_the_family_of_a_model() -> None:
    one, two = crossed(model="one"), crossed(model="two")
    table = differences(pd.concat([one, two.assign(unit="two/" + two["unit"])]))
    table = table[table["model"] == "one"].set_index(["first", "second"])
    together, metric = (table[table["within"] & (table["metric"] == name)] for name in ("all", "Accuracy"))
    # 1, 2, 3, 2: only all plus and all minus reach the sum, 2 of 16. 0.5, -0.5, 1 (0 stays 0): |sum| is 2, 1, 1 or 0,
    # each twice; 1 is reached by 6 of 8.
    assert together["p"].to_dict() == {("female", "male"): 2 / 16, ("black", "white"): 6 / 8}
    # Holm: the smaller of two counts twice; Benjamini-Hochberg, by metric: smallest p times 2 / 1, largest times 2 / 2
    for part in (together, metric):
        assert part["p_adjusted"].to_dict() == {("female", "male"): 2 * 2 / 16, ("black", "white"): 6 / 8}
    across = table[~table["within"]]
    assert list(across.index) == [(x, y) for x in GENDER for y in ("black", "white")], "shown, and not tested"
    assert across[["p", "p_adjusted"]].isna().all(axis=None)
    assert across.loc[("male", "black"), "estimate"] == 5.0 - 5.25


def judged(opposite: float = 0.0, constant: float | None = None, **settings: Any) -> pd.DataFrame:
    """Whole points by four judges on 20 bases of 10; `opposite` is what odd bases add to women, and even ones take."""
    effects = settings.pop("effects", {})

    def score(row: Mapping[str, Any], label: str, rng: np.random.Generator) -> float:
        turned = opposite * (-1 if int(row["base"][1:]) % 2 == 0 else 1) * (label == "female")
        drawn = 7 + turned + effects.get(label, 0.0) + settings.get("noise", 0.5) * rng.normal()
        return float(np.clip(np.rint(drawn), 0, 10)) if constant is None else constant

    return study(**{"bases": 20, "scenarios": 10, "judges": 4, "metrics": ("Accuracy",), **settings, "score": score})


def pair(frame: pd.DataFrame, margin: float = 0.1) -> pd.Series:
    table = differences(frame, margin=margin)
    return table[(table["metric"] == "all") & table["within"]].iloc[0]


@pytest.mark.parametrize(
    ("settings", "margin", "verdict", "numbers"),
    [
        ({"effects": {"female": 1.0}, "scenarios": 2}, 0.1, "different", {"estimate": (1.0, 0.15)}),
        (
            {"effects": {"female": 0.16}, "bases": 30},
            0.3,
            "different but below the margin",
            {"p_alike_adjusted": (0, 0.05)},
        ),
        # written replies are too noisy for single bases to be counted
        ({"bases": 30, "noise": 0.3}, 0.1, "below the margin on average", {"p_adjusted": (1, 0.9)}),
        # 29 bases that agree may have missed one in eight, which may lie ten points away
        ({"constant": 8.0, "bases": 29}, 0.1, "undecided", {"p_alike": (0.99**29, 1e-9), "high": (1.19, 0.01)}),
        ({"noise": 0.3, "scenarios": 1, "judges": 40}, 0.1, "below the margin on average", {}),
        ({"opposite": 1.5}, 0.1, "undecided", {"base_sd": (1.5, 0.15), "p_bases_adjusted": (0, 1e-6)}),
        ({"bases": 5, "effects": {"female": 3.0}}, 0.1, "undecided", {"p": (2 / 2**5, 0)}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_one_conclusion_per_pair(settings: Any, margin: float, verdict: str, numbers: dict[str, Any]) -> None:
    row = pair(judged(**settings), margin)
    assert row["verdict"] == verdict
    for name, (expected, tolerance) in numbers.items():
        assert row[name] == pytest.approx(expected, abs=tolerance), name
    too_noisy = verdict == "below the margin on average" or settings.get("effects") == {"female": 0.16}
    assert ("single bases are too noisy to count" in row["note"]) == too_noisy
    few = "no difference can be significant among 1 test with fewer than 6 bases"
    assert (few in row["note"]) == (settings.get("bases") == 5)


def test_differences_are_taken_within_judges_and_within_bases_that_have_both() -> None:
    """J0 is two points more lenient; its replies to female go unread. Within judges nothing differs."""
    frame = judged(noise=0.0)
    frame.loc[frame["judge"] == "J0", "value"] += 2
    frame.loc[(frame["judge"] == "J0") & (frame["identity"] == "female"), "value"] = np.nan
    assert pair(frame)["estimate"] == 0.0
    some = frame[~((frame["identity"] == "female") & frame["base"].isin(["b0", "b1"]))]
    assert pair(some)["clusters"] == 18


def of_family(frame: pd.DataFrame, family: str) -> pd.DataFrame:
    tests = as_table(significance_lines, frame)
    return tests[tests["family"].str.startswith(family)].set_index("metric")


def test_chi_square_counts_final_scores_in_whole_points() -> None:
    """The sampled score counts, not its expectation; first rounds and controls do not."""
    rng = np.random.default_rng(3)
    counts = {label: [0] * 11 for label in ("black", "white", "asian")}
    rows = []
    for scenario in range(15):
        rows.append(single(f"s{scenario}", "", 3.0))
        for label, levels in counts.items():
            score = int(rng.integers(5, 8))
            levels[score] += 1
            rows.append(single(f"s{scenario}", label, 1.0))
            expected = score + 0.4 - 0.8 * (score % 2)
            rows.append(single(f"s{scenario}", label, expected, sampled=float(score), round=2))
    row = of_family(pd.DataFrame(rows), "χ² as in the paper").loc["Accuracy"]
    levels = np.array(list(counts.values()))
    theirs = stats.chi2_contingency(levels[:, levels.sum(axis=0) > 0], correction=False)
    expected = [theirs.statistic, theirs.dof, theirs.pvalue, 45]
    assert row[["statistic", "df", "p", "n"]].tolist() == pytest.approx(expected)


def test_identity_as_a_whole_is_tested_by_flipping_whole_clusters() -> None:
    frame = crossed({"female": GAPS["female"], "male": GAPS["male"]})
    row = of_family(frame, "identity effect").loc["all"]
    assert row[["p", "p_adjusted", "estimate", "n", "clusters"]].tolist() == [2 / 16, 2 / 16, 2.0, 8, 4]
    assert row["statistic"] == pytest.approx(stats.ttest_1samp([1, 2, 3, 2], 0).statistic)
    assert row["assumption"] == "clustered"
    based = frame.assign(base=frame["scenario"].map({"s0": "x", "s1": "x", "s2": "y", "s3": ""}))
    row = of_family(based, "identity effect").loc["all"]
    assert row["clusters"] == 3, "x, y, and the scenario without a base"
    assert row[["estimate", "p"]].tolist() == pytest.approx([(1.5 + 3 + 2) / 3, 2 / 8])
    three = of_family(crossed({"black": (1.0, 1.0), "white": (2.0, 2.0), "asian": (3.0, 3.0)}), "identity effect")
    assert three.loc["all", "p"] == 2 / 4, "the sums are as far apart as seen where both scenarios have the same sign"
    assert three.loc["all", "note"], "no spread is left to judge the size by"


def test_the_papers_printed_differences_add_up() -> None:
    """Through any third identity, up to the rounding of three printed numbers; only then were they read off rightly."""
    printed = pd.read_csv(FIGURE_4, sep=" ", comment="#").set_index(["column", "row"])
    below = (-printed).swaplevel()
    both = pd.concat([printed, below.set_axis(below.index.set_names(printed.index.names))])
    names = both.index.levels[0]
    assert len(printed) == 45
    for x, y, third in permutations(names, 3):
        gap = both.loc[(x, y)] - both.loc[(x, third)] - both.loc[(third, y)]
        assert gap.abs().max() < 0.0151, (x, y, third)
