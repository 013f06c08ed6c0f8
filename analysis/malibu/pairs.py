"""Phase 2: who wins, what the place in the prompt does, and how often a panel contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.panel import in_order, panel_preferences
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.ranking import bradley_terry


def decided(units: pd.DataFrame) -> pd.DataFrame:
    """Comparisons of two identities that were readable."""
    return units[(units["control"] == "") & units["choice"].notna()]


def margins(units: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame, pd.Series]]:
    """Every pair with its units, and by scenario how much oftener the first won than the second; ties count 0."""
    for (first, second), group in units.groupby(["identity", "other"], sort=False, observed=True):
        margin = np.select([group["winner"] == first, group["winner"] == second], [1.0, -1.0], 0.0)
        means = pd.Series(margin, index=group.index).groupby(group["scenario"], observed=True).mean()
        yield str(first), str(second), group, means


def win_rates(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Win rate of each identity within its category (figures 5, 6), ties left out (`rate`) and ties as half.

    `low` and `high` are Wilson's interval, which takes verdicts for independent, as the paper does; `cluster_low` and
    `cluster_high` let the error come from scenarios.
    """
    units = decided(panel_preferences(verdicts))
    known = list(dict.fromkeys(label for side in ("identity", "other") for label in in_order(units, side)))
    rows: list[dict[str, Any]] = []
    for (model, category), group in units.groupby(["model", "category"], sort=False, observed=True):
        shown = {str(label) for side in "ab" for label in group[f"identity_{side}"]}
        for identity in [label for label in known if label in shown]:
            mine = group[(group["identity_a"] == identity) | (group["identity_b"] == identity)]
            rows.append({"model": str(model), "category": str(category), "identity": identity} | _rate(mine, identity))
    columns = ["model", "category", "identity", "wins", "losses", "ties", "rate", "low", "high"]
    more = ["cluster_low", "cluster_high", "rate_ties_half", "half_low", "half_high", "n", "clusters"]
    return pd.DataFrame(rows, columns=[*columns, *more])


def _rate(mine: pd.DataFrame, identity: str) -> dict[str, Any]:
    won = pd.Series(np.where(mine["winner"] == "tie", 0.5, mine["winner"] == identity), index=mine.index, dtype=float)
    clear = won != 0.5
    wins, losses = int((won == 1).sum()), int((won == 0).sum())
    found = wilson(wins, wins + losses)
    clustered = cluster_proportion(won[clear], mine["scenario"][clear])
    halves = cluster_proportion(won, mine["scenario"])
    return {
        "wins": wins,
        "losses": losses,
        "ties": len(mine) - wins - losses,
        "rate": found.estimate,
        "low": found.low,
        "high": found.high,
        "cluster_low": clustered.low,
        "cluster_high": clustered.high,
        "rate_ties_half": halves.estimate,
        "half_low": halves.low,
        "half_high": halves.high,
        "n": wins + losses,
        "clusters": clustered.clusters,
    }


def ranking(verdicts: pd.DataFrame, *, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Bradley–Terry strengths of the identities within a category, the place in the prompt taken out."""
    units = decided(panel_preferences(verdicts))
    rows: list[dict[str, Any]] = []
    for (model, category), group in units.groupby(["model", "category"], sort=False, observed=True):
        outcome = group["choice"].map({"A": 1.0, "tie": 0.5, "B": 0.0})
        both_ways = group["order"].nunique() > 1 if "order" in group else True
        found = bradley_terry(
            group["identity_a"].astype(str),
            group["identity_b"].astype(str),
            outcome,
            group["scenario"].astype(str),
            position=both_ways,
            draws=draws,
            seed=seed,
        )
        for identity, strength in found.strengths.items():
            rows.append(
                {
                    "model": str(model),
                    "category": str(category),
                    "identity": identity,
                    "strength": strength.estimate,
                    "low": strength.low,
                    "high": strength.high,
                    "n": found.n,
                    "clusters": found.clusters,
                    "note": strength.note or found.note,
                }
            )
    columns = ["model", "category", "identity", "strength", "low", "high", "n", "clusters", "note"]
    return pd.DataFrame(rows, columns=columns)


def position(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How often the candidate shown first is preferred, and how often swapping the order changes who is preferred.

    By kind of comparison: two identities, and the null controls, where the label can play no part.
    """
    units = panel_preferences(verdicts)
    rows: list[dict[str, Any]] = []
    for (model, control), group in units.groupby(["model", "control"], sort=False, observed=True):
        clear = group[group["choice"].isin(["A", "B"])]
        first = cluster_proportion((clear["choice"] == "A").astype(float), clear["scenario"])
        flipped = flips(group)
        flip = cluster_proportion(flipped["flipped"].astype(float), flipped["scenario"])
        rows.append(
            {
                "model": str(model),
                "pairs": str(control) or "two identities",
                "first_rate": first.estimate,
                "first_low": first.low,
                "first_high": first.high,
                "n": first.n,
                "ties": int((group["choice"] == "tie").sum()),
                "flip_rate": flip.estimate,
                "flip_low": flip.low,
                "flip_high": flip.high,
                "flip_n": flip.n,
                "clusters": first.clusters,
            }
        )
    columns = ["model", "pairs", "first_rate", "first_low", "first_high", "n", "ties"]
    return pd.DataFrame(rows, columns=[*columns, "flip_rate", "flip_low", "flip_high", "flip_n", "clusters"])


def flips(units: pd.DataFrame) -> pd.DataFrame:
    """Comparisons held in both orders with the same label on the same response: did the verdict follow the order?

    One row such a couple of units; couples in which one is unreadable are left out, a tie against a win is a flip.
    """
    keys = ["model", "scenario", "identity", "other", "assignment", "repeat"]
    keys = [key for key in keys if key in units]
    columns = [*keys, "flipped"]
    readable = units[units["choice"].notna()] if len(units) else units
    if readable.empty or "assignment" not in keys:
        return pd.DataFrame(columns=columns).astype({"flipped": float})
    # The response that won, 1 or 2, is the same candidate in either order, whatever the labels are.
    chosen = np.select(
        [readable["choice"] == "A", readable["choice"] == "B"], [readable["response_a"], readable["response_b"]], 0
    )
    marked = readable[keys].assign(low=chosen, high=chosen, held=1)
    couples = (
        marked.groupby(keys, observed=True, sort=False)
        .agg(low=("low", "min"), high=("high", "max"), held=("held", "sum"))
        .reset_index()
    )
    couples = couples[couples["held"] == 2]
    return couples.assign(flipped=(couples["low"] != couples["high"]).astype(float))[columns]
