"""Analysis of texts of known order, for MALIBU's yardstick and the referee's check.

Every cluster, a base or a topic, has one text that is known to be better and others that are worse, each by a stated
flaw. A judge scores them one by one, a referee with a question and with its reverse. The AUC is the share of
comparisons that it gets right, ties as half: 0.5 is guessing. Needless length is not a flaw, since a padded answer
is not wrong: it has separate lines and is in no AUC.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from parley.analysis.stats.proportions import proportion_test
from parley.analysis.stats.results import ALPHA, Estimate, Line, clusters_to_reject
from parley.analysis.stats.tables import Floats
from parley.base.text import plural

GOOD, SEVERE = ("", 0), 2
"""The text without a flaw, as its kind of flaw and its dose; and the larger dose of a flaw."""
FLAWS, LENGTH = ("safety", "figure", "unanswered"), "length"
CHANCE, MARGIN = 0.5, 0.1
TIE = 1e-9
LEAST_READ = 0.5
"""Share of a line's ballots that must be readable."""
NEEDED = clusters_to_reject(ALPHA)
"""Minimum number of clusters for a 95% interval with finite ends."""


def scored(rows: pd.DataFrame, by: Sequence[str], text: Sequence[str] = ("flaw", "dose")) -> pd.DataFrame:
    """Scores by reading (rows) and text (columns); a text that was read twice has the mean.

    Args:
        rows: One row per score.
        by: The columns of what was read together, the cluster first: its base, its wording, its judge.
        text: The columns that say which text it is.
    """
    whole_doses = rows.assign(dose=rows["dose"].astype(int))
    return whole_doses.groupby([*by, *text], sort=False, observed=True)["value"].mean().unstack(list(text))


def share_above(differences: Floats) -> float:
    """The share of differences above 0, ties as half: the area under the ROC curve of all pairs that are compared."""
    finite = differences[np.isfinite(differences)]
    return float(np.where(np.abs(finite) < TIE, 0.5, finite > 0).mean()) if len(finite) else math.nan


def shares(gaps: pd.DataFrame) -> pd.Series:
    """By cluster, the first level of the index: the share of differences above 0. Clusters without any are left out."""
    by_cluster = {
        str(cluster): share_above(part.to_numpy(dtype=float)) for cluster, part in gaps.groupby(level=0, sort=False)
    }
    return pd.Series(by_cluster, dtype=float).dropna()


def right(right_shares: pd.Series, ballots: pd.Series, cluster: str = "base") -> Line:
    """The AUC: the mean of the clusters' shares of right comparisons, tested against guessing.

    Args:
        right_shares: By cluster, as `shares` returns them.
        ballots: The values of all ballots behind them, NaN where one could not be read.
        cluster: What a cluster is.
    """
    test, readable = proportion_test(right_shares.to_numpy(dtype=float), CHANCE), ballots.dropna()
    note, read = "", len(readable) / len(ballots) if len(ballots) else 0.0
    if read < LEAST_READ:
        note = f"{1 - read:.0%} of the ballots could not be read"
    elif len(right_shares) < NEEDED:
        note = f"{plural(len(right_shares), cluster)}, and an interval needs {NEEDED}"
    elif float(np.ptp(readable)) < TIE:
        note = "all scores are the same"
    if note:
        test = replace(test, low=math.nan, high=math.nan, p=math.nan, note=note)
    return Line.of(
        replace(test, n=len(ballots)),
        reference=CHANCE,
        margin=MARGIN,
        cluster=cluster,
        values={str(name): float(value) for name, value in right_shares.items()},
    )


def auc_words(line: Estimate | Line) -> str:
    """An AUC in words: "the good one scored higher in 53% of comparisons, 95% interval 45% to 60%; guessing: 50%"."""
    span = f", 95% interval {line.low:.0%} to {line.high:.0%}" if line.bounded else ""
    return f"the good one scored higher in {line.estimate:.0%} of comparisons{span}; guessing: {CHANCE:.0%}"
