"""Rows of verdicts reduced once to sums by cluster and identity. All later work is done on these small tables.

A cell is the mean of all values of one cluster and one identity, so that repeats and judges do not count as
independent observations. Clusters are sorted by name, so that the order of the rows changes no result.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """For every cluster: the number of values, their sum, and their sum of squares around the cluster's mean."""

    counts: Floats
    sums: Floats
    squares: Floats

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    @property
    def means(self) -> Floats:
        return self.sums / self.counts


def as_floats(values: Column) -> Floats:
    """The values as floats; a missing value is NaN."""
    if (
        isinstance(values, np.ndarray | pd.Series)
        and isinstance(values.dtype, np.dtype)
        and values.dtype.kind in "biuf"
    ):
        return np.asarray(values, dtype=float)
    column: Floats = pd.to_numeric(pd.Series(values)).to_numpy(dtype=float, na_value=np.nan)
    return column


def finite(values: Column) -> Floats:
    """The values as floats, without missing ones."""
    column = as_floats(values)
    return column[np.isfinite(column)]


def factorize(keys: Column, sort: bool = True) -> tuple[Ints, list[Any]]:
    """Like `pandas.factorize`: the code of every key, -1 where it is missing, and the labels that the codes index."""
    codes, labels = pd.factorize(pd.Series(keys), sort=sort)
    return np.asarray(codes, dtype=np.int64), list(labels)


def cluster_sums(values: Column, clusters: Column) -> ClusterSums:
    """The rows reduced to one entry per cluster, sorted by name.

    Args:
        values: One value per row; rows where it is missing are left out.
        clusters: The cluster of each row; rows where it is missing are left out.
    """
    column = as_floats(values)
    code, _ = factorize(clusters)
    _check_lengths(column, code)
    valid = np.isfinite(column) & (code >= 0)
    column, code = column[valid], np.unique(code[valid], return_inverse=True)[1]
    counts, sums = np.bincount(code).astype(float), np.bincount(code, column).astype(float)
    squares = np.bincount(code, (column - (sums / counts)[code]) ** 2).astype(float)
    return ClusterSums(counts=counts, sums=sums, squares=squares)


def cell_means(values: Column, identities: Column, clusters: Column) -> pd.DataFrame:
    """Cell means: clusters (rows, sorted) by identities (columns, in order of appearance), NaN where a cell is empty.

    Args:
        values: One value per row; rows where it is missing are left out.
        identities: The identity of each row.
        clusters: The cluster of each row.
    """
    columns = {"value": as_floats(values), "identity": np.asarray(identities), "cluster": np.asarray(clusters)}
    _check_lengths(*columns.values())
    rows = pd.DataFrame(columns)
    means = rows.groupby(["cluster", "identity"])["value"].mean().unstack("identity")
    return means.reindex(columns=pd.unique(rows["identity"].dropna()))


def _check_lengths(*columns: NDArray[Any]) -> None:
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"columns of different lengths: {', '.join(str(len(column)) for column in columns)}")
