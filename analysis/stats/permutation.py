"""The effect of identity on a score: permutation tests within clusters.

Under the null hypothesis the labels within a scenario are exchangeable. So cells (means of all values of one cluster
and identity) are permuted within their cluster only. Nothing is assumed about normality, judges or repeats.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.stats.clustered import t_interval
from parley.analysis.stats.effects import missing_interval_note, partial_eta_squared
from parley.analysis.stats.resampling import BLOCK_SIZE, DRAWS, MAX_EXACT, exact_p, monte_carlo_p, sign_flip_p
from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Column, Floats, cell_sums

TOLERANCE = 1e-9  # eigenvalues below it are 0
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
    """The permutation test of `effect_of_cells`, from rows.

    Args:
        values: One value per row; rows where it is missing are left out.
        identities: The identity of each row, two or more in all.
        clusters: The cluster of each row, usually its scenario. Clusters are taken as independent.
        draws: Number of random permutations, where there are too many to enumerate.
        seed: Seed of the draws.
        level: Confidence level of the effect size.
    """
    sums, counts = cell_sums(values, identities, clusters)
    n = int(counts.to_numpy().sum())
    return effect_of_cells(sums / counts.where(counts > 0), n=n, draws=draws, seed=seed, level=level)


def effect_of_cells(
    cells: pd.DataFrame,
    *,
    n: int | None = None,
    tests: int = 1,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Test:
    """The permutation test of a table of cell means.

    With two identities the signs of the clusters' differences are flipped; the effect is the mean difference with a t
    interval over clusters. With more, labels are permuted within clusters; the statistic is F of the analysis of
    variance with clusters as blocks, the effect partial eta squared. Few arrangements are enumerated, not sampled.

    Args:
        cells: Clusters by identities, NaN where a cell is empty (see `tables.cell_means`).
        n: Number of values behind the cells; None: the number of cells.
        draws: Number of random permutations, where there are too many to enumerate.
        seed: Seed of the draws.
        level: Confidence level of the effect size.
    """
    present = cells.dropna(axis=1, how="all")
    n = int(present.notna().to_numpy().sum()) if n is None else n
    if present.shape[1] == 2:
        return _sign_flip_test(present, n, draws, seed, level)
    if present.shape[1] > 2:
        return _label_permutation_test(present.to_numpy(dtype=float), n, draws, seed, level)
    return no_test(
        name="permutation within clusters",
        effect_name="mean difference",
        assumption="clustered",
        assumes=ASSUMES,
        level=level,
        n=n,
        clusters=int(present.notna().any(axis=1).sum()),
        note="fewer than two identities have values",
    )


def _sign_flip_test(cells: pd.DataFrame, n: int, draws: int, seed: int, level: float) -> Test:
    first, second = cells.columns
    differences = (cells[first] - cells[second]).dropna().to_numpy(dtype=float)
    count = len(differences)
    unknown = no_test(
        name="sign-flip test over clusters",
        effect_name=f"mean difference, {first} − {second}",
        assumption="clustered",
        assumes=ASSUMES,
        level=level,
        n=n,
        clusters=count,
    )
    if count < 2:
        return replace(unknown, note="fewer than two clusters have both identities")
    if not differences.any():
        return replace(unknown, note="no cluster shows any difference: there is no sign to flip")
    low, high, note = t_interval(differences, level)
    p, computed = sign_flip_p(differences, draws, seed)
    mean = float(differences.mean())
    return replace(
        unknown,
        name=f"{unknown.name}, {computed}",
        statistic=math.nan if note else mean / float(stats.sem(differences)),
        p=p,
        effect=mean,
        low=low,
        high=high,
        note=note,
    )


def _label_permutation_test(cells: Floats, n: int, draws: int, seed: int, level: float) -> Test:
    cells = cells[np.isfinite(cells).sum(axis=1) >= 2]
    count = len(cells)
    unknown = no_test(
        name="label permutation within clusters",
        effect_name="partial eta squared",
        assumption="clustered",
        assumes=ASSUMES,
        level=level,
        n=n,
        clusters=count,
    )
    if count < 2:
        return replace(unknown, note="fewer than two clusters have two identities or more")
    centred = cells - np.nanmean(cells, axis=1, keepdims=True)
    total = float(np.nansum(centred**2))
    if total <= 1e-18 * max(1.0, float(np.nanmax(np.abs(cells))) ** 2):
        note = "within every cluster all identities have the same mean: there is nothing to permute"
        return replace(unknown, note=note)
    present = np.isfinite(cells).astype(float)
    # Cluster means are swept out of scores and labels alike, so the between-identity sum of squares is a quadratic
    # form in the identities' column sums; its matrix depends on which cells are present, not on the permutation.
    swept = np.diag(present.sum(axis=0)) - (present / present.sum(axis=1, keepdims=True)).T @ present
    inverse = np.linalg.pinv(swept, rcond=TOLERANCE, hermitian=True)
    rank = int(np.sum(np.linalg.eigvalsh(swept) > TOLERANCE * count))
    sums = np.nansum(centred, axis=0)
    between = float(sums @ inverse @ sums)
    arrangements = _all_arrangements(centred)
    if arrangements is None:
        computed = f"{draws} draws, seed {seed}"
        p = monte_carlo_p(_quadratic_form(_random_arrangements(centred, draws, seed), inverse), between, total)
    else:
        computed = "exact"
        p = exact_p(_quadratic_form(arrangements, inverse), between, total)
    error_df = int(present.sum()) - count - rank
    within, note = total - between, ""
    if error_df < 1 or within <= 1e-12 * total:
        f, note = math.nan, "identities explain every cell: there is no residual spread to compare the effect with"
    else:
        f = between / rank / (within / error_df)
    eta, low, high = partial_eta_squared(f, rank, error_df, level)
    return replace(
        unknown,
        name=f"{unknown.name}, {computed}",
        statistic=f,
        p=p,
        effect=eta,
        low=low,
        high=high,
        note=note or missing_interval_note(high, small=f < 1),
    )


def _quadratic_form(sums: Floats, matrix: Floats) -> Floats:
    values: Floats = ((sums @ matrix) * sums).sum(axis=1)
    return values


def _all_arrangements(cells: Floats) -> Floats | None:
    """The identities' sums under every arrangement of labels, or None where there are too many."""
    sizes = np.isfinite(cells).sum(axis=1)
    if sum(math.lgamma(size + 1) for size in sizes) > math.log(MAX_EXACT) + 1e-9:
        return None
    sums = np.zeros((1, cells.shape[1]))
    for row in cells:
        places = np.flatnonzero(np.isfinite(row))
        arranged = np.zeros((math.factorial(len(places)), len(row)))
        arranged[:, places] = list(itertools.permutations(row[places]))
        sums = (sums[:, None, :] + arranged[None, :, :]).reshape(-1, len(row))
    return sums


def _random_arrangements(cells: Floats, draws: int, seed: int) -> Floats:
    """The identities' sums under random arrangements; clusters that lack the same identities are shuffled together."""
    rng = np.random.default_rng(seed)
    sums = np.zeros((draws, cells.shape[1]))
    patterns, pattern_of = np.unique(np.isfinite(cells), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        block = cells[np.ravel(pattern_of) == number][:, pattern]
        size = max(1, BLOCK_SIZE // block.size)
        for start in range(0, draws, size):
            rows = min(size, draws - start)
            shuffled = rng.permuted(np.broadcast_to(block, (rows, *block.shape)), axis=2)
            sums[start : start + rows, pattern] += shuffled.sum(axis=1)
    return sums
