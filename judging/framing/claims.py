"""Framing's values for RLDF's claims: the number of biases admitted in an answer, by framing."""

from __future__ import annotations

import pandas as pd

from parley.analysis.claims.contrasts import tidy
from parley.judging.framing.report import replies


def claimed_values(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The number of biases admitted in an answer, by framing.

    Args:
        verdicts: One row per verdict.
    """
    rows = replies(verdicts).rename(columns={"framing": "method", "topic": "cluster", "unit": "item"})
    return tidy(rows.assign(set="all", measure="biases admitted", value=rows["biases"]))
