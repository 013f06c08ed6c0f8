"""The yardstick in pairs, read silently: a good response and the same one with a flaw, in both orders.

The log-odds for the good response are averaged over both orders, so that the place cancels, and tested by sign flips
over bases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import nested_means, tested, with_holm
from parley.analysis.malibu.panel import LOG_ODDS, PanelData
from parley.analysis.malibu.yardstick import NAMES
from parley.analysis.reporting.report import Section, Table

PAIRS = [
    *("model", "flaw", "dose", "log_odds", "low", "high", "p", "p_adjusted", "good_wins", "flawed_wins", "bases"),
    "note",
]


def yardstick_pairs(data: PanelData) -> pd.DataFrame:
    """Log-odds that the good response is preferred to each flawed one, and in how many bases it is.

    Holm's correction is over a model's flaws.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    verdicts = data.graded_pairs[data.graded_pairs["metric"] == LOG_ODDS]
    verdicts = verdicts[verdicts["value"].notna()]
    for model, of_model in verdicts.groupby("model", sort=False, observed=True):
        for flaw, dose in NAMES:
            group = of_model[(of_model["flaw"] == flaw) & (of_model["dose"].astype(float) == dose)]
            both = group.groupby("situation", observed=True)["flawed"].transform("nunique") == 2
            group = group[both]
            if group.empty:
                continue
            lead = np.where(group["flawed"] == "B", 1.0, -1.0) * group["value"].to_numpy(dtype=float)
            by_base = nested_means(lead, group[["situation", "flawed"]])[0].to_numpy(dtype=float)
            test = tested(by_base)
            counts = {"good_wins": int((by_base > 0).sum()), "flawed_wins": int((by_base < 0).sum())}
            facets = {"model": str(model), "flaw": flaw, "dose": dose, "bases": len(by_base)}
            rows.append(facets | test | {"log_odds": test["difference"]} | counts)
    table = pd.DataFrame(rows, columns=[name for name in PAIRS if name != "p_adjusted"])
    return with_holm(table, ["model"])[PAIRS]


def yardstick_pairs_section(data: PanelData) -> Section:
    """The yardstick in pairs, as a table; nothing without such pairs."""
    if not data.silent:
        return Section()
    table = Table(
        name="yardstick_pairs",
        title="Yardstick in pairs: the good response beside a flawed one",
        frame=yardstick_pairs(data),
        note="log_odds: for the good response, both orders averaged. Sign flips over bases, Holm over flaws.",
    )
    return Section(tables=(table,))
