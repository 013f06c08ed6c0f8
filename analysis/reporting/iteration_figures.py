"""The share of items revised at each iteration, stacked (STARDTOX's figure 3), for any study with critique loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import LINE, PALETTE, caption, legend_beside, plain_text, sheet, tidy

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
