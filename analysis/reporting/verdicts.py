"""Frames of verdicts: plain columns in place of categories, and the verdicts that count."""

from __future__ import annotations

import pandas as pd


class MissingColumns(ValueError):
    """A frame without columns that an analysis needs."""


def uncategorised(frame: pd.DataFrame) -> pd.DataFrame:
    """The same frame with categories as plain values, so that no group appears for a category without rows."""
    kinds = {name: object for name, kind in frame.dtypes.items() if isinstance(kind, pd.CategoricalDtype)}
    return frame.astype(kinds) if kinds else frame


def final_verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts that count: the chair's if there is a chair, else those of every unit's last round."""
    chair = verdicts["role"] == "chair"
    chaired = verdicts["unit"].isin(verdicts["unit"][chair].unique()) if chair.any() else chair
    last = verdicts.groupby("unit", observed=True)["round"].transform("max")
    return verdicts[chair | (~chaired & (verdicts["round"] == last))]
