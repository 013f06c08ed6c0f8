"""Systems compared in one report: a system is a method with its model. Also the cost per item."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd

BASELINE = "default"
_FILE = re.compile(r"( \([^()]+\))$")


def systems(frame: pd.DataFrame) -> pd.Series:
    """The name of each row's system, with the model if there are several, and the run file if a system was run in
    several files.

    Args:
        frame: Rows with the columns `method` and `model`; a model may end in its file, as in "sim/judge (a.sqlite)".
    """
    method, whole = frame["method"].astype(str), frame["model"].astype(str)
    plain = whole.str.replace(_FILE, "", regex=True)
    files = whole.groupby([plain, method]).transform("nunique")
    model = plain.where(files == 1, whole)
    return method if model.nunique() == 1 else method + " · " + model


def without_files(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with models without their run file; a method that was run in several files has the file instead.

    Args:
        frame: Rows with the columns `method` and `model`; a model may end in its file, as in "sim/judge (a.sqlite)".
    """
    method, whole = frame["method"].astype(str), frame["model"].astype(str)
    plain, file = whole.str.replace(_FILE, "", regex=True), whole.str.extract(_FILE, expand=False).fillna("")
    files = whole.groupby([plain, method]).transform("nunique")
    return frame.assign(model=plain, method=method.where(files == 1, method + file))


def own_units(frame: pd.DataFrame) -> pd.Series:
    """The names of units, told apart by system: two run files have the same units."""
    return frame["unit"].astype(str) + " " + frame["method"].astype(str) + " " + frame["model"].astype(str)


def system_facets(frame: pd.DataFrame) -> dict[str, dict[str, tuple[str, ...]]]:
    """The facets of each system's units: its method, and its model if there are several.

    Args:
        frame: Rows with the columns `method` and `model`.
    """
    listed = frame[["method", "model"]].astype(str).assign(system=systems(frame)).drop_duplicates("system")
    several = listed["model"].nunique() > 1
    return {
        str(row.system): {"method": (str(row.method),), **({"model": (str(row.model),)} if several else {})}
        for row in listed.itertuples()
    }


def costs(units: pd.DataFrame, named: Callable[[pd.DataFrame], pd.Series] = systems) -> pd.DataFrame:
    """Mean calls, tokens and dollars per item, by system. The cost is NaN where a model has no price.

    Args:
        units: One row per unit, with its `method`, `model`, `calls`, `tokens` and `cost`.
        named: Gives the name of each unit's system.
    """
    spent = units.assign(system=named(units))
    return (
        spent.groupby("system", sort=False)[["calls", "tokens", "cost"]]
        .agg(lambda column: column.mean(skipna=False))
        .rename(columns={"calls": "calls_an_item", "tokens": "tokens_an_item", "cost": "dollars_an_item"})
        .reset_index()
    )


def cost_sentence(
    units: pd.DataFrame | None, item: str, named: Callable[[pd.DataFrame], pd.Series] = systems
) -> list[str]:
    """A sentence on the cost of an item: with the baseline or the first system, and with the most expensive.

    Args:
        units: One row per unit; None: nothing is known.
        item: The noun for an item.
        named: Gives the name of each unit's system.
    """
    if units is None or not len(units):
        return []
    spent = costs(units, named).set_index("system").dropna(subset=["calls_an_item", "tokens_an_item"])
    if spent.empty:  # a run of a team that made no calls
        return []
    first = BASELINE if BASELINE in spent.index else spent.index[0]
    dearest = spent["tokens_an_item"].idxmax()
    calls, tokens = (spent[name] for name in ("calls_an_item", "tokens_an_item"))
    which = f" with {first}" if len(spent) > 1 else ""
    most = (
        f", and up to {calls[dearest]:.1f} calls and {tokens[dearest]:,.0f} tokens with {dearest}"
        if dearest != first
        else ""
    )
    some = "1 call" if round(calls[first], 1) == 1 else f"{calls[first]:.1f} calls"
    return [f"A {item} takes {some} and {tokens[first]:,.0f} tokens{which}{most}."]
