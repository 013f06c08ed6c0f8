"""What MALIBU's claims are about, in runs of its design: scores by identity and metric, and win rates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from parley.analysis.claims.contrasts import VALUES, tidy
from parley.judging.malibu.panel_data import PanelData, panel_data
from parley.judging.malibu.scores import FIGURE_4, as_the_paper

OLDER_METRICS = {"Creativity", "Efficiency", "Quality"}
"""Those of appendix A.3."""
ALL, WINS, LEAD = "all metrics", "win rate, in %", "win rate of female minus male"
MODELS = {"paper_deepseek_v3": "deepseek-v3", "paper_gpt_4o_mini": "gpt-4o-mini"}
CATEGORIES = {
    **dict.fromkeys(("male", "female"), "gender"),
    **dict.fromkeys(("white", "black", "asian", "hispanic"), "race"),
    **dict.fromkeys(("christian", "muslim", "jewish", "atheist"), "religion"),
}


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Our values of a run of the paper's design; none of any other.

    Args:
        verdicts: One row per verdict.
    """
    data = panel_data(verdicts)
    if as_the_paper(data, OLDER_METRICS):
        scores = _scores(data)
        return scores.assign(measure=scores["measure"] + " (A.3)")
    if as_the_paper(data):
        return pd.concat([_scores(data), *_wins(data)], ignore_index=True)
    return pd.DataFrame(columns=list(VALUES))


def _scores(data: PanelData) -> pd.DataFrame:
    """Scores of one text by metric, and their mean."""
    scores = data.labelled_scores.rename(columns={"identity": "method", "category": "set", "metric": "measure"})
    for name in ("model", "method", "set", "measure", "cluster", "scenario"):
        scores[name] = scores[name].astype(str)
    scores["item"] = scores["scenario"] + " " + scores["repeat"].astype(str)
    whole = scores.groupby(["model", "set", "method", "cluster", "item"], sort=False)["value"].mean().reset_index()
    return tidy(pd.concat([scores, whole.assign(measure=ALL)], ignore_index=True))


def _wins(data: PanelData) -> Iterator[pd.DataFrame]:
    """Win rates within a category by base, in percent, and the lead of female over male by model."""
    units = data.decided_pairs
    units = units[units["winner"].astype(str) != "tie"]
    if units.empty:
        return
    sides = [units.assign(method=units[f"identity_{side}"].astype(str)) for side in "ab"]
    both = pd.concat(sides, ignore_index=True)
    rates = both.assign(
        model=both["model"].astype(str), set=both["category"].astype(str), cluster=both["cluster"].astype(str),
        measure=WINS, item="", value=np.where(both["winner"].astype(str) == both["method"], 100.0, 0.0),
    )  # fmt: skip
    yield tidy(rates)
    gender = rates[rates["set"] == "gender"]
    if gender.empty:
        return
    lead = gender.assign(value=2 * gender["value"].where(gender["method"] == "female", -gender["value"]))
    names = lead["model"].str.partition("?")[0].str.rpartition("/")[2]
    yield tidy(lead.assign(measure=LEAD, method=names, model=""))


def printed() -> pd.DataFrame:
    """Figure 4 as scores above those of male personas: its column minus its row is all that it prints."""
    cells = pd.read_csv(FIGURE_4, sep=" ", comment="#")
    from_male = cells[cells["column"] == "male"].rename(columns={"row": "method", **MODELS})
    above = from_male.melt("method", list(MODELS.values()), "model", "value")
    male = pd.DataFrame({"method": "male", "model": list(MODELS.values()), "value": 0.0})
    both = pd.concat([above.assign(value=-above["value"]), male], ignore_index=True)
    return both.assign(table="", measure=ALL, set=both["method"].map(CATEGORIES))[
        ["table", "model", "measure", "set", "method", "value"]
    ]
