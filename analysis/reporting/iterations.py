"""Loops that revise: what stood at each iteration, and how much was revised.

Iteration k is what stands after the k-th revision; an item that was not revised so often carries its last state over.
"""

from __future__ import annotations

import pandas as pd


def at_each_iteration(verdicts: pd.DataFrame, planned: pd.Series) -> pd.DataFrame:
    """Every verdict at every iteration it stood for, from rows whose round is the iteration they were made at.

    `planned` says of each row how many revisions its unit could have had. Adds `iteration` and `carried`.
    """
    parts = []
    for k in range(int(planned.max()) + 1 if len(planned) else 0):
        made = verdicts[(verdicts["round"] <= k) & (planned >= k)]
        last = made.groupby(["unit", "metric"], observed=True, sort=False)["round"].transform("max")
        stands = made[made["round"] == last]
        parts.append(stands.assign(iteration=k, carried=stands["round"] < k))
    return pd.concat(parts, ignore_index=True) if parts else verdicts.assign(iteration=0, carried=False)


def shares_refined(verdicts: pd.DataFrame, planned: pd.Series, by: list[str]) -> pd.DataFrame:
    """The share of units that were revised a k-th time, for groups that could have been: the paper's figure 3."""
    units = verdicts.assign(planned=planned).groupby([*by, "unit"], observed=True, sort=False)
    made = units.agg(revisions=("round", "max"), planned=("planned", "max")).reset_index()
    rows = [
        {
            **dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True)),
            "iteration": k,
            "refined": int((here["revisions"] >= k).sum()),
            "n": len(here),
            "share": float((here["revisions"] >= k).mean()),
        }
        for key, here in made[made["planned"] > 0].groupby(by, observed=True, sort=False)
        for k in range(1, int(here["planned"].max()) + 1)
    ]
    return pd.DataFrame(rows, columns=[*by, "iteration", "refined", "n", "share"])
