"""MABRF's table 4 beside the same cells recomputed from its authors' logs, and beside our runs with the paragraph."""

from __future__ import annotations

import pandas as pd

from parley.analysis.bbq.mabrf.reproduction import LOG, paper_model

PUBLISHED = {
    ("deepseek", False): (36.0, 40.51),
    ("deepseek", True): (14.0, 24.25),
    ("gpt-4", False): (27.0, 37.76),
    ("gpt-4", True): (45.0, 49.80),
}
"""Exact match and F1 in percent, by model and whether there was a search."""
ROUNDING = 0.005 + 1e-9
"""The paper's numbers have two decimals."""
OTHER_MODEL = "in the notebook, llama-3.1-8b-instant answered"


def reproduction(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of table 4 that one of these runs has; empty if there are none.

    Args:
        frame: One row per answer, with `exact` and `f1` in percent.
    """
    if "paragraph_shown" not in frame:
        return pd.DataFrame()
    rows = []
    shown = frame[frame["paragraph_shown"].fillna(0).astype(float) == 1]
    for (model, arm), answers in shown.groupby(["model", "search"], sort=False):
        key = (paper_model(str(model)), str(arm) != "none")
        if key not in PUBLISHED:
            continue
        logged = answers["source"].astype(str) == LOG if "source" in answers else pd.Series(False, index=answers.index)
        for measure, paper in zip(("exact", "f1"), PUBLISHED[key], strict=True):
            recomputed, ours = answers.loc[logged, measure].mean(), answers.loc[~logged, measure].mean()
            rows.append(
                {
                    "model": key[0],
                    "search": key[1],
                    "measure": measure,
                    "paper": paper,
                    "recomputed": recomputed,
                    "ours": ours,
                    "comes_back": None if recomputed != recomputed else abs(paper - recomputed) <= ROUNDING,
                    "note": OTHER_MODEL if key == ("deepseek", True) else "",
                }
            )
    return pd.DataFrame(rows)
