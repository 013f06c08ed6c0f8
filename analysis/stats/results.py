"""What a statistic says of itself: the number, its interval, what it was made from, and what it assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

Assumption = Literal["independent", "clustered"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval; `low` and `high` are NaN where the data cannot give one."""

    estimate: float
    low: float
    high: float
    level: float
    n: int
    clusters: int | None
    method: str
    assumes: str


@dataclass(frozen=True, slots=True)
class Estimate(Interval):
    """An interval that also says, in `note`, why a number is missing; "" where none is."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Test:
    """A test with its effect size and interval. What the data cannot give is NaN, and `note` says why.

    `df` is None where the p-value comes from a permutation or an exact distribution.
    """

    __test__: ClassVar[bool] = False  # a result, not a test case: pytest must not collect it

    name: str
    statistic: float
    df: float | None
    p: float
    effect: float
    effect_name: str
    low: float
    high: float
    level: float
    n: int
    clusters: int | None
    assumption: Assumption
    assumes: str
    note: str = ""


def no_estimate(
    method: str, assumes: str, note: str, level: float, n: int = 0, clusters: int | None = None
) -> Estimate:
    """An estimate that could not be made."""
    return Estimate(math.nan, math.nan, math.nan, level, n, clusters, method, assumes, note)


def no_test(
    name: str,
    effect_name: str,
    assumption: Assumption,
    assumes: str,
    note: str,
    level: float,
    n: int = 0,
    clusters: int | None = None,
) -> Test:
    """A test that could not be made."""
    nan = math.nan
    return Test(name, nan, None, nan, nan, effect_name, nan, nan, level, n, clusters, assumption, assumes, note)
