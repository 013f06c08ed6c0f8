"""Frames of verdicts keep what repeats as categories; grouping and joining texts want plain columns."""

from __future__ import annotations

import pandas as pd


def uncategorised(frame: pd.DataFrame) -> pd.DataFrame:
    """The same frame with categories as plain values, so that no group appears for a category without rows."""
    kinds = {name: object for name, kind in frame.dtypes.items() if isinstance(kind, pd.CategoricalDtype)}
    return frame.astype(kinds) if kinds else frame
