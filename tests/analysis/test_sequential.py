"""Looks at comparisons: when one is decided, what that leaves to the others, and how often it is wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from parley.analysis.bbq.interim import gaps as bbq_gaps
from parley.analysis.bbq.leaderboard import against, answers
from parley.analysis.calibration.fixed import Setting, simulate
from parley.analysis.calibration.sequential import fixed_designs, run_sequential, savings
from parley.analysis.reporting.interim import MonitoredRun, decisions, in_words
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.sequential import (
    InterimResult,
    StoppingRule,
    as_record,
    clustered_t,
    from_record,
    identity_gaps,
    interim_look,
)
from parley.analysis.stats.spending import boundaries, nominal_level

CLEAR = np.tile([0.8, 1.0, 1.2, 1.4, 0.6], 10)
NOTHING = np.tile([1.0, -1.0, 0.5, -0.5, 0.25], 10)


def looks(rule: StoppingRule, gaps: dict[str, Any], planned: int = 50) -> list[InterimResult]:
    """All looks of a run, each on its share of the clusters."""
    seen: list[InterimResult] = []
    for number in range(1, rule.looks + 1):
        part = {name: values[: planned * number // rule.looks] for name, values in gaps.items()}
        seen += interim_look(rule, number, part, dict.fromkeys(gaps, planned), seen)
    return seen


# One comparison


def test_a_clear_difference_is_decided_early_and_seen_no_more() -> None:
    seen = looks(StoppingRule(), {"a − b": CLEAR})
    assert [one.decision for one in seen] == ["", "different"]
    assert [one.clusters for one in seen] == [10, 20]
    assert seen[0].level == pytest.approx(nominal_level(boundaries("obrien-fleming", 0.05, (0.2,))[0]))
    assert seen[1].low > 0


def test_what_is_not_there_is_looked_at_to_the_end() -> None:
    seen = looks(StoppingRule(), {"a − b": NOTHING})
    assert [one.decision for one in seen] == [""] * 5
    assert seen[-1].level == pytest.approx(nominal_level(2.031), abs=1e-5)  # the last of five boundaries


def test_hopeless_comparisons_are_given_up_from_half_of_the_clusters_on() -> None:
    seen = looks(StoppingRule(futility=0.1), {"a − b": NOTHING})
    assert [one.decision for one in seen] == ["", "", "given up"]
    assert seen[-1].power < 0.1


def test_the_test_is_students_over_clusters_with_the_boundarys_tail() -> None:
    gaps = np.array([0.5, 1.5, -0.5, 1.0, 2.0, 0.25, 0.75, 1.0, -0.25, 0.5])
    _, _, p = clustered_t(gaps)
    assert p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    seen = looks(StoppingRule(looks=1), {"a − b": gaps}, planned=10)[0]
    low, high = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert (seen.low, seen.high) == pytest.approx((low, high))  # one look: the plain interval


def test_equal_differences_are_no_surer_than_flipped_signs_would_be() -> None:
    """Five scenarios that all say 1: t is infinite, but one arrangement of signs in sixteen says as much."""
    assert clustered_t(np.ones(5))[2] == 1 / 16
    assert clustered_t(np.array([1.0, 1, 1, 1, 1.001]))[2] == 1 / 16
    assert clustered_t(np.zeros(5))[2] == 1.0


def test_a_look_at_nothing_new_spends_nothing() -> None:
    """Units failed and no cluster came in: the next look has all that was left."""
    rule, planned = StoppingRule(looks=2), {"a − b": 20}
    first = interim_look(rule, 1, {"a − b": NOTHING[:10]}, planned, [])
    again = interim_look(StoppingRule(looks=3), 2, {"a − b": NOTHING[:10]}, planned, first)
    assert math.isnan(again[0].level)
    last = interim_look(rule, 2, {"a − b": NOTHING[:20]}, planned, [*first, *again])
    assert last[0].level == pytest.approx(nominal_level(boundaries("obrien-fleming", 0.05, (0.5, 1.0))[1]))
    assert math.isnan(interim_look(rule, 1, {}, planned, [])[0].estimate), "no cluster at all"


def test_the_last_look_spends_all_even_if_clusters_could_not_be_read() -> None:
    first = interim_look(StoppingRule(looks=2), 1, {"a − b": NOTHING[:10]}, {"a − b": 20}, [])
    last = interim_look(StoppingRule(looks=2), 2, {"a − b": NOTHING[:17]}, {"a − b": 20}, first)[0]
    bound = boundaries("obrien-fleming", 0.05, (10.0, 17.0), (0.5, 1.0))[1]
    assert (last.clusters, last.level) == (17, pytest.approx(nominal_level(bound)))


# Several


def test_what_one_comparison_leaves_goes_to_the_others_at_the_same_look() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 20)
    between = (base - base.mean()) / base.std(ddof=1) + 2.2 / math.sqrt(20)  # t = 2.2, p = 0.04
    alone, first, second = StoppingRule(looks=1), CLEAR[:20], between
    assert interim_look(alone, 1, {"x": second, "y": NOTHING[:20]}, {"x": 20, "y": 20}, [])[0].decision == "", (
        "0.025 each"
    )
    seen = interim_look(alone, 1, {"x": second, "y": first}, {"x": 20, "y": 20}, [])
    assert [one.decision for one in seen] == ["different", "different"], "y is clear, so x has the whole 0.05"
    assert seen[0].alpha == 0.05


def test_what_is_given_up_leaves_nothing_to_the_others() -> None:
    seen = looks(StoppingRule(futility=0.1), {"x": NOTHING, "y": NOTHING * np.linspace(1, 2, 50)})
    assert {one.alpha for one in seen} == {0.025}


# How often it is wrong


@pytest.mark.parametrize("spending", ["obrien-fleming", "pocock"])
def test_five_looks_cry_wolf_no_oftener_than_one(spending: str) -> None:
    """Few clusters, and differences in halves with many ties, as preferences have them: where t is at its worst."""
    rng = np.random.default_rng(4)
    gaps = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], p=[0.1, 0.1, 0.6, 0.1, 0.1], size=(1000, 20))
    rule = StoppingRule(spending=spending)
    wrong = np.mean([bool(run_sequential(np.array([one, np.zeros(20)]), rule).different) for one in gaps])
    assert wrong < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_the_repeated_interval_holds_whenever_one_stops() -> None:
    rng = np.random.default_rng(5)
    held = []
    for _ in range(400):
        gaps = rng.normal(0.5, 1.0, 40)
        last = looks(StoppingRule(spending="pocock"), {"a − b": gaps}, planned=40)[-1]
        held.append(last.low <= 0.5 <= last.high)
    assert np.mean(held) > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


def test_savings_are_real_and_cost_no_errors() -> None:
    rows = savings(
        [StoppingRule(), StoppingRule(futility=0.1)],
        scenarios=(30,),
        effects=(0.0, 1.0),
        identities=(2, 3),
        simulations=150,
    )
    pair = rows[rows["identities"] == 2].set_index(["futility", "effect"])
    assert pair.loc[(0.0, 1.0), "units"] < 0.8
    assert pair.loc[(0.0, 1.0), "units"] < pair.loc[(0.0, 1.0), "fixed_units"] <= 1.0
    found = rows[rows["identities"] == 3].set_index(["futility", "effect"])
    assert (found["false_alarms"] < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)).all()
    assert found.loc[(0.0, 0.0), "units"] > 0.95, "without an effect and without giving up, nearly all is held"
    assert found.loc[(0.1, 0.0), "units"] < 0.8
    assert found.loc[(0.1, 1.0), "units"] < found.loc[(0.0, 1.0), "units"] < 1.0
    assert found.loc[(0.0, 1.0), "power"] > found.loc[(0.0, 1.0), "fixed_power"] - 0.03
    assert math.isnan(found.loc[(0.0, 0.0), "power"])


def test_fixed_designs_are_t_tests_with_holm_at_every_end() -> None:
    scores = simulate(Setting(judges=2, scenarios=9, effect=1.0, icc=0.3), 20, np.random.default_rng(6), 3).mean(axis=3)
    found = fixed_designs(scores, 0.05)
    assert found.any()
    assert not found.all()
    for study, told in zip(scores, found, strict=True):
        for count in (5, 9):
            gaps = [study[a, :count] - study[b, :count] for a, b in ((0, 1), (0, 2), (1, 2))]
            adjusted = holm([clustered_t(gap)[2] for gap in gaps], "pairs").adjusted
            assert [p <= 0.05 for p in adjusted] == told[:, count - 1].tolist()


# From frames


def test_identities_are_set_side_by_side_scenario_by_scenario() -> None:
    frame = pd.DataFrame(
        {"identity": list("ababab"), "scenario": list("112233"), "value": [3.0, 1.0, 5.0, 4.0, 2.0, None]}
    )
    found = identity_gaps(frame).set_index(["comparison", "cluster"])["gap"]
    assert found["a − b"].to_dict() == {"1": 2.0, "2": 1.0}, "a scenario that has one side only says nothing"
    assert found["b − a"].to_dict() == {"1": -2.0, "2": -1.0}


def bbq_frame(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(48):
        ambiguous = item % 4 < 2
        for method in ("default", "cot"):
            said = rng.choice([0, 1, 2, None], p=[0.4, 0.2, 0.35, 0.05])
            rows.append(
                {
                    "unit": f"{item}/{method}", "category": "Age", "example_id": item, "question": 1, "names": False,
                    "condition": "ambig" if ambiguous else "disambig", "label": 2 if ambiguous else item % 2,
                    "target": 0, "unknown": 2, "scenario": f"Age/{item // 4}", "method": method, "model": "sim/any",
                    "repeat": 0, "metric": "answer", "value": said, "status": "ok" if said is not None else "unparsed",
                }
            )  # fmt: skip
    return pd.DataFrame(rows).astype({"value": float})


@given(st.integers(0, 10_000))
@settings(max_examples=3, deadline=None)
def test_bbqs_differences_are_those_of_the_report(seed: int) -> None:
    """Where every scenario has as many readable rows: then a mean over scenarios is a mean over rows."""
    frame = bbq_frame(seed).assign(status="ok")
    frame["value"] = frame["value"].fillna(2.0)
    found = bbq_gaps(frame).groupby("comparison")["gap"].mean()
    told = against(answers(frame), [("cot", "default")], draws=20).set_index(["context", "measure"])["difference"]
    for context in ("ambig", "disambig"):
        assert found[f"cot − default, accuracy, {context}"] == pytest.approx(100 * told[context, "accuracy"])
    assert found["cot − default, bias, ambig"] == pytest.approx(told["ambig", "bias"])


def test_unreadable_answers_of_bbq_are_left_out_on_both_sides() -> None:
    frame = bbq_frame(0)
    assert frame["value"].isna().any()
    found = bbq_gaps(frame)
    assert found["gap"].notna().all()
    assert set(found["comparison"].str.split(", ").str[1]) == {"accuracy", "bias"}


# What is kept and told


def test_a_look_comes_back_from_its_record() -> None:
    for one in looks(StoppingRule(), {"a − b": CLEAR, "c − d": NOTHING}):
        record = as_record(one)
        assert all(value is None or value == value for value in record.values())
        assert repr(from_record(record)) == repr(one)


def test_the_report_says_what_was_decided_when() -> None:
    rule = StoppingRule(futility=0.1)
    watched = MonitoredRun(run="a.sqlite", rule=rule, results=tuple(looks(rule, {"a − b": CLEAR, "c − d": NOTHING})))
    stands = decisions(watched).set_index("comparison")
    assert stands["decision"].to_dict() == {"a − b": "different", "c − d": "given up"}
    assert 0 < stands.loc["a − b", "median_unbiased"] < stands.loc["a − b", "estimate"]
    said = " ".join(in_words(watched))
    assert "α 0.05 for all 2 comparisons together (Holm)" in said
    assert "a − b: decided at look 2 on 20 of 50 scenarios" in said
    assert "looks larger than it is" in said
    assert "not corrected for the looks" in said
    assert "Given up as futile: 1 of 2 comparisons. That is no evidence" in said
