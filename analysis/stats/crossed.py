"""A mean over two crossed samples, such as bases and wordings where every base is tried with every wording.

Two values that share a base or a wording are not independent, so no division into clusters gives independent parts, and
no sign-flip test is exact. The error is that of the analysis of variance with both as random samples:

    found = crossed_mean(values, bases, wordings)
    found.p, found.low, found.high

Where every pair was tried, the variance of the mean is (MS rows + MS columns - MS residual) / cells, with
Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946, 110-114). Where only some were, it is the two-way
clustered variance of Cameron, Gelbach and Miller (2011, Journal of Business & Economic Statistics 29, 238-249), with
the degrees of freedom of the smaller sample.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtr, stdtrit

from parley.analysis.stats.results import LEVEL, Line
from parley.analysis.stats.tables import Column, Floats, Ints, as_floats, factorize

METHOD = "t over two crossed samples"


def crossed_equivalence_p(mean: Line, margin: float) -> float:
    """The p-value of two one-sided t-tests: whether a mean of `crossed_mean` lies within ±margin."""
    if not mean.standard_error > 0:
        return math.nan
    distances = (margin - mean.estimate, margin + mean.estimate)
    return float(max(stdtr(mean.df, -distance / mean.standard_error) for distance in distances))


def crossed_mean(values: Column, rows: Column, columns: Column, level: float = LEVEL) -> Line:
    """The mean of the cells of a table, with an error that covers other rows and other columns.

    Args:
        values: One value per observation; those of one cell are averaged first.
        rows: The row of each value, such as its base.
        columns: The column of each value, such as its wording.
        level: Confidence level.
    """
    row, column, cell = _cells(as_floats(values), factorize(rows)[0], factorize(columns)[0])
    clusters = min(len(np.unique(row)), len(np.unique(column))) if len(cell) else 0
    mean = float(cell.mean()) if len(cell) else math.nan
    variance, df = _variance(cell - mean, row, column) if clusters > 1 else (math.nan, math.nan)
    if not variance > 0:
        return Line(estimate=mean, low=-math.inf, high=math.inf, df=df, level=level, clusters=clusters, method=METHOD)
    error = math.sqrt(variance)
    half = float(stdtrit(df, (1 + level) / 2)) * error
    return Line(
        estimate=mean,
        standard_error=error,
        df=df,
        p=float(2 * stdtr(df, -abs(mean) / error)),
        low=mean - half,
        high=mean + half,
        level=level,
        clusters=clusters,
        method=METHOD,
    )


def _cells(values: Floats, rows: Ints, columns: Ints) -> tuple[Ints, Ints, Floats]:
    """Row, column and mean of every cell that has a value."""
    known = np.isfinite(values) & (rows >= 0) & (columns >= 0)
    values, rows, columns = values[known], rows[known], columns[known]
    width = int(columns.max()) + 1 if len(columns) else 1
    keys, place = np.unique(rows * width + columns, return_inverse=True)
    means = np.bincount(place, values) / np.bincount(place) if len(keys) else np.zeros(0)
    return keys // width, keys % width, means


def _variance(errors: Floats, rows: Ints, columns: Ints) -> tuple[float, float]:
    """The variance of the mean, and the degrees of freedom of its estimate."""
    count = len(errors)
    (by_row, own_rows), (by_column, own_columns) = _clustered(errors, rows), _clustered(errors, columns)
    full, least = count == own_rows * own_columns, min(own_rows, own_columns) - 1.0
    if full:
        table = errors[np.lexsort((columns, rows))].reshape(own_rows, own_columns)
        rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True)
        twice = float((rest**2).sum()) / ((own_rows - 1) * (own_columns - 1)) / count
    else:
        twice = float((errors**2).sum()) / (count * (count - 1))
    # The part that both contain is counted once; sampling may make it larger than either, which no variance can be.
    variance = max(by_row, by_column, by_row + by_column - twice)
    if not variance > 0:
        return 0.0, math.nan
    if not full:
        return variance, least
    df = variance**2 / (by_row**2 / (own_rows - 1) + by_column**2 / (own_columns - 1))
    # Rounded down: with six wordings 6.3% of simulated studies were false alarms with the fraction, 5.8% without it.
    return variance, max(math.floor(df + 1e-9), least)


def _clustered(errors: Floats, groups: Ints) -> tuple[float, int]:
    """The variance of the mean if groups were independent, and their number."""
    codes, member = np.unique(groups, return_inverse=True)
    sums = np.bincount(member, errors)
    return float((sums**2).sum()) / len(errors) ** 2 * len(codes) / (len(codes) - 1), len(codes)
