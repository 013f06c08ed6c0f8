"""SQuAD's values for MABRF's claims: exact match and F1 with and without search."""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.analysis.claims.contrasts import tidy
from parley.judging.squad.report import MEASURES, answers


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Our values, in percent; unreadable answers are left out.

    Args:
        verdicts: One row per verdict.
    """
    read = answers(verdicts).drop(columns="value").rename(columns={**MEASURES, "paragraph": "cluster"})
    frame = read.assign(
        method=np.where(read["arm"] == "none", "without search", "with search"),
        set="SQuAD v2",
        item=read["question_id"],
    )
    long = frame.melt(["model", "set", "method", "cluster", "item"], list(MEASURES.values()), "measure", "value")
    return tidy(long)
