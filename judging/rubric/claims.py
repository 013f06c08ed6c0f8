"""The rubric's values for RLDF's claims: BS, CE and LS of each group."""

from __future__ import annotations

import pandas as pd

from parley.analysis.claims.contrasts import tidy
from parley.analysis.verdicts import uncategorised


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """BS, CE and LS from 0 to 100, by group, together and by bias type: a system's answers to held-out topics.

    Args:
        verdicts: One row per verdict, whose models are the judges.
    """
    rows = uncategorised(verdicts)
    topic = rows["topic"] if "topic" in rows else rows["item"].str.partition("/")[2]
    values = rows.assign(
        set="all",
        model="",
        measure=rows["metric"],
        method=rows["group"],
        value=10 * rows["value"],
        cluster=topic,
        item=topic,
    )
    by_bias = [values.assign(set=rows["bias"]).dropna(subset="set")] if "bias" in rows else []
    return tidy(pd.concat([values, *by_bias], ignore_index=True))
