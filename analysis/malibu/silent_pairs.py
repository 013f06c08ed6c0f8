"""Pairs read silently: log P(A) - log P(B) in both orders, averaged, so that the place in the prompt cancels.

A small model may nearly always prefer whatever comes first. Averaged over both orders, its log-odds still say which
label it leans to (phase 2), or whether it prefers a good response to a flawed one (the yardstick in pairs). The value
of the first place is reported separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import nested_means, tested, with_holm
from parley.analysis.malibu.pairs import margins_of_pairs
from parley.analysis.malibu.panel import LOG_ODDS, PanelData, ScenarioGaps
from parley.analysis.malibu.yardstick import NAMES
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.tables import Floats

LEANS = [
    *("model", "category", "first", "second", "log_odds", "low", "high", "p", "p_adjusted", "n", "clusters", "note"),
]
PLACES = ["model", "log_odds", "low", "high", "p", "first_rate", "n", "clusters", "note"]
PAIRS = [
    *("model", "flaw", "dose", "log_odds", "low", "high", "p", "p_adjusted", "good_wins", "flawed_wins", "bases"),
    "note",
]


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


def yardstick_pairs(data: PanelData) -> pd.DataFrame:
    """Log-odds that the good response is preferred to each flawed one, and in how many bases it is.

    Sign flips over bases; Holm over a model's flaws.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    for model, of_model in _read(data.graded_pairs).groupby("model", sort=False, observed=True):
        for flaw, dose in NAMES:
            group = of_model[(of_model["flaw"] == flaw) & (of_model["dose"].astype(float) == dose)]
            group = group[group.groupby("situation", observed=True)["flawed"].transform("nunique") == 2]
            if group.empty:
                continue
            lead = np.where(group["flawed"] == "B", 1.0, -1.0) * group["value"].to_numpy(dtype=float)
            by_base = nested_means(lead, group[["situation", "flawed"]])[0].to_numpy(dtype=float)
            counts = {"good_wins": int((by_base > 0).sum()), "flawed_wins": int((by_base < 0).sum())}
            facets = {"model": str(model), "flaw": flaw, "dose": dose, "bases": len(by_base)}
            rows.append(facets | _log_odds(by_base) | counts)
    return with_holm(pd.DataFrame(rows, columns=PAIRS), ["model"])


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


def yardstick_pairs_section(data: PanelData) -> Section:
    """The yardstick in pairs, as a table; nothing without such pairs."""
    if not data.silent:
        return Section()
    table = Table(
        name="yardstick_pairs",
        title="Yardstick in pairs: the good response next to a flawed one",
        frame=yardstick_pairs(data),
        note="log_odds: for the good response, both orders averaged. Sign flips over bases, Holm over flaws.",
    )
    return Section(tables=(table,))
