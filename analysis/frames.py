"""The MALIBU paper's two statistics from any frame: χ², and win rates. Each has an interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from parley.analysis.effects import by_cluster
from parley.analysis.stats.contingency import chi_square_of_counts
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.results import ALPHA, Estimate, Line


def chi_square(frame: pd.DataFrame, *, by: str = "identity", of: str = "value") -> Estimate:
    """Pearson's χ² of two columns, with Cramér's V and its interval.

    Args:
        frame: One row per verdict. Rows are treated as independent, so verdicts on the same text, or of judges who
            heard each other, make p too small.
        by: The column of groups.
        of: The column of outcomes, such as scores in whole points.
    """
    return chi_square_of_counts(pd.crosstab(frame[by].astype(str), frame[of]))


def win_rates(
    frame: pd.DataFrame,
    *,
    first: str = "identity_a",
    second: str = "identity_b",
    winner: str = "winner",
    cluster: str = "cluster",
    intervals: int | None = None,
) -> dict[str, Line]:
    """Win rate of each contestant, without ties; intervals are over clusters and simultaneous (Bonferroni).

    `also` has the counts, Wilson's interval, which treats comparisons as independent, and the rate with ties as half.

    Args:
        frame: One row per comparison that has an outcome.
        first: The column of the first contestant.
        second: The column of the second.
        winner: The column of the winner: one of the two, or "tie".
        cluster: The column of clusters, such as texts.
        intervals: Number of simultaneous intervals (default: one per contestant; one for two contestants).
    """
    won_by = frame[winner]
    strange = won_by[~((won_by == frame[first]) | (won_by == frame[second]) | (won_by == "tie"))]
    if len(strange):
        raise ValueError(f"the winner must be one of the two contestants or 'tie', got {str(strange.iloc[0])[:40]!r}")
    contestants = [str(name) for name in pd.unique(frame[[first, second]].astype(object).to_numpy().ravel())]
    together = intervals or (len(contestants) if len(contestants) > 2 else 1)
    rates = {}
    for name in contestants:
        fought = frame[(frame[first] == name) | (frame[second] == name)]
        won = pd.Series(np.where(fought[winner] == "tie", 0.5, fought[winner] == name), fought.index, dtype=float)
        decided, clusters = won != 0.5, fought[cluster]
        wins, losses = int((won == 1).sum()), int((won == 0).sum())
        independent, halves = wilson(wins, wins + losses), proportion(won, clusters, together)
        also = {
            **{"wins": wins, "losses": losses, "ties": len(fought) - wins - losses},
            **{"wilson_low": independent.low, "wilson_high": independent.high},
            **{"rate_ties_half": halves.estimate, "half_low": halves.low, "half_high": halves.high},
        }
        rate = proportion(won[decided], clusters[decided], together)
        rates[name] = replace(rate, label=name, measure="rate", also=also, reference=0.5)
    return rates


def proportion(values: pd.Series, clusters: pd.Series, intervals: int = 1) -> Line:
    """A share with its interval over clusters, and the clusters' values.

    Args:
        values: 1 or 0 per row, ½ for a tie.
        clusters: The cluster of each row.
        intervals: How many intervals hold together.
    """
    share = cluster_proportion(values.astype(float), clusters, level=1 - ALPHA / intervals)
    return Line.of(share, values=by_cluster(values, clusters, share.estimate))
