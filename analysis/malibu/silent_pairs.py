"""Phase 2 read silently: log P(A) - log P(B) in both orders, averaged, so that the place in the prompt cancels.

A small model may nearly always prefer whatever comes first. Averaged over both orders, its log-odds still say which
label it leans to; the value of the first place is reported separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import nested_means, tested, with_holm
from parley.analysis.malibu.pairs import margins_of_pairs
from parley.analysis.malibu.panel import LOG_ODDS, PanelData
from parley.analysis.reporting.report import Section, Table

LEANS = [
    *("model", "category", "first", "second", "log_odds", "low", "high", "p", "p_adjusted", "n", "clusters", "note"),
]
PLACES = ["model", "log_odds", "low", "high", "p", "first_rate", "n", "clusters", "note"]


def leans(data: PanelData) -> pd.DataFrame:
    """Every pair of identities: log-odds that the first is preferred, averaged over both orders.

    Sign flips over clusters; Holm over the pairs of a model.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    for model, group in data.silent_comparisons.groupby("model", sort=False, observed=True):
        for first, second, pair, gaps in margins_of_pairs(group, group[LOG_ODDS].to_numpy(dtype=float)):
            facets = {"model": str(model), "category": str(pair["category"].iloc[0]), "first": first, "second": second}
            test = tested(gaps)
            rows.append(facets | test | {"log_odds": test["difference"], "n": len(pair)})
    table = pd.DataFrame(rows, columns=[name for name in LEANS if name != "p_adjusted"])
    return with_holm(table, ["model"])[LEANS]


def place_effect(data: PanelData) -> pd.DataFrame:
    """What the first place is worth: mean log-odds for it over both orders, and the share of comparisons it wins.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    verdicts = data.verdicts[data.verdicts["metric"] == LOG_ODDS]
    for model, group in verdicts[verdicts["value"].notna()].groupby("model", sort=False, observed=True):
        values = group["value"].to_numpy(dtype=float)
        # By base and not by cluster: the place is that of the prompt, whatever the label's wording.
        by_base = nested_means(values, group[["situation", "scenario", "order"]])[0].to_numpy(dtype=float)
        test = tested(by_base)
        share = float(np.where(values == 0, 0.5, values > 0).mean())
        rows.append({"model": str(model), **test, "log_odds": test["difference"], "first_rate": share, "n": len(group)})
    return pd.DataFrame(rows, columns=PLACES)


def silent_pairs_section(data: PanelData) -> Section:
    """Leans and the effect of the place, as tables; nothing where no log-odds were read."""
    if not data.silent:
        return Section()
    table, places, unit = leans(data), place_effect(data), data.cluster_noun
    return Section(
        tables=(
            Table(
                name="leans",
                title="Phase 2: log-odds of being preferred, both orders averaged",
                frame=table,
                note=f"log_odds: for the first identity, 0 is no lean. Sign flips over {unit}s, Holm over the pairs.",
            ),
            Table(
                name="place",
                title="Phase 2: what the first place is worth",
                frame=places,
                note="log_odds: for the answer shown first; first_rate: share of comparisons that it wins. Sign flips "
                "over bases.",
            ),
        ),
    )
