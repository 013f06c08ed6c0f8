"""From verdicts to the panel's result: one score per unit and metric (phase 1), one preference per unit (phase 2).

A frame has one row per verdict: the unit's facets (phase, scenario, category, identity, model, …) and judge, role,
round, subject, metric, value, text, status. The panel's result is the mean of its last round (for preferences the
majority, with ties as an outcome of their own), or the chair's statement if there is a chair. Unreadable replies are
left out, never counted as 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from parley.analysis.reporting.verdicts import MissingColumns, final_verdicts, require
from parley.analysis.stats.tables import cell_sums

ALL = "all"
"""The metric name that means all metrics together."""
REQUIRED = ("unit", "phase", "scenario", "category", "identity", "judge", "role", "round", "metric", "value", "status")
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


class ScoreCells(NamedTuple):
    """Scores of one model by scenario (rows) and identity (columns); the mean of an empty cell is NaN."""

    sums: pd.DataFrame
    counts: pd.DataFrame
    means: pd.DataFrame


@dataclass(frozen=True, eq=False)
class PanelData:
    """The verdicts of one or several runs, and what they reduce to. Each reduction is computed on first use, once.

    Args:
        verdicts: One row per verdict, with at least the columns in `REQUIRED`.
    """

    verdicts: pd.DataFrame
    _cells: dict[tuple[str, str], ScoreCells] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdicts", check_columns(self.verdicts))

    @cached_property
    def models(self) -> list[str]:
        return values_in_order(self.verdicts, "model")

    @cached_property
    def final_scores(self) -> pd.DataFrame:
        """Phase 1: the judges' scores that count, before they are averaged over the panel."""
        verdicts = self.verdicts
        return final_verdicts(verdicts[(verdicts["phase"] == 1) & (verdicts["metric"] != "preferred")])

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Phase 1, one row per unit and metric: the panel's score."""
        return _grouped(self.final_scores, [*SINGLE, "metric"])["value"].mean().reset_index()

    @cached_property
    def labelled_scores(self) -> pd.DataFrame:
        """`scores` without the controls that show no identity."""
        return self.scores[self.scores["identity"] != ""]

    @cached_property
    def categories(self) -> pd.Series:
        """The category of every identity in phase 1; a label belongs to one category."""
        identities = self.labelled_scores.drop_duplicates("identity")
        return identities.set_index("identity")["category"].astype(str)

    @cached_property
    def preferences(self) -> pd.DataFrame:
        """Phase 2, one row per unit: who was preferred; see `panel_preferences`."""
        return panel_preferences(self.verdicts)

    @cached_property
    def decided_pairs(self) -> pd.DataFrame:
        """The comparisons of two identities that could be read."""
        units = self.preferences
        return units[(units["control"] == "") & units["choice"].notna()]

    @cached_property
    def without_chair(self) -> pd.DataFrame:
        """The judges' own verdicts, of all rounds."""
        return self.verdicts[self.verdicts["role"] != "chair"]

    def cells(self, model: str, metric: str = ALL) -> ScoreCells:
        """A model's scores by scenario and identity, on one metric or all together."""
        key = model, metric
        if key not in self._cells:
            scores = self.labelled_scores
            rows = scores["model"] == model
            part = scores[rows if metric == ALL else rows & (scores["metric"] == metric)]
            sums, counts = cell_sums(part["value"], part["identity"], part["scenario"])
            self._cells[key] = ScoreCells(sums, counts, sums / counts.where(counts > 0))
        return self._cells[key]

    def category_means(self, model: str, category: str, metric: str = ALL) -> pd.DataFrame:
        """Mean scores by scenario and identity, of one category's identities."""
        means = self.cells(model, metric).means
        return means[[identity for identity in means if self.categories[identity] == category]]


Verdicts: TypeAlias = pd.DataFrame | PanelData
"""What the functions of this package take: a frame of verdicts, or its `PanelData` so that reductions are shared."""


def panel_data(verdicts: Verdicts) -> PanelData:
    """The frame with its reductions; an object that has them already is returned as it is."""
    return verdicts if isinstance(verdicts, PanelData) else PanelData(verdicts)


def check_columns(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The frame with the optional columns filled in; MissingColumns if a required one is not there."""
    if missing := [name for name in REQUIRED if name not in verdicts]:
        raise MissingColumns(f"the frame of verdicts lacks the columns {', '.join(missing)}")
    for name, value in (("model", ""), ("control", ""), ("repeat", 0), ("sampled", np.nan), ("text", None)):
        if name not in verdicts:
            verdicts = verdicts.assign(**{name: value})
    require(verdicts, numbers=("phase", "repeat"))
    return verdicts


def panel_scores(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Phase 1, one row per unit and metric: the panel's score.

    Args:
        verdicts: One row per verdict.
    """
    return PanelData(verdicts).scores


def panel_preferences(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Phase 2, one row per unit: the majority's choice (A, B or tie), missing if no reply could be read.

    `winner` is the identity that was preferred, "tie", or missing.

    Args:
        verdicts: One row per verdict.
    """
    verdicts = check_columns(verdicts)
    votes = final_verdicts(verdicts[(verdicts["phase"] == 2) & (verdicts["metric"] == "preferred")])
    keys = [key for key in PAIR if key in votes]
    if votes.empty:
        return pd.DataFrame(columns=[*PAIR, "choice", "winner"])
    marked = votes[keys].assign(**{choice: (votes["text"] == choice).astype(int) for choice in ("A", "B", "tie")})
    units = _grouped(marked, keys)[["A", "B", "tie"]].sum().reset_index()
    counts = units[["A", "B", "tie"]].to_numpy()
    most = counts.max(axis=1)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    choice = np.where(alone, np.array(["A", "B", "tie"])[counts.argmax(axis=1)], "tie").astype(object)
    choice[most == 0] = None
    units["choice"] = choice
    first, second = (units[f"identity_{side}"].astype(object) for side in "ab")
    units["winner"] = first.where(choice == "A", second.where(choice == "B", choice))
    return units.drop(columns=["A", "B", "tie"])


def _grouped(frame: pd.DataFrame, keys: list[str]) -> pd.core.groupby.DataFrameGroupBy:
    return frame.groupby(keys, observed=True, sort=False, dropna=False)


def by_metric(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """All metrics together, then each one."""
    yield ALL, scores
    for metric in values_in_order(scores, "metric"):
        yield metric, scores[scores["metric"] == metric]


def values_in_order(frame: pd.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, in order of first appearance."""
    return [str(value) for value in pd.unique(frame[column].dropna())]
