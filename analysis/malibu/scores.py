"""Phase 1: mean scores by identity, and differences between identities on the same scenarios."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pandas as pd

from parley.analysis.malibu.panel import in_order, panel_scores
from parley.analysis.stats.clustered import bootstrap_difference, cluster_mean
from parley.analysis.stats.multiplicity import benjamini_hochberg, holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.tables import cell_means

ALL = "all"
"""The metric that stands for all metrics together."""
NO_LABEL = "(no label)"


def by_metric(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """All metrics together, then each."""
    yield ALL, scores
    for metric in in_order(scores, "metric"):
        yield metric, scores[scores["metric"] == metric]


def mean_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Mean score by model, identity and metric (the paper's figure 9), with intervals clustered by scenario."""
    scores = panel_scores(verdicts)
    rows: list[dict[str, Any]] = []
    for (model, category, identity), group in scores.groupby(
        ["model", "category", "identity"], sort=False, observed=True
    ):
        for metric, part in by_metric(group):
            found = cluster_mean(part["value"], part["scenario"], scale=(0, 10))
            rows.append(
                {
                    "model": str(model),
                    "category": str(category),
                    "identity": str(identity) or NO_LABEL,
                    "metric": metric,
                    "mean": found.estimate,
                    "low": found.low,
                    "high": found.high,
                    "n": found.n,
                    "clusters": found.clusters,
                }
            )
    return pd.DataFrame(
        rows, columns=["model", "category", "identity", "metric", "mean", "low", "high", "n", "clusters"]
    )


def differences(verdicts: pd.DataFrame, *, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """First minus second on the same scenarios, for every two identities (the paper's figure 4).

    Within a category: p by sign flips over scenarios, corrected by Holm for the family of a model's comparisons on
    all metrics together; by single metrics the correction is Benjamini and Hochberg's, as exploration. Between
    categories the difference is shown, and not tested: nobody asked whether women are scored unlike Muslims.
    """
    scores = panel_scores(verdicts)
    labelled = scores[scores["identity"] != ""]
    known = labelled.drop_duplicates("identity").set_index("identity")["category"].astype(str)
    rows: list[dict[str, Any]] = []
    for model, group in labelled.groupby("model", sort=False, observed=True):
        for metric, part in by_metric(group):
            cells = cell_means(part["value"], part["identity"], part["scenario"])
            for first, second in combinations(cells.columns, 2):
                within = known[first] == known[second]
                if within or metric == ALL:
                    rows.append(
                        _difference(part, cells, str(model), known[first], metric, first, second, within, draws, seed)
                    )
    columns = [
        "model",
        "category",
        "first",
        "second",
        "metric",
        "within",
        "difference",
        "low",
        "high",
        "p",
        "p_adjusted",
    ]
    found = pd.DataFrame(rows, columns=[*columns, "family", "n", "clusters", "note"])
    for (model, together), family in found[found["within"].astype(bool)].groupby(
        ["model", found["metric"] == ALL], sort=False
    ):
        name = f"{model}: identities within a category, {'all metrics together' if together else 'by metric'}"
        corrected = (holm if together else benjamini_hochberg)(family["p"], name)
        found.loc[family.index, "p_adjusted"] = corrected.adjusted
        found.loc[family.index, "family"] = f"{name} ({corrected.method}, {corrected.tests} tests)"
    return found


def _difference(
    scores: pd.DataFrame,
    cells: pd.DataFrame,
    model: str,
    category: str,
    metric: str,
    first: str,
    second: str,
    within: bool,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    gap = bootstrap_difference(
        scores["value"], scores["identity"], scores["scenario"], first, second, draws=draws, seed=seed
    )
    tested = effect_of_cells(cells[[first, second]], draws=draws, seed=seed) if within else None
    return {
        "model": model,
        "category": category if within else "",
        "first": first,
        "second": second,
        "metric": metric,
        "within": within,
        "difference": gap.estimate,
        "low": gap.low,
        "high": gap.high,
        "p": tested.p if tested else math.nan,
        "p_adjusted": math.nan,
        "family": "",
        "n": gap.n,
        "clusters": gap.clusters,
        "note": gap.note or (tested.note if tested else ""),
    }
