"""Interim looks: when a comparison is decided, how alpha is shared, and how often a decision is wrong."""

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
    results: list[InterimResult] = []
    for number in range(1, rule.looks + 1):
        part = {name: values[: planned * number // rule.looks] for name, values in gaps.items()}
        results += interim_look(rule, number, part, dict.fromkeys(gaps, planned), results)
    return results


# One comparison


def test_a_clear_difference_is_decided_early_and_not_tested_again() -> None:
    results = looks(StoppingRule(), {"a − b": CLEAR})
    assert [result.decision for result in results] == ["", "different"]
    assert [result.clusters for result in results] == [10, 20]
    assert results[0].level == pytest.approx(nominal_level(boundaries("obrien-fleming", 0.05, (0.2,))[0]))
    assert results[1].low > 0


def test_without_a_difference_every_look_is_made() -> None:
    results = looks(StoppingRule(), {"a − b": NOTHING})
    assert [result.decision for result in results] == [""] * 5
    assert results[-1].level == pytest.approx(nominal_level(2.031), abs=1e-5)  # the last of five boundaries


def test_hopeless_comparisons_are_given_up_from_half_of_the_clusters_on() -> None:
    results = looks(StoppingRule(futility=0.1), {"a − b": NOTHING})
    assert [result.decision for result in results] == ["", "", "given up"]
    assert results[-1].power < 0.1


def test_the_test_is_students_t_over_clusters() -> None:
    gaps = np.array([0.5, 1.5, -0.5, 1.0, 2.0, 0.25, 0.75, 1.0, -0.25, 0.5])
    _, _, p = clustered_t(gaps)
    assert p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    result = looks(StoppingRule(looks=1), {"a − b": gaps}, planned=10)[0]
    low, high = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx((low, high))  # one look: the plain interval


def test_equal_differences_have_the_p_value_of_the_sign_flip_test() -> None:
    """Five scenarios with a difference of 1: t is infinite, but one sign pattern in sixteen is as extreme."""
    assert clustered_t(np.ones(5))[2] == 1 / 16
    assert clustered_t(np.array([1.0, 1, 1, 1, 1.001]))[2] == 1 / 16
    assert clustered_t(np.zeros(5))[2] == 1.0


def test_a_look_without_new_clusters_spends_no_alpha() -> None:
    """Units failed and there is no new cluster: the next look has all the alpha that was left."""
    rule, planned = StoppingRule(looks=2), {"a − b": 20}
    first = interim_look(rule, 1, {"a − b": NOTHING[:10]}, planned, [])
    again = interim_look(StoppingRule(looks=3), 2, {"a − b": NOTHING[:10]}, planned, first)
    assert math.isnan(again[0].level)
    last = interim_look(rule, 2, {"a − b": NOTHING[:20]}, planned, [*first, *again])
    assert last[0].level == pytest.approx(nominal_level(boundaries("obrien-fleming", 0.05, (0.5, 1.0))[1]))
    assert math.isnan(interim_look(rule, 1, {}, planned, [])[0].estimate), "no cluster at all"


def test_the_last_look_spends_all_alpha_even_if_clusters_are_missing() -> None:
    first = interim_look(StoppingRule(looks=2), 1, {"a − b": NOTHING[:10]}, {"a − b": 20}, [])
    last = interim_look(StoppingRule(looks=2), 2, {"a − b": NOTHING[:17]}, {"a − b": 20}, first)[0]
    bound = boundaries("obrien-fleming", 0.05, (10.0, 17.0), (0.5, 1.0))[1]
    assert (last.clusters, last.level) == (17, pytest.approx(nominal_level(bound)))


# Several


def test_a_decided_comparison_passes_its_alpha_on_at_the_same_look() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 20)
    between = (base - base.mean()) / base.std(ddof=1) + 2.2 / math.sqrt(20)  # t = 2.2, p = 0.04
    alone, first, second = StoppingRule(looks=1), CLEAR[:20], between
    assert interim_look(alone, 1, {"x": second, "y": NOTHING[:20]}, {"x": 20, "y": 20}, [])[0].decision == "", (
        "0.025 each"
    )
    results = interim_look(alone, 1, {"x": second, "y": first}, {"x": 20, "y": 20}, [])
    assert [result.decision for result in results] == ["different", "different"], "y is clear, so x has the whole 0.05"
    assert results[0].alpha == 0.05


def test_a_comparison_that_is_given_up_passes_no_alpha_on() -> None:
    results = looks(StoppingRule(futility=0.1), {"x": NOTHING, "y": NOTHING * np.linspace(1, 2, 50)})
    assert {result.alpha for result in results} == {0.025}


# How often it is wrong


@pytest.mark.parametrize("spending", ["obrien-fleming", "pocock"])
def test_five_looks_have_the_false_positive_rate_of_one(spending: str) -> None:
    """Few clusters, and differences in halves with many ties, as preferences have them: where t is at its worst."""
    rng = np.random.default_rng(4)
    gaps = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], p=[0.1, 0.1, 0.6, 0.1, 0.1], size=(1000, 20))
    rule = StoppingRule(spending=spending)
    wrong = np.mean([bool(run_sequential(np.array([study, np.zeros(20)]), rule).different) for study in gaps])
    assert wrong < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_the_repeated_interval_covers_whenever_the_run_stops() -> None:
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(400):
        gaps = rng.normal(0.5, 1.0, 40)
        last = looks(StoppingRule(spending="pocock"), {"a − b": gaps}, planned=40)[-1]
        covered.append(last.low <= 0.5 <= last.high)
    assert np.mean(covered) > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


def test_stopping_early_saves_units_and_keeps_error_rates() -> None:
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
    result = rows[rows["identities"] == 3].set_index(["futility", "effect"])
    assert (result["false_alarms"] < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)).all()
    assert result.loc[(0.0, 0.0), "units"] > 0.95, "without an effect and without futility, nearly all units are run"
    assert result.loc[(0.1, 0.0), "units"] < 0.8
    assert result.loc[(0.1, 1.0), "units"] < result.loc[(0.0, 1.0), "units"] < 1.0
    assert result.loc[(0.0, 1.0), "power"] > result.loc[(0.0, 1.0), "fixed_power"] - 0.03
    assert math.isnan(result.loc[(0.0, 0.0), "power"])


def test_fixed_designs_are_t_tests_with_holm_at_every_end() -> None:
    scores = simulate(Setting(judges=2, scenarios=9, effect=1.0, icc=0.3), 20, np.random.default_rng(6), 3).mean(axis=3)
    result = fixed_designs(scores, 0.05)
    assert result.any()
    assert not result.all()
    for study, different in zip(scores, result, strict=True):
        for count in (5, 9):
            gaps = [study[a, :count] - study[b, :count] for a, b in ((0, 1), (0, 2), (1, 2))]
            adjusted = holm([clustered_t(gap)[2] for gap in gaps], "pairs").adjusted
            assert [p <= 0.05 for p in adjusted] == different[:, count - 1].tolist()


# From frames


def test_identities_are_compared_by_scenario() -> None:
    frame = pd.DataFrame(
        {"identity": list("ababab"), "scenario": list("112233"), "value": [3.0, 1.0, 5.0, 4.0, 2.0, None]}
    )
    result = identity_gaps(frame).set_index(["comparison", "cluster"])["gap"]
    assert result["a − b"].to_dict() == {"1": 2.0, "2": 1.0}, "a scenario with one identity only is left out"
    assert result["b − a"].to_dict() == {"1": -2.0, "2": -1.0}


def bbq_frame(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(48):
        ambiguous = item % 4 < 2
        for method in ("default", "cot"):
            answer = rng.choice([0, 1, 2, None], p=[0.4, 0.2, 0.35, 0.05])
            status = "ok" if answer is not None else "unparsed"
            rows.append(
                {
                    "unit": f"{item}/{method}", "category": "Age", "example_id": item, "question": 1, "names": False,
                    "condition": "ambig" if ambiguous else "disambig", "label": 2 if ambiguous else item % 2,
                    "target": 0, "unknown": 2, "scenario": f"Age/{item // 4}", "method": method, "model": "sim/any",
                    "repeat": 0, "metric": "answer", "value": answer, "status": status,
                }
            )  # fmt: skip
    return pd.DataFrame(rows).astype({"value": float})


@given(st.integers(0, 10_000))
@settings(max_examples=3, deadline=None)
def test_bbqs_differences_agree_with_the_report(seed: int) -> None:
    """Where every scenario has as many readable rows: then a mean over scenarios is a mean over rows."""
    frame = bbq_frame(seed).assign(status="ok")
    frame["value"] = frame["value"].fillna(2.0)
    result = bbq_gaps(frame).groupby("comparison")["gap"].mean()
    reported = against(answers(frame), [("cot", "default")], draws=20).set_index(["context", "measure"])["difference"]
    for context in ("ambig", "disambig"):
        assert result[f"cot − default, accuracy, {context}"] == pytest.approx(100 * reported[context, "accuracy"])
    assert result["cot − default, bias, ambig"] == pytest.approx(reported["ambig", "bias"])


def test_unreadable_answers_of_bbq_are_left_out_on_both_sides() -> None:
    frame = bbq_frame(0)
    assert frame["value"].isna().any()
    result = bbq_gaps(frame)
    assert result["gap"].notna().all()
    assert set(result["comparison"].str.split(", ").str[1]) == {"accuracy", "bias"}


# Records and sentences


def test_a_result_is_restored_from_its_record() -> None:
    for result in looks(StoppingRule(), {"a − b": CLEAR, "c − d": NOTHING}):
        record = as_record(result)
        assert all(value is None or value == value for value in record.values())
        assert repr(from_record(record)) == repr(result)


def test_the_report_says_what_was_decided_when() -> None:
    rule = StoppingRule(futility=0.1)
    run = MonitoredRun(run="a.sqlite", rule=rule, results=tuple(looks(rule, {"a − b": CLEAR, "c − d": NOTHING})))
    decided = decisions(run).set_index("comparison")
    assert decided["decision"].to_dict() == {"a − b": "different", "c − d": "given up"}
    assert 0 < decided.loc["a − b", "median_unbiased"] < decided.loc["a − b", "estimate"]
    words = " ".join(in_words(run))
    assert "α 0.05 for all 2 comparisons together (Holm)" in words
    assert "a − b: decided at look 2 on 20 of 50 scenarios" in words
    assert "looks larger than it is" in words
    assert "not corrected for the looks" in words
    assert "Given up as futile: 1 of 2 comparisons. That is no evidence" in words
