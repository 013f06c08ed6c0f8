"""From a million rows to a small table, once: everything after works on clusters and cells.

A cell is the mean of all there is for one cluster and one identity, so repeats and judges never pass for
independent data. Clusters are sorted by name, so that the order of the rows changes no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Column: TypeAlias = pd.Series | Sequence[Any] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """For every cluster: how many values, their sum, and their sum of squares around the cluster's mean."""

    counts: Floats
    sums: Floats
    squares: Floats

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    @property
    def means(self) -> Floats:
        return self.sums / self.counts


def numbers(values: Column) -> Floats:
    """The values as floats; whatever is missing is NaN."""
    if (
        isinstance(values, np.ndarray | pd.Series)
        and isinstance(values.dtype, np.dtype)
        and values.dtype.kind in "biuf"
    ):
        return np.asarray(values, dtype=float)
    column: Floats = pd.to_numeric(pd.Series(values)).to_numpy(dtype=float, na_value=np.nan)
    return column


def codes(keys: Column, sort: bool = True) -> tuple[Ints, list[Any]]:
    """Every key as the number of its label, -1 where it is missing; and the labels."""
    found, labels = pd.factorize(pd.Series(keys), sort=sort)
    return np.asarray(found, dtype=np.int64), list(labels)


def cluster_sums(values: Column, clusters: Column) -> ClusterSums:
    """The rows reduced to one entry a cluster. Missing values and rows without a cluster are left out."""
    column = numbers(values)
    code, _ = codes(clusters)
    _same_length(column, code)
    kept = np.isfinite(column) & (code >= 0)
    column, code = column[kept], np.unique(code[kept], return_inverse=True)[1]
    counts, sums = np.bincount(code).astype(float), np.bincount(code, column).astype(float)
    squares = np.bincount(code, (column - (sums / counts)[code]) ** 2).astype(float)
    return ClusterSums(counts, sums, squares)


def cell_sums(values: Column, identities: Column, clusters: Column) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sums and counts by cluster (rows, sorted) and identity (columns, in order of appearance)."""
    column = numbers(values)
    row, row_labels = codes(clusters)
    place, place_labels = codes(identities, sort=False)
    _same_length(column, row, place)
    shape = len(row_labels), len(place_labels)
    kept = np.isfinite(column) & (row >= 0) & (place >= 0)
    cell, size = row[kept] * shape[1] + place[kept], shape[0] * shape[1]
    tables = np.bincount(cell, column[kept], minlength=size), np.bincount(cell, minlength=size)
    sums, counts = (pd.DataFrame(table.reshape(shape), row_labels, place_labels) for table in tables)
    return sums, counts


def cell_means(values: Column, identities: Column, clusters: Column) -> pd.DataFrame:
    """Clusters (rows) by identities (columns), each cell the mean of all it holds, NaN where it holds nothing."""
    sums, counts = cell_sums(values, identities, clusters)
    return sums / counts.where(counts > 0)


def distinct(rows: Floats) -> tuple[Floats, Ints]:
    """The different rows of a table, and for every row the number of the one it equals."""
    if len(rows) == 0:
        return rows, np.zeros(0, dtype=np.int64)
    weights = np.random.default_rng(0).random(rows.shape[1])
    key = (np.nan_to_num(rows, nan=-1e6) * weights).sum(axis=1)  # equal rows have equal keys; sorting numbers is quick
    _, first, member = np.unique(key, return_index=True, return_inverse=True)
    kinds = rows[first]
    if not np.array_equal(kinds[member], rows, equal_nan=True):  # two rows shared a key
        kinds, member = np.unique(rows, axis=0, return_inverse=True)
    return kinds, np.ravel(member)


def _same_length(*columns: NDArray[Any]) -> None:
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"columns of different lengths: {', '.join(str(len(column)) for column in columns)}")
