"""The yardstick in pairs, read silently: a good response beside the same one with a flaw, in both orders.

The log-odds for the good response are averaged over both orders, so that the place cancels, and tested by sign flips
over bases. Whether length alone wins is said before any number: a judge that prefers the padded answer measures length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import LEVEL, nested_means, of_models, tested, with_holm
from parley.analysis.malibu.panel import LOG_ODDS, PanelData
from parley.analysis.malibu.yardstick import NAMES, GradedScores, graded_scores
from parley.analysis.reporting.report import Section, Table
from parley.base.text import plural

PAIRS = [
    *("model", "flaw", "dose", "log_odds", "low", "high", "p", "p_adjusted", "good_wins", "flawed_wins", "bases"),
    "note",
]
LENGTH = "length"
NEARLY_ALL = 0.9
"""The share of bases in which a padded answer must come out above for the caution."""


def yardstick_pairs(data: PanelData) -> pd.DataFrame:
    """Log-odds that the good response is preferred to each flawed one, and in how many bases it is.

    Holm's correction is over a model's flaws.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    verdicts = data.graded_pairs[data.graded_pairs["metric"] == LOG_ODDS]
    verdicts = verdicts[verdicts["value"].notna()]
    for model, of_model in verdicts.groupby("model", sort=False, observed=True):
        for flaw, dose in NAMES:
            group = of_model[(of_model["flaw"] == flaw) & (of_model["dose"].astype(float) == dose)]
            both = group.groupby("situation", observed=True)["flawed"].transform("nunique") == 2
            group = group[both]
            if group.empty:
                continue
            lead = np.where(group["flawed"] == "B", 1.0, -1.0) * group["value"].to_numpy(dtype=float)
            by_base = nested_means(lead, group[["situation", "flawed"]])[0].to_numpy(dtype=float)
            test = tested(by_base)
            counts = {"good_wins": int((by_base > 0).sum()), "flawed_wins": int((by_base < 0).sum())}
            facets = {"model": str(model), "flaw": flaw, "dose": dose, "bases": len(by_base)}
            rows.append(facets | test | {"log_odds": test["difference"]} | counts)
    table = pd.DataFrame(rows, columns=[name for name in PAIRS if name != "p_adjusted"])
    return with_holm(table, ["model"])[PAIRS]


def yardstick_pairs_words(table: pd.DataFrame) -> Iterator[str]:
    """One sentence per model: against which flaws the good response wins, against which it loses.

    Args:
        table: The table of `yardstick_pairs`.
    """
    for _, prefix, rows in of_models(table):
        shown = rows["p_adjusted"] <= LEVEL
        wins, losses = rows[shown & (rows["log_odds"] > 0)], rows[shown & (rows["log_odds"] < 0)]
        parts = []
        if len(wins):
            parts.append(f"beats {_listed(wins, 'good_wins')}")
        if len(losses):
            parts.append(f"loses to {_listed(losses, 'flawed_wins')}")
        parts.append(
            "was not shown to differ from the other flawed ones" if parts else "was not shown to beat any flaw"
        )
        if len(wins) + len(losses) == len(rows):
            parts.pop()
        yield f"{prefix}In pairs, both orders averaged, the good response {', '.join(parts)}."


def _listed(rows: pd.DataFrame, count: str) -> str:
    return "; ".join(
        f"{NAMES[row.flaw, row.dose]} (in {getattr(row, count)} of {row.bases} bases)" for row in rows.itertuples()
    )


def length_cautions(data: PanelData, pairs: pd.DataFrame) -> Iterator[str]:
    """A caution for every model to which needless length makes an answer better, in scores or in pairs.

    Args:
        data: The verdicts.
        pairs: The table of `yardstick_pairs`.
    """
    scores: dict[str, GradedScores] = graded_scores(data.graded) if data.silent else {}
    for model in data.graded_models if data.silent else []:
        found = []
        table = scores[model]
        for place, text in enumerate(table.texts):
            gaps = table.by_base()[place].dropna()
            raised = int((gaps < 0).sum())
            if text.flaw == LENGTH and len(gaps) and raised >= NEARLY_ALL * len(gaps):
                found.append(f"{NAMES[text]} raises the score in {raised} of {plural(len(gaps), 'base')}")
        for row in pairs[(pairs["model"] == model) & (pairs["flaw"] == LENGTH)].itertuples():
            if row.flawed_wins >= NEARLY_ALL * row.bases:
                found.append(f"{NAMES[row.flaw, row.dose]} wins in pairs in {row.flawed_wins} of {row.bases}")
        if found:
            yield f"{model} takes length for quality: {'; '.join(found)}."


def yardstick_pairs_section(data: PanelData) -> Section:
    """The yardstick in pairs, as a table and sentences, with the caution about length; nothing without such pairs."""
    if not data.silent:
        return Section()
    table = yardstick_pairs(data)
    return Section(
        tables=(
            Table(
                name="yardstick_pairs",
                title="Yardstick in pairs: the good response beside a flawed one",
                frame=table,
                note="log_odds: for the good response, both orders averaged. Sign flips over bases, Holm over flaws.",
            ),
        ),
        words=tuple(yardstick_pairs_words(table)),
        cautions=tuple(length_cautions(data, table)),
    )
