"""Do judges agree? Fleiss' kappa, weighted Cohen's kappa, Krippendorff's alpha.

Ratings are a table, items by judges, with gaps where a judge gave no (readable) word. Intervals come from a bootstrap
over items, or over `clusters` (scenarios) of items where these are given. Every coefficient is a function of sums over
items, so a draw is a matrix product. In the results `n` counts ratings, `clusters` the units that were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.resampling import DRAWS, percentile, resampled_sums
from analysis.results import Estimate, no_estimate
from analysis.tables import Column, Floats, codes

Ratings = pd.DataFrame | NDArray[Any] | Sequence[Sequence[Any]]
Coefficient = Callable[[Floats], Floats]  # from rows of sums over items to one number a row
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
    counts, _ = _counts(ratings, None)
    size = counts.sum(axis=1)
    kept = size >= 2
    counts, size = counts[kept], size[kept]
    alike = (counts * (counts - 1)).sum(axis=1) / np.maximum(size * (size - 1), 1)
    units = np.column_stack([alike, np.ones(len(alike)), counts])

    def kappa(sums: Floats) -> Floats:
        seen, categories = sums[:, 0] / sums[:, 1], sums[:, 2:]
        chance = ((categories / categories.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        return _over(seen - chance, 1 - chance)

    return _bootstrapped("Fleiss' kappa", units, kappa, int(size.sum()), clusters, kept, draws, seed, level)


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
    kept = (code >= 0).all(axis=1)
    code, steps = code[kept], np.arange(len(labels))
    gap = np.abs(steps[:, None] - steps[None, :]).astype(float)
    cost = {"linear": gap, "quadratic": gap**2, "none": (gap > 0).astype(float)}[weights]
    units = np.column_stack(
        [cost[code[:, 0], code[:, 1]], np.ones(len(code)), np.eye(len(labels))[code[:, 0]], np.eye(len(labels))[code[:, 1]]]
    )

    def kappa(sums: Floats) -> Floats:
        ours, theirs = np.split(sums[:, 2:], 2, axis=1)
        chance = ((ours @ cost) * theirs).sum(axis=1) / sums[:, 1]
        return 1 - _over(sums[:, 0], chance)

    name = "Cohen's kappa" if weights == "none" else f"weighted kappa, {weights}"
    return _bootstrapped(name, units, kappa, 2 * len(code), clusters, kept, draws, seed, level, "no item has both ratings")


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
    if scale == "interval":
        table = pd.DataFrame(ratings).apply(pd.to_numeric).to_numpy(dtype=float, na_value=np.nan)
        size = np.isfinite(table).sum(axis=1)
        kept = size >= 2
        units, alpha = _interval_alpha(table[kept])
    else:
        counts, _ = _counts(ratings, categories)
        size = counts.sum(axis=1)
        kept = size >= 2
        units, alpha = (_nominal_alpha if scale == "nominal" else _ordinal_alpha)(counts[kept])
    name = f"Krippendorff's alpha, {scale}"
    return _bootstrapped(name, units, alpha, int(size[kept].sum()), clusters, kept, draws, seed, level)


def _nominal_alpha(counts: Floats) -> tuple[Floats, Coefficient]:
    size = counts.sum(axis=1)
    unlike = (size**2 - (counts**2).sum(axis=1)) / np.maximum(size - 1, 1)

    def alpha(sums: Floats) -> Floats:
        n = sums[:, 1:].sum(axis=1)
        return 1 - _over((n - 1) * sums[:, 0], n**2 - (sums[:, 1:] ** 2).sum(axis=1))

    return np.column_stack([unlike, counts]), alpha


def _interval_alpha(table: Floats) -> tuple[Floats, Coefficient]:
    """Squared differences of all pairs, from sums and sums of squares: no table of all values is needed."""
    table = table - (np.nanmean(table) if len(table) else 0.0)
    size = np.isfinite(table).sum(axis=1).astype(float)
    sums_, squares = np.nansum(table, axis=1), np.nansum(table**2, axis=1)
    unlike = 2 * (size * squares - sums_**2) / np.maximum(size - 1, 1)

    def alpha(sums: Floats) -> Floats:
        n = sums[:, 1]
        return 1 - _over((n - 1) * sums[:, 0], 2 * (n * sums[:, 3] - sums[:, 2] ** 2))

    return np.column_stack([unlike, size, sums_, squares]), alpha


def _ordinal_alpha(counts: Floats) -> tuple[Floats, Coefficient]:
    """Ordinal distance is the squared difference of mid-ranks, which every draw has its own of."""
    size, values = counts.sum(axis=1), counts.shape[1]
    pairs = (counts[:, :, None] * counts[:, None, :]) / np.maximum(size - 1, 1)[:, None, None]
    pairs -= np.eye(values) * (counts / np.maximum(size - 1, 1)[:, None])[:, None, :]

    def alpha(sums: Floats) -> Floats:
        seen = sums.reshape(-1, values, values)
        each = seen.sum(axis=2)
        n = each.sum(axis=1)
        rank = np.cumsum(each, axis=1) - each / 2
        apart = 2 * ((each * rank**2).sum(axis=1) - ((seen @ rank[:, :, None])[:, :, 0] * rank).sum(axis=1))
        expected = 2 * (n * (each * rank**2).sum(axis=1) - (each * rank).sum(axis=1) ** 2)
        return 1 - _over((n - 1) * apart, expected)

    return pairs.reshape(len(counts), values * values), alpha


def _bootstrapped(
    method: str,
    units: Floats,
    coefficient: Coefficient,
    n: int,
    clusters: Column | None,
    kept: NDArray[np.bool_],
    draws: int,
    seed: int,
    level: float,
    empty: str = NO_PAIR,
) -> Estimate:
    assumes = "items are independent of each other" if clusters is None else "clusters of items are independent"
    method = f"{method}, bootstrap over {'items' if clusters is None else 'clusters'}, {draws} draws, seed {seed}"
    if clusters is not None:
        code, _ = codes(clusters)
        member = np.unique(code[kept], return_inverse=True)[1]
        grouped = np.zeros((int(member.max(initial=-1)) + 1, units.shape[1]))
        np.add.at(grouped, member, units)
        units = grouped
    count = len(units)
    if count == 0:
        return no_estimate(method, assumes, empty, level, 0, 0)
    estimate = float(coefficient(units.sum(axis=0, keepdims=True))[0])
    if not math.isfinite(estimate):
        return no_estimate(method, assumes, ONE_VALUE, level, n, count)
    if count < 2:
        note = "a single item or cluster tells nothing about the spread between them"
        return Estimate(estimate, math.nan, math.nan, level, n, count, method, assumes, note)
    found = coefficient(resampled_sums(units, draws, seed))
    low, high = percentile(found, count, level)
    note = "most draws hold one value only: no interval" if math.isnan(low) else ""
    if high - low <= 1e-12:
        low, high, note = math.nan, math.nan, "all draws agree: the data show no spread to judge by"
    return Estimate(estimate, low, high, level, n, count, method, assumes, note)


def _over(above: Floats, below: Floats) -> Floats:
    """A quotient, NaN where nothing is below the line (rounding is nothing)."""
    found = np.full(len(above), np.nan)
    np.divide(above, below, out=found, where=np.abs(below) > 1e-12 * np.maximum(1.0, np.abs(above)))
    return found


def _codes(ratings: pd.DataFrame, categories: Sequence[Any] | None) -> tuple[NDArray[np.int64], list[Any]]:
    flat = pd.Series(ratings.to_numpy().ravel())
    if categories is None:
        code, labels = codes(flat)
    else:
        labels = list(categories)
        code = np.asarray(pd.Categorical(flat, categories=labels).codes, dtype=np.int64)
    return code.reshape(ratings.shape), labels


def _counts(ratings: Ratings, categories: Sequence[Any] | None) -> tuple[Floats, list[Any]]:
    """Items by categories: how many judges said so."""
    table = pd.DataFrame(ratings)
    code, labels = _codes(table, categories)
    cell = np.arange(len(table))[:, None] * len(labels) + code
    counts = np.bincount(cell[code >= 0], minlength=len(table) * len(labels))
    return counts.reshape(len(table), len(labels)).astype(float), labels
