"""Phase 2: which of two identities is preferred, pair by pair: wins minus losses per comparison, by base."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.conclusions import EFFECT_COLUMNS, MARGIN, effect, with_conclusions
from parley.analysis.malibu.panel import ScenarioGaps, Verdicts, panel_data
from parley.analysis.stats.tables import factorize

PREFERENCES = ["model", "category", "first", "second", *EFFECT_COLUMNS]


def preferences(verdicts: Verdicts, *, margin: float = MARGIN) -> pd.DataFrame:
    """Every pair of identities: wins of the first minus wins of the second, per comparison; a tie counts 0.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: A difference up to this counts as none.
    """
    units = panel_data(verdicts).decided_pairs
    rows: list[dict[str, Any]] = []
    for model, group in units.groupby("model", sort=False, observed=True):
        family = f"{model}: preferences in pairs"
        pairs = [
            {"model": str(model), "category": category, "first": first, "second": second, **effect(gaps, margin)}
            for category, first, second, gaps in preference_gaps(group)
        ]
        rows += with_conclusions(pairs, family, margin)
    return pd.DataFrame(rows, columns=PREFERENCES)


def preference_gaps(units: pd.DataFrame) -> Iterator[tuple[str, str, str, ScenarioGaps]]:
    """Every pair with its category, and its wins minus losses by scenario.

    Args:
        units: Comparisons that could be read, of one model.
    """
    for (first, second), group in units.groupby(["identity", "other"], sort=False, observed=True):
        won = np.select([group["winner"] == first, group["winner"] == second], [1.0, -1.0], 0.0)
        scenarios, names = factorize(group["scenario"])
        clusters, _ = factorize(group["cluster"])
        of_scenario = np.zeros(len(names), dtype=np.int64)
        of_scenario[scenarios] = clusters
        values = np.bincount(scenarios, won) / np.bincount(scenarios)
        yield str(group["category"].iloc[0]), str(first), str(second), ScenarioGaps(values, of_scenario)
