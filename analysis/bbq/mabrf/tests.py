"""MABRF's tests: answers before against after, with search against without, relevancy, and passes against bias."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.bbq.leaderboard import ROW
from parley.analysis.bbq.scores import CONTEXTS
from parley.analysis.reporting.systems import baseline_pairs
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.correlation import pearson
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.paired import mcnemar, paired_permutation, wilcoxon
from parley.analysis.stats.resampling import DRAWS

PLAIN, SEARCH = "mabrf", "mabrf-search"
MEASURES = {
    "accuracy": "right1",
    "final bias": "bias1",
    "bias judged again": "bias_again",
    "final relevancy": "relevancy1",
}
Columns = dict[str, Any]


def changes(frame: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Final against first answers, where both could be read: fixed, worsened, and whether that could be chance."""
    rows = []
    for (system, context), here in frame.groupby(["system", "condition"], sort=False):
        both = here[here["right0"].notna() & here["right1"].notna()]
        exact = mcnemar(both["right1"], both["right0"])
        flips = paired_permutation(both["right1"], both["right0"], both["scenario"], draws=draws, seed=seed)
        rows.append(
            {
                "system": system,
                "context": context,
                "fixed": int((both["right1"] > both["right0"]).sum()),
                "worsened": int((both["right1"] < both["right0"]).sum()),
                "changed": int((both["first"] != both["final"]).sum()),
                "difference": exact.effect,
                "low": exact.low,
                "high": exact.high,
                "p": exact.p,
                "p_clustered": flips.p,
                "n": exact.n,
                "unread": len(here) - len(both),
                "note": exact.note,
            }
        )
    return _corrected(pd.DataFrame(rows), "all systems and contexts")


def relevancy(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's figure 4: the mean change of relevancy from the first to the last judgement, by system."""
    rows = []
    for (system, model, method), here in frame.groupby(["system", "model", "method"], sort=False):
        change = here["relevancy_change"]
        found = cluster_mean(change, here["scenario"])
        rows.append(
            {
                "system": system,
                "model": model,
                "method": method,
                "relevancy0": here["relevancy0"].mean(),
                "relevancy1": here["relevancy1"].mean(),
                "change": found.estimate,
                "low": found.low,
                "high": found.high,
                "up": int((change > 0).sum()),
                "same": int((change == 0).sum()),
                "down": int((change < 0).sum()),
                "n": found.n,
                "clusters": found.clusters,
                "unread": int(change.isna().sum()),
            }
        )
    return pd.DataFrame(rows)


def passes_and_bias(frame: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of passes and final bias, over all items and over those that were rephrased.

    The loop stops at 1 and else goes on, so items with many passes are those that stayed biased: that alone pushes r
    upwards.
    """
    rows = []
    for system, here in frame.groupby("system", sort=False):
        for which, part in (("all", here), ("rephrased", here[here["passes"] > 0])):
            found = pearson(part["passes"], part["bias1"])
            rows.append(
                {
                    "system": system,
                    "items": which,
                    "passes": part["passes"].mean(),
                    "accepted": part["accepted"].sum() / part["passes"].sum() if part["passes"].sum() else math.nan,
                    "r": found.effect,
                    "low": found.low,
                    "high": found.high,
                    "p": found.p,
                    "n": found.n,
                    "note": found.note,
                }
            )
    return pd.DataFrame(rows)


def with_search(frame: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Every model with search against without, on the rows both did; with minus without."""
    rows: list[Columns] = []
    for system, baseline in baseline_pairs(frame, PLAIN, only=SEARCH):
        one, other = frame[frame["system"] == system], frame[frame["system"] == baseline]
        both = one.merge(other[[*ROW, *MEASURES.values()]], on=ROW, suffixes=("", "_without"))
        rows += list(_compared(both, system, baseline, draws, seed))
    return _corrected(pd.DataFrame(rows), "all models, contexts and measures")


def _compared(both: pd.DataFrame, system: str, baseline: str, draws: int, seed: int) -> Iterator[Columns]:
    for context in CONTEXTS:
        here = both[both["condition"] == context]
        for measure, name in MEASURES.items() if len(here) else ():
            first, second = here[name], here[f"{name}_without"]
            flips = paired_permutation(first, second, here["scenario"], draws=draws, seed=seed)
            beside = mcnemar(first, second) if measure == "accuracy" else wilcoxon(first, second, here["scenario"])
            yield {
                "system": system,
                "baseline": baseline,
                "context": context,
                "measure": measure,
                "difference": (first - second).mean(),
                "low": flips.low,
                "high": flips.high,
                "p": flips.p,
                "p_beside": beside.p,
                "test_beside": beside.name,
                "n": flips.n,
                "clusters": flips.clusters,
                "note": flips.note,
            }


def _corrected(table: pd.DataFrame, family: str) -> pd.DataFrame:
    if len(table):
        at = list(table.columns).index("p") + 1
        table.insert(at, "p_adjusted", list(holm(table["p"], family).adjusted))
    return table
