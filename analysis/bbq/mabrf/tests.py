"""MABRF's tests: answers before and after, with and without search, relevancy, and passes against bias."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.bbq.leaderboard import ROW
from parley.analysis.bbq.mabrf.tables import templates
from parley.analysis.bbq.scores import CONTEXTS
from parley.analysis.reporting.systems import baseline_pairs
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import with_holm
from parley.analysis.stats.paired import mcnemar_p, paired_permutation, pearson, wilcoxon_p
from parley.analysis.stats.results import columns

PLAIN, SEARCH = "mabrf", "mabrf-search"
MEASURES = {
    "accuracy": "right1",
    "final bias": "bias1",
    "bias judged again": "bias_again",
    "final relevancy": "relevancy1",
}
START = ("first", "bias0")
"""Columns that both arms begin with."""
Columns = dict[str, Any]


def changes(frame: pd.DataFrame) -> pd.DataFrame:
    """Final against first answers, where both are readable: how many are fixed and worsened, and a test of that.

    The test flips signs over templates; McNemar's, which takes every item as independent, is given as well.
    """
    rows = []
    for (system, context), group in frame.groupby(["system", "condition"], sort=False):
        both = group[group["right0"].notna() & group["right1"].notna()]
        flips = paired_permutation(both["right1"], both["right0"], templates(both))
        rows.append(
            {
                "system": system,
                "context": context,
                "fixed": int((both["right1"] > both["right0"]).sum()),
                "worsened": int((both["right1"] < both["right0"]).sum()),
                "changed": int((both["first"] != both["final"]).sum()),
                **columns(flips, "difference", "p"),
                "p_mcnemar": mcnemar_p(both["right1"], both["right0"]),
                "n": flips.n,
                "clusters": flips.clusters,
                "unread": len(group) - len(both),
                "note": flips.note,
            }
        )
    return with_holm(pd.DataFrame(rows))


def relevancy(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's figure 4: the mean change in relevancy from the first to the last judgement, by system."""
    rows = []
    for (system, model, method), group in frame.groupby(["system", "model", "method"], sort=False):
        change = group["relevancy_change"]
        mean = cluster_mean(change, templates(group))
        rows.append(
            {
                "system": system,
                "model": model,
                "method": method,
                "relevancy0": group["relevancy0"].mean(),
                "relevancy1": group["relevancy1"].mean(),
                **columns(mean, "change"),
                "plain_change": change.mean(),
                "up": int((change > 0).sum()),
                "same": int((change == 0).sum()),
                "down": int((change < 0).sum()),
                "n": mean.n,
                "clusters": mean.clusters,
                "unread": int(change.isna().sum()),
            }
        )
    return pd.DataFrame(rows)


def passes_and_bias(frame: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of passes and final bias, over all items and over those that were rephrased.

    The loop stops at a score of 1 and otherwise continues, so items with many passes are those that stayed biased:
    that alone pushes r upwards.
    """
    rows = []
    for system, group in frame.groupby("system", sort=False):
        for which, part in (("all", group), ("rephrased", group[group["passes"] > 0])):
            correlation = pearson(part["passes"], part["bias1"])
            rows.append(
                {
                    "system": system,
                    "items": which,
                    "passes": part["passes"].mean(),
                    "accepted": part["accepted"].sum() / part["passes"].sum() if part["passes"].sum() else math.nan,
                    **columns(correlation, "r", "p", "n", "note"),
                }
            )
    return pd.DataFrame(rows)


def with_search(frame: pd.DataFrame) -> pd.DataFrame:
    """Every model with and without search, on the rows that have both; with minus without, mean over templates."""
    rows: list[Columns] = []
    for system, baseline in baseline_pairs(frame, PLAIN, only=SEARCH):
        searched, plain = frame[frame["system"] == system], frame[frame["system"] == baseline]
        both = searched.merge(plain[[*ROW, *START, *MEASURES.values()]], on=ROW, suffixes=("", "_without"))
        rows += list(_compared(both, system, baseline))
    return with_holm(pd.DataFrame(rows))


def _compared(both: pd.DataFrame, system: str, baseline: str) -> Iterator[Columns]:
    for context in CONTEXTS:
        part = both[both["condition"] == context]
        for measure, name in MEASURES.items() if len(part) else ():
            first, second = part[name], part[f"{name}_without"]
            clusters = templates(part)
            flips = paired_permutation(first, second, clusters)
            other, other_p = (
                ("McNemar, exact", mcnemar_p(first, second))
                if measure == "accuracy"
                else ("Wilcoxon signed rank", wilcoxon_p(first, second, clusters))
            )
            yield {
                "system": system,
                "baseline": baseline,
                "context": context,
                "measure": measure,
                **columns(flips, "difference", "p"),
                "p_other": other_p,
                "other_test": other,
                "n": flips.n,
                "same_start": int(_same_start(part).sum()),
                "clusters": flips.clusters,
                "note": flips.note,
            }


def _same_start(both: pd.DataFrame) -> pd.Series:
    """Whether the first answer and the first score are the same in both arms, unreadable ones included."""
    pairs = [(both[name], both[f"{name}_without"]) for name in START]
    alike = [(one == other) | (one.isna() & other.isna()) for one, other in pairs]
    return alike[0] & alike[1]
