"""The phases of a MALIBU run, as in the column `phase`: 1, single responses; 2, pairs; 3, the yardstick."""

from __future__ import annotations

import pandas as pd

YARDSTICK = 3
"""The units in which graded responses are scored, without labels."""


def split_yardstick(verdicts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The verdicts on labelled responses, and those on graded ones.

    Args:
        verdicts: One row per verdict.
    """
    graded = verdicts["phase"] == YARDSTICK
    return (verdicts[~graded], verdicts[graded]) if graded.any() else (verdicts, verdicts[:0])
