"""MALIBU's variance components: planted ones, the standard error they predict, and designs that leave some unknown."""

from __future__ import annotations

import math
from time import process_time

import numpy as np
import pandas as pd
import pytest

from parley.analysis.malibu.components import GENERALISES_TO, components_figure, variance_tables

SDS = {"base": 0.8, "scenario": 0.5, "judge": 0.6, "by_base": 0.5, "by_scenario": 0.3, "by_judge": 0.4, "talk": 0.4}


def study(
    rng: np.random.Generator,
    *,
    bases: int = 12,
    scenarios: int = 4,
    identities: int = 4,
    judges: int = 4,
    repeats: int = 2,
    metrics: int = 1,
) -> pd.DataFrame:
    """A frame of final verdicts with planted components. Metrics differ by 2 points, and have noise of their own."""
    shape = bases, scenarios, identities, judges, repeats, metrics
    base, scenario, identity, judge, repeat, metric = (index.ravel() for index in np.indices(shape))
    scenario = base * scenarios + scenario
    unit = (scenario * identities + identity) * repeats + repeat

    def planted(name: str, code: np.ndarray) -> np.ndarray:
        return rng.normal(0, SDS[name], int(code.max()) + 1)[code]

    value = 5 + 2.0 * metric + rng.normal(0, 1, len(base))
    value += planted("base", base) + planted("scenario", scenario) + planted("judge", judge)
    value += planted("by_base", base * identities + identity) + planted("by_scenario", scenario * identities + identity)
    value += planted("by_judge", judge * identities + identity) + planted("talk", unit)

    def named(word: str, code: np.ndarray) -> pd.Series:
        return pd.Series(pd.Categorical.from_codes(code, [f"{word} {n}" for n in range(int(code.max()) + 1)]))

    return pd.DataFrame(
        {
            "unit": named("unit", unit),
            "phase": 1,
            "scenario": named("scenario", scenario),
            "base": named("base", base),
            "category": "gender",
            "identity": named("identity", identity),
            "judge": named("judge", judge),
            "role": "debater",
            "round": 1,
            "metric": named("metric", metric),
            "value": value,
            "status": "ok",
            "repeat": repeat,
        }
    )


def by_component(frame: pd.DataFrame) -> pd.DataFrame:
    return variance_tables(frame).components.set_index("component")


def next_calls(frame: pd.DataFrame) -> pd.DataFrame:
    return variance_tables(frame).next_calls


def test_planted_components_are_found_and_explained() -> None:
    rng = np.random.default_rng(0)
    tables = [by_component(study(rng)) for _ in range(15)]
    variance = sum(table["variance"] for table in tables) / len(tables)
    for component, name in (("identity × base", "by_base"), ("conversation", "talk"), ("identity × judge", "by_judge")):
        assert variance[component] == pytest.approx(SDS[name] ** 2, abs=0.05)
    assert variance["residual"] == pytest.approx(1, abs=0.03)
    table = tables[0]
    assert table["share"].sum() == pytest.approx(1)
    assert table["share_of_noise"].sum() == pytest.approx(1)
    assert table.loc[["base", "scenario", "judge"], "share_of_noise"].eq(0).all()
    assert table.loc[["identity", "identity × judge"], "share_of_noise"].isna().all()
    assert dict(table["generalises_to"]) == {name: GENERALISES_TO[name] for name in table.index}


@pytest.mark.nightly
def test_the_standard_error_as_run_is_that_of_repeated_studies() -> None:
    rng = np.random.default_rng(1)
    differences, predicted = [], []
    for _ in range(100):
        frame = study(rng, bases=8, scenarios=3, identities=3, judges=3)
        means = frame.groupby("identity", observed=True)["value"].mean()
        differences.append(means["identity 0"] - means["identity 1"])
        predicted.append(next_calls(frame)["with_new_judges"].iloc[0] ** 2)  # every study here has judges of its own
    assert math.sqrt(np.mean(predicted)) == pytest.approx(np.std(differences), rel=0.15)


def test_more_bases_are_best_where_the_effect_varies_between_bases() -> None:
    plans = next_calls(study(np.random.default_rng(2)))
    errors = plans.set_index("spent_on")["standard_error"]
    assert errors.idxmin() == "more bases"
    assert errors["as run"] == errors.max()
    calls = plans.set_index("spent_on").loc["more bases"]
    assert calls["bases"] == pytest.approx(12 * (1 + 1000 / (12 * 4 * 4 * 2 * 4)))  # 4 calls per unit, one per judge
    assert (plans["at_best"] == plans["standard_error"]).all()  # with repeats, everything can be told apart


def test_without_repeats_a_range_is_given() -> None:
    frame = study(np.random.default_rng(3), repeats=1)
    parts, plans = by_component(frame), next_calls(frame).set_index("spent_on")
    assert parts.loc["identity × scenario", "includes"] == "conversation"
    assert plans.loc["more repeats", "at_best"] < plans.loc["more repeats", "standard_error"]
    assert plans.loc["more repeats", "note"] == "this run cannot tell identity × scenario from conversation"
    assert plans.loc["more bases", "at_best"] == plans.loc["more bases", "standard_error"]


def test_metrics_are_averaged_around_their_means() -> None:
    frame = study(np.random.default_rng(4), metrics=2)
    holes = frame.drop(frame[(frame["metric"] == "metric 1") & (np.arange(len(frame)) % 3 == 0)].index)
    whole, gaps = by_component(frame), by_component(holes)
    assert whole.loc["residual", "variance"] == pytest.approx(0.5, abs=0.05)
    assert gaps.loc["residual", "variance"] == pytest.approx(0.5 * 2 / 3 + 1 / 3, abs=0.08)  # no 2 points of the metric


def test_an_old_run_without_bases_is_clustered_by_scenario() -> None:
    frame = study(np.random.default_rng(5), scenarios=1)
    old = frame.drop(columns="base")
    assert "base" not in by_component(old).index
    assert list(next_calls(old)["spent_on"]) == ["as run", "more scenarios", "more repeats", "more judges"]
    assert next_calls(frame.assign(base="")).equals(next_calls(old))
    one_scenario = by_component(frame)
    assert one_scenario.loc["base", "includes"] == "scenario"
    assert one_scenario.loc["identity × base", "includes"] == "identity × scenario"
    clustered = frame.assign(cluster=frame["base"]).drop(columns="base")
    assert by_component(clustered).equals(by_component(frame))


def test_a_single_base_gives_no_standard_error() -> None:
    frame = study(np.random.default_rng(6), bases=1)
    plans = next_calls(frame)
    assert plans["standard_error"].isna().all()
    assert set(plans["note"]) == {"the standard error is unknown: only one base"}


def test_one_judge_one_repeat_and_unread_scores() -> None:
    frame = study(np.random.default_rng(7), judges=1, repeats=1)
    frame.loc[frame.index % 7 == 0, "value"] = np.nan
    parts = by_component(frame)
    assert parts.loc["identity × scenario", "includes"] == "conversation, residual"
    assert parts.loc["judge", "note"] == "only one judge"
    plans = next_calls(frame).set_index("spent_on")
    assert plans["standard_error"].notna().all()
    assert plans["with_new_judges"].isna().all()
    assert plans.loc["more judges", "at_best"] < plans.loc["more judges", "standard_error"]


def test_without_scores_the_tables_are_empty() -> None:
    frame = study(np.random.default_rng(8), bases=2).assign(value=np.nan)
    parts, plans = variance_tables(frame)
    assert parts.empty
    assert plans.empty


def test_the_figure_shows_every_model() -> None:
    rng = np.random.default_rng(9)
    frame = pd.concat([study(rng).assign(model=model) for model in ("a", "b$")], ignore_index=True)
    frame["unit"] = frame["model"] + frame["unit"].astype(str)
    parts = variance_tables(frame).components
    assert list(pd.unique(parts["model"])) == ["a", "b$"]
    figure = components_figure(parts, "MALIBU", "Judges are fixed.")
    assert [axis.get_title() for axis in figure.axes] == ["a", r"b\$"]


def test_200_000_verdicts_take_a_fraction_of_a_second() -> None:
    frame = study(np.random.default_rng(10), bases=20, scenarios=10, identities=10, repeats=6, metrics=4)
    start = process_time()
    variance_tables(frame)
    assert process_time() - start < 2  # about 0.2 s on an idle core


def test_wordings_have_components_of_their_own() -> None:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(20):
        frame = study(rng, bases=12, scenarios=5, repeats=1)
        wording = frame["scenario"].cat.codes.to_numpy() % 5
        identity = frame["identity"].cat.codes.to_numpy()
        frame["wording"] = wording.astype(str)
        frame["value"] += rng.normal(0, 0.7, 5)[wording] + rng.normal(0, 0.6, 20)[wording * 4 + identity]
        found.append(by_component(frame))
    variance = sum(table["variance"] for table in found) / len(found)
    assert variance["wording"] == pytest.approx(0.49, abs=0.2)
    assert variance["identity × wording"] == pytest.approx(0.36, abs=0.08)
    assert variance["identity × base"] == pytest.approx(SDS["by_base"] ** 2, abs=0.06)
    table = found[0]
    assert table["share_of_noise"].sum() == pytest.approx(1)
    assert table.loc["identity × wording", "share_of_noise"] > 0
    assert table.loc["scenario", "includes"] == "wording × scenario"
    assert "question" not in table.index
    assert dict(table["generalises_to"]) == {name: GENERALISES_TO[name] for name in table.index}


def test_wordings_that_cannot_be_told_apart_leave_the_rest_as_it_is() -> None:
    frame = study(np.random.default_rng(12), bases=6, scenarios=2, repeats=1)
    plain = by_component(frame)
    one_wording = by_component(frame.assign(wording="by", question="examiner"))
    pd.testing.assert_frame_equal(one_wording, plain)
    code = frame["scenario"].cat.codes.to_numpy()
    aliased = by_component(frame.assign(wording=np.where(code % 2, "by", "is"), question=np.where(code % 2, "a", "b")))
    assert aliased["variance"].notna().any()
    assert aliased.loc["wording", "includes"] == "question"
