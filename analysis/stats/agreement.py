"""Do judges agree? Fleiss' kappa, weighted Cohen's kappa, Krippendorff's alpha.

Ratings are a table, items by judges, with gaps where a judge gave no (readable) word. Intervals come from a bootstrap
over items, or over `clusters` (scenarios) of items where these are given. Every coefficient is a function of sums over
items, so a draw is a matrix product. In the results `n` counts ratings, `clusters` the units that were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parley.analysis.stats.resampling import DRAWS, percentile, resampled_sums
from parley.analysis.stats.results import Estimate, no_estimate
from parley.analysis.stats.tables import Column, Floats, Ints, codes, distinct

Ratings: TypeAlias = pd.DataFrame | NDArray[Any] | Sequence[Sequence[Any]]
Coefficient: TypeAlias = Callable[[Floats], Floats]  # from rows of sums over items to one number a row
Parts: TypeAlias = tuple[Floats, Coefficient]
Builder: TypeAlias = Callable[[Floats], Parts]
ONE_VALUE = "every rating is the same: agreement beyond chance is not defined"
NO_PAIR = "no item has two ratings"


def fleiss_kappa(
    ratings: Ratings,
    *,
    clusters: Column | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Fleiss' kappa for categories. Items with gaps count with the pairs of ratings they have."""
    counts = _counts(ratings, None)
    return _bootstrapped("Fleiss' kappa", counts, counts.sum(axis=1), _fleiss, clusters, draws, seed, level)


def weighted_kappa(
    first: Column,
    second: Column,
    *,
    weights: Literal["linear", "quadratic", "none"] = "linear",
    categories: Sequence[Any] | None = None,
    clusters: Column | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Cohen's kappa of two judges, disagreement weighted by how many steps of `categories` lie between them.

    `categories` is the scale in order; without it, the values that occur, sorted.
    """
    pair = pd.DataFrame({"first": pd.Series(first).to_numpy(), "second": pd.Series(second).to_numpy()})
    code, labels = _codes(pair, categories)
    steps = np.arange(len(labels))
    gap = np.abs(steps[:, None] - steps[None, :]).astype(float)
    cost = {"linear": gap, "quadratic": gap**2, "none": (gap > 0).astype(float)}[weights]
    name = "Cohen's kappa" if weights == "none" else f"weighted kappa, {weights}"
    sizes = (code >= 0).sum(axis=1)
    return _bootstrapped(
        name, code.astype(float), sizes, lambda pairs: _cohen(pairs, cost), clusters, draws, seed, level
    )


def krippendorff_alpha(
    ratings: Ratings,
    *,
    scale: Literal["nominal", "ordinal", "interval"] = "interval",
    categories: Sequence[Any] | None = None,
    clusters: Column | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Krippendorff's alpha: 1 minus observed over expected disagreement, for any number of judges and any gaps.

    `categories` gives the order of an ordinal scale whose values do not sort themselves.
    """
    name = f"Krippendorff's alpha, {scale}"
    if scale == "interval":
        table = pd.DataFrame(ratings).apply(pd.to_numeric).to_numpy(dtype=float, na_value=np.nan)
        rows = np.sort(table, axis=1) - (np.nanmean(table) if np.isfinite(table).any() else 0.0)
        return _bootstrapped(name, rows, np.isfinite(rows).sum(axis=1), _interval, clusters, draws, seed, level)
    build = _nominal if scale == "nominal" else _ordinal
    counts = _counts(ratings, categories)
    return _bootstrapped(name, counts, counts.sum(axis=1), build, clusters, draws, seed, level)


# A builder takes kinds of items (each with two ratings at least) and gives, for each kind, numbers to be summed over
# items; and the coefficient as a function of those sums.


def _fleiss(counts: Floats) -> Parts:
    size = counts.sum(axis=1)
    alike = (counts * (counts - 1)).sum(axis=1) / (size * (size - 1))

    def kappa(sums: Floats) -> Floats:
        seen, categories = sums[:, 0] / sums[:, 1], sums[:, 2:]
        chance = ((categories / categories.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        return _over(seen - chance, 1 - chance)

    return np.column_stack([alike, np.ones(len(alike)), counts]), kappa


def _cohen(pairs: Floats, cost: Floats) -> Parts:
    ours, theirs = pairs.astype(np.int64).T
    marks = np.eye(len(cost))

    def kappa(sums: Floats) -> Floats:
        one, other = np.split(sums[:, 2:], 2, axis=1)
        chance = ((one @ cost) * other).sum(axis=1) / sums[:, 1]
        return 1 - _over(sums[:, 0], chance)

    return np.column_stack([cost[ours, theirs], np.ones(len(pairs)), marks[ours], marks[theirs]]), kappa


def _nominal(counts: Floats) -> Parts:
    size = counts.sum(axis=1)
    unlike = (size**2 - (counts**2).sum(axis=1)) / (size - 1)

    def alpha(sums: Floats) -> Floats:
        n = sums[:, 1:].sum(axis=1)
        return 1 - _over((n - 1) * sums[:, 0], n**2 - (sums[:, 1:] ** 2).sum(axis=1))

    return np.column_stack([unlike, counts]), alpha


def _interval(table: Floats) -> Parts:
    """Squared differences of all pairs, from sums and sums of squares: no table of all values is needed."""
    size = np.isfinite(table).sum(axis=1)
    total, squares = np.nansum(table, axis=1), np.nansum(table**2, axis=1)
    unlike = 2 * (size * squares - total**2) / (size - 1)

    def alpha(sums: Floats) -> Floats:
        n = sums[:, 1]
        return 1 - _over((n - 1) * sums[:, 0], 2 * (n * sums[:, 3] - sums[:, 2] ** 2))

    return np.column_stack([unlike, size, total, squares]), alpha


def _ordinal(counts: Floats) -> Parts:
    """Ordinal distance is the squared difference of mid-ranks, and every draw has mid-ranks of its own."""
    values = counts.shape[1]
    share = counts / (counts.sum(axis=1, keepdims=True) - 1)
    pairs = share[:, :, None] * counts[:, None, :] - np.eye(values) * share[:, None, :]

    def alpha(sums: Floats) -> Floats:
        seen = sums.reshape(-1, values, values)
        each = seen.sum(axis=2)
        n = each.sum(axis=1)
        rank = np.cumsum(each, axis=1) - each / 2
        spread = (each * rank**2).sum(axis=1)
        apart = 2 * (spread - ((seen @ rank[:, :, None])[:, :, 0] * rank).sum(axis=1))
        return 1 - _over((n - 1) * apart, 2 * (n * spread - (each * rank).sum(axis=1) ** 2))

    return pairs.reshape(len(counts), values * values), alpha


def _bootstrapped(
    method: str,
    rows: Floats,
    sizes: Floats | Ints,
    build: Builder,
    clusters: Column | None,
    draws: int,
    seed: int,
    level: float,
) -> Estimate:
    """A coefficient of items (rows with so many ratings), with its interval. Equal items are handled together."""
    assumes = "items are independent of each other" if clusters is None else "clusters of items are independent"
    method = f"{method}, bootstrap over {'items' if clusters is None else 'clusters'}, {draws} draws, seed {seed}"
    paired = sizes >= 2
    n = int(sizes[paired].sum())
    if n == 0:
        return no_estimate(method, assumes, NO_PAIR, level, 0, 0)
    kinds, member = distinct(rows[paired])
    units, coefficient = build(kinds)
    times = np.bincount(member)
    estimate = float(coefficient((times @ units)[None, :])[0])
    count = len(member)
    if clusters is not None:
        group = np.unique(codes(clusters)[0][paired], return_inverse=True)[1]
        units = np.column_stack([np.bincount(group, column[member]) for column in units.T])
        count = len(units)
    if not math.isfinite(estimate):
        return no_estimate(method, assumes, ONE_VALUE, level, n, count)
    if count < 2:
        note = "a single item or cluster tells nothing about the spread between them"
        return Estimate(estimate, math.nan, math.nan, level, n, count, method, assumes, note)
    if clusters is None and 2 * len(kinds) <= count:
        drawn = resampled_sums(units, draws, seed, times)
    else:
        drawn = resampled_sums(units if clusters is not None else units[member], draws, seed)
    low, high = percentile(coefficient(drawn), count, level)
    note = "most draws hold one value only: no interval" if math.isnan(low) else ""
    if high - low <= 1e-12:
        low, high, note = math.nan, math.nan, "all draws agree: the data show no spread to judge by"
    return Estimate(estimate, low, high, level, n, count, method, assumes, note)


def _over(above: Floats, below: Floats) -> Floats:
    """A quotient, NaN where nothing is below the line (rounding is nothing)."""
    found = np.full(len(above), np.nan)
    np.divide(above, below, out=found, where=np.abs(below) > 1e-12 * np.maximum(1.0, np.abs(above)))
    return found


def _codes(ratings: pd.DataFrame, categories: Sequence[Any] | None) -> tuple[Ints, list[Any]]:
    flat = pd.Series(ratings.to_numpy().ravel())
    if categories is None:
        code, labels = codes(flat)
    else:
        labels = list(categories)
        code = np.asarray(pd.Categorical(flat, categories=labels).codes, dtype=np.int64)
    return code.reshape(ratings.shape), labels


def _counts(ratings: Ratings, categories: Sequence[Any] | None) -> Floats:
    """Items by categories: how many judges said so."""
    table = pd.DataFrame(ratings)
    code, labels = _codes(table, categories)
    cell = np.arange(len(table))[:, None] * len(labels) + code
    counts = np.bincount(cell[code >= 0], minlength=len(table) * len(labels))
    return counts.reshape(len(table), len(labels)).astype(float)
