"""The differences that MALIBU's stopping rule tests: scores (phase 1) and preferences (phase 2), by base.

They are the report's: all metrics together, and the panel's majority over both assignments and orders. Differences are
taken within scenarios, and averaged over the scenarios of a base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from parley.analysis.malibu.pairs import win_margins
from parley.analysis.malibu.panel import PanelData
from parley.analysis.reporting.interim import MonitoredRun, stagewise
from parley.analysis.stats.sequential import gap_rows

SCORES, PREFERENCES = "scores", "preferences"


def gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """One row per comparison and cluster, with the gap.

    Args:
        verdicts: One row per verdict, all of one model. Its column `cluster` says which scenarios belong together;
            without it the base does.
    """
    return gap_rows(_gaps(PanelData(verdicts)))


def _gaps(data: PanelData) -> Iterator[tuple[str, pd.Series]]:
    for model in data.models:
        for _, first, second in data.pairs(model):
            values = data.table(model).gaps(first, second).by_name()
            yield f"{first} − {second}, {SCORES}", values
            yield f"{second} − {first}, {SCORES}", -values
    for first, second, _, margins in win_margins(data.decided_pairs):
        yield f"{first} − {second}, {PREFERENCES}", margins.by_name()


def with_stagewise_p(rows: list[dict[str, Any]], runs: Sequence[MonitoredRun], what: str) -> list[dict[str, Any]]:
    """The tests with p-values corrected for interim looks, where a stopping rule has monitored the comparison.

    `p` is then the stage-wise p-value and `p_unadjusted` the former one. A family's correction (Holm) is to be made
    afterwards.

    Args:
        rows: One per test, with `model`, `first`, `second` and `p`.
        runs: The report's runs with a stopping rule.
        what: What is compared: "scores" or "preferences".
    """
    if not runs:
        return rows
    known = stagewise(runs, list(dict.fromkeys(str(row["model"]) for row in rows)))
    corrected = []
    for row in rows:
        names = (f"{row['first']} − {row['second']}, {what}", f"{row['second']} − {row['first']}, {what}")
        p = next((known[row["model"], name] for name in names if (row["model"], name) in known), math.nan)
        corrected.append(row | {"p": row["p"] if math.isnan(p) else p, "p_unadjusted": row["p"]})
    return corrected
