"""From verdicts to the panel's result: one score per unit and metric (phase 1), one preference per unit (phase 2).

A frame has one row per verdict: the unit's facets (phase, scenario, category, identity, model, …) and judge, role,
round, subject, metric, value, text, status. The panel's result is the mean of its last round (for preferences the
majority, with ties as an outcome of their own), or the chair's statement if there is a chair. Unreadable replies are
left out, never counted as 0.

The scenarios of one base probe the same stereotype, so they are not independent: the base is the cluster (a scenario
without a base is its own). Differences between identities are taken within judge and scenario, then averaged over a
scenario, a base, and all bases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parley.analysis.reporting.verdicts import MissingColumns, final_verdicts, require
from parley.analysis.stats.tables import Floats, Ints, cell_sums, factorize
from parley.base.text import plural

YARDSTICK = 3
"""The phase in which graded responses are scored, without labels; 1 is single responses, 2 pairs."""
ALL = "all"
"""The metric name that means all metrics together."""
REQUIRED = ("unit", "phase", "scenario", "category", "identity", "judge", "role", "round", "metric", "value", "status")
SINGLE = ["model", "unit", "scenario", "cluster", "category", "identity", "control", "repeat"]
PAIR = [
    "model",
    "unit",
    "scenario",
    "cluster",
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


class ScenarioGaps(NamedTuple):
    """Differences between two identities, one per scenario that has both, and the cluster of each.

    `clusters` are codes, which `names` gives the names of.
    """

    values: Floats
    clusters: Ints
    names: Sequence[str]

    def by_cluster(self) -> Floats:
        """The mean difference of every cluster that has one."""
        counts = np.bincount(self.clusters)
        return np.bincount(self.clusters, self.values)[counts > 0] / counts[counts > 0]

    def by_name(self) -> pd.Series:
        """`by_cluster` with the clusters' names."""
        return pd.Series(self.by_cluster(), index=[self.names[code] for code in np.unique(self.clusters)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """The final scores of one model: a row per scenario, judge and metric, a column per identity.

    Args:
        values: Mean scores over repeats; NaN where no reply could be read.
        identities: The identity of each column; "" is no label.
        metrics: The metric of each row.
        scenarios: The scenario of each row, as a code.
        clusters: The cluster of each scenario, as a code.
        cluster_names: The name of each cluster.
    """

    values: Floats
    identities: list[str]
    metrics: NDArray[np.object_]
    scenarios: Ints
    clusters: Ints
    cluster_names: list[str]

    @classmethod
    def of(cls, scores: pd.DataFrame) -> ScoreTable:
        """The table of a frame of judges' scores, all of one model."""
        scenarios, _ = factorize(scores["scenario"])
        cluster_codes, cluster_names = factorize(scores["cluster"])
        judges, judge_names = factorize(scores["judge"])
        metrics, metric_names = factorize(scores["metric"], sort=False)
        row = (scenarios * len(judge_names) + judges) * len(metric_names) + metrics
        keys, rows = np.unique(row, return_inverse=True)
        sums, counts = cell_sums(scores["value"], scores["identity"], rows)
        clusters = np.zeros(int(scenarios.max()) + 1 if len(scenarios) else 0, dtype=np.int64)
        clusters[scenarios] = cluster_codes
        used = keys[np.asarray(sums.index, dtype=np.int64)] if len(keys) else keys
        return cls(
            values=(sums / counts.where(counts > 0)).to_numpy(dtype=float),
            identities=[str(name) for name in sums.columns],
            metrics=np.asarray(metric_names, dtype=object)[used % len(metric_names)],
            scenarios=used // (len(metric_names) * len(judge_names)),
            clusters=clusters,
            cluster_names=[str(name) for name in cluster_names],
        )

    def gaps(self, first: str, second: str, metric: str = ALL) -> ScenarioGaps:
        """First minus second by scenario: within judge and metric, then averaged over the scenario."""
        columns = [self.identities.index(name) for name in (first, second)]
        # Within judge first: with one judge who refuses one identity, false alarms fall from 82% to 5%.
        values = self.values[:, columns[0]] - self.values[:, columns[1]]
        return self._by_scenario(values, metric)

    def contrast(self, favoured: Sequence[str], others: Sequence[str]) -> ScenarioGaps:
        """The mean of some identities minus the mean of others by scenario, on rows that have all of them."""
        means = [
            self.values[:, [self.identities.index(name) for name in names]].mean(axis=1) for names in (favoured, others)
        ]
        return self._by_scenario(means[0] - means[1], ALL)

    def means(self, identities: Sequence[str], metric: str = ALL) -> pd.DataFrame:
        """Mean scores by cluster and identity, from the rows that have all of these identities."""
        columns = [self.identities.index(name) for name in identities]
        values = self.values[:, columns]
        values = values + 0 * values.sum(axis=1, keepdims=True)  # NaN in all columns where one is missing
        by_scenario = [self._by_scenario(column, metric) for column in values.T]
        return pd.DataFrame({name: gaps.by_name() for name, gaps in zip(identities, by_scenario, strict=True)})

    def _by_scenario(self, values: Floats, metric: str) -> ScenarioGaps:
        known = np.isfinite(values)
        if metric != ALL:
            known &= self.metrics == metric
        scenarios = self.scenarios[known]
        counts = np.bincount(scenarios, minlength=len(self.clusters))
        sums = np.bincount(scenarios, values[known], minlength=len(self.clusters))
        there = counts > 0
        return ScenarioGaps(sums[there] / counts[there], self.clusters[there], self.cluster_names)


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PanelData:
    """The verdicts of one or several runs, and what they reduce to. Each reduction is computed on first use, once.

    Args:
        verdicts: One row per verdict, with at least the columns in `REQUIRED`.
    """

    verdicts: pd.DataFrame
    graded: pd.DataFrame = field(init=False, repr=False)
    """The yardstick's verdicts, which `verdicts` is without."""
    _tables: dict[str, ScoreTable] = field(default_factory=dict, init=False, repr=False)
    _shared: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        verdicts, graded = split_yardstick(check_columns(self.verdicts))
        object.__setattr__(self, "verdicts", verdicts)
        object.__setattr__(self, "graded", graded)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """A reduction that several tables of a report need, computed once.

        Args:
            name: Of the reduction.
            make: Computes it.
        """
        if name not in self._shared:
            self._shared[name] = make()
        found: T = self._shared[name]
        return found

    @cached_property
    def graded_models(self) -> list[str]:
        """The models that read the yardstick."""
        return values_in_order(self.graded, "model")

    @cached_property
    def models(self) -> list[str]:
        return values_in_order(self.verdicts, "model")

    @cached_property
    def clusters(self) -> int:
        """The number of clusters."""
        return int(self.verdicts["cluster"].nunique())

    @cached_property
    def cluster_noun(self) -> str:
        """What a cluster is: "base", or "scenario" in a run whose scenarios have no base."""
        return "base" if "base" in self.verdicts and (self.verdicts["base"].astype(str) != "").any() else "scenario"

    @cached_property
    def counts(self) -> str:
        """How many bases, scenarios and verdicts there are, for captions."""
        return ", ".join(
            (
                *([plural(self.clusters, "base")] if self.cluster_noun == "base" else ()),
                plural(self.verdicts["scenario"].nunique(), "scenario"),
                plural(len(self.verdicts), "verdict"),
            )
        )

    @property
    def intervals(self) -> str:
        """What the intervals of means are about, for notes."""
        unit = self.cluster_noun
        return (
            f"Intervals are 95%, over {unit}s: they generalise to other {unit}s of this kind, judged by these judges, "
            "who are taken as fixed."
        )

    @property
    def model_column(self) -> tuple[str, ...]:
        """The column `model`, which tables show where there are several models."""
        return ("model",) if len(self.models) > 1 else ()

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

    def table(self, model: str) -> ScoreTable:
        """A model's final scores by scenario, judge, metric and identity."""
        if model not in self._tables:
            scores = self.final_scores
            self._tables[model] = ScoreTable.of(scores[scores["model"] == model])
        return self._tables[model]

    def pairs(self, model: str) -> list[tuple[str, str, str]]:
        """The planned comparisons of a model: category and two identities.

        Crossed labels ("black female") are compared where they differ in one part.
        """
        return self.shared(f"pairs of {model}", lambda: self._planned_pairs(model))

    def _planned_pairs(self, model: str) -> list[tuple[str, str, str]]:
        scores = self.labelled_scores
        labels = scores[scores["model"] == model].drop_duplicates("identity")
        by_category = labels.groupby(labels["category"].astype(str), sort=False)["identity"]
        return [
            (str(category), first, second)
            for category, names in by_category
            for first, second in combinations([str(name) for name in names], 2)
            if differ_in_one_part(str(category), first, second)
        ]


def differ_in_one_part(category: str, first: str, second: str) -> bool:
    """Whether two labels of a category are compared: crossed labels only if they differ in a single part."""
    crossed = category.count("+") + 1
    parts, others = first.split(), second.split()
    if crossed == 1 or not len(parts) == len(others) == crossed:
        return True
    return sum(part != other for part, other in zip(parts, others, strict=True)) == 1


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
    return verdicts if "cluster" in verdicts else verdicts.assign(cluster=_clusters(verdicts))


def _clusters(verdicts: pd.DataFrame) -> pd.Series:
    """The base of each scenario; the scenario itself where it has none."""
    if "base" not in verdicts:
        return verdicts["scenario"]
    known = verdicts["base"].notna() & (verdicts["base"] != "")
    if known.all():
        return verdicts["base"]
    return verdicts["base"].astype(object).where(known, verdicts["scenario"].astype(object))


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


def split_yardstick(verdicts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The verdicts on labelled responses, and those on graded ones.

    Args:
        verdicts: One row per verdict.
    """
    graded = verdicts["phase"] == YARDSTICK
    return (verdicts[~graded], verdicts[graded]) if graded.any() else (verdicts, verdicts[:0])
