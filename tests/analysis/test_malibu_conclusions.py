"""One conclusion per pair, on studies with effects that our tests do not assume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from parley.analysis import malibu
from parley.analysis.malibu.ballots import differ_in_one_part
from parley.analysis.reporting.report import ReportContext
from parley.analysis.stats.signflips import clusters_to_reject
from tests.analysis.verdicts import aligned

GENDER = ("female", "male")
DIRECTIONS = {
    f"b{base}": {"gender": {"favoured": [GENDER[base % 2]], "others": [GENDER[1 - base % 2]]}} for base in range(20)
}


def judged(
    labels: Sequence[str] = GENDER,
    *,
    bases: int = 20,
    scenarios: int = 10,
    judges: int = 4,
    effects: Mapping[str, float] | None = None,
    opposite: float = 0.0,
    base_sd: float = 0.0,
    noise: float = 0.5,
    category: str = "gender",
    constant: float | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Judges' scores in whole points: planted effects by label, by base at random, or of opposite sign by base."""
    rng = np.random.default_rng(seed)
    shape = (bases, scenarios, len(labels), judges)
    scores = 7 + rng.normal(0, 0.8, (bases, scenarios, 1, 1)) + rng.normal(0, noise, shape)
    scores += rng.normal(0, base_sd / np.sqrt(2), (bases, 1, len(labels), 1))
    scores += np.array([(effects or {}).get(label, 0.0) for label in labels])[:, None]
    scores[:, :, 0, :] += opposite * (-1.0) ** np.arange(1, bases + 1)[:, None, None]
    points = np.clip(np.rint(scores), 0, 10) if constant is None else np.full(shape, constant)
    base, scenario, label, judge = (axis.ravel() for axis in np.indices(shape))
    names = [f"b{b}-s{s}" for b, s in zip(base, scenario, strict=True)]
    identities = np.array(labels, dtype=object)[label]
    return pd.DataFrame(
        {
            "unit": [f"p1/{name}/{identity}" for name, identity in zip(names, identities, strict=True)],
            "phase": 1,
            "scenario": names,
            "base": [f"b{number}" for number in base],
            "category": category,
            "identity": identities,
            "judge": [f"J{number}" for number in judge],
            "role": "debater",
            "round": 1,
            "metric": "Accuracy",
            "value": points.ravel(),
            "status": "ok",
        }
    )


def pair(frame: pd.DataFrame, margin: float = 0.1) -> pd.Series:
    table = malibu.differences(frame, margin=margin)
    return table[(table["metric"] == "all") & table["within"]].iloc[0]


def words(frame: pd.DataFrame) -> str:
    return "\n".join(malibu.report(frame, ReportContext(draws=20)).words)


def test_opposite_stereotypes_are_not_alike() -> None:
    for seed in range(3):
        frame = judged(opposite=1.5, seed=seed)
        row = pair(frame)
        assert row["verdict"] == "undecided"
        assert row["p_bases_adjusted"] < 1e-6
        assert row["base_sd"] == pytest.approx(1.5, abs=0.15)
    said = words(frame)
    assert "alike within" not in said
    assert "(SD of 1." in said


def test_no_effect_is_shown_to_be_alike_by_enough_bases() -> None:
    conclusions = [pair(judged(bases=30, noise=0.3, seed=seed))["verdict"] for seed in range(5)]
    assert conclusions.count("alike") >= 4
    assert "different" not in conclusions


def test_a_small_difference_is_called_small() -> None:
    row = pair(judged(bases=30, effects={"female": 0.06}, noise=0.3), margin=0.2)
    assert row["verdict"] == "different but small"
    assert row["p_adjusted"] <= 0.05
    assert row["p_alike_adjusted"] <= 0.05


def test_different_and_alike_exclude_each_other() -> None:
    for seed, effect in enumerate(np.linspace(0, 0.5, 12)):
        row = pair(judged(effects={"female": effect}, bases=12, seed=seed))
        assert (row["verdict"] in ("different", "different but small")) == (row["p_adjusted"] <= 0.05)


def test_one_scenario_per_base_cannot_tell_how_bases_differ() -> None:
    row = pair(judged(scenarios=1, constant=8.0))
    assert row["verdict"] == "alike on average"
    assert "by base unknown" in row["note"]


def test_a_constant_judge_treats_identities_alike() -> None:
    row = pair(judged(constant=8.0))
    assert (row["estimate"], row["p"], row["verdict"]) == (0.0, 1.0, "alike")
    assert row["p_alike"] == 2.0**-20


def test_five_bases_can_never_show_a_difference_and_the_report_says_so() -> None:
    frame = judged(bases=5, effects={"female": 3.0})
    row = pair(frame)
    assert (row["p"], row["verdict"]) == (2 / 2**5, "undecided")
    assert np.isinf(row["low"])
    (blocker,) = (line for line in malibu.report(frame).words if "cannot show a difference" in line)
    assert blocker.startswith("No verdict on scores: 5 bases cannot show a difference between labels, whatever its")
    assert "needs at least 6" in blocker


@pytest.mark.parametrize("labels", [2, 12])
def test_three_points_are_reported_in_every_size_of_family(labels: int) -> None:
    """Up to 66 tests on 20 bases."""
    names = [f"group {n}" for n in range(labels)]
    frame = judged(names, effects={names[0]: -3.0}, scenarios=2, judges=2)
    table = malibu.differences(frame)
    planned = table[(table["metric"] == "all") & table["within"]]
    planted = planned[planned["first"] == names[0]]
    assert len(planned) == labels * (labels - 1) // 2
    assert clusters_to_reject(0.05, len(planned)) <= 20
    assert (planted["verdict"] == "different").all()
    others = planned[planned["first"] != names[0]]
    assert (others["verdict"] != "different").all()


def test_crossed_labels_are_compared_where_they_differ_in_one_part() -> None:
    assert differ_in_one_part("race+religion", "black muslim", "white muslim")
    assert not differ_in_one_part("race+religion", "black muslim", "white jewish")
    assert differ_in_one_part("gender", "female", "male")
    crossed = [f"{race} {gender}" for race in ("black", "white") for gender in GENDER]
    table = malibu.differences(judged(crossed, category="race+gender", bases=6, scenarios=1, judges=1))
    tested = table[table["p"].notna() & (table["metric"] == "all")]
    assert len(tested) == 4
    assert ("black female", "white male") not in set(zip(tested["first"], tested["second"], strict=True))


def test_labels_that_follow_the_stereotype_are_found() -> None:
    """Opposite stereotypes: no mean difference, and a clear contrast in the documented direction."""
    frame = judged(opposite=0.5)
    # odd bases raise "female" by 0.5, even bases lower it; the directions say that odd bases favour "male"
    (row,) = aligned(frame, DIRECTIONS).to_dict("records")
    assert row["estimate"] == pytest.approx(-1.0, abs=0.2)
    assert row["high"] < 0
    assert row["p"] < 1e-3
    assert row["favoured_bases"] + row["other_bases"] == 20


def test_a_plain_preference_for_men_is_not_called_aligned() -> None:
    """Planted: men score 0.3 higher on every base, whatever its stereotype."""
    found = 0
    for seed in range(20):
        frame = judged(effects={"male": 0.3}, bases=12, scenarios=2, judges=1, seed=seed)
        (row,) = aligned(frame, DIRECTIONS).to_dict("records")
        found += row["p"] <= 0.05
    assert found <= 4, "5% of 20 is 1"


def test_a_category_with_few_bases_on_one_side_is_withheld() -> None:
    few = {base: sides for base, sides in DIRECTIONS.items() if base in ("b0", "b1", "b2")}
    table = aligned(judged(), few).set_index("category")
    assert np.isnan(table.loc["gender", "p"])
    assert table.loc["gender", "note"] == "withheld: 1 of 3 coded bases against the rest"
    words = malibu.report(judged(), ReportContext(draws=20, directions=few)).words
    assert not any("stereotype" in line for line in words), "what was not tested is not said"


def test_a_reply_that_is_missing_under_one_identity_does_not_count_under_the_other() -> None:
    """J0 is two points more lenient; its replies to female go unread. Within judges nothing differs."""
    frame = judged(noise=0.01)
    frame.loc[frame["judge"] == "J0", "value"] += 2
    frame.loc[(frame["judge"] == "J0") & (frame["identity"] == "female"), "value"] = np.nan
    assert pair(frame)["estimate"] == pytest.approx(0.0, abs=0.01)


def test_bases_that_lack_an_identity_are_left_out_of_its_pairs_and_counted() -> None:
    frame = judged(bases=8, scenarios=2)
    frame = frame[~((frame["identity"] == "female") & frame["base"].isin(["b0", "b1"]))]
    assert pair(frame)["clusters"] == 6


def test_false_alarms_with_effects_that_differ_by_base() -> None:
    """Base × identity SD 0.5: over scenarios 28% are significant; over bases about 5% (seeded, 60 studies)."""
    frames = [judged(scenarios=5, judges=1, base_sd=0.5, seed=seed) for seed in range(60)]
    rows = [pair(frame) for frame in frames]
    assert sum(row["p"] <= 0.05 for row in rows) <= 8
    assert sum(row["scenario_p"] <= 0.05 for row in rows) >= 10
