"""Group-sequential tests over clusters: which comparisons are decided at an interim look.

    results = interim_look(rule, 1, {"female − male": gaps}, planned={"female − male": 50}, before=[])

A comparison's data are the differences of its clusters, one each, in any order. Its test is Student's t over
clusters. A look compares the p-value with the nominal level of the alpha-spending boundary; the boundary is one for z,
but comparing tail probabilities keeps the error rate right for t with few clusters. Several comparisons share alpha by
Holm's rule: each starts at alpha divided by their number, and a decided comparison passes its share on to the others
(Maurer and Bretz 2013). A decision is never revised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from parley.analysis.stats.spending import boundaries, nominal_level
from parley.analysis.stats.tables import Column, Floats, as_floats, cell_means

Decision = Literal["", "different", "given up"]
FUTILITY_FROM = 0.5
"""Information fraction before which nothing is given up: earlier trends are too unsteady."""
ASSUMES = "clusters are independent and come in random order; their differences are roughly normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When interim looks are made, and what decides a comparison.

    Args:
        alpha: Significance level for all comparisons and looks together.
        looks: Number of looks, evenly spaced; the last is at the end.
        spending: Spending function, "obrien-fleming" or "pocock".
        futility: Conditional power below which a comparison is given up; 0: never.
    """

    alpha: float = 0.05
    looks: int = 5
    spending: str = "obrien-fleming"
    futility: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimResult:
    """One comparison at one interim look.

    Args:
        look: Number of the look, from 1.
        comparison: Name of the comparison.
        clusters: Clusters seen so far.
        planned: Clusters at the end.
        estimate: Mean difference so far.
        low: Lower end of the repeated confidence interval: level 1 - alpha for this comparison over all its looks. It
            is valid whenever the run stops, and wider than an interval for a single look.
        high: Upper end of the repeated confidence interval.
        p: P-value of the t test over clusters.
        level: Nominal level that the p-value had to reach; NaN where there were no new clusters to test.
        alpha: The comparison's share of alpha.
        power: Conditional power under the current trend; NaN where it is not computed.
        decision: "different", "given up", or "" while the comparison is open.
    """

    look: int
    comparison: str
    clusters: int
    planned: int
    estimate: float
    low: float
    high: float
    p: float
    level: float
    alpha: float
    power: float
    decision: Decision


def interim_look(
    rule: StoppingRule,
    number: int,
    gaps: Mapping[str, Column],
    planned: Mapping[str, int],
    before: Sequence[InterimResult],
) -> list[InterimResult]:
    """The results of an interim look for every comparison that is still open.

    Args:
        rule: The stopping rule.
        number: Number of the look, from 1.
        gaps: The differences of the clusters seen so far, by comparison.
        planned: Number of clusters at the end, by comparison.
        before: Results of all earlier looks.
    """
    closed = {result.comparison for result in before if result.decision}
    rejected = sum(result.decision == "different" for result in before)
    states = {
        name: _ComparisonState.at_look(
            rule, number, as_floats(gaps.get(name, [])), planned[name], _tested_clusters(before, name)
        )
        for name in planned
        if name not in closed
    }
    different: set[str] = set()
    while True:  # each rejection leaves more of alpha to the rest, which may then be decided too
        alpha = rule.alpha / max(1, len(planned) - rejected - len(different))
        more = {name for name, state in states.items() if name not in different and state.p <= state.level(alpha)}
        if not more:
            break
        different |= more
    return [state.result(name, alpha, name in different) for name, state in states.items()]


def _tested_clusters(before: Sequence[InterimResult], name: str) -> tuple[int, ...]:
    """The number of clusters at each look at which the comparison was tested."""
    return tuple(result.clusters for result in before if result.comparison == name and not math.isnan(result.level))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparisonState:
    """A comparison at a look: its t test over clusters, and the clusters of the looks before (`counts`)."""

    rule: StoppingRule
    look: int
    clusters: int
    planned: int
    estimate: float
    error: float
    p: float
    counts: tuple[int, ...]

    @classmethod
    def at_look(
        cls, rule: StoppingRule, look: int, gaps: Floats, planned: int, counts: tuple[int, ...]
    ) -> _ComparisonState:
        gaps = gaps[np.isfinite(gaps)]
        if len(gaps) < 2:
            estimate, error, p = float(gaps.mean()) if len(gaps) else math.nan, math.nan, 1.0
        else:
            estimate, error, p = clustered_t(gaps)
        return cls(
            rule=rule,
            look=look,
            clusters=len(gaps),
            planned=planned,
            estimate=estimate,
            error=error,
            p=p,
            counts=counts,
        )

    @property
    def has_new_clusters(self) -> bool:
        return self.clusters > max((1, *self.counts))

    def bound(self, alpha: float) -> float:
        """The boundary for z. The last look spends all alpha that is left, even if some clusters were unreadable."""
        if not self.has_new_clusters:
            return math.inf
        information = (*self.counts, self.clusters)
        fractions = [min(1.0, count / self.planned) for count in information]
        if self.look == self.rule.looks:
            fractions[-1] = 1.0
        return boundaries(self.rule.spending, alpha, information, tuple(fractions))[-1]

    def level(self, alpha: float) -> float:
        return nominal_level(self.bound(alpha)) if self.has_new_clusters else -1.0

    def result(self, name: str, alpha: float, different: bool) -> InterimResult:
        half = self._t_bound(self.bound(self.rule.alpha)) * self.error if self.has_new_clusters else math.nan
        power = self._conditional_power(alpha)
        return InterimResult(
            look=self.look,
            comparison=name,
            clusters=self.clusters,
            planned=self.planned,
            estimate=self.estimate,
            low=self.estimate - half if math.isfinite(half) else math.nan,
            high=self.estimate + half if math.isfinite(half) else math.nan,
            p=self.p if self.clusters > 1 else math.nan,
            level=self.level(alpha) if self.has_new_clusters else math.nan,
            alpha=alpha,
            power=power,
            decision="different" if different else "given up" if power < self.rule.futility else "",
        )

    def _t_bound(self, bound: float) -> float:
        """The quantile of Student's t with the same tail as a boundary for z."""
        return float(-stdtrit(self.clusters - 1, ndtr(-bound))) if math.isfinite(bound) else math.inf

    def _conditional_power(self, alpha: float) -> float:
        """The chance to cross the last boundary if the trend so far continues."""
        fraction = self.clusters / self.planned
        if self.clusters < 2 or not FUTILITY_FROM <= fraction < 1 or self.look == self.rule.looks:
            return math.nan
        z = float(-ndtri(self.p / 2))
        even = tuple((number + 1) / self.rule.looks for number in range(self.rule.looks))
        last = boundaries(self.rule.spending, alpha, even)[-1]
        trend, left = z / math.sqrt(fraction), math.sqrt(1 - fraction)
        return float(ndtr((trend - last) / left) + ndtr((-trend - last) / left))


def clustered_t(gaps: Floats) -> tuple[float, float, float]:
    """Mean, standard error and two-sided p-value of Student's t over clusters.

    p is never below the smallest that flipping the clusters' signs could give: with few clusters and whole points the
    differences may hardly vary, and t then grows without bound.

    Args:
        gaps: Differences of two clusters or more, taken as independent and roughly normal.
    """
    count, nonzero = len(gaps), int(np.count_nonzero(gaps))
    mean = float(gaps.sum()) / count
    deviations = gaps - mean
    error = math.sqrt(float(deviations @ deviations) / (count * (count - 1)))
    if not nonzero:
        return mean, error, 1.0
    smallest = 2.0 ** (1 - nonzero)
    if error <= 1e-12 * float(np.abs(gaps).max()):
        return mean, error, smallest
    return mean, error, max(float(2 * stdtr(count - 1, -abs(mean) / error)), smallest)


def identity_gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The mean value of one identity minus another's by scenario, for every ordered pair: "first − second".

    Args:
        verdicts: Rows with the columns `value`, `identity` and `scenario`.

    Returns:
        Rows with the columns `comparison`, `cluster` and `gap`.
    """
    cells = cell_means(verdicts["value"], verdicts["identity"].astype(str), verdicts["scenario"].astype(str))
    return gaps_of_cells(cells)


def gaps_of_cells(cells: pd.DataFrame, suffix: str = "") -> pd.DataFrame:
    """The differences of all ordered pairs of identities, from cell means (clusters by identities).

    Args:
        cells: Cell means (see `tables.cell_means`).
        suffix: Appended to the name of each comparison.
    """
    return gap_rows(
        (f"{first} − {second}{suffix}", (cells[first] - cells[second])) for first, second in permutations(cells, 2)
    )


def gap_rows(gaps: Iterator[tuple[str, pd.Series]]) -> pd.DataFrame:
    """Named series of differences by cluster as one frame with the columns `comparison`, `cluster` and `gap`."""
    rows = [(name, str(cluster), float(gap)) for name, series in gaps for cluster, gap in series.dropna().items()]
    return pd.DataFrame(rows, columns=["comparison", "cluster", "gap"])


def as_record(result: InterimResult) -> dict[str, Any]:
    """A result as JSON values, NaN as None: how a run file stores it."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(result).items()
    }


def from_record(record: Mapping[str, Any]) -> InterimResult:
    """The result that `as_record` stored."""
    values: dict[str, Any] = {key: math.nan if value is None else value for key, value in record.items()}
    return InterimResult(**values)
