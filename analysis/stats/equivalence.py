"""Is there no difference worth speaking of? Two one-sided tests (TOST) against a margin stated beforehand.

A p-value above 0.05 is never evidence of "no bias"; this is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
from scipy import stats

from parley.analysis.stats.clustered import ASSUMES, t_interval
from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Column, Floats, cell_sums, cluster_sums

NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class Equivalence(Test):
    """A test of equivalence: `p` is the larger of the two one-sided ones; the interval is the one it rests on."""

    __test__: ClassVar[bool] = False

    margin: float = math.nan
    verdict: str = NOT_SHOWN


def equivalence(values: Column, clusters: Column, margin: float, *, alpha: float = 0.05) -> Equivalence:
    """Is the mean of cluster means (of differences, say) within ±margin of 0?"""
    found = cluster_sums(values, clusters)
    return _tost(found.means, found.n, "mean of cluster means", margin, alpha)


def equivalent_identities(
    values: Column,
    identities: Column,
    clusters: Column,
    first: str,
    second: str,
    margin: float,
    *,
    alpha: float = 0.05,
) -> Equivalence:
    """Are two identities scored alike, within ±margin, on the clusters that have both?"""
    sums, counts = (
        table.reindex(columns=[first, second], fill_value=0).to_numpy(dtype=float)
        for table in cell_sums(values, identities, clusters)
    )
    kept = (counts > 0).all(axis=1)
    means = sums[kept] / counts[kept]
    return _tost(
        means[:, 0] - means[:, 1], int(counts[kept].sum()), f"mean difference, {first} − {second}", margin, alpha
    )


def _tost(means: Floats, n: int, effect: str, margin: float, alpha: float) -> Equivalence:
    if not margin > 0:
        raise ValueError(f"the margin of an equivalence test must be above 0, not {margin:g}")
    name, level, count = f"two one-sided t tests within ±{margin:g}", 1 - 2 * alpha, len(means)
    low, high, note = t_interval(means, level)
    if note:
        missing = asdict(no_test(name, effect, "clustered", ASSUMES, note, level, n, count))
        return Equivalence(**{**missing, "effect": float(np.mean(means)) if count else math.nan}, margin=margin)
    mean, error = float(means.mean()), float(stats.sem(means))
    above, below = (mean + margin) / error, (margin - mean) / error
    p = float(stats.t.sf(min(above, below), count - 1))
    verdict = f"equivalent within ±{margin:g}" if p < alpha else NOT_SHOWN
    return Equivalence(
        name, min(above, below), count - 1, p, mean, effect, low, high, level, n, count, "clustered", ASSUMES, "",
        margin, verdict,
    )  # fmt: skip
