"""Equivalence: two one-sided sign-flip tests (TOST) against a margin stated beforehand.

A p-value above 0.05 is never evidence of "no bias"; a significant test of equivalence is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from parley.analysis.stats.clustered import INDEPENDENT_CLUSTERS, NO_VALUES
from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.signflips import clusters_to_reject, equivalence_p, sign_flip_test
from parley.analysis.stats.tables import Column, Floats, cell_sums, cluster_sums

NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence(Test):
    """A test of equivalence. `p` is the larger of the two one-sided p-values; the interval has level 1 - 2·alpha.

    Args:
        margin: The difference that still counts as none.
        verdict: "equivalent within ±margin", or "not shown".
    """

    __test__: ClassVar[bool] = False

    margin: float = math.nan
    verdict: str = NOT_SHOWN


def equivalence(values: Column, clusters: Column, margin: float, *, alpha: float = 0.05) -> Equivalence:
    """Whether the mean of cluster means lies within ±margin of 0.

    Args:
        values: One value (usually a difference) per row.
        clusters: The cluster of each row. Clusters are taken as independent.
        margin: The difference that still counts as none, above 0.
        alpha: Significance level.
    """
    reduced = cluster_sums(values, clusters)
    return _tost(reduced.means, n=reduced.n, effect_name="mean of cluster means", margin=margin, alpha=alpha)


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
    """Whether two identities are scored alike, within ±margin, on the clusters that have both.

    Args:
        values: One score per row.
        identities: The identity of each row.
        clusters: The cluster of each row. Clusters are taken as independent.
        first: The identity whose mean is taken.
        second: The identity whose mean is subtracted.
        margin: The difference that still counts as none, above 0.
        alpha: Significance level.
    """
    sums, counts = (
        table.reindex(columns=[first, second], fill_value=0).to_numpy(dtype=float)
        for table in cell_sums(values, identities, clusters)
    )
    both = (counts > 0).all(axis=1)
    means = sums[both] / counts[both]
    return _tost(
        means[:, 0] - means[:, 1],
        n=int(counts[both].sum()),
        effect_name=f"mean difference, {first} − {second}",
        margin=margin,
        alpha=alpha,
    )


def _tost(means: Floats, *, n: int, effect_name: str, margin: float, alpha: float) -> Equivalence:
    if not margin > 0:
        raise ValueError(f"the margin of an equivalence test must be above 0, not {margin:g}")
    count = len(means)
    unknown = no_test(
        name=f"two one-sided sign-flip tests within ±{margin:g}",
        effect_name=effect_name,
        assumption="clustered",
        assumes=INDEPENDENT_CLUSTERS,
        level=1 - 2 * alpha,
        n=n,
        clusters=count,
    )
    test = Equivalence(**asdict(unknown), margin=margin)
    if not count:
        return replace(test, note=NO_VALUES)
    flips = sign_flip_test(means, test.level)
    p = equivalence_p(means, margin)
    needed = clusters_to_reject(2 * alpha)
    return replace(
        test,
        p=p,
        effect=flips.estimate,
        low=flips.low,
        high=flips.high,
        verdict=f"equivalent within ±{margin:g}" if p <= alpha else NOT_SHOWN,
        note=f"p cannot be below {2.0**-count:.2g}: that takes {needed} clusters" if count < needed else "",
    )
