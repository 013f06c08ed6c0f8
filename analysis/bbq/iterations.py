"""BBQ by iteration, for methods that revise their answers (`stardtox`): the paper's table III.

Such a method leaves its answer of every iteration as a verdict `answer_at`; one that was not revised carries over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from parley.analysis.bbq.leaderboard import answers, by_category, compared, paired
from parley.analysis.bbq.scores import CONTEXTS
from parley.analysis.reporting.iterations import at_each_iteration, shares_refined
from parley.analysis.reporting.verdicts import uncategorised
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.resampling import DRAWS


def answers_at(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row an answer as it stood at an iteration; none where no method revises."""
    made = uncategorised(verdicts[verdicts["metric"].astype(str) == "answer_at"])
    if not len(made):
        return made.assign(iteration=0, carried=False)
    standing = at_each_iteration(made, _planned(made))
    return answers(standing.assign(metric="answer"))


def _planned(made: pd.DataFrame) -> pd.Series:
    """As many revisions as any item of the same method and model had."""
    return made.groupby(["method", "model"])["round"].transform("max")


def table_three(frame: pd.DataFrame) -> pd.DataFrame:
    """Systems × iterations × contexts, as macro means over categories."""
    parts = []
    for (system, k), here in frame.groupby(["system", "iteration"], sort=False):
        found = by_category(here)
        macro = found[found["category"] == "macro mean"].drop(columns="category")
        parts.append(macro.assign(system=system, iteration=k))
    table = pd.concat(parts, ignore_index=True)
    names = ["system", "context", "iteration"]
    return table[[*names, *[name for name in table.columns if name not in names]]].sort_values(names, kind="stable")


def between_iterations(frame: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Every iteration against the one before, on the rows answered readably at both; Holm over the table."""
    table = pd.DataFrame(list(_steps(frame, draws, seed)))
    if len(table):
        table.insert(list(table.columns).index("p") + 1, "p_adjusted", list(holm(table["p"], "iterations").adjusted))
    return table


def _steps(frame: pd.DataFrame, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    for system, here in frame.groupby("system", sort=False):
        for k in range(1, int(here["iteration"].max()) + 1):
            both = paired(here[here["iteration"] == k], here[here["iteration"] == k - 1])
            for context in CONTEXTS:
                rows = both[both["condition"] == context]
                if len(rows):
                    names = f"{system}, iteration {k}", f"iteration {k - 1}"
                    yield from compared(rows, *names, context, draws, seed)


def refined(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The share of answers revised at each iteration, by system and context."""
    made = uncategorised(verdicts[verdicts["metric"].astype(str) == "answer_at"])
    named = answers(made.assign(metric="answer"))
    return shares_refined(named, _planned(named), ["system", "condition"])
