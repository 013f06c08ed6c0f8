"""The share revised at each iteration, stacked (STARDTOX's figure 3); for every study whose methods revise."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.reporting.figures import LINE, PALETTE, caption, plain_text, sheet, tidy

AGAIN = "An item revised twice counts twice, so that a bar may pass 100."


def refined_figure(shares: pd.DataFrame, by: list[str], title: str, note: str) -> Drawing:
    """One bar a group, one stack an iteration: the height is how many revisions 100 items took."""
    groups = shares[by].drop_duplicates()
    labels = [" · ".join(map(str, row)) for row in groups.itertuples(index=False)]
    figure, axes = sheet(7.2, 1.6 + 1.4 * LINE * len(labels))
    axis = axes.flat[0]
    left = np.zeros(len(labels))
    for k, here in shares.groupby("iteration"):
        width = groups.merge(here, on=by, how="left")["share"].fillna(0).to_numpy(dtype=float) * 100
        axis.barh(range(len(labels)), width, left=left, color=PALETTE[(int(k) - 1) % len(PALETTE)], label=f"{k}")
        left += width
    axis.set_yticks(range(len(labels)), [plain_text(label) for label in labels])
    axis.invert_yaxis()
    axis.set_xlabel("revisions for 100 items, by iteration")
    figure.legend(title="iteration", loc="outside right upper", frameon=False, fontsize=8, title_fontsize=8)
    tidy(axis)
    caption(figure, title, note)
    return figure
