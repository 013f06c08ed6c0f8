"""Group-sequential tests over clusters: which comparisons are decided at an interim look.

    results = interim_look(rule, 1, {"female − male": gaps}, planned={"female − male": 20}, before=[])

A comparison's data are the differences of its clusters, one each, in any order. Its test is the report's: sign flips
over clusters. A look compares the p-value with the nominal level of the alpha-spending boundary. Early looks have too
few clusters for that: n clusters give no p-value below 2^(1-n). Such a look tests nothing and spends no alpha. Several
comparisons share alpha by Holm's rule: each starts at alpha divided by their number, and a decided comparison passes
its share on to the others (Maurer and Bretz 2013). A decision is never revised.

Runs of earlier versions were tested by Student's t; their later looks still are (`test="t"`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from parley.analysis.stats.signflips import sign_flip_p, sign_flip_test, smallest_p
from parley.analysis.stats.spending import boundaries, nominal_level, stagewise_p
from parley.analysis.stats.tables import Column, Floats, Ints, as_floats, cell_means, factorize

Decision = Literal["", "different", "given up"]
LookTest = Literal["sign flips", "t"]
FUTILITY_FROM = 0.5
"""Information fraction before which nothing is given up: earlier trends are too unsteady."""
ASSUMES: Mapping[str, str] = {
    "sign flips": "clusters are independent, come in random order, and have symmetric differences without an effect",
    "t": "clusters are independent and come in random order; their differences are roughly normal",
}
"""By test."""
OLD_LOOK = {"cluster": "scenario", "test": "t"}
"""What the records of earlier versions do not say."""


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
            is valid whenever the run stops, and wider than an interval for a single look; -inf where nothing was
            tested.
        high: Upper end of the repeated confidence interval; inf where nothing was tested.
        p: P-value of the test over clusters, not corrected for the looks.
        level: Nominal level that the p-value had to reach; NaN where nothing was tested: there were no new clusters,
            or too few for sign flips to reach the level.
        alpha: The comparison's share of alpha.
        power: Conditional power under the current trend; NaN where it is not computed.
        decision: "different", "given up", or "" while the comparison is open.
        cluster: What a cluster is: a base, a template, a scenario, or a facet of a user's own study.
        test: The test of the look.
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
    cluster: str
    test: LookTest


def interim_look(
    rule: StoppingRule,
    number: int,
    gaps: Mapping[str, Column],
    planned: Mapping[str, int],
    before: Sequence[InterimResult],
    *,
    cluster: str = "scenario",
    test: LookTest = "sign flips",
    intervals: bool = True,
) -> list[InterimResult]:
    """The results of an interim look for every comparison that is still open.

    Args:
        rule: The stopping rule.
        number: Number of the look, from 1.
        gaps: The differences of the clusters seen so far, by comparison.
        planned: Number of clusters at the end, by comparison.
        before: Results of all earlier looks.
        cluster: What a cluster is, for the records.
        test: The test; "t" only for runs that earlier versions began.
        intervals: Whether to compute the repeated intervals, which takes longer than the test.
    """
    closed = {result.comparison for result in before if result.decision}
    rejected = sum(result.decision == "different" for result in before)
    states = {
        name: _ComparisonState.at_look(
            rule,
            number,
            as_floats(gaps.get(name, [])),
            planned=planned[name],
            counts=_tested_clusters(before, name),
            test=test,
            comparisons=len(planned),
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
    return [
        state.result(name, alpha, different=name in different, cluster=cluster, intervals=intervals)
        for name, state in states.items()
    ]


def adjusted_p(results: Sequence[InterimResult]) -> float:
    """The p-value of one comparison, corrected for its looks: by stage-wise ordering (Tsiatis, Rosner and Mehta 1984).

    It is uniform without an effect, up to the normal approximation of the looks' p-values, and at most the
    comparison's share of alpha where the comparison was decided. It is not corrected for the other comparisons.

    Args:
        results: The comparison's results at all its looks, in order; the last one with clusters is taken as the end.

    Returns:
        The two-sided p-value; NaN where no look had two clusters.
    """
    bounds, information, last = stages(results)
    return stagewise_p(bounds, information, float(-ndtri(last.p / 2))) if last else math.nan


def stages(results: Sequence[InterimResult]) -> tuple[list[float], list[int], InterimResult | None]:
    """What stage-wise ordering needs of one comparison: boundaries of earlier looks, clusters, and the last look.

    Args:
        results: The comparison's results at all its looks, in order.

    Returns:
        The boundary for |z| at each earlier look that tested; the clusters at those looks and the last; and the last
        look with two clusters or more, None if there is none.
    """
    last = next((result for result in reversed(results) if not math.isnan(result.p)), None)
    if last is None:
        return [], [], None
    earlier = [result for result in results if not math.isnan(result.level) and result.clusters < last.clusters]
    bounds = [float(-ndtri(result.level / 2)) for result in earlier]
    return bounds, [result.clusters for result in (*earlier, last)], last


def _tested_clusters(before: Sequence[InterimResult], name: str) -> tuple[int, ...]:
    """The number of clusters at each look at which the comparison was tested."""
    return tuple(result.clusters for result in before if result.comparison == name and not math.isnan(result.level))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparisonState:
    """A comparison at a look: its differences, their test, and the clusters of the tested looks before (`counts`)."""

    rule: StoppingRule
    look: int
    gaps: Floats
    planned: int
    p: float
    test: LookTest
    counts: tuple[int, ...]
    tested: bool

    @classmethod
    def at_look(
        cls,
        rule: StoppingRule,
        look: int,
        gaps: Floats,
        *,
        planned: int,
        counts: tuple[int, ...],
        test: LookTest,
        comparisons: int,
    ) -> _ComparisonState:
        gaps = gaps[np.isfinite(gaps)]
        p = 1.0
        if len(gaps) > 1:
            p = clustered_t(gaps)[2] if test == "t" else _cached_sign_flip_p(gaps.tobytes())
        state = cls(
            rule=rule,
            look=look,
            gaps=gaps,
            planned=planned,
            p=p,
            test=test,
            counts=counts,
            tested=len(gaps) > max((1, *counts)),
        )
        return replace(state, tested=state.tested and state.can_reject(rule.alpha / comparisons))

    def can_reject(self, alpha: float) -> bool:
        """Whether the clusters are enough to decide anything.

        Args:
            alpha: The smallest share, which every comparison has until one is decided: so the number of clusters alone
                settles which looks are made, whatever the data are.
        """
        last = self.look == self.rule.looks
        return last or self.test == "t" or smallest_p(self.clusters) <= nominal_level(self.bound(alpha))

    @property
    def clusters(self) -> int:
        return len(self.gaps)

    def bound(self, alpha: float) -> float:
        """The boundary for z. The last look spends all alpha that is left, even if some clusters were unreadable."""
        if not self.tested:
            return math.inf
        information = (*self.counts, self.clusters)
        fractions = [min(1.0, count / self.planned) for count in information]
        if self.look == self.rule.looks:
            fractions[-1] = 1.0
        return boundaries(self.rule.spending, alpha, information, tuple(fractions))[-1]

    def level(self, alpha: float) -> float:
        return nominal_level(self.bound(alpha)) if self.tested else -1.0

    def result(self, name: str, alpha: float, *, different: bool, cluster: str, intervals: bool) -> InterimResult:
        power = self._conditional_power(alpha)
        low, high = self._interval() if intervals else (-math.inf, math.inf)
        return InterimResult(
            look=self.look,
            comparison=name,
            clusters=self.clusters,
            planned=self.planned,
            estimate=float(self.gaps.mean()) if self.clusters else math.nan,
            low=low,
            high=high,
            p=self.p if self.clusters > 1 else math.nan,
            level=self.level(alpha) if self.tested else math.nan,
            alpha=alpha,
            power=power,
            decision="different" if different else "given up" if power < self.rule.futility else "",
            cluster=cluster,
            test=self.test,
        )

    def _interval(self) -> tuple[float, float]:
        """The repeated confidence interval: the values that this look's test does not reject."""
        bound = self.bound(self.rule.alpha)
        if not math.isfinite(bound):
            return -math.inf, math.inf
        if self.test == "t":
            mean, error, _ = clustered_t(self.gaps)
            half = float(-stdtrit(self.clusters - 1, ndtr(-bound))) * error
            return mean - half, mean + half
        flips = sign_flip_test(self.gaps, 1 - nominal_level(bound))
        return flips.low, flips.high

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


@lru_cache(maxsize=1024)
def _cached_sign_flip_p(gaps: bytes) -> float:
    """Calibration tests the same differences under several rules."""
    return sign_flip_p(np.frombuffer(gaps))


def cluster_noun(kind: str) -> str:
    """What sentences call a cluster of this kind; its plural ends in s.

    Args:
        kind: As in `InterimResult.cluster`.
    """
    return kind if kind in ("scenario", "base", "template") else "cluster"


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
    """The mean value of one identity minus another's by cluster, for every ordered pair: "first − second".

    Args:
        verdicts: Rows with the columns `value`, `identity`, and `scenario` or `cluster` (see `scenario_keys`).

    Returns:
        Rows with the columns `comparison`, `cluster` and `gap`.
    """
    keys, clusters = scenario_keys(verdicts)
    return gaps_of_cells(cell_means(verdicts["value"], verdicts["identity"].astype(str), keys), clusters)


def scenario_keys(verdicts: pd.DataFrame) -> tuple[Ints, pd.Series]:
    """A number for the scenario of every row, and the cluster of each such number.

    Scenarios of different clusters are different ones, whatever their names. Without a column `cluster` each scenario
    is a cluster; without a column `scenario` each cluster has one.

    Args:
        verdicts: Rows with the columns `scenario` or `cluster`, or both.
    """
    cluster, names = factorize(verdicts["cluster" if "cluster" in verdicts else "scenario"].astype(str))
    scenario, scenarios = factorize(verdicts["scenario" if "scenario" in verdicts else "cluster"].astype(str))
    keys = np.where((cluster < 0) | (scenario < 0), -1, cluster * len(scenarios) + scenario)
    used = np.unique(keys[keys >= 0])
    return keys, pd.Series([names[key // len(scenarios)] for key in used], index=used, dtype=object)


def gaps_of_cells(cells: pd.DataFrame, clusters: pd.Series, suffix: str = "") -> pd.DataFrame:
    """The differences of all ordered pairs of identities: within scenarios first, then averaged over each cluster.

    Args:
        cells: Cell means (see `tables.cell_means`), scenarios by identities.
        clusters: The cluster of each scenario.
        suffix: Appended to the name of each comparison.
    """
    means = {first: (-cells).add(cells[first], axis=0).groupby(clusters).mean() for first in cells}
    return gap_rows(
        (f"{first} − {second}{suffix}", means[first][second]) for first in cells for second in cells if first != second
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
    """The result that `as_record` stored, of this version or an earlier one."""
    missing = {"low": -math.inf, "high": math.inf}
    values: dict[str, Any] = dict(OLD_LOOK)
    values |= {key: missing.get(key, math.nan) if value is None else value for key, value in record.items()}
    return InterimResult(**values)
