"""MABRF's table 4, next to the same cells of our own runs."""

from __future__ import annotations

import pandas as pd

from parley.analysis.reporting.report import Table

PUBLISHED = {
    ("deepseek", False): (36.0, 40.51),
    ("deepseek", True): (14.0, 24.25),
    ("gpt-4", False): (27.0, 37.76),
    ("gpt-4", True): (45.0, 49.80),
}
"""Exact match and F1 in percent, by model and whether there was a search."""
BESIDE = (
    "Theirs: as printed. By the notebooks, DeepSeek was asked 100 questions with their paragraph, and with search "
    "llama-3.1-8b-instant answered them; how GPT-4 was asked is not known. Ours: this run, without unread answers."
)


def published_table(frame: pd.DataFrame) -> Table:
    """The cells of table 4, a column for each of its models, next to those of our runs.

    Args:
        frame: One row per answer, with `exact` and `f1` in percent.
    """
    rows = []
    for (model, arm), answers in frame.groupby(["model", "search"], sort=False):
        searched = str(arm) != "none"
        for place, measure in enumerate(("exact", "f1")):
            theirs = {name: cell[place] for (name, other), cell in PUBLISHED.items() if other == searched}
            ours = answers[measure]
            rows.append(
                {"search": arm, "measure": measure, **theirs, "ours_by": model, "ours": ours.mean(), "n": ours.count()}
            )
    return Table("published", "MABRF's table 4, next to ours (%)", pd.DataFrame(rows), note=BESIDE)
