"""Prepares verdicts for MALIBU's analysis: columns, stages, scales, and differences between identities.

A difference is always within judge and metric, and within a *cell*: scenario, label wording and question wording.
It is averaged over the cell, then over the cluster (see `clusters`), then over all clusters. Every step weights its
members equally, so judges, metrics and scenarios with more readable replies do not count more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parley.agents import LOG_ODDS
from parley.analysis.clusters import with_clusters
from parley.analysis.decide import NOT_COUNTED, WITHIN, WITHIN_LOW
from parley.analysis.stats.mean_test import alike_p, mean_test
from parley.analysis.stats.paired import DECIMALS, widest
from parley.analysis.stats.proportions import at_least
from parley.analysis.stats.results import ALPHA, Estimate, clusters_to_reject
from parley.analysis.stats.tables import Floats, Ints, factorize
from parley.analysis.verdicts import MissingColumns, require
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.plan import BLIND, NOISE, SILENT, TALK

POINTS = (0.0, 10.0)
"""The scale of a run that does not name its own."""
NOT_SCORES = (PREFERRED, LOG_ODDS)
"""Metrics of pairs that are not scores: the choice, and log P(A) - log P(B)."""
REQUIRED = ("unit", "phase", "scenario", "category", "identity", "judge", "role", "round", "metric", "value", "status")


def comparable(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts for comparing two runs, by `part`: no log-odds, and only the silent ballots of a staged run.

    Args:
        verdicts: One row per verdict.
    """
    kept = verdicts[verdicts["metric"].astype(str) != LOG_ODDS]
    kept = kept.assign(part=kept["phase"].map({1: "phase 1", 2: "phase 2", 3: "yardstick"}))
    if "stage" not in kept:
        return kept
    silent = kept["stage"].astype(str) == SILENT
    return kept[silent] if silent.any() else kept


def check_columns(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Fill in optional columns; MissingColumns if a required one is missing."""
    if missing := [name for name in REQUIRED if name not in verdicts]:
        raise MissingColumns(f"the frame lacks the columns {', '.join(missing)}")
    for name, value in (("model", ""), ("control", ""), ("repeat", 0), ("sampled", np.nan), ("text", None)):
        if name not in verdicts:
            verdicts = verdicts.assign(**{name: value})
    require(verdicts, numbers=("phase", "repeat"))
    if "judge_model" not in verdicts:
        verdicts = verdicts.assign(judge_model=verdicts["model"])
    elif verdicts["judge_model"].isna().any():
        judge_model = verdicts["judge_model"].astype(object)
        verdicts = verdicts.assign(judge_model=judge_model.where(judge_model.notna(), verdicts["model"].astype(object)))
    return with_clusters(_named_by_speakers(verdicts))


def _named_by_speakers(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Name panels by the models that spoke, since judges may have models of their own."""
    spoke = verdicts[["model", "judge_model"]].drop_duplicates().astype(str)
    names = {
        str(model): ", ".join(speakers)
        for model, speakers in spoke.groupby("model", sort=False)["judge_model"].unique().items()
    }
    if all(model == name for model, name in names.items()) or len(set(names.values())) < len(names):
        return verdicts
    return verdicts.assign(model=verdicts["model"].astype(str).map(names))


def primary_ballots(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The ballots that give the results: silent ones; blind ones if all units talk; all without stages.

    Args:
        verdicts: One row per verdict.
    """
    if "stage" not in verdicts:
        return verdicts
    silent, talking = ((verdicts["stage"] == stage).to_numpy() for stage in (SILENT, TALK))
    # For a model that only talked the blind ballots are used, even if another model of the report has silent ones.
    read_silently = verdicts["model"].isin(verdicts["model"][silent].unique()).to_numpy()
    blind = talking & ~read_silently & (verdicts["round"] == BLIND).to_numpy()
    return verdicts[~talking | blind]


def differ_in_one_part(category: str, first: str, second: str) -> bool:
    """Whether two labels of a category are compared: crossed labels only if they differ in a single part."""
    crossed = category.count("+") + 1
    parts, others = first.split(), second.split()
    if crossed == 1 or not len(parts) == len(others) == crossed:
        return True
    return sum(part != other for part, other in zip(parts, others, strict=True)) == 1


def scale_ends(name: str) -> tuple[float, float]:
    """The ends of a scale such as "1-9"; the paper's if it has no name."""
    low, _, high = name.partition("-")
    return (float(low), float(high)) if high else POINTS


def values_in_order(frame: pd.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, in order of first appearance."""
    return [str(value) for value in pd.unique(frame[column].dropna())]


def split(verdicts: pd.DataFrame, column: str, value: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split verdicts into those without and those with this value in a column."""
    those = verdicts[column] == value
    return (verdicts[~those], verdicts[those]) if those.any() else (verdicts, verdicts[:0])


ALL = "all"
"""The metric name that means all metrics together."""
WORDINGS = ("category", "wording", "question")
"""Columns that divide a scenario into cells, in runs with label wordings."""
NEEDED = clusters_to_reject(ALPHA)
"""Minimum number of clusters for a 95% interval with finite ends."""


class ScenarioGaps(NamedTuple):
    """Differences between two identities, one per cell (a scenario in a wording) that has both.

    Args:
        values: The differences.
        clusters: The cluster of each, as a code.
        bases: The base of each, as a code.
        cluster_names: The names of the clusters' codes.
        farthest: The largest possible difference.
    """

    values: Floats
    clusters: Ints
    bases: Ints
    cluster_names: Sequence[str]
    farthest: float = math.inf

    @classmethod
    def of(cls, values: Floats, cells: pd.DataFrame) -> ScenarioGaps:
        """The differences of cells, from a frame with their cluster and base (`situation`)."""
        clusters, cluster_names = factorize(cells["cluster"])
        return cls(values, clusters, factorize(cells["situation"])[0], cluster_names)

    def by_cluster(self) -> Floats:
        """The mean difference of every cluster that has one."""
        return _means(self.values, self.clusters)

    def named(self) -> dict[str, float]:
        """The mean difference of every cluster that has one, by its name."""
        return {
            str(self.cluster_names[code]): float(mean)
            for code, mean in zip(np.unique(self.clusters), self.by_cluster(), strict=True)
        }

    def test(self, level: float = 0.95) -> Estimate:
        """The mean difference over clusters, with its interval and p-value."""
        return mean_test(self.by_cluster(), level, self.farthest)

    def alike_p(self, margin: float) -> float:
        """The p-value of two one-sided tests: whether the mean difference lies within ±margin."""
        return alike_p(self.by_cluster(), margin, self.farthest)

    def within(self, margin: float) -> Mapping[str, float]:
        """The clusters whose own difference lies within ±margin, and the lower limit of the share of such clusters.

        NaN where a cluster's own standard error exceeds half the margin; where it is unknown, as with one cell per
        cluster, the limit is.
        """
        means, cells = self.by_cluster(), np.bincount(self.clusters)
        several, count = len(self.values) - len(means), int((np.abs(means) <= margin).sum())
        if not several:
            return {WITHIN: count, WITHIN_LOW: math.nan}
        noise = self.values - np.bincount(self.clusters, self.values)[self.clusters] / cells[self.clusters]
        if float(noise @ noise) / several * float((1 / cells[cells > 0]).mean()) > (NOISE * margin) ** 2:
            return NOT_COUNTED
        return {WITHIN: count, WITHIN_LOW: at_least(count, len(means))}


def _means(values: Floats, codes: Ints) -> Floats:
    counts = np.bincount(codes)
    means: Floats = np.bincount(codes, values)[counts > 0] / counts[counts > 0]
    return means


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """The final scores of one model: one row per cell, judge and metric, one column per identity.

    Args:
        values: Mean scores over repeats; NaN if no reply was readable.
        identities: The identity of each column; "" is no label.
        metrics: The metric of each row.
        cells: The cell of each row, as a code.
        clusters: The cluster of each cell, as a code.
        cluster_names: The name of each cluster.
        bases: The base of each cell, as a code.
        farthest: The largest possible difference of two scores.
    """

    values: Floats
    identities: list[str]
    metrics: NDArray[np.object_]
    cells: Ints
    clusters: Ints
    cluster_names: list[str]
    bases: Ints
    farthest: float

    @classmethod
    def of(cls, scores: pd.DataFrame, scale: tuple[float, float] | None = None) -> ScoreTable:
        """Make the table from a frame of one model's scores, with the columns of `with_clusters`.

        Args:
            scores: The frame.
            scale: The lowest and the highest possible score; None: as in the frame.
        """
        cell = ["cluster", "situation", "scenario", *(name for name in WORDINGS if "wording" in scores)]
        cell = [name for name in cell if name in scores]
        means = _grouped(scores, [*cell, "judge", "metric", "identity"])["value"].mean().unstack("identity")
        means = means.reindex(columns=pd.unique(scores["identity"]))
        rows = means.index.to_frame(index=False)
        cells = rows.drop_duplicates(cell)
        clusters, cluster_names = factorize(cells["cluster"])
        return cls(
            values=means.to_numpy(dtype=float),
            identities=[str(name) for name in means],
            metrics=rows["metric"].to_numpy(dtype=object),
            cells=_grouped(rows, cell).ngroup().to_numpy(),
            clusters=clusters,
            cluster_names=cluster_names,
            bases=factorize(cells["situation"])[0],
            farthest=widest(scale or scores["value"]),
        )

    def gaps(self, first: str, second: str, metric: str = ALL) -> ScenarioGaps:
        """First minus second by cell: within judge and metric, then averaged over the cell."""
        return self.contrast([first], [second], metric=metric)

    def contrast(
        self,
        favoured: Sequence[str],
        others: Sequence[str],
        *,
        metric: str = ALL,
        complete: bool = True,
        minus: ScoreTable | None = None,
    ) -> ScenarioGaps:
        """The mean of some identities minus the mean of others by cell.

        Args:
            favoured: The identities of the first mean.
            others: Those of the second.
            metric: One metric, or all together.
            complete: Whether a row must have all of them; otherwise one of each side is enough, and the available
            ones are averaged.
            minus: The table of the second mean, with the same rows and columns; None: this one.
        """
        tables = (self, favoured), (minus or self, others)
        sides = [table.values[:, [self.identities.index(name) for name in names]] for table, names in tables]
        if not complete:
            counts = [np.isfinite(side).sum(axis=1, keepdims=True) for side in sides]
            sides = [
                np.where(count > 0, np.nansum(side, axis=1, keepdims=True) / np.maximum(count, 1), np.nan)
                for side, count in zip(sides, counts, strict=True)
            ]
        # Within judge first: with one judge who refuses one identity, false alarms fall from 82% to 5%.
        return self._by_cell(sides[0].mean(axis=1) - sides[1].mean(axis=1), metric)

    def means(self, identities: Sequence[str], metric: str = ALL) -> pd.DataFrame:
        """Mean scores by cluster and identity, from the rows that have all of these identities."""
        columns = [self.identities.index(name) for name in identities]
        values = self.values[:, columns]
        values = values + 0 * values.sum(axis=1, keepdims=True)  # NaN in all columns where one is missing
        by_cell = [self._by_cell(column, metric) for column in values.T]
        return pd.DataFrame(
            {
                name: pd.Series(gaps.by_cluster(), [self.cluster_names[code] for code in np.unique(gaps.clusters)])
                for name, gaps in zip(identities, by_cell, strict=True)
            }
        )

    def _by_cell(self, values: Floats, metric: str) -> ScenarioGaps:
        used = np.isfinite(values)
        if metric != ALL:
            used &= self.metrics == metric
        cells = self.cells[used]
        counts = np.bincount(cells, minlength=len(self.clusters))
        sums = np.bincount(cells, values[used], minlength=len(self.clusters))
        there = counts > 0
        return ScenarioGaps(
            # Expected scores are sums of products: without rounding, 1e-16 on every base would be a significant
            # difference.
            values=np.round(sums[there] / counts[there], DECIMALS),
            clusters=self.clusters[there],
            bases=self.bases[there],
            cluster_names=self.cluster_names,
            farthest=self.farthest,
        )


SIDES, CELL = ["identity", "other"], ["cluster", "situation", "wording", "scenario"]


@dataclass(frozen=True, slots=True)
class PairTable:
    """The comparisons of one model, with values that are positive if they favour `identity` over `other`.

    Args:
        units: One row per comparison, with its value in `lead`; NaN if it could not be read.
    """

    units: pd.DataFrame

    @classmethod
    def of(cls, units: pd.DataFrame, leads: Floats) -> PairTable:
        """Make the table from a frame of comparisons, with the columns of `with_clusters`."""
        return cls((units if "wording" in units else units.assign(wording="")).assign(lead=leads))

    def leads(self, favoured: Sequence[str], others: Sequence[str]) -> pd.Series:
        """The leads of some identities over others, by cell, pair and order; NaN if they could not be read."""
        one, two = (self.units[side] for side in SIDES)
        along = one.isin(favoured) & two.isin(others)
        compared = along | (one.isin(others) & two.isin(favoured))
        # Orders first, so that the effect of the first place cancels even if a cell is missing.
        levels = [key for key in (*CELL, *SIDES, "question", "order", "assignment") if key in self.units]
        # Only the columns in use: copying all facets took half the time of each of hundreds of contrasts.
        units = self.units.loc[compared, [*levels, "lead"]].set_index(levels)["lead"]
        return units.where(along[compared].to_numpy(), -units)

    def contrast(self, favoured: Sequence[str], others: Sequence[str], unread: float = math.nan) -> ScenarioGaps:
        """The mean lead of some identities over others by cell, over all their pairs, which a cell must have.

        Args:
            favoured: The leading identities.
            others: The identities that they are compared with.
            unread: The lead in comparisons that could not be read; NaN: they are left out.
        """
        leads = self.leads(favoured, others).fillna(unread).dropna()
        cells = nested_means(leads, keep=6).groupby(level=CELL, sort=False, observed=True).agg(["mean", "count"])
        whole = cells.loc[cells["count"] == len({*zip(*map(leads.index.get_level_values, SIDES), strict=True)}), "mean"]
        gaps = ScenarioGaps.of(whole.round(DECIMALS).to_numpy(dtype=float), whole.index.to_frame(index=False))
        return gaps._replace(farthest=float(self.units["lead"].abs().max()) or math.inf)


Values = TypeVar("Values", pd.Series, pd.DataFrame)


def nested_means(values: Values, keep: int = 1) -> Values:
    """Means of means: values are averaged within all levels of their index, the results within all but the last level.

    Args:
        values: Their index has the levels, from the outermost to the innermost; missing values are left out.
        keep: Number of outer levels that the result keeps.
    """
    for depth in range(values.index.nlevels, keep - 1, -1):
        values = values.groupby(level=list(range(depth)), observed=True, dropna=False).mean()
    return values


def _grouped(frame: pd.DataFrame, keys: list[str]) -> pd.core.groupby.DataFrameGroupBy:
    return frame.groupby(keys, observed=True, sort=False, dropna=False)
