"""Phase 2, pair by pair: who wins against whom, and by how many points the two are scored apart side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import (
    LEVEL,
    nested_means,
    of_models,
    row_codes,
    tested,
    with_holm,
)
from parley.analysis.malibu.diagnostics import as_rate
from parley.analysis.malibu.pairs import win_margins
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.reporting.report import Section, Table
from parley.analysis.reporting.verdicts import final_verdicts
from parley.base.text import p_text, plural

HEAD_TO_HEAD = [
    *("model", "category", "identity", "other", "wins", "losses", "ties", "rate", "low", "high", "p", "p_adjusted"),
    *("n", "clusters", "note"),
]
SCORES = [
    *("model", "category", "first", "second", "difference", "low", "high", "p", "p_adjusted", "n", "clusters", "note"),
]


def head_to_head(verdicts: Verdicts) -> pd.DataFrame:
    """Every identity against every other one of its category: wins, losses and ties of the row against the column.

    `rate` counts a tie as half, and gives bases, their scenarios and the cells of a scenario the same weight. Interval
    and p come from sign flips over bases, Holm's correction is over the pairs of a model. Every pair is there twice,
    once from either side.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    units = data.decided_pairs
    rows: list[dict[str, Any]] = []
    for model, of_model in units.groupby("model", sort=False, observed=True):
        for first, second, group, margins in win_margins(of_model):
            winner = group["winner"].astype(object)
            facets = {"model": str(model), "category": str(group["category"].iloc[0])}
            counts = {"wins": int((winner == first).sum()), "losses": int((winner == second).sum())}
            counts |= {"ties": int((winner == "tie").sum()), "n": len(group)}
            test = as_rate(tested(margins))
            rows.append(facets | {"identity": first, "other": second} | counts | test)
    table = with_holm(pd.DataFrame(rows, columns=HEAD_TO_HEAD), ["model"])
    turned = table.rename(columns={"identity": "other", "other": "identity", "wins": "losses", "losses": "wins"})
    turned = turned.assign(rate=1 - table["rate"], low=1 - table["high"], high=1 - table["low"])
    both = pd.concat([table, turned], ignore_index=True)
    order = both.groupby(["model", "category", "identity"], sort=False).ngroup()
    return both.iloc[np.argsort(order, kind="stable")][HEAD_TO_HEAD].reset_index(drop=True)


def scores_in_pairs(verdicts: Verdicts) -> pd.DataFrame:
    """Phase 2: the first identity's score minus the second's, as one judge scored the two side by side.

    Differences are taken within a reply and metric, then averaged over metrics, judges, the cells of a scenario,
    scenarios and bases. Sign flips over bases; Holm's correction over the pairs of a model. Controls are left out.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    every = data.verdicts
    if "identity_a" not in every or "subject" not in every:
        return pd.DataFrame(columns=SCORES)
    scores = every[(every["phase"] == 2) & (every["metric"] != "preferred") & (every["control"] == "")]
    scores = final_verdicts(scores[scores["subject"].isin(["A", "B"])])
    if scores.empty:
        return pd.DataFrame(columns=SCORES)
    first_is_a = (scores["identity_a"].astype(object) == scores["identity"].astype(object)).to_numpy()
    sign = np.where((scores["subject"] == "A").to_numpy() == first_is_a, 1.0, -1.0)
    values = sign * scores["value"].to_numpy(dtype=float)
    _, row, cell = np.unique(
        row_codes([scores[name] for name in ("unit", "judge", "metric")]), return_index=True, return_inverse=True
    )
    # A difference needs both candidates' scores; if one is missing, the sum of the two is NaN.
    both = np.bincount(cell, minlength=len(row)) == 2
    gaps = np.where(both, np.bincount(cell, values, minlength=len(row)), np.nan)
    of_replies = scores.iloc[row]
    levels = ["model", "category", "identity", "other", "cluster", "scenario", "order", "assignment", "judge", "metric"]
    levels = [name for name in levels if name == "cluster" or name in of_replies]
    by_base = nested_means(gaps, of_replies[levels], keep=5)[0]
    units = scores.drop_duplicates("unit").groupby(["model", "identity", "other"], observed=True).size()
    rows = []
    for (model, category, first, second), part in by_base.groupby(level=[0, 1, 2, 3], sort=False):
        facets = {"model": str(model), "category": str(category), "first": str(first), "second": str(second)}
        rows.append(facets | {"n": int(units[model, first, second])} | tested(part.to_numpy(dtype=float)))
    return with_holm(pd.DataFrame(rows, columns=SCORES), ["model"])[SCORES]


def scores_in_pairs_words(table: pd.DataFrame, cluster: str = "base") -> Iterator[str]:
    """A sentence for every pair that is scored apart side by side.

    Args:
        table: The table of `scores_in_pairs`.
        cluster: What the clusters are called.
    """
    for _, prefix, rows in of_models(table):
        tested_pairs = rows[rows["p"].notna()]
        for row in tested_pairs[tested_pairs["p_adjusted"] < LEVEL].itertuples():
            higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
            yield (
                f"{prefix}{row.category}: side by side, '{higher}' was scored {abs(row.difference):.2f} points above "
                f"'{lower}' (sign flips over {plural(row.clusters, cluster)}, p {p_text(row.p_adjusted)} after Holm "
                f"correction for {plural(len(tested_pairs), 'pair')})."
            )


def head_to_head_section(data: PanelData) -> Section:
    """Every identity against every other, as a table."""
    table = Table(
        name="head_to_head",
        title="Phase 2: head to head",
        frame=head_to_head(data),
        note=f"The identity against the other one; rate: a tie counts as half. Sign flips over {data.cluster_noun}s, "
        "Holm over the pairs of a model.",
    )
    return Section(tables=(table,))


def scores_in_pairs_section(data: PanelData) -> Section:
    """The scores of two candidates side by side, as a table and sentences."""
    side_by_side = scores_in_pairs(data)
    table = Table(
        name="scores_in_pairs",
        title="Phase 2: scores in pairs",
        frame=side_by_side,
        note="The first identity's score minus the second's, as judges scored the two side by side.",
    )
    return Section(tables=(table,), words=tuple(scores_in_pairs_words(side_by_side, data.cluster_noun)))
