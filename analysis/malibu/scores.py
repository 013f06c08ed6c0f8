"""Phase 1: mean scores by identity, and differences between identities on the same scenarios."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pandas as pd

from parley.analysis.malibu.panel import ALL, PanelData, Verdicts, by_metric, panel_data, values_in_order
from parley.analysis.reporting.text import plural
from parley.analysis.stats.clustered import cluster_mean, difference_of_cells
from parley.analysis.stats.multiplicity import benjamini_hochberg, holm
from parley.analysis.stats.permutation import effect_of_cells

NO_LABEL = "(no label)"
MEANS = ["model", "category", "identity", "metric", "mean", "low", "high", "n", "clusters"]
DIFFERENCES = [
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
    "family",
    "n",
    "clusters",
    "note",
]


def mean_scores(verdicts: Verdicts) -> pd.DataFrame:
    """Mean score by model, identity and metric (the paper's figure 9), with intervals clustered by scenario.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    groups = panel_data(verdicts).scores.groupby(["model", "category", "identity"], sort=False, observed=True)
    rows: list[dict[str, Any]] = []
    for (model, category, identity), group in groups:
        for metric, part in by_metric(group):
            mean = cluster_mean(part["value"], part["scenario"], scale=(0, 10))
            rows.append(
                {
                    "model": str(model),
                    "category": str(category),
                    "identity": str(identity) or NO_LABEL,
                    "metric": metric,
                    "mean": mean.estimate,
                    "low": mean.low,
                    "high": mean.high,
                    "n": mean.n,
                    "clusters": mean.clusters,
                }
            )
    return pd.DataFrame(rows, columns=MEANS)


def differences(verdicts: Verdicts, *, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """First minus second on the same scenarios, for every two identities (the paper's figure 4).

    Within a category, p comes from sign flips over scenarios. On all metrics together it is Holm-corrected over the
    model's comparisons; by single metric the correction is Benjamini and Hochberg's, as those tests are exploratory.
    Differences between categories are estimated but not tested: they answer no question of the study.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        draws: Draws of each bootstrap and sign-flip test.
        seed: Of all draws.
    """
    data = panel_data(verdicts)
    rows = [
        _difference(data, model=str(model), metric=metric, first=first, second=second, draws=draws, seed=seed)
        for model, group in data.labelled_scores.groupby("model", sort=False, observed=True)
        for metric in [ALL, *values_in_order(group, "metric")]
        for first, second in combinations(data.cells(str(model), metric).sums.columns, 2)
        if metric == ALL or data.categories[first] == data.categories[second]
    ]
    table = pd.DataFrame(rows, columns=DIFFERENCES)
    tested = table[table["within"].astype(bool)]
    for (model, together), family in tested.groupby(["model", table["metric"] == ALL], sort=False):
        name = f"{model}: identities within a category, {'all metrics together' if together else 'by metric'}"
        corrected = (holm if together else benjamini_hochberg)(family["p"], name)
        table.loc[family.index, "p_adjusted"] = corrected.adjusted
        table.loc[family.index, "family"] = f"{name} ({corrected.method}, {plural(corrected.tests, 'test')})"
    return table


def _difference(
    data: PanelData, *, model: str, metric: str, first: str, second: str, draws: int, seed: int
) -> dict[str, Any]:
    cells = data.cells(model, metric)
    gap = difference_of_cells((cells.sums, cells.counts), first, second, draws=draws, seed=seed)
    within = data.categories[first] == data.categories[second]
    test = effect_of_cells(cells.means[[first, second]], draws=draws, seed=seed) if within else None
    return {
        "model": model,
        "category": data.categories[first] if within else "",
        "first": first,
        "second": second,
        "metric": metric,
        "within": within,
        "difference": gap.estimate,
        "low": gap.low,
        "high": gap.high,
        "p": test.p if test else math.nan,
        "p_adjusted": math.nan,
        "family": "",
        "n": gap.n,
        "clusters": gap.clusters,
        "note": gap.note or (test.note if test else ""),
    }
