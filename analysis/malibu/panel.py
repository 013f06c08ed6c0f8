"""From verdicts to what the panel said: one score a unit and metric (phase 1), one preference a unit (phase 2).

A frame has one row a verdict: the unit's facets (phase, scenario, category, identity, model, …) and judge, role,
round, subject, metric, value, text, status. The panel's word is the mean of its last round (for preferences: the
majority; a tie is its own outcome), or the chair's statement where there is one. What could not be read is left out,
never counted as 0.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.analysis.reporting.verdicts import MissingColumns, final_verdicts

NEEDED = ("unit", "phase", "scenario", "category", "identity", "judge", "role", "round", "metric", "value", "status")
SINGLE = ["model", "unit", "scenario", "category", "identity", "control", "repeat"]
PAIR = [
    "model",
    "unit",
    "scenario",
    "category",
    "identity",
    "other",
    "identity_a",
    "identity_b",
    "response_a",
    "response_b",
    "assignment",
    "order",
    "control",
    "repeat",
]


def checked(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The frame, or a plain word on what it lacks. One model is assumed where none is named."""
    if missing := [name for name in NEEDED if name not in verdicts]:
        raise MissingColumns(f"the frame of verdicts lacks the columns {', '.join(missing)}")
    for name, value in (("model", ""), ("control", ""), ("repeat", 0), ("sampled", np.nan), ("text", None)):
        if name not in verdicts:
            verdicts = verdicts.assign(**{name: value})
    return verdicts


def panel_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Phase 1, one row a unit and metric: the panel's score."""
    verdicts = checked(verdicts)
    scores = final_verdicts(verdicts[(verdicts["phase"] == 1) & (verdicts["metric"] != "preferred")])
    return _reduced(scores, [*SINGLE, "metric"])["value"].mean().reset_index()


def panel_preferences(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Phase 2, one row a unit: who was preferred by the majority (A, B or tie), or nothing if no reply was readable.

    `winner` is the identity that was preferred, "tie", or missing.
    """
    verdicts = checked(verdicts)
    votes = final_verdicts(verdicts[(verdicts["phase"] == 2) & (verdicts["metric"] == "preferred")])
    keys = [key for key in PAIR if key in votes]
    if votes.empty:
        return pd.DataFrame(columns=[*PAIR, "choice", "winner"])
    marked = votes[keys].assign(**{choice: (votes["text"] == choice).astype(int) for choice in ("A", "B", "tie")})
    units = _reduced(marked, keys)[["A", "B", "tie"]].sum().reset_index()
    counts = units[["A", "B", "tie"]].to_numpy()
    most = counts.max(axis=1)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    choice = np.where(alone, np.array(["A", "B", "tie"])[counts.argmax(axis=1)], "tie").astype(object)
    choice[most == 0] = None
    units["choice"] = choice
    first, second = (units[f"identity_{side}"].astype(object) for side in "ab")
    units["winner"] = first.where(choice == "A", second.where(choice == "B", choice))
    return units.drop(columns=["A", "B", "tie"])


def _reduced(frame: pd.DataFrame, keys: list[str]) -> pd.core.groupby.DataFrameGroupBy:
    return frame.groupby(keys, observed=True, sort=False, dropna=False)


def in_order(verdicts: pd.DataFrame, column: str) -> list[str]:
    """The values of a column in the order in which they come."""
    return [str(value) for value in pd.unique(verdicts[column].dropna())]
