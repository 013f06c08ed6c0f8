"""Group-sequential tests over clusters: at each look, has a comparison been decided?

    seen = look(rule, 1, {"female − male": gaps}, planned={"female − male": 50}, before=[])

A comparison's data are the differences of its clusters, one each, in any order. Its test is Student's t over
clusters; a look compares the p-value with the one that stands on the alpha-spending boundary (z for z, t for t: the
tail is the same), which keeps the level where clusters are few. Several comparisons share alpha by Holm's rule: each
starts at alpha over their number, and what one of them no longer needs because it has been decided goes to the
others (Maurer and Bretz 2013). What was decided stays decided.
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

from parley.analysis.stats.spending import boundaries, nominal
from parley.analysis.stats.tables import Column, Floats, cell_means, numbers

Decision = Literal["", "different", "given up"]
FUTILE_FROM = 0.5
"""Before half of the clusters are seen a trend is too unsteady to give anything up for."""
ASSUMES = "clusters are independent and come in random order; their differences are roughly normal"


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """How often is looked, and how alpha is spent; `futility` is the conditional power below which one gives up."""

    alpha: float = 0.05
    looks: int = 5
    spending: str = "obrien-fleming"
    futility: float = 0.0


@dataclass(frozen=True, slots=True)
class InterimResult:
    """One comparison at one look. `level` is the p-value it had to reach, NaN where there was nothing new to test.

    `low` and `high` are the repeated confidence interval, 1 - alpha for this comparison over all its looks together:
    it holds whenever the run stops, and is wider than one that was looked at once.
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
    """What the `number`-th look sees of every comparison that is still open."""
    closed = {one.comparison for one in before if one.decision}
    rejected = sum(one.decision == "different" for one in before)
    states = {
        name: _State.of(rule, number, numbers(gaps.get(name, [])), planned[name], _counts(before, name))
        for name in planned
        if name not in closed
    }
    different: set[str] = set()
    while True:  # each rejection leaves more of alpha to the rest, which may now be decided too
        alpha = rule.alpha / max(1, len(planned) - rejected - len(different))
        more = {name for name, state in states.items() if name not in different and state.p <= state.level(alpha)}
        if not more:
            break
        different |= more
    return [state.seen(name, alpha, name in different) for name, state in states.items()]


def _counts(before: Sequence[InterimResult], name: str) -> tuple[int, ...]:
    """The clusters of the looks at which it was tested."""
    return tuple(one.clusters for one in before if one.comparison == name and not math.isnan(one.level))


@dataclass(frozen=True, slots=True)
class _State:
    """A comparison at a look: what its clusters say, and the looks (in clusters) that came before."""

    rule: StoppingRule
    look: int
    clusters: int
    planned: int
    estimate: float
    error: float
    p: float
    counts: tuple[int, ...]

    @classmethod
    def of(cls, rule: StoppingRule, number: int, gaps: Floats, planned: int, counts: tuple[int, ...]) -> _State:
        gaps = gaps[np.isfinite(gaps)]
        count = len(gaps)
        if count < 2:
            return cls(rule, number, count, planned, float(gaps.mean()) if count else math.nan, math.nan, 1.0, counts)
        return cls(rule, number, count, planned, *clustered_t(gaps), counts)

    @property
    def new(self) -> bool:
        return self.clusters > max((1, *self.counts))

    def bound(self, alpha: float) -> float:
        """At the last look all that is left is spent, whether every cluster could be read or not."""
        if not self.new:
            return math.inf
        information = (*self.counts, self.clusters)
        times = [min(1.0, count / self.planned) for count in information]
        if self.look == self.rule.looks:
            times[-1] = 1.0
        return boundaries(self.rule.spending, alpha, information, tuple(times))[-1]

    def level(self, alpha: float) -> float:
        return nominal(self.bound(alpha)) if self.new else -1.0

    def seen(self, name: str, alpha: float, different: bool) -> InterimResult:
        half = self._quantile(self.bound(self.rule.alpha)) * self.error if self.new else math.nan
        power = self._power(alpha)
        decision: Decision = "different" if different else "given up" if power < self.rule.futility else ""
        return InterimResult(
            self.look,
            name,
            self.clusters,
            self.planned,
            self.estimate,
            self.estimate - half if math.isfinite(half) else math.nan,
            self.estimate + half if math.isfinite(half) else math.nan,
            self.p if self.clusters > 1 else math.nan,
            self.level(alpha) if self.new else math.nan,
            alpha,
            power,
            decision,
        )

    def _quantile(self, bound: float) -> float:
        """Student's quantile with the tail of a normal boundary."""
        return float(-stdtrit(self.clusters - 1, ndtr(-bound))) if math.isfinite(bound) else math.inf

    def _power(self, alpha: float) -> float:
        """The chance to be decided at the end if the rest goes on as so far (conditional power, current trend)."""
        time = self.clusters / self.planned
        if self.clusters < 2 or not FUTILE_FROM <= time < 1 or self.look == self.rule.looks:
            return math.nan
        z = float(-ndtri(self.p / 2))
        even = tuple((at + 1) / self.rule.looks for at in range(self.rule.looks))
        last = boundaries(self.rule.spending, alpha, even)[-1]
        trend, left = z / math.sqrt(time), math.sqrt(1 - time)
        return float(ndtr((trend - last) / left) + ndtr((-trend - last) / left))


def clustered_t(gaps: Floats) -> tuple[float, float, float]:
    """Mean, standard error and two-sided p of two clusters' differences or more: Student's t over clusters.

    p is never below what flipping the clusters' signs could give at best: whole points and few clusters make
    differences that hardly spread, and t then runs off to infinity.
    """
    count, moving = len(gaps), int(np.count_nonzero(gaps))
    mean = float(gaps.sum()) / count
    apart = gaps - mean
    error = math.sqrt(float(apart @ apart) / (count * (count - 1)))
    if not moving:
        return mean, error, 1.0
    least = 2.0 ** (1 - moving)
    if error <= 1e-12 * float(np.abs(gaps).max()):
        return mean, error, least
    return mean, error, max(float(2 * stdtr(count - 1, -abs(mean) / error)), least)


def identity_gaps(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The mean value of one identity minus another's, scenario by scenario, for every two: "first − second"."""
    cells = cell_means(verdicts["value"], verdicts["identity"].astype(str), verdicts["scenario"].astype(str))
    return gaps_of_cells(cells)


def gaps_of_cells(cells: pd.DataFrame, what: str = "") -> pd.DataFrame:
    """Rows of comparison, cluster and gap from a table of clusters by identities; either one may stand first."""
    return gap_rows(
        (f"{first} − {second}{what}", (cells[first] - cells[second])) for first, second in permutations(cells, 2)
    )


def gap_rows(gaps: Iterator[tuple[str, pd.Series]]) -> pd.DataFrame:
    """Named series of clusters' differences as one frame."""
    rows = [(name, str(cluster), float(gap)) for name, series in gaps for cluster, gap in series.dropna().items()]
    return pd.DataFrame(rows, columns=["comparison", "cluster", "gap"])


def as_record(seen: InterimResult) -> dict[str, Any]:
    """Plain values, what is not known as None: for a run's events."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(seen).items()
    }


def from_record(record: Mapping[str, Any]) -> InterimResult:
    values: dict[str, Any] = {key: math.nan if value is None else value for key, value in record.items()}
    return InterimResult(**values)
