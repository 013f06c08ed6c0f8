"""Systems compared in one report: a method with its model, what an item costs it, and its baseline."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd

BASELINE = "default"
_FILE = re.compile(r" \([^()]+\)$")


def systems(frame: pd.DataFrame) -> pd.Series:
    """A name for each row's system. Runs of one model in several files are told apart only where they must be."""
    method, whole = frame["method"].astype(str), frame["model"].astype(str)
    plain = whole.str.replace(_FILE, "", regex=True)
    files = whole.groupby([plain, method]).transform("nunique")
    model = plain.where(files == 1, whole)
    return method if model.nunique() == 1 else method + " · " + model


def costs(units: pd.DataFrame) -> pd.DataFrame:
    """Calls, tokens and dollars an item, by system. A price nobody told us stays unknown."""
    spent = units.assign(system=systems(units))
    return (
        spent.groupby("system", sort=False)[["calls", "tokens", "cost"]]
        .agg(lambda column: column.mean(skipna=False))
        .rename(columns={"calls": "calls_an_item", "tokens": "tokens_an_item", "cost": "dollars_an_item"})
        .reset_index()
    )


def rivals(frame: pd.DataFrame, baseline: str, *, only: str | None = None) -> Iterator[tuple[str, str]]:
    """Systems (of one method, if asked) with those of the method `baseline` that have the same model."""
    known = frame[["system", "method", "model"]].astype(str).drop_duplicates("system")
    known["model"] = known["model"].str.replace(_FILE, "", regex=True)
    for row in known.itertuples():
        if row.method == baseline or only not in (None, row.method):
            continue
        for other in known.itertuples():
            if other.method == baseline and other.model == row.model:
                yield str(row.system), str(other.system)
