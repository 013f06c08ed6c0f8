"""Critique loops by iteration: the verdicts after each revision, the share of units revised, and its figure.

Iteration k is the state after the k-th revision; an item that was revised less often carries its last state over.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import LINE, PALETTE, caption, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.verdicts import MissingColumns

MOST = 100
"""Limit on iterations: someone else's run file may contain any number."""


def at_each_iteration(verdicts: pd.DataFrame, planned: pd.Series) -> pd.DataFrame:
    """Every verdict once for each iteration that it applies to.

    Args:
        verdicts: Rows whose `round` is the iteration that they were made at.
        planned: For each row, the number of revisions that its unit could have had.

    Returns:
        The rows with two more columns: `iteration`, and `carried` where the verdict is from an earlier one.
    """
    if len(planned) and planned.max() > MOST:
        raise MissingColumns(f"its units have up to {planned.max():.6g} iterations, and a report shows {MOST} at most")
    parts = []
    for k in range(int(planned.max()) + 1 if len(planned) else 0):
        made = verdicts[(verdicts["round"] <= k) & (planned >= k)]
        last = made.groupby(["unit", "metric"], observed=True, sort=False)["round"].transform("max")
        current = made[made["round"] == last]
        parts.append(current.assign(iteration=k, carried=current["round"] < k))
    return pd.concat(parts, ignore_index=True) if parts else verdicts.assign(iteration=0, carried=False)


def shares_refined(verdicts: pd.DataFrame, planned: pd.Series, by: list[str]) -> pd.DataFrame:
    """The share of units that were revised a k-th time, in groups that could have been (the paper's figure 3).

    Args:
        verdicts: Rows whose `round` is the iteration that they were made at.
        planned: For each row, the number of revisions that its unit could have had.
        by: Columns to group by.
    """
    units = verdicts.assign(planned=planned).groupby([*by, "unit"], observed=True, sort=False)
    revisions = units.agg(revisions=("round", "max"), planned=("planned", "max")).reset_index()
    rows = [
        {
            **dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True)),
            "iteration": k,
            "refined": int((group["revisions"] >= k).sum()),
            "n": len(group),
            "share": float((group["revisions"] >= k).mean()),
        }
        for key, group in revisions[revisions["planned"] > 0].groupby(by, observed=True, sort=False)
        for k in range(1, int(group["planned"].max()) + 1)
    ]
    return pd.DataFrame(rows, columns=[*by, "iteration", "refined", "n", "share"])


COUNTED_TWICE = "An item revised twice counts twice, so a bar may exceed 100."


def refined_figure(shares: pd.DataFrame, by: list[str], title: str, note: str) -> Drawing:
    """One bar per group, stacked by iteration; its length is the number of revisions per 100 items.

    Args:
        shares: What `iterations.shares_refined` returns.
        by: Columns that the groups are made of.
        title: Title of the figure.
        note: Small print below it.
    """
    groups = shares[by].drop_duplicates()
    labels = [" · ".join(map(str, row)) for row in groups.itertuples(index=False)]
    figure, axes = sheet(7.2, 1.6 + 1.4 * LINE * len(labels))
    axis = axes.flat[0]
    left = np.zeros(len(labels))
    for k, part in shares.groupby("iteration"):
        width = groups.merge(part, on=by, how="left")["share"].fillna(0).to_numpy(dtype=float) * 100
        axis.barh(range(len(labels)), width, left=left, color=PALETTE[(int(k) - 1) % len(PALETTE)], label=f"{k}")
        left += width
    axis.set_yticks(range(len(labels)), [plain_text(label) for label in labels])
    axis.invert_yaxis()
    axis.set_xlabel("revisions per 100 items, by iteration")
    legend_beside(figure, [axis], title="iteration")
    tidy(axis)
    caption(figure, title, note)
    return figure
