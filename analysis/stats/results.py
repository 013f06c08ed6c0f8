"""Result records: an estimate or a test with its interval, its sample size and its assumptions.

Unknown values are NaN; `dataclasses.replace` fills in what the data give.

statsmodels' names for the fields: `n` is `nobs`, `p` is `pvalue`, `low` and `high` are `conf_int()`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Assumption = Literal["independent", "clustered"]
ALPHA = 0.05
"""Significance level of every test, after correction for several tests."""
LEVEL = 1 - ALPHA
"""Confidence level of intervals, where a caller does not correct it for several tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its confidence interval.

    Args:
        estimate: The point estimate; NaN where the data do not give one.
        low: Lower end of the interval; NaN where the data do not give one.
        high: Upper end of the interval; NaN where the data do not give one.
        level: Confidence level.
        n: Number of observations.
        clusters: Number of clusters; None where observations are taken as independent.
        method: How the interval was computed.
        assumes: What must be true for the interval to be valid.
    """

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    level: float = LEVEL
    n: int = 0
    clusters: int | None = None
    method: str
    assumes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Interval):
    """An interval with a `note` that says why a number is missing; "" where none is."""

    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test with its effect size. What the data do not give is NaN, and `note` says why.

    Args:
        name: The test, with how its p-value was computed.
        statistic: The test statistic.
        df: Degrees of freedom; None where the p-value comes from a permutation or an exact distribution.
        p: The p-value, two-sided where the test has sides.
        effect: The effect size.
        effect_name: Which effect size it is.
        low: Lower end of the effect's interval.
        high: Upper end of the effect's interval.
        n: Number of observations.
        clusters: Number of clusters; None where observations are taken as independent.
        assumption: Whether observations or clusters of them are taken as independent.
        assumes: What must be true for the test to be valid.
        note: Why a number is missing; "" where none is.
    """

    __test__: ClassVar[bool] = False  # a result, not a test case: pytest must not collect it

    name: str
    statistic: float = math.nan
    df: float | None = None
    p: float = math.nan
    effect: float = math.nan
    effect_name: str
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    clusters: int | None = None
    assumption: Assumption
    assumes: str
    note: str = ""


def columns(result: Interval | Test, value: str, *fields: str, **renamed: str) -> dict[str, Any]:
    """A result as columns of a table: the estimate or the effect, low, high, and further fields.

    Args:
        result: The result.
        value: Name of the column with the estimate or the effect.
        fields: Fields whose columns have the same names.
        renamed: Columns with other names, each with its field.
    """
    number = result.effect if isinstance(result, Test) else result.estimate
    field_of = {**dict(zip(fields, fields, strict=True)), **renamed}
    further = {column: getattr(result, field) for column, field in field_of.items()}
    return {value: number, "low": result.low, "high": result.high, **further}
