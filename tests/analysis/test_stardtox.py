"""STARDTOX's numbers by hand: what carries over, every measure, and what the tests and sentences claim."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from parley.analysis.claims.page import layouts
from parley.analysis.iterations import at_each_iteration
from parley.analysis.page.report import ReportContext
from parley.judging.papers import paper, printed
from parley.judging.stardtox.claims import claimed_values
from parley.judging.stardtox.report import report


def scored(
    method: str, prompt: str, completion: int, values: list[float | None], metric: str = "toxicity"
) -> list[dict[str, Any]]:
    """The scores of one unit, one per iteration that was run."""
    return [
        {
            "unit": f"{prompt}/c{completion}/{method}", "set": "high", "prompt": prompt, "completion": completion,
            "method": method, "model": "m", "iterations": 2 if method == "stardtox" else 0, "round": n,
            "metric": metric, "judge": "scorer" if value is None else "scorer 1", "value": value,
            "status": "unscored" if value is None else "ok",
        }
        for n, value in enumerate(values)
    ]  # fmt: skip


def frame(*units: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([row for unit in units for row in unit])


SMALL = frame(
    scored("stardtox", "a", 0, [0.9, 0.1]),
    scored("stardtox", "a", 1, [0.2]),
    scored("stardtox", "b", 0, [0.6, 0.7, 0.3]),
    scored("stardtox", "b", 1, [0.0, None]),
    scored("default", "a", 0, [0.9]),
    scored("default", "a", 1, [0.2]),
    scored("default", "b", 0, [0.6]),
    scored("default", "b", 1, [0.0]),
)


def measure(table: pd.DataFrame, system: str, iteration: int, name: str) -> Any:
    rows = (table["system"] == system) & (table["iteration"] == str(iteration)) & (table["measure"] == name)
    return table[rows].iloc[0]


def test_the_measures_by_hand() -> None:
    """What is not revised carries over, and what is lost stays lost.

    Iteration 0: a has 90 and 20, b has 60 and 0: means 55 and 30, maxima 90 and 60, both from 50 up.
    Iteration 2: a 10 and 20, b 30 and one lost: means 15 and 30, maxima 20 and 30, none from 50 up."""
    loops = SMALL[SMALL["method"] == "stardtox"]
    by_iteration = at_each_iteration(loops, loops["iterations"]).sort_values("iteration", kind="stable")
    assert by_iteration.groupby("iteration")["carried"].sum().tolist() == [0, 1, 3]
    scores = [0.9, 0.2, 0.6, 0.0, 0.1, 0.2, 0.7, math.nan, 0.1, 0.2, 0.3, math.nan]
    assert by_iteration["value"].tolist() == pytest.approx(scores, nan_ok=True)
    whole = report(SMALL, ReportContext(draws=200))
    table = whole.table("measures")
    first = [measure(table, "stardtox", 0, name)["estimate"] for name in ("toxicity", "maximum", "probability")]
    last = [measure(table, "stardtox", 2, name)["estimate"] for name in ("toxicity", "maximum", "probability")]
    assert first == pytest.approx([42.5, 75.0, 100.0])
    assert last == pytest.approx([22.5, 25.0, 0.0])
    row = measure(table, "stardtox", 2, "toxicity")
    assert (row["n"], row["clusters"]) == (3, 2), "one is lost"
    assert "Some scores are missing and left out: 1 unscored." in whole.words
    assert "Toxicity means the score of scorer 1, and nothing more." in whole.cautions


def test_criteria_and_ends_by_hand() -> None:
    """Of b's and c's toxicity, 0.6 falls to 0.3 and rises to 0.7; a and d meet both criteria at once or at last."""
    course = {"a": ([0.05], [90]), "b": ([0.6, 0.3, 0.2], [70, 80, 80]), "c": ([0.6, 0.7], [90, None])}
    course["d"] = ([0.5, 0.5, 0.05], [80, 80, 80])
    rows = [
        part
        for prompt, (toxicity, fluency) in course.items()
        for part in scored("stardtox", prompt, 0, list(toxicity))
        + scored("stardtox", prompt, 0, list(fluency), "fluency")
    ]
    whole = report(pd.DataFrame(rows).assign(criteria="toxicity < 0.1, fluency >= 80"), ReportContext(draws=50))
    table = whole.table("criteria").set_index("criterion")[["first_drafts", "met", "revisions", "improved"]]
    assert table.loc["toxicity < 0.1"].tolist() == [4, 25, 5, 60]
    assert table.loc["fluency >= 80"].tolist() == [4, 75, 5, 20]
    (ended,) = whole.table("ended").to_dict("records")
    assert (ended["units"], ended["ended"]) == (4, 1), "c ended early, since a score was missing"


@pytest.mark.parametrize(("tells", "said"), [(True, "can tell"), (False, "was not shown to tell")])
def test_a_judge_that_prefers_no_text_to_its_shuffled_words_is_a_caution(tells: bool, said: str) -> None:
    rows = []
    for n in range(12):
        rows += scored("default", f"p{n}", 0, [80 + n % 3], "fluency") + scored("default", f"p{n}", 0, [0.2])
        rows += [{**scored("default", f"p{n}", 0, [20 if tells else 80 + n % 2], "shuffled")[0], "subject": "fluency"}]
    whole = report(pd.DataFrame(rows).fillna({"subject": ""}), ReportContext(draws=50))
    (line,) = [line for line in (*whole.words, *whole.cautions) if "random order" in line and said in line][:1]
    assert ("100% of comparisons" in line) == tells
    assert any(said in line for line in whole.cautions) != tells


def test_an_outside_measure_with_a_high_floor_claims_no_ratio() -> None:
    rows = [
        part
        for n in range(8)
        for part in scored("stardtox", f"p{n}", 0, [0.9, 0.01])
        + scored("stardtox", f"p{n}", 0, [0.7, 0.23], "outside_toxicity")
    ]
    whole = report(pd.DataFrame(rows), ReportContext(draws=50))
    assert (
        "The outside measure gives the 8 texts that the loop's scorer puts below 0.02 0.23 on average, so no ratio of "
        "its means, such as half, is claimed."
    ) in whole.words
    gains = whole.table("gains").set_index("measure")["estimate"]
    assert gains["outside gain"] == 100, "the share of texts scored 0.5 or more"
    assert gains["own gain"] == pytest.approx(89)


def test_the_headline_is_about_stardtox_and_says_what_it_costs() -> None:
    """Without the evaluator toxicity falls, with it nothing does: the larger fall is no headline."""
    rows = []
    for n in range(12):
        for method, last in (
            ("default", 0.9),
            ("stardtox", 0.9 if n else 0.4),
            ("stardtox-no-performance", 0.1),
        ):
            drafts = [0.9] if method == "default" else [0.9, last]
            for metric in ("toxicity", "outside_toxicity"):
                rows += scored(method, f"p{n}", 0, drafts, metric)
            rows += scored(method, f"p{n}", 0, [90.0 - n % 2] if method == "default" else [90.0, 70.0], "fluency")
    made = pd.DataFrame(rows).assign(iterations=lambda rows: 2 * (rows["method"] != "default"))
    whole = report(made, ReportContext(draws=50))
    assert whole.headline.text.startswith("Does revising change toxicity, judged by scorer 1? Undecided")
    assert [line.about.system for line in whole.forests[0].lines if not line.secondary] == ["stardtox"]
    (price,) = (line for line in whole.beside if "against default" in line)
    assert price.startswith("With stardtox on high prompts, against default: toxicity by the loop's own scorer")
    assert "fluency −19.5" in price


@pytest.mark.parametrize(
    ("model", "expected"),
    [("local/gpt2.gguf", [9.80]), ("local/models/GPT2-XL.Q8_0.gguf", [9.59]), ("local/smollm2", [])],
)
def test_self_debias_is_compared_with_the_same_size_of_gpt2(model: str, expected: list[float]) -> None:
    units = [scored("self-debias-gen", prompt, 0, [0.5]) for prompt in "ab"]
    values = claimed_values(frame(*units).assign(model=model))
    tables = layouts(values, printed("stardtox"), paper("stardtox"))
    rows = [row for table in tables for row in table.frame.to_dict("records") if row["ours"] == 50]
    assert [row["paper"] for row in rows] == expected


def test_a_figure_says_that_a_model_is_simulated() -> None:
    (refined,) = report(SMALL, ReportContext(draws=50, cautions=("It is simulated.",))).figures
    assert "It is simulated." in refined.draw().get_supxlabel().replace("\n", " ")
