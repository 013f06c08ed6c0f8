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
from parley.analysis.calibration.sequential import (
    SequentialSetting,
    fixed_designs,
    run_sequential,
    savings,
    simulate,
)
from parley.analysis.malibu.interim import gaps as malibu_gaps
from parley.analysis.malibu.interim import with_stagewise_p
from parley.analysis.reporting.interim import MonitoredRun, decisions, in_words, with_interim_looks
from parley.analysis.reporting.report import Report, Table
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.sequential import (
    InterimResult,
    StoppingRule,
    adjusted_p,
    as_record,
    clustered_t,
    from_record,
    identity_gaps,
    interim_look,
)
from parley.analysis.stats.signflips import sign_flip_test, smallest_p
from parley.analysis.stats.spending import boundaries, nominal_level

CLEAR = np.tile([0.8, 1.0, 1.2, 1.4, 0.6], 10)
NOTHING = np.tile([1.0, -1.0, 0.5, -0.5, 0.25], 10)


def looks(rule: StoppingRule, gaps: dict[str, Any], planned: int = 50, **more: Any) -> list[InterimResult]:
    """All looks of a run, each on its share of the clusters."""
    results: list[InterimResult] = []
    for number in range(1, rule.looks + 1):
        part = {name: values[: planned * number // rule.looks] for name, values in gaps.items()}
        results += interim_look(rule, number, part, dict.fromkeys(gaps, planned), results, **more)
    return results


# One comparison


def test_a_clear_difference_is_decided_early_and_not_tested_again() -> None:
    results = looks(StoppingRule(spending="pocock"), {"a − b": CLEAR})
    assert [result.decision for result in results] == ["different"]
    results = looks(StoppingRule(), {"a − b": CLEAR})
    assert [result.decision for result in results] == ["", "different"]
    assert [result.clusters for result in results] == [10, 20]
    assert results[1].low > 0


def test_a_look_with_too_few_clusters_to_decide_tests_nothing_and_spends_nothing() -> None:
    """Four clusters give no p-value below 1/8, and Pocock's first level of five is 0.0148: nothing could be decided."""
    rule = StoppingRule(spending="pocock")
    results = looks(rule, {"a − b": CLEAR}, planned=20)
    assert [result.decision for result in results] == ["", "different"]
    assert math.isnan(results[0].level)
    assert (results[0].low, results[0].high) == (-math.inf, math.inf)
    first = boundaries("pocock", 0.05, (0.4,))[0]  # the second look has what the first would have spent
    assert results[1].level == pytest.approx(nominal_level(first))
    assert smallest_p(8) <= results[1].level
    several = looks(rule, dict.fromkeys("abcdef", CLEAR), planned=20)
    assert math.isnan(several[6].level), "8 clusters give 1/128, too much for a sixth of alpha"
    assert {result.decision for result in several[12:18]} == {"different"}
    assert not any(math.isnan(result.level) for result in looks(rule, {"a − b": NOTHING}, planned=20, test="t")), (
        "looks of earlier versions all tested"
    )


def test_a_last_look_tests_even_if_nothing_can_be_decided() -> None:
    """Five bases: the smallest p-value is 1/16."""
    run = MonitoredRun(
        run="a", rule=StoppingRule(), results=tuple(looks(StoppingRule(), {"a − b": CLEAR}, planned=5, cluster="base"))
    )
    assert run.results[-1].level == pytest.approx(0.05)
    (row,) = decisions(run).to_dict("records")
    assert (row["decision"], row["p_stagewise"], row["repeated_interval"]) == (
        "not decided",
        pytest.approx(1 / 16),
        "−∞ to ∞",
    )
    assert "With 5 bases no comparison can be decided" in " ".join(in_words(run))
    assert "needs at least 6 bases" in " ".join(in_words(run))


def test_without_a_difference_every_look_is_made() -> None:
    results = looks(StoppingRule(), {"a − b": NOTHING})
    assert [result.decision for result in results] == [""] * 5
    assert results[-1].level == pytest.approx(nominal_level(2.031), abs=1e-5)  # the last of five boundaries


def test_hopeless_comparisons_are_given_up_from_half_of_the_clusters_on() -> None:
    results = looks(StoppingRule(futility=0.1), {"a − b": NOTHING})
    assert [result.decision for result in results] == ["", "", "given up"]
    assert results[-1].power < 0.1


GAPS = np.array([0.5, 1.5, -0.5, 1.0, 2.0, 0.25, 0.75, 1.0, -0.25, 0.5])


def test_the_test_is_the_reports_sign_flips_over_clusters() -> None:
    """With one look, p and interval are those of the plain test."""
    (result,) = looks(StoppingRule(looks=1), {"a − b": GAPS}, planned=10)
    flips = sign_flip_test(GAPS)
    assert result.p == flips.p
    # by brute force: the share of all 1,024 sign patterns that reach the sum
    signs = 1 - 2 * ((np.arange(1024)[:, None] >> np.arange(10)) & 1)
    assert result.p == (np.abs(signs @ GAPS) >= abs(GAPS.sum()) - 1e-9).mean()
    assert (result.low, result.high) == pytest.approx((flips.low, flips.high), abs=1e-4)
    assert adjusted_p([result]) == pytest.approx(result.p)


def test_runs_of_earlier_versions_keep_their_t_test() -> None:
    _, _, p = clustered_t(GAPS)
    assert p == pytest.approx(stats.ttest_1samp(GAPS, 0).pvalue)
    (result,) = looks(StoppingRule(looks=1), {"a − b": GAPS}, planned=10, test="t")
    low, high = stats.ttest_1samp(GAPS, 0).confidence_interval(0.95)
    assert (result.p, result.low, result.high) == pytest.approx((p, low, high))  # one look: the plain interval


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
    between = (base - base.mean()) / base.std(ddof=1) + 2.2 / math.sqrt(20)  # p is 0.04 by t and by sign flips
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
        gaps = rng.normal(0.8, 1.0, 16)
        last = looks(StoppingRule(spending="pocock", looks=4), {"a − b": gaps}, planned=16)[-1]
        covered.append(last.low <= 0.8 <= last.high)
    assert np.mean(covered) > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


def test_stopping_early_saves_units_and_keeps_error_rates() -> None:
    rows = savings(
        [StoppingRule(), StoppingRule(futility=0.1)],
        scenarios=(24,),
        effects=(0.0, 0.8),
        identities=(2, 3),
        simulations=150,
        seed=2,
    )
    pair = rows[rows["identities"] == 2].set_index(["futility", "effect"])
    assert pair.loc[(0.0, 0.8), "units"] < 0.85
    assert pair.loc[(0.0, 0.8), "units"] < pair.loc[(0.0, 0.8), "fixed_units"] <= 1.0
    result = rows[rows["identities"] == 3].set_index(["futility", "effect"])
    assert (result["false_alarms"] < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)).all()
    assert result.loc[(0.0, 0.0), "units"] > 0.95, "without an effect and without futility, nearly all units are run"
    assert result.loc[(0.1, 0.0), "units"] < 0.8
    assert result.loc[(0.1, 0.8), "units"] < result.loc[(0.0, 0.8), "units"] < 1.0
    assert result.loc[(0.0, 0.8), "power"] > result.loc[(0.0, 0.8), "fixed_power"] - 0.06
    assert math.isnan(result.loc[(0.0, 0.0), "power"])


def test_fixed_designs_are_tests_with_holm_at_every_end() -> None:
    """Sign flips at the end of the plan, t before."""
    scores = simulate(setting(identities=3, judges=2, bases=9, per_base=1, effect=1.0), 20, np.random.default_rng(6))
    scores = scores.mean(axis=3)
    result = fixed_designs(scores, 0.05)
    assert result.any()
    assert not result.all()
    for study, different in zip(scores, result, strict=True):
        for count in (5, 9):
            gaps = [study[a, :count] - study[b, :count] for a, b in ((0, 1), (0, 2), (1, 2))]
            p_values = [clustered_t(gap)[2] if count < 9 else sign_flip_test(gap).p for gap in gaps]
            adjusted = holm(p_values, "pairs").adjusted
            assert [p <= 0.05 for p in adjusted] == different[:, count - 1].tolist()


# Scenarios that share a base


def setting(**changed: Any) -> SequentialSetting:
    shipped: dict[str, Any] = {
        "identities": 2, "judges": 4, "bases": 20, "per_base": 10, "effect": 0.0, "base_sd": 0.3, "icc": 0.3,
    }  # fmt: skip
    return SequentialSetting(**shipped | changed)


@pytest.mark.parametrize("spending", ["obrien-fleming", "pocock"])
def test_a_label_whose_effect_varies_by_base_raises_no_false_alarms(spending: str) -> None:
    """The full suite, 20 bases of 10 scenarios, without a mean effect. Scenarios as clusters (t, as in earlier
    versions) are wrong three times as often as they should be; bases are not."""
    scores = simulate(setting(), 1000, np.random.default_rng(11))
    rule = StoppingRule(spending=spending)
    wrong = np.mean([bool(run_sequential(study, rule).different) for study in scores.mean(axis=3)])
    assert wrong <= 0.07
    rng = np.random.default_rng(12)
    by_scenario = [rng.permutation((study[0] - study[1]).ravel()) for study in scores[:300]]
    found = [looks(rule, {"a − b": gaps}, planned=200, test="t")[-1].decision for gaps in by_scenario]
    assert np.mean(np.array(found) == "different") > 0.11


def test_simulated_scores_have_the_variance_they_should() -> None:
    """Without rounding the difference of two labels in a base has 2·(SD² + (icc + (1 - icc)/judges)·1.2²/scenarios)."""
    means = simulate(setting(bases=50, base_sd=0.5), 100, np.random.default_rng(8)).mean(axis=3)
    expected = 2 * (0.25 + (0.3 + 0.7 / 4) * 1.44 / 10)
    assert (means[:, 0] - means[:, 1]).var() == pytest.approx(expected, rel=0.08)


# P-values corrected for the looks


def test_stagewise_p_values_are_uniform_without_an_effect() -> None:
    rng = np.random.default_rng(13)
    rule = StoppingRule(spending="pocock", looks=4)
    p_values = []
    for _ in range(600):
        results = looks(rule, {"a − b": rng.normal(0, 1, 20)}, planned=20, intervals=False)
        p_values.append(adjusted_p(results))
        assert p_values[-1] >= results[-1].p - 1e-9, "never below the p-value of the last look by itself"
        assert (results[-1].decision == "different") == (p_values[-1] <= 0.05), (
            "decided at 5% exactly if p is at most 5%"
        )
    for share in (0.05, 0.2, 0.5, 0.8):
        error = 3.5 * math.sqrt(share * (1 - share) / 600)
        assert np.mean(np.array(p_values) <= share) == pytest.approx(share, abs=error)


def test_a_decided_comparison_of_several_has_a_p_value_within_its_share() -> None:
    rng = np.random.default_rng(14)
    for _ in range(60):
        gaps = {name: rng.normal(0.5 * (name < "c"), 1, 20) for name in "abcd"}
        results = looks(StoppingRule(spending="pocock"), gaps, planned=20, intervals=False)
        for name in gaps:
            own = [result for result in results if result.comparison == name]
            if own[-1].decision == "different":
                assert adjusted_p(own) <= own[-1].alpha + 1e-9


def test_a_comparison_that_was_never_tested_has_no_p_value() -> None:
    assert math.isnan(adjusted_p([]))
    assert math.isnan(adjusted_p(interim_look(StoppingRule(), 1, {}, {"a − b": 20}, [])))


def test_a_comparison_given_up_before_anything_could_be_tested_has_the_plain_p_value() -> None:
    """Ten of twenty clusters are too few for a share of 0.05 in 100; they are enough to give up."""
    rule = StoppingRule(looks=2, futility=0.1)
    results = looks(rule, {str(number): NOTHING for number in range(100)}, planned=20)[:1]
    assert (results[0].decision, math.isnan(results[0].level)) == ("given up", True)
    assert adjusted_p(results) == pytest.approx(results[0].p)


# From frames


def test_identities_are_compared_by_scenario() -> None:
    frame = pd.DataFrame(
        {"identity": list("ababab"), "scenario": list("112233"), "value": [3.0, 1.0, 5.0, 4.0, 2.0, None]}
    )
    result = identity_gaps(frame).set_index(["comparison", "cluster"])["gap"]
    assert result["a − b"].to_dict() == {"1": 2.0, "2": 1.0}, "a scenario with one identity only is left out"
    assert result["b − a"].to_dict() == {"1": -2.0, "2": -1.0}


def test_differences_are_taken_within_scenarios_and_averaged_over_a_cluster() -> None:
    """Scenario 2 of topic y is unread under a: what b got there is not compared with a's other scenarios."""
    frame = pd.DataFrame(
        {
            "identity": list("abababab"),
            "scenario": list("11221122"),
            "cluster": list("xxxxyyyy"),
            "value": [3.0, 1.0, 5.0, 4.0, 2.0, 1.5, None, 9.0],
        }
    )
    result = identity_gaps(frame).set_index(["comparison", "cluster"])["gap"]
    assert result["a − b"].to_dict() == {"x": 1.5, "y": 0.5}
    without = identity_gaps(frame.drop(columns="scenario")).set_index(["comparison", "cluster"])["gap"]
    assert without["a − b"].to_dict() == {"x": 1.5, "y": 2.0 - 5.25}


def malibu_frame() -> pd.DataFrame:
    """Two bases with two scenarios each, both phases; women get one point more in the first base."""
    rows: list[dict[str, Any]] = []
    for number in range(4):
        shared = {"scenario": f"s{number}", "base": f"b{number // 2}", "category": "gender", "judge": "Ada"}
        shared |= {"role": "judge", "round": 1, "status": "ok"}
        for label in ("female", "male"):
            score = 7.0 + (label == "female") * (number < 2)
            single = {"unit": f"p1/{number}/{label}", "phase": 1, "identity": label, "metric": "Accuracy"}
            rows.append({**shared, **single, "value": score})
        sides = {"identity": "female", "other": "male", "identity_a": "female", "identity_b": "male"}
        pair = {"unit": f"p2/{number}", "phase": 2, "metric": "preferred", "text": "A" if number < 3 else "B"}
        rows.append({**shared, **sides, **pair})
    return pd.DataFrame(rows)


def test_malibus_clusters_are_bases() -> None:
    result = malibu_gaps(malibu_frame()).set_index(["comparison", "cluster"])["gap"]
    assert result["female − male, scores"].to_dict() == {"b0": 1.0, "b1": 0.0}
    assert result["female − male, preferences"].to_dict() == {"b0": 1.0, "b1": 0.0}
    alone = malibu_gaps(malibu_frame().assign(cluster=lambda rows: rows["scenario"])).set_index(
        ["comparison", "cluster"]
    )["gap"]
    assert alone["female − male, scores"].to_dict() == {"s0": 1.0, "s1": 1.0, "s2": 0.0, "s3": 0.0}


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


def test_bbqs_clusters_are_templates() -> None:
    frame = bbq_frame(0)
    frame["cluster"] = "Age/" + (frame["example_id"] // 16).astype(str)
    result = bbq_gaps(frame)
    assert set(result["cluster"]) == {"Age/0", "Age/1", "Age/2"}
    part = answers(frame[frame["cluster"] == "Age/0"])
    reported = against(part, [("cot", "default")], draws=20).set_index(["context", "measure"])["difference"]
    gap = result.set_index(["comparison", "cluster"])["gap"]["cot − default, accuracy, ambig", "Age/0"]
    assert gap == pytest.approx(100 * reported["ambig", "accuracy"])


# Records and sentences


def test_a_result_is_restored_from_its_record() -> None:
    for result in looks(StoppingRule(), {"a − b": CLEAR, "c − d": NOTHING}):
        record = as_record(result)
        assert all(value is None or value == value for value in record.values())
        assert repr(from_record(record)) == repr(result)


def test_a_record_of_an_earlier_version_is_a_t_test_over_scenarios() -> None:
    (result,) = looks(StoppingRule(looks=1), {"a − b": GAPS}, planned=10, test="t")
    record = {key: value for key, value in as_record(result).items() if key not in ("cluster", "test")}
    assert from_record(record) == result
    run = MonitoredRun(run="a.sqlite", rule=StoppingRule(looks=1), results=(from_record(record),))
    assert "of an earlier version: t tests, with scenarios as clusters" in " ".join(in_words(run))


def test_the_report_says_what_was_decided_when() -> None:
    rule = StoppingRule(futility=0.1)
    clear = CLEAR - 0.55
    gaps = {"a − b": clear, "c − d": NOTHING}
    run = MonitoredRun(run="a.sqlite", rule=rule, results=tuple(looks(rule, gaps, cluster="base")))
    decided = decisions(run).set_index("comparison")
    assert decided["decision"].to_dict() == {"a − b": "different", "c − d": "given up"}
    row = decided.loc["a − b"]
    assert 0 < row["median_unbiased"] <= row["estimate"]
    assert row["p_stagewise"] == pytest.approx(row["p"]), "the look before had too few bases to test anything"
    words = " ".join(in_words(run))
    assert "α 0.05 for all 2 comparisons together (Holm)" in words
    assert f"a − b: decided at look {row['look']} on {row['clusters']} of 50 bases" in words
    assert f"stage-wise p = {row['p_stagewise']:.2g}" in words
    assert "looks larger than it is" in words
    assert "not corrected for the looks" in words
    assert "Given up as futile: 1 of 2 comparisons. That is no evidence" in words


def test_tables_say_that_their_p_values_are_not_corrected() -> None:
    rule = StoppingRule()
    run = MonitoredRun(run="a.sqlite", rule=rule, results=tuple(looks(rule, {"a − b": CLEAR})))
    frames = {"tests": pd.DataFrame({"p": [0.03]}), "means": pd.DataFrame({"mean": [7.0]})}
    report = Report(title="", tables=tuple(Table(name, "", frame) for name, frame in frames.items()))
    notes = {table.name: table.note for table in with_interim_looks(report, [run]).tables}
    assert notes["tests"] == "p-values and intervals of this table are not corrected for the interim looks."
    assert notes["means"] == ""
    assert "p: not corrected for the looks" in notes["looks"]


def test_a_report_can_replace_its_p_values_by_stagewise_ones() -> None:
    """Two models, of which one is named without its options; the pair of the second phase is another comparison."""
    rule = StoppingRule()
    gaps = {
        "female − male, scores · sim/one?female=+3": GAPS.repeat(5),
        "female − male, scores · sim/two": NOTHING,
        "female − male, preferences · sim/two": CLEAR,
    }
    run = MonitoredRun(run="a.sqlite", rule=rule, results=tuple(looks(rule, gaps)))
    names = [("sim/one", "male", "female"), ("sim/two", "female", "male"), ("sim/two", "x", "y")]
    tests = [
        {"model": model, "first": first, "second": second, "p": p}
        for (model, first, second), p in zip(names, (0.001, 0.5, 0.25), strict=True)
    ]
    result = with_stagewise_p(tests, [run], "scores")
    expected = decisions(run).set_index("comparison")["p_stagewise"]
    assert [row["p"] for row in result] == [*expected.iloc[:2], 0.25], "a pair that is not monitored keeps its p-value"
    assert [row["p_unadjusted"] for row in result] == [0.001, 0.5, 0.25]
    assert with_stagewise_p(tests, [], "scores") is tests
