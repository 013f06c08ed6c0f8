"""What a statistic says of itself: the number, its interval, what it was made from, and what it assumes."""

from __future__ import annotations

from dataclasses import dataclass


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
