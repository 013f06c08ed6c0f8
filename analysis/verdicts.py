"""Frames of verdicts: plain columns in place of categories, the final verdicts of each unit, and their clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

STATUSES = ("ok", "repaired", "unparsed", "refused", "cut", "unscored")
LOST = STATUSES[2:]
"""The statuses of replies that carry no score."""
UNREADABLE = LOST[:-1]
"""Statuses of unreadable, refused or cut replies; "unscored" ones were read."""


class MissingColumns(ValueError):
    """The frame lacks columns, or values in them, that an analysis needs."""


def require(verdicts: pd.DataFrame, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> None:
    """Raise `MissingColumns` if a report cannot be made: other people's runs may have any facets, or none.

    Args:
        verdicts: One row per verdict.
        texts: Columns that must be there, with a text in every row.
        numbers: Columns that must be there, with a number (or yes and no) in every row.
    """
    if missing := [name for name in (*texts, *numbers) if name not in verdicts]:
        raise MissingColumns(f"the frame lacks the {_columns(missing)}")
    for what, names, valid in (("text", texts, _all_texts), ("number", numbers, _all_numbers)):
        if wrong := [name for name in names if not valid(verdicts[name])]:
            raise MissingColumns(f"not every row has a {what} in the {_columns(wrong)}")


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names)}"


def _all_texts(column: pd.Series) -> bool:
    return column.notna().all() and all(isinstance(value, str) for value in column.unique())


def _all_numbers(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and bool(np.isfinite(column.astype(float)).all())


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


def status_counts(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """How many verdicts have each parse status, in groups.

    Args:
        frame: One row per verdict.
        by: Columns to group by.
    """
    counts = pd.crosstab([frame[name] for name in by], frame["status"])
    return counts.reindex(columns=list(STATUSES), fill_value=0).reset_index().rename_axis(columns=None)


def cluster_of(frame: pd.DataFrame) -> pd.Series:
    """The cluster of each row; the column's name is the kind of cluster.

    A base, where units have one (those without are their own scenario); a question template of BBQ (category and
    question number); a paragraph of SQuAD; else a scenario, else a unit.

    Args:
        frame: One row per verdict, with its unit and the facets of it.
    """
    scenario = _texts(frame, "scenario" if "scenario" in frame else "unit")
    if "base" in frame and (base := _texts(frame, "base")).ne("").any():
        return base.where(base != "", scenario)
    if {"category", "question"} <= set(frame) and pd.api.types.is_numeric_dtype(frame["question"]):
        return (_texts(frame, "category") + "/" + _texts(frame, "question")).rename("template")
    return _texts(frame, "paragraph") if "paragraph" in frame else scenario


def _texts(frame: pd.DataFrame, name: str) -> pd.Series:
    column = frame[name]
    return column.astype(object).where(column.notna(), "").astype(str)
