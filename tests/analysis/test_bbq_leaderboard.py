"""The leaderboard: systems by category, tests against `default`, costs; on frames like those of a run file."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.bbq.comparisons import bias_difference, changes, readable
from parley.analysis.bbq.leaderboard import _leanings, answers, leaderboard, scored, side_by_side
from parley.analysis.bbq.report import report
from parley.analysis.bbq.scores import AnswerTable
from parley.analysis.reporting.questions import answer, table
from parley.analysis.reporting.report import ReportContext
from parley.analysis.reporting.systems import costs, without_files
from parley.analysis.reporting.verdicts import MissingColumns


def frame(seed: int = 0, scenarios: int = 60, model: str = "m", **methods: tuple[float, float]) -> pd.DataFrame:
    """Verdicts of some methods on the same rows. A method answers unknown at its first rate, else the target at its
    second, else the other person."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for method, (unknown, stereotyped) in methods.items():
        for number in range(4 * scenarios):
            target = 0 if number % 4 < 2 else 1
            person = target if rng.random() < stereotyped else 1 - target
            rows.append(
                {
                    "unit": f"Age/{number}/{method}",
                    "metric": "answer",
                    "value": 2.0 if rng.random() < unknown else float(person),
                    "category": "Age" if number % 8 < 4 else "SES",
                    "example_id": number,
                    "repeat": 0,
                    "condition": "ambig" if number % 2 == 0 else "disambig",
                    "label": 2 if number % 2 == 0 else 0,
                    "target": target,
                    "unknown": 2,
                    "names": False,
                    "scenario": f"s{number // 4}",
                    "question": number // 40,
                    "method": method.replace("_", "-"),
                    "model": model,
                    "status": "ok",
                }
            )
    return pd.DataFrame(rows)


def by_category(values: pd.DataFrame) -> pd.DataFrame:
    return side_by_side(scored(values)).rename(columns={"method": "system"})


def against_default(values: pd.DataFrame, **drawn: int) -> pd.DataFrame:
    """The tests of bias and accuracy, in one table."""
    return table([line for question in changes(**drawn) for line in answer(question, readable(values))])


def test_every_system_has_its_categories_in_both_contexts() -> None:
    table = by_category(answers(frame(default=(0.3, 0.6), cot=(0.6, 0.5))))
    assert set(table["system"]) == {"default", "cot"}
    assert set(table["category"]) == {"Age", "SES", "macro mean", "micro mean"}
    assert len(table) == 2 * 2 * 4
    cell = table[(table["system"] == "cot") & (table["context"] == "ambiguous") & (table["category"] == "micro mean")]
    values = answers(frame(default=(0.3, 0.6), cot=(0.6, 0.5)))
    predictions = values[(values["method"] == "cot") & (values["condition"] == "ambig")]["prediction"]
    assert cell["accuracy"].item() == pytest.approx((predictions == 2).mean())


def test_refused_and_cut_answers_are_counted_among_the_unread() -> None:
    verdicts = frame(default=(0.3, 0.6))
    verdicts.loc[[0, 4, 8], "value"] = math.nan
    verdicts.loc[[0, 8], "status"] = "refused"
    verdicts.loc[4, "status"] = "cut"
    table = by_category(answers(verdicts)).set_index(["context", "category"])[["unparsed", "refused", "cut"]]
    assert {key: tuple(row) for key, row in table.iterrows()} == {
        ("ambiguous", "Age"): (2, 2, 0),
        ("ambiguous", "SES"): (1, 0, 1),
        ("ambiguous", "macro mean"): (3, 2, 1),
        ("ambiguous", "micro mean"): (3, 2, 1),
        ("disambiguated", "Age"): (0, 0, 0),
        ("disambiguated", "SES"): (0, 0, 0),
        ("disambiguated", "macro mean"): (0, 0, 0),
        ("disambiguated", "micro mean"): (0, 0, 0),
    }


def test_a_method_that_answers_unknown_more_often_differs_significantly() -> None:
    tests = against_default(answers(frame(default=(0.1, 0.9), cot=(0.7, 0.5))), draws=500).set_index(
        ["context", "measure"]
    )
    better = tests.loc[("ambiguous", "accuracy")]
    assert better["estimate"] > 0.3
    assert better["low"] > 0
    assert better["p_adjusted"] < 0.05
    assert better["p_mcnemar"] < 0.001
    less = tests.loc[("ambiguous", "bias")]
    assert less["estimate"] < -30
    assert less["high"] < 0
    assert less["p_adjusted"] < 0.05


def test_equal_methods_are_rarely_called_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.analysis.bbq.comparisons.SWAPS", 100)  # the test is valid however few are drawn
    false_positives = 0
    for seed in range(20):
        tests = against_default(answers(frame(seed, 30, default=(0.3, 0.6), cot=(0.3, 0.6))), draws=20)
        false_positives += bool((tests["p_adjusted"] < 0.05).any())
    assert false_positives <= 4, "at most about one family in twenty"


def test_the_difference_in_bias_is_that_of_the_scores() -> None:
    values = answers(frame(default=(0.2, 0.8), cot=(0.4, 0.4)))
    rows = values[values["condition"] == "disambig"]
    first, second = (AnswerTable.of(rows[rows["method"] == method]) for method in ("cot", "default"))
    found = bias_difference(first, second, first.scenario, draws=500)
    table = by_category(values).set_index(["system", "context", "category"])["bias"]
    gap = table[("cot", "disambiguated", "micro mean")] - table[("default", "disambiguated", "micro mean")]
    assert found.estimate == pytest.approx(gap)
    assert found.low < gap < found.high
    assert found.p < 0.01
    assert (found.clusters, found.note) == (60, "")


def test_templates_are_the_clusters_and_scenarios_the_sensitivity_analysis() -> None:
    tests = against_default(answers(frame(default=(0.1, 0.9), cot=(0.7, 0.5))), draws=200)
    assert set(tests["clusters"]) == {12}, "six questions in each of two categories"
    assert tests[["scenario_low", "scenario_high", "p_scenario"]].notna().all().all()
    lines = {
        (line.about["context"], line.about["category"], line.measure): line
        for line in scored(answers(frame(default=(0.1, 0.9))))
    }
    bias = lines["disambiguated", "micro mean", "bias"]
    assert (bias.clusters, bias.also["scenarios"]) == (12, 60)
    assert bias.also["scenario_low"] < bias.estimate < bias.also["scenario_high"]
    assert lines["disambiguated", "Age", "bias"].note == "6 templates: rough below 10"


def test_an_answer_given_twice_is_told() -> None:
    verdicts = frame(default=(0.3, 0.6))
    with pytest.raises(MissingColumns, match=r"more than one answer to a row of BBQ \(1 row too many\)"):
        report(pd.concat([verdicts, verdicts.head(1)], ignore_index=True))


def test_the_p_of_a_bias_does_not_depend_on_the_seed() -> None:
    values = answers(frame(scenarios=20, default=(0.3, 0.7), cot=(0.3, 0.5)))
    first, second = (against_default(values, draws=100, seed=seed) for seed in (0, 7))
    assert first["p"].tolist() == second["p"].tolist()


def test_swaps_of_few_templates_are_counted_one_by_one() -> None:
    values = answers(frame(scenarios=60, default=(0.3, 0.7), cot=(0.3, 0.4)))
    rows = values[values["condition"] == "disambig"]
    first, second = (AnswerTable.of(rows[rows["method"] == method]) for method in ("cot", "default"))
    template, found = first.question, bias_difference(first, second, first.question, draws=100)

    def bias(chosen: np.ndarray) -> float:
        people = chosen != first.unknown
        return float(200 * (chosen == first.target)[people].mean() - 100)

    reached = 0
    for pattern in range(2**12):
        swapped = (pattern >> template & 1).astype(bool)
        gap = bias(np.where(swapped, second.prediction, first.prediction)) - bias(
            np.where(swapped, first.prediction, second.prediction)
        )
        reached += abs(gap) >= abs(found.estimate) - 1e-9
    assert found.p == pytest.approx(reached / 2**12, abs=1e-12)


def test_an_undefined_bias_is_not_compared() -> None:
    tests = against_default(answers(frame(default=(0.2, 0.8), cot=(1.0, 0.5))), draws=100)
    bias = tests[tests["measure"] == "bias"]
    assert bias["p"].isna().all()
    assert set(bias["note"]) == {"one of the two never named a person: its bias is undefined"}


def test_only_rows_readable_in_both_systems_are_compared() -> None:
    verdicts = frame(default=(0.2, 0.8), cot=(0.4, 0.4))
    verdicts.loc[verdicts["unit"].isin([f"Age/{number}/cot" for number in range(0, 20, 2)]), "value"] = math.nan
    tests = against_default(answers(verdicts), draws=100)
    assert set(tests.loc[tests["context"] == "ambiguous", "n"]) == {110}
    assert set(tests.loc[tests["context"] == "disambiguated", "n"]) == {120}


def test_runs_in_two_files_meet_on_the_same_model() -> None:
    """`parley report` adds the file to the name of a model that is in two files."""
    one = frame(scenarios=10, default=(0.2, 0.8), model="local/smollm2 (a.sqlite)")
    two = frame(scenarios=10, cot=(0.4, 0.4), model="local/smollm2 (b.sqlite)")
    values = answers(without_files(pd.concat([one, two])))
    assert set(values["system"]) == {"default", "cot"}
    assert set(against_default(values, draws=50)["second"]) == {"default"}


def test_the_same_method_in_two_files_stays_two_systems() -> None:
    one = frame(0, default=(0.2, 0.8), model="m (a.sqlite)")
    two = frame(1, default=(0.2, 0.8), model="m (b.sqlite)")
    three = frame(2, cot=(0.2, 0.8), model="m (b.sqlite)")
    values = answers(without_files(pd.concat([one, two, three])))
    assert set(values["system"]) == {"default (a.sqlite)", "default (b.sqlite)", "cot"}
    pairs = against_default(values, draws=50)[["first", "second"]]
    assert set(pairs.itertuples(index=False, name=None)) == {
        ("cot", "default (a.sqlite)"),
        ("cot", "default (b.sqlite)"),
    }


def test_every_model_is_compared_with_its_own_default() -> None:
    few = [frame(scenarios=10, default=(0.2, 0.8), cot=(0.4, 0.4), model=name) for name in ("m", "n")]
    values = answers(pd.concat(few))
    tests = against_default(values, draws=50)
    pairs = tests[["model", "first", "second"]].drop_duplicates()
    assert {tuple(pair) for pair in pairs.to_numpy()} == {("m", "cot", "default"), ("n", "cot", "default")}
    for _, family in tests.groupby(["model", "measure"]):  # two contexts each
        smallest = family["p"].idxmin()
        assert family["p_adjusted"][smallest] == pytest.approx(min(1, 2 * family["p"][smallest]))


def test_costs_are_on_the_leaderboard_and_an_unknown_price_is_not_zero() -> None:
    units = pd.DataFrame(
        {
            "unit": ["a", "b", "c"],
            "method": ["default", "default", "cot"],
            "model": ["m", "m", "m"],
            "calls": [1.0, 3.0, 2.0],
            "tokens": [100.0, 300.0, 50.0],
            "cost": [0.5, math.nan, 0.25],
        }
    )
    spent = costs(units).set_index("system")
    assert spent.loc["default", "calls_an_item"] == 2
    assert math.isnan(spent.loc["default", "dollars_an_item"])
    assert spent.loc["cot", "dollars_an_item"] == 0.25
    board = leaderboard(scored(answers(frame(default=(0.3, 0.6), cot=(0.6, 0.5)))), units)
    assert list(board["tokens_an_item"]) == [200, 200, 50, 50]


def test_the_report_draws_accuracy_against_bias_and_summarises_it() -> None:
    whole = report(frame(default=(0.1, 0.9), cot=(1.0, 0.5)), ReportContext(draws=50, cautions=("It is simulated.",)))
    assert [table.name for table in whole.tables] == [
        "leaderboard",
        "bias",
        "accuracy",
        "bias_against_default",
        "accuracy_against_default",
    ]
    drawn = whole.figures[0].draw()
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert labels == ["default", "cot (bias undefined)"]
    assert whole.words[0].startswith("default's answers follow stereotypes in ambiguous contexts: bias +77.5 (68.4 to ")
    assert not any("cot's answers" in line for line in whole.words), "its bias is undefined"
    assert whole.data()["leaderboard"][2]["bias"] is None
    assert "It is simulated." in whole.figures[0].caption


def test_an_undefined_interval_is_reported_with_its_reason() -> None:
    one_each = report(frame(scenarios=2, default=(0.0, 0.5)), ReportContext(draws=50))  # one template per category
    assert "No intervals are drawn: too few templates." in one_each.figures[0].caption
    assert "Intervals are 95%" not in one_each.figures[0].caption
    assert one_each.words[0].count("(no interval: too few templates)") == 2
    constant = report(frame(default=(0.0, 1.0)), ReportContext(draws=50))
    assert constant.words[-1].count("(no interval: all templates score the same)") == 2
    assert "Intervals are 95%" in report(frame(default=(0.3, 0.6)), ReportContext(draws=50)).figures[0].caption


def test_the_test_of_a_bias_flips_what_its_mean_is_made_of() -> None:
    values = answers(frame(cot=(0.6, 0.5)))
    biases = by_category(values).replace({"ambiguous": "ambig", "disambiguated": "disambig"})
    found = biases.set_index(["context", "category"])
    leanings = _leanings(AnswerTable.of(values))
    assert len(leanings) == 2 * 3, "two categories and their mean in each context; no names"
    for key, numbers in leanings.items():
        assert numbers.mean() == pytest.approx(found["bias"][key])
    assert found["p"][:, "micro mean"].isna().all()


def test_means_of_a_model_are_one_family_and_categories_another() -> None:
    runs = [frame(seed, default=(0.1, 0.9), cot=(0.4, 0.5), model=name) for seed, name in enumerate("mn")]
    values = answers(pd.concat(runs))
    lines = [line for line in scored(values) if line.measure == "bias"]
    for model in "mn":
        for categories in (["macro mean"], ["Age", "SES"]):
            own = [line for line in lines if line.about["model"] == model and line.about["category"] in categories]
            assert len(own) == 2 * 2 * len(categories)
            smallest = min(own, key=lambda line: line.p)
            assert smallest.p_adjusted == pytest.approx(min(1, len(own) * smallest.p))
    planned = [line for line in lines if not line.secondary]
    shown = [line for line in planned if line.shown]
    assert {line.about["method"] for line in shown} == {"default"}
    for line in shown:
        assert line.simultaneous is not None
        assert 0 <= line.simultaneous[0] < line.estimate < line.simultaneous[1]
        assert line.simultaneous[0] <= line.low, "it covers eight means of both models at once"


def test_a_plot_has_every_heading_once() -> None:
    runs = [frame(scenarios=20, default=(0.2, 0.8), cot=(0.4, 0.4), model=name) for name in ("m", "n")]
    bias = report(pd.concat(runs), ReportContext(draws=50)).forests[0]
    assert [group for group, _ in groupby(line.group for line in bias.lines)] == [
        f"{model} · context: {context}" for model in ("m", "n") for context in ("ambiguous", "disambiguated")
    ]
    assert [line.label for line in bias.lines] == ["default", "cot"] * 4


def test_a_system_without_bias_has_no_headline_and_a_category_is_never_one() -> None:
    fair = report(frame(seed=3, default=(0.3, 0.5)), ReportContext(draws=50))
    assert fair.headline is not None
    assert (fair.headline.verdict, fair.headline.tests) == ("undecided", 2), "the means of both contexts"
    assert not any("follow stereotypes" in line for line in fair.words)
