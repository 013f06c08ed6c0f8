"""The differences that MALIBU's stopping rule tests: scores (phase 1) and preferences (phase 2), by scenario.

They are the report's: all metrics together, and the panel's majority over both assignments and orders.
"""

from __future__ import annotations

import pandas as pd

from parley.analysis.malibu.pairs import win_margins
from parley.analysis.malibu.panel import PanelData
from parley.analysis.stats.sequential import gap_rows, gaps_of_cells
from parley.analysis.stats.tables import cell_means


def gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per comparison and cluster, with the gap.

    Args:
        verdicts: One row per verdict, all of one model.
    """
    data = PanelData(verdicts)
    scores = data.labelled_scores
    cells = cell_means(scores["value"], scores["identity"].astype(str), scores["scenario"].astype(str))
    margins = win_margins(data.decided_pairs)
    preferred = gap_rows(
        (f"{first} − {second}, preferences", pd.Series(gaps.by_cluster())) for first, second, _, gaps in margins
    )
    return pd.concat([gaps_of_cells(cells, ", scores"), preferred], ignore_index=True)
