"""The differences that MALIBU's stopping rule tests: scores (phase 1) and preferences (phase 2), by base.

They are the report's: all metrics together, and the panel's majority over both assignments and orders. Differences are
taken within scenarios, and averaged over the scenarios of a base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from parley.analysis.malibu.panel import PanelData
from parley.analysis.reporting.interim import MonitoredRun, stagewise
from parley.analysis.stats.sequential import gap_rows, gaps_of_cells
from parley.analysis.stats.tables import cell_means

SCORES, PREFERENCES = "scores", "preferences"


def gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per comparison and cluster, with the gap.

    Args:
        verdicts: One row per verdict, all of one model. Its column `cluster` says which scenarios belong together;
            without it each scenario is a cluster.
    """
    data = PanelData(verdicts)
    cluster = "cluster" if "cluster" in verdicts else "scenario"
    first_rows = verdicts.drop_duplicates("scenario")
    clusters = pd.Series(
        first_rows[cluster].astype(str).to_numpy(), index=first_rows["scenario"].astype(str).to_numpy()
    )
    scores = data.labelled_scores
    cells = cell_means(scores["value"], scores["identity"].astype(str), scores["scenario"].astype(str))
    preferred = gap_rows(_preferences(data.decided_pairs, clusters))
    return pd.concat([gaps_of_cells(cells, clusters, f", {SCORES}"), preferred], ignore_index=True)


def _preferences(units: pd.DataFrame, clusters: pd.Series) -> Iterator[tuple[str, pd.Series]]:
    """By pair, how much more often the first was preferred than the second; ties count 0."""
    for (first, second), group in units.groupby(["identity", "other"], sort=False, observed=True):
        margin = np.select([group["winner"] == first, group["winner"] == second], [1.0, -1.0], 0.0)
        means = pd.Series(margin).groupby(group["scenario"].astype(str).to_numpy()).mean()
        yield f"{first} − {second}, {PREFERENCES}", means.groupby(clusters).mean()


def with_stagewise_p(tests: pd.DataFrame, runs: Sequence[MonitoredRun], what: str) -> pd.DataFrame:
    """The table with p-values corrected for interim looks, where a stopping rule has monitored the comparison.

    `p` is then the stage-wise p-value and `p_unadjusted` the former one; elsewhere both are as before. A family's
    correction (Holm) is to be made afterwards.

    Args:
        tests: One row per test, with the columns `model`, `first`, `second` and `p`, of all metrics together.
        runs: The report's runs with a stopping rule; without any, the table is returned as it is.
        what: What the table compares: "scores" or "preferences".
    """
    if not runs or tests.empty:
        return tests
    known = stagewise(runs, [str(model) for model in tests["model"].unique()])
    corrected = [
        known.get((model, f"{first} − {second}, {what}"), known.get((model, f"{second} − {first}, {what}"), np.nan))
        for model, first, second in zip(tests["model"], tests["first"], tests["second"], strict=True)
    ]
    p = pd.Series(corrected, index=tests.index, dtype=float)
    return tests.assign(p=p.fillna(tests["p"]), p_unadjusted=tests["p"])
