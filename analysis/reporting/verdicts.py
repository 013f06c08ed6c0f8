"""Frames of verdicts: plain columns in place of categories, and the final verdicts of each unit."""

from __future__ import annotations

import pandas as pd


class MissingColumns(ValueError):
    """A frame without columns that an analysis needs."""


def uncategorised(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with categorical columns as plain ones, so that no group appears for a category without rows."""
    dtypes = {name: object for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.CategoricalDtype)}
    return frame.astype(dtypes) if dtypes else frame


def final_verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The final verdicts of each unit: the chair's if it has a chair, else those of its last round."""
    chair = verdicts["role"] == "chair"
    chaired = verdicts["unit"].isin(verdicts["unit"][chair].unique()) if chair.any() else chair
    last = verdicts.groupby("unit", observed=True)["round"].transform("max")
    return verdicts[chair | (~chaired & (verdicts["round"] == last))]
