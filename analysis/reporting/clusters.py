"""What a verdict's cluster is: the largest group that shares a text, so that only clusters are independent."""

from __future__ import annotations

import pandas as pd


def cluster_of(frame: pd.DataFrame) -> pd.Series:
    """The cluster of each row; the name of the column says what clusters are.

    A base, where units have one (those without are their own scenario); a question template of BBQ (category and
    question number); a paragraph of SQuAD; else a scenario, else a unit.

    Args:
        frame: One row per verdict, with its unit and the facets of it.
    """
    own = _texts(frame, "scenario" if "scenario" in frame else "unit")
    if "base" in frame and (base := _texts(frame, "base")).ne("").any():
        return base.where(base != "", own)
    if {"category", "question"} <= set(frame) and pd.api.types.is_numeric_dtype(frame["question"]):
        return (_texts(frame, "category") + "/" + _texts(frame, "question")).rename("template")
    return _texts(frame, "paragraph") if "paragraph" in frame else own


def _texts(frame: pd.DataFrame, name: str) -> pd.Series:
    column = frame[name]
    return column.astype(object).where(column.notna(), "").astype(str)
