"""What a stopping rule sees of MALIBU: differences of scores (phase 1) and of preferences (phase 2), by scenario.

They are those of the report: all metrics together, and the panel's majority over both assignments and orders.
"""

from __future__ import annotations

import pandas as pd

from parley.analysis.malibu.pairs import decided, margins
from parley.analysis.malibu.panel import panel_preferences, panel_scores
from parley.analysis.stats.sequential import gap_rows, gaps_of_cells
from parley.analysis.stats.tables import cell_means


def gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Rows of comparison, cluster and gap, of one model."""
    scores = panel_scores(verdicts)
    scores = scores[scores["identity"] != ""]
    cells = cell_means(scores["value"], scores["identity"].astype(str), scores["scenario"].astype(str))
    pairs = margins(decided(panel_preferences(verdicts)))
    preferred = gap_rows((f"{first} − {second}, preferences", means) for first, second, _, means in pairs)
    return pd.concat([gaps_of_cells(cells, ", scores"), preferred], ignore_index=True)
