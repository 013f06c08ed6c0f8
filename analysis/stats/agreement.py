"""Inter-rater agreement: Fleiss' kappa, weighted Cohen's kappa, Krippendorff's alpha.

Ratings are a table of items (rows) by judges (columns), with gaps where a judge's reply is missing or unreadable.
Intervals come from a bootstrap over items, or over `clusters` (bases, scenarios) of items where these are given. Every
coefficient is a function of sums over items, so a draw is a matrix product. In the results `n` counts ratings, and
`clusters` the units that were drawn.

With few clusters, percentiles of the draws cover far too little (α over 10 clusters of 10 items: 71 to 94% instead of
95%). The draws are studentised instead: each is compared with the estimate in units of its own standard error, on the
scale log(1 - coefficient), and the quantiles are applied to the jackknife's standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from parley.analysis.stats.resampling import DRAWS, bootstrap_sums
from parley.analysis.stats.results import LEVEL, Line
from parley.analysis.stats.tables import Column, Floats, Ints, factorize, unique_rows
from parley.base.text import plural

Ratings: TypeAlias = pd.DataFrame | NDArray[Any] | Sequence[Sequence[Any]]
Coefficient: TypeAlias = Callable[[Floats], Floats]  # from rows of sums over items to one number per row
Parts: TypeAlias = tuple[Floats, Coefficient]
Builder: TypeAlias = Callable[[Floats], Parts]
ONE_VALUE = "every rating is the same: agreement beyond chance is not defined"
NO_PAIR = "no item has two ratings"
ONE_VALUE_LEFT = "most draws contain one value only: no interval"
ENOUGH_CLUSTERS = 8
"""With fewer clusters, no bootstrap interval covers what it claims."""
NO_SPREAD = "all items or clusters agree equally: there is no spread to estimate an error from"
MAX_COLUMNS = 40
"""With more sums than this (some 40 categories), the interval is the jackknife's alone."""
ONE_UNIT = "a single item or cluster: the spread between them cannot be estimated"


def fleiss_kappa(
    ratings: Ratings,
    *,
    clusters: Column | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Line:
    """Fleiss' kappa for categories. Items with gaps count with the pairs of ratings they have.

    Args:
        ratings: Items by judges.
        clusters: The cluster of each item; None: items are taken as independent.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    codes, labels = _category_codes(pd.DataFrame(ratings))
    counts = (codes[:, :, None] == np.arange(len(labels))).sum(axis=1).astype(float)
    return _bootstrap(
        counts,
        counts.sum(axis=1),
        _fleiss,
        method="Fleiss' kappa",
        clusters=clusters,
        draws=draws,
        seed=seed,
    )


def weighted_kappa(
    first: Column,
    second: Column,
    *,
    weights: Literal["linear", "quadratic", "none"] = "linear",
    categories: Sequence[Any] | None = None,
    clusters: Column | None = None,
    seed: int = 0,
) -> Line:
    """Cohen's kappa of two judges, disagreement weighted by the number of steps between their categories.

    Args:
        first: The first judge's ratings, one per item.
        second: The second judge's ratings of the same items.
        weights: How disagreement grows with the steps; "none" is Cohen's unweighted kappa.
        categories: The scale in order; None: the values that occur, sorted.
        clusters: The cluster of each item; None: items are taken as independent.
        seed: Seed of the draws.
    """
    pair = pd.DataFrame({"first": pd.Series(first).to_numpy(), "second": pd.Series(second).to_numpy()})
    codes, labels = _category_codes(pair, categories)
    steps = np.arange(len(labels))
    gap = np.abs(steps[:, None] - steps[None, :]).astype(float)
    cost = {"linear": gap, "quadratic": gap**2, "none": (gap > 0).astype(float)}[weights]
    return _bootstrap(
        codes.astype(float),
        (codes >= 0).sum(axis=1),
        lambda pairs: _cohen(pairs, cost),
        method="Cohen's kappa" if weights == "none" else f"weighted kappa, {weights}",
        clusters=clusters,
        draws=DRAWS,
        seed=seed,
    )


def krippendorff_alpha(
    ratings: Ratings,
    *,
    clusters: Column | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Line:
    """Krippendorff's alpha of scores: 1 minus observed over expected disagreement, the squared differences.

    It takes any number of judges and any gaps.

    Args:
        ratings: Items by judges.
        clusters: The cluster of each item; None: items are taken as independent.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    table = pd.DataFrame(ratings).apply(pd.to_numeric).to_numpy(dtype=float, na_value=np.nan)
    # Centred, so that sums of squares lose no digits; alpha does not depend on the origin of the scale.
    rows = np.sort(table, axis=1) - (np.nanmean(table) if np.isfinite(table).any() else 0.0)
    return _bootstrap(
        rows,
        np.isfinite(rows).sum(axis=1),
        _interval,
        method="Krippendorff's alpha, interval",
        clusters=clusters,
        draws=draws,
        seed=seed,
    )


# A builder takes distinct items (each with at least two ratings) and returns, for each of them, numbers to be summed
# over items, and the coefficient as a function of those sums.


def _fleiss(counts: Floats) -> Parts:
    size = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (size * (size - 1))

    def kappa(sums: Floats) -> Floats:
        observed, categories = sums[:, 0] / sums[:, 1], sums[:, 2:]
        chance = ((categories / categories.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        return _ratio(observed - chance, 1 - chance)

    return np.column_stack([agreeing, np.ones(len(agreeing)), counts]), kappa


def _cohen(pairs: Floats, cost: Floats) -> Parts:
    first, second = pairs.astype(np.int64).T
    indicators = np.eye(len(cost))

    def kappa(sums: Floats) -> Floats:
        first_counts, second_counts = np.split(sums[:, 2:], 2, axis=1)
        chance = ((first_counts @ cost) * second_counts).sum(axis=1) / sums[:, 1]
        return 1 - _ratio(sums[:, 0], chance)

    columns = [cost[first, second], np.ones(len(pairs)), indicators[first], indicators[second]]
    return np.column_stack(columns), kappa


def _interval(table: Floats) -> Parts:
    """Squared differences of all pairs, from sums and sums of squares: no table of all values is needed."""
    size = np.isfinite(table).sum(axis=1)
    total, squares = np.nansum(table, axis=1), np.nansum(table**2, axis=1)
    disagreement = 2 * (size * squares - total**2) / (size - 1)

    def alpha(sums: Floats) -> Floats:
        n = sums[:, 1]
        return 1 - _ratio((n - 1) * sums[:, 0], 2 * (n * sums[:, 3] - sums[:, 2] ** 2))

    return np.column_stack([disagreement, size, total, squares]), alpha


def _bootstrap(
    rows: Floats,
    sizes: Floats | Ints,
    build: Builder,
    *,
    method: str,
    clusters: Column | None,
    draws: int,
    seed: int,
) -> Line:
    """A coefficient with its bootstrap interval. Equal items are computed once.

    Args:
        rows: One row per item.
        sizes: The number of ratings of each item.
        build: Makes the numbers to be summed over items, and the coefficient.
        method: The coefficient's name.
        clusters: The cluster of each item; None: items are drawn.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    rated = sizes >= 2
    unknown = Line(
        method=f"{method}, studentised bootstrap over {'items' if clusters is None else 'clusters'}, {draws} draws, "
        f"seed {seed}",
        assumes="items are independent of each other" if clusters is None else "clusters of items are independent",
        n=int(sizes[rated].sum()),
        clusters=0,
    )
    if unknown.n == 0:
        return replace(unknown, note=NO_PAIR)
    distinct, member = unique_rows(rows[rated])
    units, coefficient = build(distinct)
    counts = np.bincount(member)
    estimate = float(coefficient((counts @ units)[None, :])[0])
    size = len(member)
    if clusters is not None:
        group = np.unique(factorize(clusters)[0][rated], return_inverse=True)[1]
        units = np.column_stack([np.bincount(group, column[member]) for column in units.T])
        size = len(units)
    unknown = replace(unknown, clusters=size)
    if not math.isfinite(estimate):
        return replace(unknown, note=ONE_VALUE)
    if size < 2:
        return replace(unknown, estimate=estimate, note=ONE_UNIT)
    if clusters is not None and size < ENOUGH_CLUSTERS:
        return replace(unknown, estimate=estimate, note=f"{size} clusters: an interval needs {ENOUGH_CLUSTERS}")
    repeated = clusters is None and 2 * len(distinct) <= size
    if not repeated and clusters is None:
        units = units[member]
    low, high, note = _studentised(
        units,
        coefficient,
        estimate,
        counts=counts if repeated else None,
        draws=draws,
        seed=seed,
    )
    return replace(unknown, estimate=estimate, low=low, high=high, note=note)


def _studentised(
    units: Floats,
    coefficient: Coefficient,
    estimate: float,
    *,
    counts: Ints | None,
    draws: int,
    seed: int,
) -> tuple[float, float, str]:
    """The bootstrap-t interval on the scale -log(1 - coefficient): lower end, upper end, and why there is none.

    A draw's standard error is the delta method's: the sums of products of the units' numbers are drawn along with the
    sums. A draw without spread is infinitely many standard errors away. An end beyond every possible value becomes -1
    or 1.

    Args:
        units: One row per unit.
        coefficient: From rows of sums to one number per row.
        estimate: The coefficient of the data.
        counts: How many equal units each row represents; None: one.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    weights = np.ones(len(units)) if counts is None else counts.astype(float)
    size, columns = int(weights.sum()), units.shape[1]
    without = coefficient(weights @ units - units)
    given = np.isfinite(without)
    if not given.any():
        return math.nan, math.nan, ONE_VALUE_LEFT
    gaps = np.where(given, without - np.average(without[given], weights=weights[given]), 0.0)
    error = math.sqrt((size - 1) / size * float(weights @ gaps**2))
    if error <= 1e-12:
        return math.nan, math.nan, NO_SPREAD
    if columns > MAX_COLUMNS:
        ends = stdtrit(size - 1, [(1 + LEVEL) / 2, (1 - LEVEL) / 2])
    elif draws * (1 - LEVEL) < 2 - 1e-9:
        return math.nan, math.nan, f"a {LEVEL:.0%} interval needs more than {plural(draws, 'draw')}"
    else:
        first, second = np.triu_indices(columns)
        products = units[:, first] * units[:, second] * np.where(first == second, 1, 2)
        extended = np.hstack([units, products])

        def standard_error(sums: Floats) -> Floats:
            slope = _slope(coefficient, sums[:, :columns])
            squares = (slope[:, first] * slope[:, second] * sums[:, columns:]).sum(axis=1)
            mean = (slope * sums[:, :columns]).sum(axis=1) / size
            errors: Floats = np.sqrt(np.maximum((squares - size * mean**2) * size / (size - 1), 0.0))
            return errors

        sums = bootstrap_sums(extended, draws, seed, counts)
        drawn = coefficient(sums[:, :columns])
        known = np.isfinite(drawn)
        if 2 * known.sum() <= draws:
            return math.nan, math.nan, ONE_VALUE_LEFT
        drawn, errors = drawn[known], standard_error(sums[known])
        error = max(error, float(standard_error((weights @ extended)[None, :])[0]))
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = (math.log(1 - estimate) - np.log(1 - drawn)) * (1 - drawn) / errors
        without_spread = errors <= 1e-9 * error
        steps[without_spread] = np.where(drawn[without_spread] > estimate, math.inf, -math.inf)
        ends = np.quantile(steps, [(1 + LEVEL) / 2, (1 - LEVEL) / 2], method="nearest")
    ends = np.minimum(math.log(1 - estimate) + ends * error / (1 - estimate), math.log(2))
    low, high = (1 - np.exp(ends)).tolist()
    return low, high, ""


def _slope(coefficient: Coefficient, sums: Floats) -> Floats:
    """The derivatives of the coefficient with respect to each sum, by central differences."""
    step = 1e-6 * np.abs(sums).max(axis=1)
    slope = np.empty_like(sums)
    for column in range(sums.shape[1]):
        moved = np.zeros_like(sums)
        moved[:, column] = step
        slope[:, column] = (coefficient(sums + moved) - coefficient(sums - moved)) / (2 * step)
    return slope


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient; NaN where the denominator is 0 up to rounding."""
    quotient = np.full(len(numerator), np.nan)
    divisible = np.abs(denominator) > 1e-12 * np.maximum(1.0, np.abs(numerator))
    np.divide(numerator, denominator, out=quotient, where=divisible)
    return quotient


def _category_codes(ratings: pd.DataFrame, categories: Sequence[Any] | None = None) -> tuple[Ints, list[Any]]:
    flat = pd.Series(ratings.to_numpy().ravel())
    if categories is None:
        codes, labels = factorize(flat)
    else:
        labels = list(categories)
        codes = np.asarray(pd.Categorical(flat, categories=labels).codes, dtype=np.int64)
    return codes.reshape(ratings.shape), labels
