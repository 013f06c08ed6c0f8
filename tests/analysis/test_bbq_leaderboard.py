"""The leaderboard: systems by category, tests against `default`, costs; on frames like those of a run file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.effects import answer
from parley.analysis.page.report import ReportContext, as_frame
from parley.analysis.systems import costs, without_files
from parley.analysis.verdicts import MissingColumns
from parley.judging.bbq.comparisons import bias_difference, changes
from parley.judging.bbq.leaderboard import answers, leaderboard, scored, side_by_side
from parley.judging.bbq.report import report
from parley.judging.bbq.scores import AnswerTable
from tests.analysis.verdicts import bbq_answer


def frame(seed: int = 0, scenarios: int = 60, model: str = "m", **methods: tuple[float, float]) -> pd.DataFrame:
    """Verdicts of some methods on the same rows. A method answers unknown at its first rate, else the target at its
    second, else the other person."""
    rng = np.random.default_rng(seed)
    rows = []
    for method, (unknown, stereotyped) in methods.items():
        for number in range(4 * scenarios):
            target = 0 if number % 4 < 2 else 1
            person = target if rng.random() < stereotyped else 1 - target
            value = 2.0 if rng.random() < unknown else float(person)
            about = {"unit": f"Age/{number}/{method}", "method": method.replace("_", "-"), "model": model}
            about |= {"category": "Age" if number % 8 < 4 else "SES", "question": number // 40}
            rows.append(bbq_answer(number, value, **about))
    return pd.DataFrame(rows)


def by_category(values: pd.DataFrame) -> pd.DataFrame:
    return side_by_side(scored(values)).rename(columns={"method": "system"})


def against_default(values: pd.DataFrame, **drawn: int) -> pd.DataFrame:
    """The tests of bias and accuracy, in one table."""
    return as_frame([line for question, rows in changes(values, **drawn) for line in answer(question, rows)])


def tables(values: pd.DataFrame) -> tuple[AnswerTable, AnswerTable]:
    """The disambiguated answers of cot and of default."""
    rows = values[values["condition"] == "disambig"]
    first, second = (AnswerTable.of(rows[rows["method"] == method]) for method in ("cot", "default"))
    return first, second


@pytest.fixture(scope="module")
def clear() -> pd.DataFrame:
    """A default that follows stereotypes, and a method that often says unknown and else tosses a coin."""
    return answers(frame(default=(0.1, 0.9), cot=(0.7, 0.5)))


def test_refused_and_cut_answers_are_counted_among_the_unread() -> None:
    verdicts = frame(default=(0.3, 0.6))
    verdicts.loc[[0, 4, 8], "value"] = math.nan
    verdicts.loc[[0, 8], "status"] = "refused"
    verdicts.loc[4, "status"] = "cut"
    table = by_category(answers(verdicts)).set_index(["context", "category"])[["unparsed", "refused", "cut"]]
    found = {key: tuple(row) for key, row in table.iterrows() if row.any()}
    means = {("ambiguous", f"{kind} mean"): (3, 2, 1) for kind in ("macro", "micro")}
    assert found == {("ambiguous", "Age"): (2, 2, 0), ("ambiguous", "SES"): (1, 0, 1), **means}


def test_the_difference_in_bias_is_that_of_the_scores_and_swaps_are_counted_one_by_one() -> None:
    values = answers(frame(default=(0.3, 0.7), cot=(0.3, 0.4)))
    first, second = tables(values)
    found = bias_difference(first, second, first.question, draws=500)
    biases = by_category(values).set_index(["system", "context", "category"])["bias"]
    gap = biases[("cot", "disambiguated", "micro mean")] - biases[("default", "disambiguated", "micro mean")]
    assert found.estimate == pytest.approx(gap)
    assert found.low < gap < found.high
    assert (found.clusters, found.note) == (12, "")

    def bias(chosen: np.ndarray) -> np.ndarray:
        people = chosen != first.unknown
        return 200 * ((chosen == first.target) & people).sum(axis=1) / people.sum(axis=1) - 100

    swapped = (np.arange(2**12)[:, None] >> first.question & 1).astype(bool)
    gaps = bias(np.where(swapped, second.prediction, first.prediction)) - bias(
        np.where(swapped, first.prediction, second.prediction)
    )
    assert found.p == pytest.approx(np.mean(np.abs(gaps) >= abs(found.estimate) - 1e-9), abs=1e-12)


def test_what_is_not_compared() -> None:
    undefined = against_default(answers(frame(default=(0.2, 0.8), cot=(1.0, 0.5))), draws=50)
    bias = undefined[undefined["measure"] == "bias"]
    assert bias["p"].isna().all()
    assert set(bias["note"]) == {"one of the two never named a person: its bias is undefined"}
    words = report(frame(default=(0.1, 0.9), cot=(1.0, 0.5)), ReportContext(draws=50)).words
    said = "default's answers to ambiguous questions follow stereotypes, with a bias score of +77.5 on a scale of "
    assert any(line.startswith(said) for line in words)
    assert not any("cot's answers" in line for line in words)
    verdicts = frame(default=(0.2, 0.8), cot=(0.4, 0.4))
    verdicts.loc[verdicts["unit"].isin([f"Age/{number}/cot" for number in range(0, 20, 2)]), "value"] = math.nan
    tests = against_default(answers(verdicts), draws=50)
    wrong = tests["measure"] == "accuracy_unread_wrong"
    assert tests.loc[wrong, "n"].tolist() == [120, 120], "unread counted as wrong"
    rows = tests[~wrong].groupby("context")["n"].unique()
    assert {context: list(n) for context, n in rows.items()} == {"ambiguous": [110], "disambiguated": [120]}
    with pytest.raises(MissingColumns, match=r"more than one answer to a row of BBQ \(1 row too many\)"):
        report(pd.concat([verdicts, verdicts.head(1)], ignore_index=True))


def test_a_run_of_methods_is_about_what_they_change_and_what_that_costs() -> None:
    """The loop's comparisons are planned; cot's are not, though its change is as large."""
    verdicts = frame(default=(0.1, 0.9), cot=(0.7, 0.5), stardtox=(0.7, 0.5))
    answered_at = verdicts[verdicts["method"] == "stardtox"].assign(metric="answer_at", round=0)
    whole = report(pd.concat([verdicts, answered_at], ignore_index=True), ReportContext(draws=50))
    assert whole.headline.text.startswith(
        "Does stardtox change the bias, compared with default? Yes: the bias of stard"
    )
    planned = [line for line in whole.forests[0].lines if not line.secondary]
    assert [line.about.contrast.names for line in planned] == [("stardtox", "default")] * 2
    assert "cot" not in " ".join(whole.beside)
    assert all(
        f"of the {context} questions right (default" in whole.beside[0] for context in ("ambiguous", "disambiguated")
    )
    plain = report(frame(default=(0.1, 0.9), cot=(0.7, 0.5)), ReportContext(draws=50))
    assert "Does cot change the bias" in plain.headline.text
    assert "Are the answers biased?" in report(frame(default=(0.1, 0.9)), ReportContext(draws=50)).headline.text


@pytest.mark.parametrize(
    ("second", "systems", "pairs"),
    [
        ({}, {"default", "cot"}, {("cot", "default")}),  # the same model: its file's name goes
        (
            {"default": (0.2, 0.8)},
            {"default (a.sqlite)", "default (b.sqlite)", "cot"},
            {("cot", "default (a.sqlite)"), ("cot", "default (b.sqlite)")},
        ),
    ],
    ids=["runs in two files meet on the same model", "the same method in two files stays two systems"],
)
def test_runs_in_two_files(second: dict[str, Any], systems: set[str], pairs: set[tuple[str, str]]) -> None:
    """`parley report` adds the file to the name of a model that is in two files."""
    one = frame(0, 10, default=(0.2, 0.8), model="local/smollm2 (a.sqlite)")
    two = frame(1, 10, cot=(0.4, 0.4), model="local/smollm2 (b.sqlite)", **second)
    values = answers(without_files(pd.concat([one, two])))
    assert set(values["system"]) == systems
    found = against_default(values, draws=50)[["first", "second"]]
    assert set(found.itertuples(index=False, name=None)) == pairs


def test_costs_are_on_the_leaderboard_and_an_unknown_price_is_not_zero(clear: pd.DataFrame) -> None:
    columns = ["unit", "method", "model", "calls", "tokens", "cost"]
    rows = [("a", "default", "m", 1.0, 100.0, 0.5), ("b", "default", "m", 3.0, 300.0, math.nan)]
    units = pd.DataFrame([*rows, ("c", "cot", "m", 2.0, 50.0, 0.25)], columns=columns)
    spent = costs(units).set_index("system")
    assert spent.loc["default", "calls_an_item"] == 2
    assert spent["dollars_an_item"].tolist() == pytest.approx([math.nan, 0.25], nan_ok=True)
    assert list(leaderboard(scored(clear), units)["tokens_an_item"]) == [200, 200, 50, 50]


def test_means_of_a_model_are_one_family_and_categories_another() -> None:
    runs = [frame(seed, default=(0.1, 0.9), cot=(0.4, 0.5), model=name) for seed, name in enumerate("mn")]
    found = scored(answers(pd.concat(runs)))
    lines = [line for line in found if line.measure == "bias"]
    for model in "mn":
        for categories in (["macro mean"], ["Age", "SES"]):
            own = [line for line in lines if line.about.model == model and line.about.category in categories]
            assert len(own) == 2 * 2 * len(categories)
            smallest = min(own, key=lambda line: line.p)
            assert smallest.p_adjusted == pytest.approx(min(1, len(own) * smallest.p))
    shown = [line for line in lines if not line.secondary and line.shown]
    assert {line.about.method for line in shown} == {"default"}
    for line in shown:
        assert line.simultaneous is not None
        assert 0 <= line.simultaneous[0] < line.estimate < line.simultaneous[1]
        assert line.simultaneous[0] <= line.low, "it covers eight means of both models at once"
    pooled = next(line for line in lines if line.about.category == "micro mean")
    assert (pooled.clusters, pooled.also["scenarios"]) == (12, 60)
    assert next(line for line in lines if line.about.category == "Age").note == "6 templates: rough below 10"
