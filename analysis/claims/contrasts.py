"""What a row's values say: comparisons over clusters, each with what must be above 0 if the claim is true.

Values are averaged within clusters, and every comparison is tested by `mean_test`. A claim of several comparisons, such
as "lowest of all", is shown if each of them is (the largest p); its opposite is, if one of them is shown to be the
other way (the smallest p, corrected for their number).

    lower, by half      0.5 · second − first
    above 90            mean − 90
    at most 5 lower     first − second + 5
    nearer to 0         second − first and second + first, both times the sign of the latter
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from parley.analysis.claims.claim import AGAINST_ALL, Row, listed
from parley.analysis.effects import gaps
from parley.analysis.stats.mean_test import mean_test, upper_tail
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.resampling import DRAWS
from parley.analysis.stats.results import ALPHA, Estimate
from parley.analysis.stats.tables import Floats

VALUES = ("model", "measure", "set", "method", "cluster", "item", "value")
"""The columns of a frame of values. A model "" stands beside every model, as a method on a model of its own does."""
MOST_TIMES = 16.0
"""The largest ratio of two means that is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One comparison, with one value per cluster.

    Args:
        rival: The method that is compared with; "" if none is.
        parts: What the claim says is above 0, on average over clusters: all of these.
        opposite: What is then above 0 if it is the other way: all of these.
        shown: The estimate for readers: the difference, or the level.
        means: The means of both methods, or the one level.
        ratio: First divided by second with its interval, if a share is claimed.
    """

    rival: str
    parts: tuple[Floats, ...]
    opposite: tuple[Floats, ...]
    shown: Estimate
    means: tuple[float, ...]
    ratio: tuple[float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence on a row: one-sided p-values for the claim and for its opposite, and the comparison that decides.

    Args:
        comparisons: All comparisons.
        one_sided: Whether the claim is that something is small, which is shown by one-sided tests.
        p_of: The p-value of a test of several methods at once; NaN: the comparisons have their own.
        missing: Methods that the claim compares with and the values do not have, in words.
    """

    comparisons: tuple[Comparison, ...]
    one_sided: bool = False
    p_of: float = math.nan
    missing: str = ""

    @cached_property
    def _tails(self) -> list[float]:
        return [max(map(upper_tail, each.parts)) for each in self.comparisons]

    @cached_property
    def p_for(self) -> float:
        """Two-sided where the claim is a direction: that of its opposite has the other half."""
        if not math.isnan(self.p_of) or not self.comparisons[0].parts:
            return self.p_of
        return min(1.0, (1 if self.one_sided else 2) * max(self._tails))

    @cached_property
    def p_against(self) -> float:
        if not self.comparisons[0].opposite:
            return math.nan
        tails = [max(map(upper_tail, each.opposite)) for each in self.comparisons]
        return min(1.0, 2 * len(tails) * min(tails))

    @cached_property
    def deciding(self) -> Comparison:
        """The comparison that bears the claim out least."""
        if not self.comparisons[0].parts:
            return self.comparisons[0]
        return self.comparisons[int(np.argmax(self._tails))]

    @property
    def clusters(self) -> int:
        return self.deciding.shown.clusters or 0


class Missing(Exception):
    """What a row needs and the values do not have."""


def tidy(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows as a frame of values: without missing ones, and models without their options.

    Args:
        rows: A frame with the columns VALUES, among others.
    """
    return rows.assign(model=rows["model"].str.partition("?")[0]).dropna(subset="value")[list(VALUES)]


class Values:
    """The values of one model by measure and set: items as rows, methods as columns."""

    def __init__(self, frame: pd.DataFrame) -> None:
        keys = ["measure", "set", "cluster", "item", "method"]
        means = frame.dropna(subset="value").groupby(keys, sort=False, observed=True)["value"].mean()
        self._tables = {
            key: part.droplevel(["measure", "set"]).unstack("method")
            for key, part in means.groupby(["measure", "set"], sort=False)
        }

    def table(self, row: Row) -> pd.DataFrame:
        """The row's values; raises Missing."""
        table = self._tables.get((row.measure, row.set))
        if table is None:
            raise Missing(" on ".join(filter(None, (row.measure, row.set))))
        return table


def evidence(row: Row, table: pd.DataFrame) -> Evidence:
    """The evidence on a row; raises Missing.

    Args:
        row: The row.
        table: Items (index: cluster and item) by methods.
    """
    if row.claim.form in ("differ", "unrelated"):
        whole = {"differ": _differ, "unrelated": _unrelated}[row.claim.form]
        return whole(row, table)
    make, rivals = _FORMS[row.claim.form], _rivals(row, table)
    missing = [name for name, others in rivals.items() if not others]
    names = [name for others in rivals.values() for name in others]
    if not names:
        raise Missing(" and ".join(missing))
    compared = [(str(name), "") for name in table] if row.claim.form == "within" else [(row.first, x) for x in names]
    made = [each for first, rival in compared for each in make(row, _Pair(table, first, rival))]
    small = row.claim.form in ("kept", "within")
    return Evidence(comparisons=tuple(made), one_sided=small, missing=" and ".join(missing))


class _Pair:
    """The values of two methods on the items that both have, or of one."""

    def __init__(self, table: pd.DataFrame, first: str, rival: str) -> None:
        if first not in table:
            raise Missing(first)
        self.rival = rival
        both = table[[first, rival] if rival else [first]].dropna()
        clusters = both.index.get_level_values("cluster").to_series(both.index)
        self.first = gaps(both[first], clusters).to_numpy(dtype=float)
        self.second = gaps(both[rival], clusters).to_numpy(dtype=float) if rival else np.zeros(len(self.first))
        if not len(self.first):
            raise Missing(f"items that both {first} and {rival} have")

    @property
    def means(self) -> tuple[float, ...]:
        return (float(self.first.mean()), *((float(self.second.mean()),) if self.rival else ()))


def _rivals(row: Row, table: pd.DataFrame) -> dict[str, list[str]]:
    """The methods that a row compares with, by the names in the claim; "" for none. A name may have several models."""
    claimed = listed(row.claim.second) if row.claim.form in AGAINST_ALL else (row.second,)
    of_name = {
        claimed_name: [str(name) for name in table if name == claimed_name or str(name).startswith(f"{claimed_name} (")]
        for claimed_name in claimed
    }
    return of_name if any(claimed) else {"": [""]}


def _ordered(row: Row, pair: _Pair) -> Iterator[Comparison]:
    """Lower or higher than a rival; by a share, and in distance from 0 if the claim says so."""
    lower, first, second = row.claim.form in ("lower", "lowest"), pair.first, pair.second
    share = (row.claim.by or 0.0) if row.size else 0.0
    if row.claim.magnitude:
        sign = math.copysign(1.0, float((first + second).sum())) * (1 if lower else -1)
        down, both = sign * (second - first), sign * (second + first)
        if not lower:
            both = -both
        parts: tuple[Floats, ...] = (down, both)
        opposite: tuple[Floats, ...] = (-down, both)
        first, second = (math.copysign(1.0, float(each.sum())) * each for each in (first, second))
    else:
        part = (1 - share) * second - first if lower else first - (1 + share) * second
        parts, opposite = (part,), (-part,)
    yield Comparison(
        rival=pair.rival,
        parts=parts,
        opposite=opposite,
        shown=mean_test(first - second),
        means=pair.means,
        ratio=ratio(pair.first, pair.second) if share else None,
    )


def _level(row: Row, pair: _Pair) -> Iterator[Comparison]:
    part = pair.first - row.claim.level
    yield Comparison(rival="", parts=(part,), opposite=(-part,), shown=mean_test(pair.first), means=pair.means)


def _kept(row: Row, pair: _Pair) -> Iterator[Comparison]:
    gap = pair.first - pair.second
    yield Comparison(
        rival=pair.rival, parts=(gap + row.claim.margin,), opposite=(-gap,), shown=mean_test(gap), means=pair.means
    )


def _within(row: Row, pair: _Pair) -> Iterator[Comparison]:
    """Two comparisons: it is below the upper end, and above the lower one."""
    gap, margin = pair.first - row.claim.level, row.claim.margin
    for part in (margin - gap, margin + gap):
        yield Comparison(rival="", parts=(part,), opposite=(-part,), shown=mean_test(pair.first), means=pair.means)


_FORMS: dict[str, Callable[[Row, _Pair], Iterator[Comparison]]] = {
    "lower": _ordered,
    "higher": _ordered,
    "lowest": _ordered,
    "highest": _ordered,
    "above": _level,
    "kept": _kept,
    "within": _within,
}


def _differ(row: Row, table: pd.DataFrame) -> Evidence:
    """The joint test of all methods over clusters."""
    if table.shape[1] < 2:
        raise Missing("another method")
    result = effect_of_cells(table.groupby(level="cluster").mean())
    only = Comparison(rival="", parts=(), opposite=(), shown=result, means=tuple(table.mean()))
    return Evidence(comparisons=(only,), p_of=result.p)


def _unrelated(row: Row, table: pd.DataFrame) -> Evidence:
    """Pearson's r over items, bootstrapped by cluster: r + margin and margin − r, of every draw."""
    for name in (row.first, row.second):
        if name not in table:
            raise Missing(name)
    both = table[[row.first, row.second]].dropna()
    x, y = both.to_numpy(dtype=float).T
    moments = np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])
    sums = pd.DataFrame(moments).groupby(both.index.get_level_values("cluster")).sum().to_numpy()
    clusters = len(sums)
    weights = np.random.default_rng(0).multinomial(clusters, np.full(clusters, 1 / clusters), DRAWS)
    drawn, r = _r(weights @ sums), float(_r(sums.sum(axis=0)))
    drawn = drawn[np.isfinite(drawn)]
    if not math.isfinite(r) or not len(drawn):
        raise Missing(f"{row.first} and {row.second} that vary")
    low, high = np.quantile(drawn, [ALPHA / 2, 1 - ALPHA / 2])
    beyond = (1 + max((drawn >= row.claim.margin).sum(), (drawn <= -row.claim.margin).sum())) / (1 + len(drawn))
    shown = Estimate(
        estimate=r, low=float(low), high=float(high), p=float(beyond), n=len(x), clusters=clusters, measure="r",
        method="bootstrap over clusters",
    )  # fmt: skip
    only = Comparison(rival="", parts=(), opposite=(), shown=shown, means=(r,))
    return Evidence(comparisons=(only,), one_sided=True, p_of=float(beyond))


def _r(sums: Floats) -> Floats:
    """Pearson's r from sums of 1, x, y, x², y² and xy."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        r: Floats = (n * xy - x * y) / np.sqrt((n * xx - x**2) * (n * yy - y**2))
    return r


def ratio(first: Floats, second: Floats) -> tuple[float, float, float]:
    """The ratio of two means with the interval that inverts the test: all r for which first − r · second may be 0.

    Args:
        first: One value per cluster.
        second: The same clusters' values, above 0 on average.
    """
    tail = ALPHA / 2
    low = _end(lambda r: upper_tail(first - r * second) <= tail)
    high = _end(lambda r: upper_tail(r * second - first) > tail)
    mean = float(second.mean())
    return (float(first.mean()) / mean if mean else math.nan), low, math.inf if high >= MOST_TIMES else high


def _end(below: Callable[[float], bool]) -> float:
    """Where a condition that holds for small ratios ends, by bisection."""
    low, high = 0.0, MOST_TIMES
    if not below(low):
        return low
    if below(high):
        return high
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low
