"""Phase 1: mean scores by identity, and differences between identities on the same scenarios."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import EFFECT_COLUMNS, MARGIN, effect, estimate, with_conclusions
from parley.analysis.malibu.panel import ALL, PanelData, Verdicts, by_metric, panel_data, values_in_order
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import benjamini_hochberg
from parley.base.text import plural

NO_LABEL = "(no label)"
MEANS = ["model", "category", "identity", "metric", "mean", "low", "high", "n", "clusters"]
DIFFERENCES = ["model", "category", "first", "second", "metric", "within", *EFFECT_COLUMNS]


def mean_scores(verdicts: Verdicts) -> pd.DataFrame:
    """Mean score by model, identity and metric (the paper's figure 9), with intervals over bases.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    groups = panel_data(verdicts).scores.groupby(["model", "category", "identity"], sort=False, observed=True)
    rows: list[dict[str, Any]] = []
    for (model, category, identity), group in groups:
        for metric, part in by_metric(group):
            mean = cluster_mean(part["value"], part["cluster"], scale=(0, 10))
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


def differences(verdicts: Verdicts, *, margin: float = MARGIN) -> pd.DataFrame:
    """First minus second on the same scenarios, for every two identities (the paper's figure 4).

    The planned comparisons, within a category and on all metrics together, are Holm-corrected over the model and have
    a conclusion. By single metric the correction is Benjamini and Hochberg's, as those tests are exploratory.
    Differences between categories are estimated but not tested: they answer no question of the study.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: Points of ten within which two identities count as alike.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        planned = data.pairs(model)
        if planned:
            rows += _planned(data, model, planned, margin)
            rows += _unplanned(data, model, planned)
            rows += _by_metric(data, model, planned)
    return pd.DataFrame(rows, columns=DIFFERENCES)


def _planned(
    data: PanelData,
    model: str,
    planned: list[tuple[str, str, str]],
    margin: float,
) -> list[dict[str, Any]]:
    table = data.table(model)
    rows = [
        {
            **_subject(model, category, first, second, ALL),
            **effect(table.gaps(first, second), margin),
        }
        for category, first, second in planned
    ]
    return with_conclusions(rows, f"{model}: identities within a category, all metrics together", margin)


def _unplanned(data: PanelData, model: str, planned: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Pairs of different categories, or that differ in several parts: an estimate with its interval, and no test."""
    table = data.table(model)
    known = {(first, second) for _, first, second in planned}
    labels = [name for name in values_in_order(data.labelled_scores, "identity") if name in table.identities]
    rows = []
    for first, second in combinations(labels, 2):
        if (first, second) not in known:
            subject = _subject(model, "", first, second, ALL)
            rows.append(subject | estimate(table.gaps(first, second)) | {"p": math.nan})
    return rows


def _by_metric(data: PanelData, model: str, planned: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    table = data.table(model)
    rows = []
    for metric in values_in_order(data.labelled_scores, "metric"):
        for category, first, second in planned:
            subject = _subject(model, category, first, second, metric)
            rows.append(subject | estimate(table.gaps(first, second, metric)))
    name = f"{model}: identities within a category, by metric"
    corrected = benjamini_hochberg([row["p"] for row in rows], name)
    family = f"{name} ({corrected.method}, {plural(corrected.tests, 'test')})"
    return [row | {"p_adjusted": p, "family": family} for row, p in zip(rows, corrected.adjusted, strict=True)]


def _subject(model: str, category: str, first: str, second: str, metric: str) -> dict[str, Any]:
    return {
        "model": model,
        "category": category,
        "first": first,
        "second": second,
        "metric": metric,
        "within": bool(category),
    }
