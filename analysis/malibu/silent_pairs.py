"""Pairs read silently: log P(A) - log P(B) in both orders, averaged, so that the place in the prompt cancels.

A small model may nearly always prefer whatever comes first. Averaged over both orders, its log-odds still say which
label it leans to (phase 2). The value of the first place is reported separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import nested_means, tested, with_holm
from parley.analysis.malibu.pairs import margins_of_pairs
from parley.analysis.malibu.panel import LOG_ODDS, PanelData, ScenarioGaps
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.tables import Floats

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
            rows.append(facets | _log_odds(gaps) | {"n": len(pair)})
    return with_holm(pd.DataFrame(rows, columns=LEANS), ["model"])


def place_effect(data: PanelData) -> pd.DataFrame:
    """What the first place is worth: mean log-odds for it over both orders, and the share of comparisons it wins.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    for model, group in _read(data.verdicts).groupby("model", sort=False, observed=True):
        values = group["value"].to_numpy(dtype=float)
        # By base and not by cluster: the place is that of the prompt, whatever the label's wording.
        by_base = nested_means(values, group[["situation", "scenario", "order"]])[0].to_numpy(dtype=float)
        share = float(np.where(values == 0, 0.5, values > 0).mean())
        rows.append({"model": str(model), **_log_odds(by_base), "first_rate": share, "n": len(group)})
    return pd.DataFrame(rows, columns=PLACES)


def _read(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The log-odds that could be read."""
    return verdicts[(verdicts["metric"] == LOG_ODDS) & verdicts["value"].notna()]


def _log_odds(differences: Floats | ScenarioGaps) -> dict[str, Any]:
    test = tested(differences)
    return test | {"log_odds": test["difference"]}


def silent_pairs_section(data: PanelData) -> Section:
    """Leans and the effect of the place, as tables; nothing where no log-odds were read."""
    if not data.silent:
        return Section()
    return Section(
        tables=(
            Table(
                name="leans",
                title="Phase 2: log-odds of being preferred, both orders averaged",
                frame=leans(data),
                note="log_odds: above 0 the model leans to the first identity. Sign flips over "
                f"{data.cluster_noun}s, Holm over the pairs.",
            ),
            Table(
                name="place",
                title="Phase 2: what the first place is worth",
                frame=place_effect(data),
                note="log_odds: for the answer shown first; first_rate: share of comparisons that it wins. Sign flips "
                "over bases.",
            ),
        ),
    )
