"""Does identity move the score? Permutation tests within clusters.

Under the null hypothesis the labels within a scenario could as well stand the other way round. So the cells (means
over everything within a cluster and identity) are exchanged within their cluster and nowhere else. Nothing is assumed
about normality, judges or repeats.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.stats.clustered import t_interval
from parley.analysis.stats.effects import missing_ends, partial_eta_squared
from parley.analysis.stats.resampling import BLOCK, DRAWS, EXACT, exact_p, monte_carlo_p, sign_flip_p
from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Column, Floats, cell_sums

ROUNDING = 1e-9
ASSUMES = "within a cluster the labels are exchangeable if identity has no effect; clusters are independent"


def identity_effect(
    values: Column,
    identities: Column,
    clusters: Column,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Test:
    """The scenario-cluster permutation test of rows: two identities or more."""
    sums, counts = cell_sums(values, identities, clusters)
    n = int(counts.to_numpy().sum())
    return effect_of_cells(sums / counts.where(counts > 0), n=n, draws=draws, seed=seed, level=level)


def effect_of_cells(
    cells: pd.DataFrame,
    *,
    n: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Test:
    """The same test of a table of cell means (see `tables.cell_means`): clusters by identities, NaN where empty.

    Two identities: signs of the differences are flipped; the effect is the mean difference with a t interval over
    clusters. More: labels are permuted within clusters; the statistic is F of the analysis of variance with clusters
    as blocks, the effect partial eta squared. Every arrangement is looked at where there are few.
    """
    known = cells.dropna(axis=1, how="all")
    n = int(known.notna().to_numpy().sum()) if n is None else n
    if known.shape[1] < 2:
        name, count = "permutation within clusters", int(known.notna().any(axis=1).sum())
        note = "fewer than two identities have values"
        return no_test(name, "mean difference", "clustered", ASSUMES, note, level, n, count)
    if known.shape[1] == 2:
        return _two(known, n, draws, seed, level)
    return _many(known.to_numpy(dtype=float), n, draws, seed, level)


def _two(cells: pd.DataFrame, n: int, draws: int, seed: int, level: float) -> Test:
    first, second = cells.columns
    differences = (cells[first] - cells[second]).dropna().to_numpy(dtype=float)
    count, effect = len(differences), f"mean difference, {first} − {second}"
    name = "sign flips over clusters"
    low, high, note = t_interval(differences, level)
    if count < 2:
        note = f"{count} clusters have both identities; at least two are needed"
    elif not differences.any():
        note = "no cluster shows any difference: there is nothing to flip"
    if count < 2 or not differences.any():
        return no_test(name, effect, "clustered", ASSUMES, note, level, n, count)
    p, how = sign_flip_p(differences, draws, seed)
    mean = float(differences.mean())
    statistic = math.nan if note else mean / float(stats.sem(differences))
    name = f"{name}, {how}"
    return Test(name, statistic, None, p, mean, effect, low, high, level, n, count, "clustered", ASSUMES, note)


def _many(cells: Floats, n: int, draws: int, seed: int, level: float) -> Test:
    name, effect = "label permutation within clusters", "partial eta squared"
    cells = cells[np.isfinite(cells).sum(axis=1) >= 2]
    count = len(cells)
    if count < 2:
        note = f"{count} clusters have two identities or more; at least two are needed"
        return no_test(name, effect, "clustered", ASSUMES, note, level, n, count)
    centred = cells - np.nanmean(cells, axis=1, keepdims=True)
    total = float(np.nansum(centred**2))
    if total <= 1e-18 * max(1.0, float(np.nanmax(np.abs(cells))) ** 2):
        note = "within every cluster all identities have the same mean: there is nothing to permute"
        return no_test(name, effect, "clustered", ASSUMES, note, level, n, count)
    seen = np.isfinite(cells).astype(float)
    # Cluster means are swept out of scores and labels alike, so the between-identity sum of squares is a quadratic
    # form in the identities' column sums; its matrix depends on which cells are there, not on the permutation.
    swept = np.diag(seen.sum(axis=0)) - (seen / seen.sum(axis=1, keepdims=True)).T @ seen
    inverse = np.linalg.pinv(swept, rcond=ROUNDING, hermitian=True)
    rank = int(np.sum(np.linalg.eigvalsh(swept) > ROUNDING * count))
    sums = np.nansum(centred, axis=0)
    between = float(sums @ inverse @ sums)
    drawn = _arrangements(centred)
    if drawn is None:
        how = f"{draws} draws, seed {seed}"
        p = monte_carlo_p(_form(_shuffled(centred, draws, seed), inverse), between, total)
    else:
        how = "exact"
        p = exact_p(_form(drawn, inverse), between, total)
    error_df = int(seen.sum()) - count - rank
    within, note = total - between, ""
    if error_df < 1 or within <= 1e-12 * total:
        f, note = math.nan, "identities explain every cell: no spread is left to judge the size of the effect by"
    else:
        f = between / rank / (within / error_df)
    eta, low, high = partial_eta_squared(f, rank, error_df, level)
    note = note or missing_ends(high, f < 1)
    name = f"{name}, {how}"
    return Test(name, f, None, p, eta, effect, low, high, level, n, count, "clustered", ASSUMES, note)


def _form(sums: Floats, matrix: Floats) -> Floats:
    found: Floats = ((sums @ matrix) * sums).sum(axis=1)
    return found


def _arrangements(cells: Floats) -> Floats | None:
    """The identities' sums under every arrangement of labels, or None where there are too many."""
    sizes = np.isfinite(cells).sum(axis=1)
    if sum(math.lgamma(size + 1) for size in sizes) > math.log(EXACT) + 1e-9:
        return None
    sums = np.zeros((1, cells.shape[1]))
    for row in cells:
        places = np.flatnonzero(np.isfinite(row))
        arranged = np.zeros((math.factorial(len(places)), len(row)))
        arranged[:, places] = list(itertools.permutations(row[places]))
        sums = (sums[:, None, :] + arranged[None, :, :]).reshape(-1, len(row))
    return sums


def _shuffled(cells: Floats, draws: int, seed: int) -> Floats:
    """The identities' sums under random arrangements; clusters that lack the same identities are shuffled together."""
    rng = np.random.default_rng(seed)
    sums = np.zeros((draws, cells.shape[1]))
    patterns, which = np.unique(np.isfinite(cells), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        block = cells[np.ravel(which) == number][:, pattern]
        size = max(1, BLOCK // block.size)
        for start in range(0, draws, size):
            rows = min(size, draws - start)
            shuffled = rng.permuted(np.broadcast_to(block, (rows, *block.shape)), axis=2)
            sums[start : start + rows, pattern] += shuffled.sum(axis=1)
    return sums
