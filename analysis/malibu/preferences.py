"""Phase 2: which of two identities is preferred, pair by pair: wins minus losses per comparison, by base."""

from __future__ import annotations

from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import EFFECT_COLUMNS, MARGIN, effect, with_conclusions
from parley.analysis.malibu.pairs import win_margins
from parley.analysis.malibu.panel import Verdicts, panel_data

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
            {
                "model": str(model),
                "category": str(pair["category"].iloc[0]),
                "first": first,
                "second": second,
                **effect(gaps, margin),
            }
            for first, second, pair, gaps in win_margins(group)
        ]
        rows += with_conclusions(pairs, family, margin)
    return pd.DataFrame(rows, columns=PREFERENCES)
