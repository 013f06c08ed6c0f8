"""The effect of identity base by base: where it differs, and whether it goes the way of the documented stereotype."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from parley.analysis.malibu.panel import ScoreTable, Verdicts, panel_data
from parley.analysis.stats.signflips import sign_flip_test
from parley.analysis.stats.tables import Floats, Ints

Directions: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]
"""By base and category: the identities that the documented stereotype favours, and the others it compares them with."""
BY_BASE = ["model", "category", "first", "second", "base", "difference", "scenarios"]
ALIGNED = ["model", "category", "difference", "low", "high", "p", "bases", "note"]
EVERY_CATEGORY = "all categories"
DESCRIPTIVE_BELOW = 8
"""Bases: with fewer, a category's contrast is described and not tested."""


def effects_by_base(verdicts: Verdicts) -> pd.DataFrame:
    """Differences between identities, all metrics together, one row per planned pair and base.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        planned = data.pairs(model)
        for category, first, second in planned:
            table = data.table(model)
            gaps = table.gaps(first, second)
            codes, means, counts = _means(gaps.values, gaps.clusters)
            rows += [
                {
                    "model": model,
                    "category": category,
                    "first": first,
                    "second": second,
                    "base": table.cluster_names[code],
                    "difference": float(mean),
                    "scenarios": int(count),
                }
                for code, mean, count in zip(codes, means, counts, strict=True)
            ]
    return pd.DataFrame(rows, columns=BY_BASE)


def _means(values: Floats, clusters: Ints) -> tuple[Ints, Floats, Ints]:
    codes, member = np.unique(clusters, return_inverse=True)
    counts = np.bincount(member)
    return codes, np.bincount(member, values) / counts, counts


def aligned_contrast(verdicts: Verdicts, directions: Directions) -> pd.DataFrame:
    """Do labels move scores the way the documented stereotype goes? Favoured minus other identities, over bases.

    A base has one value: the mean over the categories for which its stereotype has a direction. A category by itself is
    only described where it has fewer than `DESCRIPTIVE_BELOW` bases.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        directions: Which identities the stereotype of each base favours, by category.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        values = _aligned_values(data.table(model), directions) if data.pairs(model) else {}
        if not values:
            continue
        pooled = [float(np.mean(list(of_base.values()))) for of_base in values.values()]
        rows.append(_aligned_row(model, EVERY_CATEGORY, pooled, tested=True))
        for category in dict.fromkeys(name for of_base in values.values() for name in of_base):
            part = [of_base[category] for of_base in values.values() if category in of_base]
            rows.append(_aligned_row(model, category, part, tested=len(part) >= DESCRIPTIVE_BELOW))
    return pd.DataFrame(rows, columns=ALIGNED)


def _aligned_values(table: ScoreTable, directions: Directions) -> dict[str, dict[str, float]]:
    """By base and category: favoured minus others, on the identities that this model was run with."""
    found: dict[str, dict[str, float]] = {}
    for code, base in enumerate(table.cluster_names):
        for category, sides in directions.get(base, {}).items():
            favoured, others = ([name for name in sides[side] if name in table.identities] for side in SIDES)
            if favoured and others:
                gaps = table.contrast(favoured, others)
                values = gaps.values[gaps.clusters == code]
                if len(values):
                    found.setdefault(base, {})[category] = float(values.mean())
    return found


SIDES = ("favoured", "others")


def _aligned_row(model: str, category: str, values: Sequence[float], *, tested: bool) -> dict[str, Any]:
    test = sign_flip_test(values)
    return {
        "model": model,
        "category": category,
        "difference": test.estimate,
        "low": test.low if tested else math.nan,
        "high": test.high if tested else math.nan,
        "p": test.p if tested else math.nan,
        "bases": test.clusters,
        "note": "" if tested else f"described only: fewer than {DESCRIPTIVE_BELOW} bases",
    }
