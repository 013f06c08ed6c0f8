"""Differences within the same judge and scenario, averaged step by step up to one value per base, and tested there.

Bases are the clusters: scenarios that were derived from one base probe the same stereotype, so only bases are taken as
independent. Every step weights its members equally, so a judge, metric or scenario with more readable replies does not
count for more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.panel import PanelData, ScenarioGaps
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALPHA, Line, columns
from parley.analysis.stats.signflips import clusters_to_reject, sign_flip_test
from parley.analysis.stats.tables import Floats, factorize, row_codes
from parley.base.text import plural

NEEDED = clusters_to_reject(ALPHA)
"""With fewer clusters an interval of 95% has no ends."""


def planned_pairs(data: PanelData) -> list[tuple[str, str, str]]:
    """Category, first and second identity of every comparison: phase 2's pairs, else the planned ones of phase 1."""
    phase_2 = data.verdicts[(data.verdicts["phase"] == 2) & (data.verdicts["control"] == "")]
    if len(phase_2):
        pairs = phase_2[["category", "identity", "other"]].drop_duplicates()
        return [(str(category), str(first), str(second)) for category, first, second in pairs.to_numpy()]
    return list(dict.fromkeys(pair for model in data.models for pair in data.pairs(model)))


def nested_means(values: Floats, levels: pd.DataFrame, keep: int = 1) -> pd.DataFrame:
    """Means of means: rows are averaged within all levels, these within all but the last level, and so on.

    Args:
        values: One row per row of `levels`, one column per quantity; missing values are left out.
        levels: From the outermost level to the innermost.
        keep: How many outer levels the result is by.

    Returns:
        One row per group of the outer levels, which are its index.
    """
    table = values[:, None] if values.ndim == 1 else values
    if not len(table):
        return pd.DataFrame(columns=range(table.shape[1]), index=pd.MultiIndex.from_frame(levels.iloc[:, :keep]))
    codes = np.stack([factorize(levels[name])[0] for name in levels])
    order = np.argsort(row_codes(list(codes), sort=True), kind="stable")
    codes, table, rows = codes[:, order], table[order], order
    for depth in range(len(codes), keep - 1, -1):
        new_group = (codes[:depth, 1:] != codes[:depth, :-1]).any(axis=0)
        starts = np.flatnonzero(np.concatenate([[True], new_group]))
        known = np.isfinite(table)
        counts = np.add.reduceat(known.astype(float), starts, axis=0)
        sums = np.add.reduceat(np.where(known, table, 0.0), starts, axis=0)
        table = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        codes, rows = codes[:, starts], rows[starts]
    return pd.DataFrame(table, index=pd.MultiIndex.from_frame(levels.iloc[rows, :keep].astype(object)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Sums and counts by cell (rows) and identity (columns): what is compared between two identities.

    Args:
        levels: The cell of each row, from the cluster down: scenario, judge and so on.
        identities: The identity of each column.
        sums: Sums of the known values.
        known: Number of known values.
        missing: Number of missing values.
    """

    levels: pd.DataFrame
    identities: list[str]
    sums: Floats
    known: Floats
    missing: Floats

    @classmethod
    def of(cls, frame: pd.DataFrame, value: str, levels: Sequence[str]) -> Cells:
        """The cells of a frame with a column `identity`.

        Args:
            frame: One row per value.
            value: The column of the values.
            levels: Columns that the cells are by, the cluster first.
        """
        key = row_codes([frame[name] for name in levels])
        _, first, row = np.unique(key, return_index=True, return_inverse=True)
        place, labels = factorize(frame["identity"].astype(object), sort=False)
        cell, shape = row * len(labels) + place, (len(first), len(labels))
        values = frame[value].to_numpy(dtype=float)
        known = np.isfinite(values)
        tables = (
            np.bincount(cell[rows], weights, minlength=shape[0] * shape[1]).reshape(shape).astype(float)
            for rows, weights in ((known, values[known]), (known, None), (~known, None))
        )
        sums, counts, missing = tables
        levels_of_cells = frame[list(levels)].iloc[first].reset_index(drop=True)
        return cls(
            levels=levels_of_cells, identities=[str(x) for x in labels], sums=sums, known=counts, missing=missing
        )

    def column(self, identity: str) -> int:
        return self.identities.index(identity)

    def means(self) -> Floats:
        """Mean of the known values of each cell, NaN where there are none."""
        means: Floats = np.divide(self.sums, self.known, out=np.full(self.sums.shape, np.nan), where=self.known > 0)
        return means

    def bounds(self, low: float, high: float) -> tuple[Floats, Floats]:
        """The mean of each cell if every missing value were `low`, and if every one were `high`."""
        counts = self.known + self.missing
        ends = (
            np.divide(self.sums + end * self.missing, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
            for end in (low, high)
        )
        lower, upper = ends
        return lower, upper

    def differences(self, first: Floats, second: Floats, pairs: Sequence[tuple[str, str]]) -> Floats:
        """One row per pair, one column per cluster: the first identity minus the second, NaN where there is none.

        Args:
            first: Values by cell and identity, for the first identity.
            second: The same for the second identity, which is subtracted.
            pairs: First and second identities, all of them in `identities`.
        """
        by_cluster: list[Floats] = []
        width = 256  # pairs at a time, so that memory does not grow with the number of identities
        for start in range(0, len(pairs), width):
            block = pairs[start : start + width]
            here, there = ([self.column(pair[side]) for pair in block] for side in (0, 1))
            by_cluster.append(nested_means(first[:, here] - second[:, there], self.levels).to_numpy(dtype=float).T)
        return np.concatenate(by_cluster) if by_cluster else np.zeros((0, 0))


def tested_line(differences: Floats | ScenarioGaps) -> Line:
    """The mean difference with its interval and p-value, and a note where the clusters are too few for an interval."""
    test = differences.test() if isinstance(differences, ScenarioGaps) else sign_flip_test(differences)
    clusters = test.clusters or 0
    few = f"{plural(clusters, 'cluster')}: an interval needs {NEEDED}" if clusters else "nothing to compare"
    test = test if clusters else replace(test, low=math.nan, high=math.nan)
    return replace(test, note="" if clusters >= NEEDED else few)


def tested(differences: Floats | ScenarioGaps) -> dict[str, Any]:
    """A row's difference, interval, p-value, clusters and note."""
    return columns(tested_line(differences), "difference", "p", "clusters", "note")


def with_holm(frame: pd.DataFrame, family: Sequence[str]) -> pd.DataFrame:
    """The frame with `p_adjusted`: Holm's correction over the rows that share these columns."""
    adjusted = pd.Series(math.nan, frame.index, dtype=float)
    for _, part in frame.groupby(list(family), sort=False):
        adjusted[part.index] = holm(part["p"])
    return frame.assign(p_adjusted=adjusted)
