"""The permutation test of the effect of identity on a score: signs are flipped over clusters.

Under the null hypothesis, a cluster's differences between identities are as likely to all have the opposite sign. So
the deviations of its cells (means of all values of one cluster and identity) from the cluster's mean keep or change
their signs together. Labels are not permuted within a cluster: where effects differ from cluster to cluster for some
identities only, labels are not exchangeable, and such a test rejects too often. Nothing is assumed about normality,
judges or repeats.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd

from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.resampling import arrangement_p, data_seed, half_size
from parley.analysis.stats.results import Estimate
from parley.analysis.stats.tables import Floats

TOLERANCE = 1e-9
"""Eigenvalues below it are 0, and distances that differ by less, relative to the largest value, are equal."""
ASSUMES = (
    "if identity has no effect, a cluster's differences could as well have opposite signs; clusters are independent"
)


def effect_of_cells(cells: pd.DataFrame, *, n: int | None = None, tests: int = 1) -> Estimate:
    """The permutation test of a table of cell means.

    With two identities it is the test of a mean difference (see mean_test.py). With more, the signs of whole clusters
    are flipped; the statistic is F of the analysis of variance with clusters as blocks, the effect partial eta squared.
    If arrangements are few, all are counted; if many, some millions are drawn with a seed that the cells fix.

    Args:
        cells: Clusters by identities, NaN where a cell is empty (see `tables.cell_means`).
        n: Number of values behind the cells; None: the number of cells.
        tests: Number of tests in the family: the more, the more arrangements are drawn.
    """
    present = cells.dropna(axis=1, how="all")
    n = int(present.notna().to_numpy().sum()) if n is None else n
    if present.shape[1] < 2:
        clusters, note = int(present.notna().any(axis=1).sum()), "fewer than two identities have values"
        return replace(mean_test(()), n=n, clusters=clusters, note=note)
    if present.shape[1] > 2:
        return _flip_clusters_test(present, n, tests)
    first, second = present
    differences = (present[first] - present[second]).dropna().to_numpy(dtype=float)
    return replace(mean_test(differences), measure=f"mean difference, {first} − {second}", n=n)


def _flip_clusters_test(means: pd.DataFrame, n: int, tests: int) -> Estimate:
    # Identities are sorted by name, so that the order of the rows changes no random arrangement.
    cells = means[sorted(means.columns, key=str)].to_numpy(dtype=float)
    cells = cells[np.isfinite(cells).sum(axis=1) >= 2]
    count = len(cells)
    unknown = Estimate(
        method="sign flips of whole clusters",
        measure="partial eta squared",
        assumes=ASSUMES,
        n=n,
        clusters=count,
    )
    if count < 2:
        return replace(unknown, note="fewer than two clusters have two identities or more")
    centred = cells - np.nanmean(cells, axis=1, keepdims=True)
    total = float(np.nansum(centred**2))
    if total <= 1e-18 * max(1.0, float(np.nanmax(np.abs(cells))) ** 2):
        note = "within every cluster all identities have the same mean"
        return replace(unknown, p=1.0, estimate=0.0, note=note)
    present = np.isfinite(cells).astype(float)
    # Cluster means are swept out of scores and labels alike, so the between-identity sum of squares is a quadratic
    # form in the identities' column sums; its matrix depends on which cells are present, not on the permutation.
    swept = np.diag(present.sum(axis=0)) - (present / present.sum(axis=1, keepdims=True)).T @ present
    inverse = np.linalg.pinv(swept, rcond=TOLERANCE, hermitian=True)
    rank = int(np.sum(np.linalg.eigvalsh(swept) > TOLERANCE * count))
    sums = np.nansum(centred, axis=0)
    between = float(sums @ inverse @ sums)
    arranged = _flipped_clusters(centred, inverse, between, total, half_size(tests))
    error_df = int(present.sum()) - count - rank
    within, note = total - between, ""
    if error_df < 1 or within <= 1e-12 * total:
        f = eta = math.nan
        note = "identities explain every cell: there is no residual spread to compare the effect with"
    else:
        f, eta = between / rank / (within / error_df), between / total
    return replace(
        unknown,
        method=f"{unknown.method}, {arranged.method}",
        statistic=f,
        p=arranged.p,
        estimate=eta,
        note="; ".join(filter(None, (arranged.note, note))),
    )


def _flipped_clusters(cells: Floats, matrix: Floats, observed: float, scale: float, size: int) -> Estimate:
    """The p-value of the quadratic form of the identities' sums."""
    rng = np.random.default_rng(data_seed(cells))
    (first, all_first), (second, all_second) = (_half_sums(half, size, rng) for half in (cells[0::2], cells[1::2]))

    def quadratic_forms(some: Floats, others: Floats) -> Floats:
        some_squares, other_squares = (((sums @ matrix) * sums).sum(axis=1, keepdims=True) for sums in (some, others))
        left = np.hstack([2 * some @ matrix, some_squares, np.ones_like(some_squares)])
        forms: Floats = left @ np.hstack([others, np.ones_like(other_squares), other_squares]).T
        return forms

    return arrangement_p((first, second), quadratic_forms, observed, exact=all_first and all_second, scale=scale)


def _half_sums(cells: Floats, size: int, rng: np.random.Generator) -> tuple[Floats, bool]:
    """The identities' sums over some clusters under every pattern of signs, and True.

    Where there are more than `size` of them: under as many random ones, the first of which are the data, and False.
    """
    deviations = np.nan_to_num(cells)
    if len(cells) <= math.log2(size) + 1e-9:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(cells)))).reshape(-1, len(cells))
        return signs @ deviations, True
    signs = 2.0 * rng.integers(0, 2, (size, len(cells))) - 1
    signs[0] = 1.0
    return signs @ deviations, False
