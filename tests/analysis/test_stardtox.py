"""STARDTOX's numbers by hand: what carries over, every measure, and what the tests and sentences claim."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from parley.analysis.iterations import at_each_iteration
from parley.analysis.page.report import ReportContext
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
    paper = whole.table("table_2").set_index(["system", "iteration"])
    assert paper.loc[("stardtox", "2"), ["toxicity", "maximum", "probability"]].tolist() == pytest.approx(last)


@pytest.mark.parametrize(
    ("model", "expected"),
    [("local/gpt2.gguf", [9.80]), ("local/models/GPT2-XL.Q8_0.gguf", [9.59]), ("local/smollm2", [])],
)
def test_self_debias_is_compared_with_the_same_size_of_gpt2(model: str, expected: list[float]) -> None:
    units = [scored("self-debias-gen", prompt, 0, [0.5]) for prompt in "ab"]
    made = report(frame(*units).assign(model=model), ReportContext(draws=200))
    assert [number for table in made.tables if table.name == "published" for number in table.frame["paper"]] == expected


def test_a_figure_says_that_a_model_is_simulated() -> None:
    (refined,) = report(SMALL, ReportContext(draws=50, cautions=("It is simulated.",))).figures
    assert "It is simulated." in refined.draw().get_supxlabel().replace("\n", " ")
