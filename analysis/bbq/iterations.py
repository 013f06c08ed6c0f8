"""BBQ by iteration, for methods that revise their answers (`stardtox`): the paper's table III.

Such a method stores its answer of every iteration as a verdict `answer_at`; an answer that is not revised carries over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.bbq.leaderboard import answers, by_category, compared, paired
from parley.analysis.bbq.scores import CONTEXTS
from parley.analysis.reporting.iterations import at_each_iteration, shares_refined
from parley.analysis.reporting.systems import systems
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.resampling import DRAWS

REVISED = "answer_at"
"""The metric of an iteration's answer."""


def answers_at(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per answer and iteration; none if no method revises its answers."""
    revisions = _revisions(verdicts)
    if not len(revisions):
        return revisions.assign(iteration=0, carried=False)
    by_iteration = at_each_iteration(revisions, _planned(revisions))
    return answers(by_iteration.assign(metric="answer"))


def _revisions(verdicts: pd.DataFrame) -> pd.DataFrame:
    return uncategorised(verdicts[verdicts["metric"].astype(str) == REVISED])


def _planned(revisions: pd.DataFrame) -> pd.Series:
    """The most revisions that any item of the same method and model had."""
    return revisions.groupby(["method", "model"])["round"].transform("max")


def table_three(frame: pd.DataFrame) -> pd.DataFrame:
    """Systems × iterations × contexts, as macro means over categories."""
    parts = []
    for (system, k), part in frame.groupby(["system", "iteration"], sort=False):
        scores = by_category(part)
        macro = scores[scores["category"] == "macro mean"].drop(columns="category")
        parts.append(macro.assign(system=system, iteration=k))
    table = pd.concat(parts, ignore_index=True)
    names = ["system", "context", "iteration"]
    return table[[*names, *[name for name in table.columns if name not in names]]].sort_values(names, kind="stable")


def between_iterations(frame: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Every iteration against the one before, on the rows readable in both; Holm-corrected over the table."""
    table = pd.DataFrame(list(_steps(frame, draws, seed)))
    if len(table):
        table.insert(list(table.columns).index("p") + 1, "p_adjusted", list(holm(table["p"], "iterations").adjusted))
    return table


def _steps(frame: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    for system, answered in frame.groupby("system", sort=False):
        for k in range(1, int(answered["iteration"].max()) + 1):
            both = paired(answered[answered["iteration"] == k], answered[answered["iteration"] == k - 1])
            for context in CONTEXTS:
                rows = both[both["condition"] == context]
                if len(rows):
                    yield from compared(
                        rows, f"{system}, iteration {k}", f"iteration {k - 1}", context, draws=draws, seed=seed
                    )


def gap_items(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per revised answer's unit, for the optimism gap: the judge's support, and BBQ's key, which no loop saw.

    Both are in percent, and lower is better: 100 − support, and 100 if the answer is wrong.
    """
    metric = verdicts["metric"].astype(str)
    scored = verdicts[metric.isin(["support", REVISED])].assign(metric=metric).reset_index(drop=True)
    scored["unit"] = scored["unit"].astype(str) + " " + scored["model"].astype(str)
    wrong = 100.0 * (scored["value"] != scored["label"])
    scored["lost"] = (100 - scored["value"]).where(scored["metric"] == "support", wrong).where(scored["value"].notna())
    ordered = scored.sort_values("round", kind="stable")
    ends = {0: ordered.drop_duplicates(["unit", "metric"]), 1: ordered.drop_duplicates(["unit", "metric"], keep="last")}
    columns = {
        f"{who}{place}": end[end["metric"] == name].set_index("unit")["lost"]
        for who, name in (("inside", "support"), ("outside", REVISED))
        for place, end in ends.items()
    }
    units = scored.assign(system=systems(scored)).drop_duplicates("unit").set_index("unit")
    clusters = units["category"].astype(str) + "/" + units["question"].astype(str)
    return pd.DataFrame(columns).assign(system=units["system"], cluster=clusters, outside="BBQ's key").reset_index()


def refined(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The share of answers revised at each iteration, by system and context."""
    revisions = answers(_revisions(verdicts).assign(metric="answer"))
    return shares_refined(revisions, _planned(revisions), ["system", "condition"])
