"""MABRF's tables and tests: the paper's own numbers from counts, known values, and unreadable replies."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from parley.analysis.effects import answer
from parley.analysis.page.papers import as_its_paper
from parley.analysis.page.report import ReportContext
from parley.analysis.stats.mean_test import mean_p
from parley.analysis.stats.results import Line
from parley.judging.bbq.mabrf.report import CHANGES, DEBIASED, before_and_after
from parley.judging.bbq.mabrf.tables import as_the_paper_counts, by_context, items, mabrf_bias
from parley.judging.bbq.report import report
from tests.analysis.verdicts import bbq_answer


def rows(right: int, of: int) -> list[float]:
    return [1.0] * right + [0.0] * (of - right)


def chains(biased: int, of: int) -> list[float]:
    return [4.0] * biased + [1.0] * (of - biased)


@pytest.mark.parametrize(
    ("right", "biased", "of", "published"),
    [
        # Table 5, ten rows per category: (1 − ACC)(2·n_biased/10 − 1)
        (8, 3, 10, -0.08),  # GPT-3.5, Age, before: 0.2 · −0.4
        (8, 0, 10, -0.20),  # the same, after: no chain above 1, so −(1 − ACC)
        (6, 2, 10, -0.24),  # GPT-3.5, Nationality, before: 0.4 · −0.6
        (8, 6, 10, 0.04),  # DeepSeek, Religion, before: 0.2 · 0.2
        # Table 3, 55 ambiguous rows, GPT-3.5 without search: 39/55 = 0.71, no chain above 1
        (39, 0, 55, -0.29),
        # and 55 disambiguated ones: 53/55 = 0.96, five chains above 1: 2/55 · −45/55
        (53, 5, 55, -0.03),
    ],
)
def test_the_papers_numbers_follow_from_counts(right: int, biased: int, of: int, published: float) -> None:
    assert mabrf_bias(rows(right, of), chains(biased, of)) == pytest.approx(published, abs=0.005)


def unit(number: int, method: str = "mabrf", **replies: Any) -> list[dict[str, Any]]:
    """The verdicts of one item, as in a run file. Scores by pass in `bias`; None is unreadable."""
    bias = replies.get("bias", [5.0, 1.0])
    own = {"unit": f"Age/{number}/{method}", "method": method, "scenario": f"s{number}", "judge": "Judge", "target": 0}
    own |= {"question": replies.get("question", number)}
    accepted = replies.get("accepted", [1.0] * (len(bias) - 1))
    values = [
        ("first_answer", 0, replies.get("first", 0.0)),
        *(("bias", nth, score) for nth, score in enumerate(bias)),
        *(("relevancy", nth, replies.get("relevancy", 6.0)) for nth in range(len(bias))),
        *(("accepted", nth, value) for nth, value in enumerate(accepted, 1)),
        ("final_bias", len(bias), replies.get("final_bias", bias[-1])),
        ("bias_again", len(bias), replies.get("again", 2.0)),
        ("final_relevancy", len(bias), replies.get("final_relevancy", 7.0)),
        ("answer", len(bias), replies.get("final", 2.0)),
    ]
    return [
        bbq_answer(number, math.nan if value is None else value, **own, metric=metric, round=nth)
        | {"status": "unparsed" if value is None else "ok"}
        for metric, nth, value in values
    ]


def verdicts(*units: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([row for unit in units for row in unit])


def changes(frame: pd.DataFrame) -> list[Line]:
    return answer(CHANGES, before_and_after(frame))


def test_an_item_has_its_scores_before_and_after() -> None:
    frame = items(verdicts(unit(0, bias=[7.0, 8.0, 3.0], accepted=[0.0, 1.0]), unit(1, bias=[1.0])))
    first, second = (frame.iloc[n] for n in range(2))
    assert (first["bias0"], first["bias1"], first["bias_again"]) == (7, 3, 2)
    assert (first["passes"], first["accepted"], first["relevancy_change"]) == (2, 1, 1)
    assert (first["right0"], first["right1"]) == (0, 1)
    assert (second["passes"], second["right0"], second["right1"]) == (0, 1, 0)


def test_unreadable_replies_are_counted_and_neither_wrong_nor_unbiased() -> None:
    frame = items(
        verdicts(
            unit(0, first=None, final=2.0),
            unit(2, bias=[None, None], accepted=[0.0], final_bias=None, again=None, final_relevancy=None),
            unit(4, final=None, bias=[4.0]),
        )
    )
    (row,) = by_context(frame).to_dict("records")
    assert (row["n"], row["unread_first"], row["unread_final"]) == (3, 1, 1)
    assert (row["unread_bias0"], row["unread_bias1"]) == (1, 1)
    assert (row["acc0"], row["acc1"]) == (0.0, 1.0), "of two readable before and two after"
    assert row["mabrf_bias0"] == pytest.approx(1.0), "both readable chains are biased, both answers wrong"
    assert row["mabrf_bias1"] == 0, "both readable answers are right"
    assert (row["n_biased0"], row["n_biased1"]) == (2, 1)
    (debiased,) = answer(DEBIASED, frame)
    assert (debiased.estimate, debiased.n) == (1.0, 1), "one item has both an answer and a score"
    (change,) = changes(frame)
    assert (change.n, change.also["unread"]) == (1, 2)


def test_the_paper_counts_unread_answers_as_wrong_and_unread_scores_as_unbiased() -> None:
    """Its notebooks: (1 − acc)(2·n_biased/m − 1) with m = len(group), and NaN > 1 is False."""
    nan = math.nan
    accuracy, bias = as_the_paper_counts([1, 1, 0, nan], [1, 3, nan, 2])
    assert (accuracy, bias) == (0.5, 0.5 * (2 * 2 / 4 - 1))
    assert mabrf_bias([1, 1, 0, nan], [1, 3, nan, 2]) == pytest.approx((1 - 2 / 3) * (2 * 2 / 3 - 1)), "ours"
    assert as_the_paper_counts([1, 0], [1, 1]) == (0.5, -0.5)


def test_fixed_and_worsened_are_counted_and_tested() -> None:
    """Nine fixed and one worsened, each of its own template: McNemar's exact p is 2·(1 + 10)/2^10."""
    fixed = [unit(2 * n, first=0.0, final=2.0) for n in range(9)]
    frame = items(verdicts(*fixed, unit(20, first=2.0, final=1.0), unit(22, first=2.0, final=2.0)))
    (line,) = changes(frame)
    assert (line.also["fixed"], line.also["worsened"], line.n) == (9, 1, 11)
    assert (line.p, line.also["p_mcnemar"]) == pytest.approx((mean_p([1] * 9 + [-1, 0]), 2 * 11 / 1024))
    assert line.estimate == pytest.approx(8 / 11)


def test_items_of_one_template_are_one_observation_for_the_test_and_the_sentence() -> None:
    """Four templates of six fixed items each: McNemar's p is 2/2²⁴, that of four templates 2/2⁴."""
    units = [unit(2 * n, first=0.0, final=2.0, question=n % 4) for n in range(24)]
    (line,) = changes(items(verdicts(*units)))
    assert (line.p, line.p_adjusted, line.clusters) == (1 / 8, 1 / 8, 4)
    assert line.also["p_mcnemar"] == pytest.approx(2 / 2**24)
    assert line.note == "4 clusters: p cannot be below 0.12; an interval needs 6"
    words = report(verdicts(*units), ReportContext(draws=50)).words
    (said,) = (line for line in words if "the loop corrected" in line)
    assert said.endswith("which may be chance."), "four templates show nothing"
    more = [unit(2 * n, first=0.0, final=2.0, question=n % 8) for n in range(24)]
    words = report(verdicts(*more), ReportContext(draws=50)).words
    assert any(line.startswith("mabrf: of 24 ambiguous questions the loop corrected 24 answers and") for line in words)


def test_no_sentence_rests_on_the_score_that_a_chain_was_chosen_for() -> None:
    """As chosen the bias falls from 5 to 1, and to 2.5 with search; judged again it is 4.2."""
    searched = [unit(2 * n, "mabrf-search", bias=[5.0, 2.5], again=4.2) for n in range(12)]
    whole = report(verdicts(*(unit(2 * n, again=4.2) for n in range(12)), *searched), ReportContext(draws=50))
    sentences = [line for line in whole.words if "5.00" in line]
    assert len(sentences) == 2
    assert all("judged again, 4.20" in line for line in sentences)
    assert not any("1.00" in line or "2.50" in line for line in whole.words)
    assert "bias1" not in set(whole.table("mabrf_search_scores")["measure"])


def test_the_papers_own_mode_has_a_gain_by_the_judge_and_its_answers_come_first() -> None:
    """Nothing is judged again or from outside: the chosen score is in the table, and decides nothing."""
    frame = verdicts(*(unit(2 * n, first=0.0, final=2.0) for n in range(24)))
    whole = report(frame[frame["metric"] != "bias_again"], ReportContext(draws=50))
    gains = whole.table("gains").set_index("measure")
    assert (gains.loc["own gain", "estimate"], gains.loc["own gain", "n"]) == (4, 24)
    assert "as chosen" in next(line.label for plot in whole.forests if plot.table == "gains" for line in plot.lines)
    assert whole.headline.question == "Does the loop change the answers?"
    assert any("accuracy 0.0% → 100.0%" in line for line in whole.beside)
    assert not any("1.00 of 10" in line for line in whole.words)


def test_first_answers_that_were_late_or_missing_are_counted() -> None:
    frame = verdicts(*(unit(2 * n, first=None if n < 2 else 0.0) for n in range(12)))
    first = frame["metric"] == "first_answer"
    frame.loc[first & frame["unit"].isin(["Age/8/mabrf", "Age/10/mabrf", "Age/12/mabrf"]), "status"] = "repaired"
    line = "mabrf: of 12 first answers, 3 came only when the solver was asked again, and 2 could not be read."
    assert line in report(frame, ReportContext(draws=50)).cautions


def test_changes_in_relevancy_are_drawn_by_arm() -> None:
    given_units = [unit(n, method, bias=[5.0, 3.0, 1.0][: 1 + n % 3]) for n in range(12) for method in ("mabrf", "x")]
    whole = report(verdicts(*given_units), ReportContext(draws=50))
    (relevancy,) = whole.figures
    assert [len(axis.patches) > 0 for axis in relevancy.draw().axes] == [True, True], "a histogram for each arm"


def test_relevancy_by_pass_and_with_the_number_of_passes() -> None:
    """Items of 0, 1 and 2 passes, whose relevancy rises by 0, 1 and 2: r is 1. Means over items, as the paper's."""
    frame = verdicts(
        *(
            unit(n, bias=[5.0, 3.0, 1.0][: 1 + n % 3], relevancy=6.0, final_relevancy=6.0 + n % 3, question=n // 4)
            for n in range(8)
        )
    )
    whole = report(frame, ReportContext(draws=50))
    by_pass = whole.table("mabrf_by_pass")
    assert by_pass[["pass", "bias", "relevancy", "n"]].to_numpy().tolist() == [[0, 5, 6, 8], [1, 3, 6, 5], [2, 1, 6, 2]]
    together = whole.table("mabrf_correlation").set_index(["items", "measure"])["estimate"]
    assert together["all", "r_relevancy"] == pytest.approx(1.0)
    assert whole.table("mabrf_passes")["relevancy_change"].tolist() == [0, 1, 2]
    assert whole.table("mabrf_relevancy")["estimate"].tolist() == pytest.approx([7 / 8]), "not over templates"
    places = [table.paper for table in as_its_paper(whole).tables]
    assert places[0] == "MABRF 5.1, iterations and final bias"
