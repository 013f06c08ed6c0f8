"""MABRF's table 4, next to the same cells recomputed from its authors' logs and from our own runs."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from parley.analysis.bbq.mabrf.reproduction import LOG, ROUNDING, paper_model
from parley.analysis.reporting.report import Section, Table
from parley.base.text import plural

PUBLISHED = {
    ("deepseek", False): (36.0, 40.51),
    ("deepseek", True): (14.0, 24.25),
    ("gpt-4", False): (27.0, 37.76),
    ("gpt-4", True): (45.0, 49.80),
}
"""Exact match and F1 in percent, by model and whether there was a search."""
OTHER_MODEL = "in the notebook, llama-3.1-8b-instant answered"
BESIDE = (
    "Theirs: as printed. By the notebooks, DeepSeek was asked 100 questions with their paragraph, and with search "
    "llama-3.1-8b-instant answered them; how GPT-4 was asked is not known. Ours: this run, without unread answers."
)


def reproduction_section(frame: pd.DataFrame) -> Section:
    """Do the paper's cells come back?

    Args:
        frame: One row per answer, with `exact` and `f1` in percent.
    """
    published = reproduction(frame)
    tables = [Table("published", "MABRF's table 4, next to ours (%)", next_to_published(frame), note=BESIDE)]
    note = (
        "paper: as printed; recomputed: from the authors' logs through this code, failed calls as empty answers, as in "
        "the notebooks; without_failed: without them; ours: runs of the same model with the paragraph shown. "
        "comes_back: whether paper and recomputed agree to two decimals."
    )
    title = "MABRF's table 4: the paper, its logs and our runs (%)"
    tables.append(Table("reproduction", title, published, note=note))
    return Section(tables=tables, words=list(_failed_calls(published)))


def next_to_published(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of table 4, a column for each of its models, next to those of runs with other models.

    Args:
        frame: One row per answer, with `exact` and `f1` in percent. The result is empty if all models are the paper's.
    """
    rows = []
    for (model, arm), answers in frame.groupby(["model", "search"], sort=False):
        searched = str(arm) != "none"
        if (paper_model(str(model)), searched) in PUBLISHED:
            continue
        for place, measure in enumerate(("exact", "f1")):
            theirs = {name: cell[place] for (name, other), cell in PUBLISHED.items() if other == searched}
            ours = answers[measure]
            rows.append(
                {"search": arm, "measure": measure, **theirs, "ours_by": model, "ours": ours.mean(), "n": ours.count()}
            )
    return pd.DataFrame(rows)


def _failed_calls(published: pd.DataFrame) -> Iterator[str]:
    """What the notebooks' way of counting failed calls adds to the paper's figures."""
    if not len(published):
        return
    logged = published[published["answers"] > 0]
    for (model, search), cells in logged.groupby(["model", "search"], sort=False):
        row = cells.set_index("measure").loc["exact"]
        arm = f"{model} {'with' if search else 'without'} search"
        counted = f"exact match {row['recomputed']:.1f}% with them, {row['without_failed']:.1f}% without"
        in_log = f"{row['failed']:.0f} of {plural(row['answers'], 'call')} failed"
        if row["failed"]:
            in_log += f", {row['failed_unanswerable']:.0f} of them on unanswerable questions: {counted}"
        yield (
            "The notebooks store a failed call as an empty answer, which is right on an unanswerable question. "
            f"In the log of {arm}, {in_log}."
        )


def reproduction(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of table 4 that one of these runs has; empty if there are none.

    Args:
        frame: One row per answer, with `exact` and `f1` in percent.
    """
    rows = []
    shown = frame[frame["paragraph_shown"].astype(float) == 1]
    for (model, arm), answers in shown.groupby(["model", "search"], sort=False):
        key = (paper_model(str(model)), str(arm) != "none")
        if key not in PUBLISHED:
            continue
        logged = answers["source"].astype(str) == LOG if "source" in answers else pd.Series(False, index=answers.index)
        failed = logged & (answers["status"].astype(str) == "unscored")
        unanswerable = ~answers["answerable"].astype(bool)
        for measure, paper in zip(("exact", "f1"), PUBLISHED[key], strict=True):
            counted = answers[measure].mask(failed, 100.0 * unanswerable)
            recomputed, ours = counted[logged].mean(), answers.loc[~logged, measure].mean()
            rows.append(
                {
                    "model": key[0],
                    "search": key[1],
                    "measure": measure,
                    "paper": paper,
                    "recomputed": recomputed,
                    "without_failed": answers.loc[logged, measure].mean(),
                    "failed": int(failed.sum()),
                    "failed_unanswerable": int((failed & unanswerable).sum()),
                    "answers": int(logged.sum()),
                    "ours": ours,
                    "comes_back": None if recomputed != recomputed else abs(paper - recomputed) <= ROUNDING,
                    "note": OTHER_MODEL if key == ("deepseek", True) else "",
                }
            )
    return pd.DataFrame(rows)
