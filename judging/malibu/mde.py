"""The smallest difference that a run of this size finds (MDE), from how much differences vary over bases.

found = Spread.of(table.gaps("male", "female"))
found.mde(tests=3)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from scipy.special import gammaincinv

from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.power import detectable
from parley.analysis.stats.results import Contrast
from parley.judging.malibu.conclusions import Blockers
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.planned import main_family
from parley.judging.malibu.score_table import ScenarioGaps
from parley.judging.malibu.scores import quoted


class Detectable(NamedTuple):
    """The smallest difference that is found with a power of 80%, with its 95% interval."""

    points: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How much a contrast of phase 1 varies over its clusters: bases, or scenarios without one.

    Args:
        clusters: Clusters with a difference.
        sd: SD of a cluster's mean difference.
        df: Its degrees of freedom, from how much the clusters' own squares vary (Satterthwaite): at most clusters - 1,
            and fewer where a few clusters have most of the variance, so that the limits of the SD are further apart.
    """

    clusters: int
    sd: float
    df: float

    @classmethod
    def of(cls, gaps: ScenarioGaps) -> Spread:
        """The spread of a contrast's differences over at least two clusters."""
        means = gaps.by_cluster()
        squares = (means - means.mean()) ** 2
        spread = float(squares.var(ddof=1))
        per_cluster = 2 * float(squares.mean()) ** 2 / spread if spread > 0 else 1.0
        return cls(clusters=len(means), sd=float(means.std(ddof=1)), df=(len(means) - 1) * min(per_cluster, 1.0))

    def mde(self, tests: int) -> Detectable:
        """What the clusters find with a power of 80% after Holm's correction; its interval is that of the SD."""
        if not (self.sd > 0 and self.df > 0):
            return Detectable(math.nan, math.nan, math.nan)
        points = detectable(self.clusters, self.sd, tests=tests)
        # An SD estimated too low loses more power than one estimated too high gains: on average over estimates, the
        # effect found in 80% of studies is larger by about 1 / df (0.85 to 1.1 for 1 to 12 tests, by integration).
        low, high = (
            points * math.sqrt(self.df / (2 * float(gammaincinv(self.df / 2, tail)))) for tail in (0.975, 0.025)
        )
        return Detectable(points * (1 + 1 / self.df), low, high)


def mde_section(data: PanelData, blocked: Mapping[str, Blockers]) -> Section:
    """What a run of this size finds, as a table with one row per contrast, and in words.

    Contrasts vary by different amounts: what their mean variation would find, the most variable one misses in most
    studies. So every contrast of the main family has a size of its own.

    Args:
        data: The verdicts.
        blocked: What leaves questions without an answer, by model.
    """
    rows: list[dict[str, Any]] = []
    words: list[str] = []
    for model in data.models:
        contrasts = main_family(data, model)
        finite: dict[Contrast, Detectable] = {}
        for contrast in contrasts:
            gaps = data.table(model).contrast(contrast.first, contrast.second)
            if len(gaps.by_cluster()) < 2:
                continue
            spread = Spread.of(gaps)
            size = spread.mde(len(contrasts))
            numbers = {"mde": size.points, "low": size.low, "high": size.high, "tests": len(contrasts)}
            numbers |= {"sd": spread.sd, "bases": spread.clusters}
            rows.append({"model": model, "category": contrast.category, **contrast.sides, **numbers})
            if math.isfinite(size.points):
                finite[contrast] = size
        if finite and not blocked[model].scores:
            words.append(f"{data.prefix(model)}{_size_words(finite, len(contrasts))}")
    sides = ["model", "category", "first", "second"]
    table = Table(
        name="mde",
        title="Phase 1: the difference that a study of this size finds",
        frame=pd.DataFrame(rows, columns=[*sides, "mde", "low", "high", "tests", "sd", "bases"]),
        note="mde: found in 80% of studies after Holm's correction; sd: what `parley power --sd` takes.",
    )
    return Section(tables=(table,), words=tuple(words))


def _size_words(sizes: Mapping[Contrast, Detectable], tests: int) -> str:
    """The smallest and the largest size, with their contrasts."""
    ends = sorted(sizes.items(), key=lambda item: item[1].points)
    ends = ends[:: max(1, len(ends) - 1)]
    digits = 2 if ends[0][1].points >= 0.1 else 3
    spans = [f"(95% interval {size.low:.{digits}f} to {size.high:.{digits}f})" for _, size in ends]
    if len(sizes) == 1:
        corrected = f", after the correction for {tests} contrasts" if tests > 1 else ""
        points = f"{ends[0][1].points:.{digits}f}"
        return f"A study of this size finds a difference of {points} points in 80% of cases {spans[0]}{corrected}."
    named = [
        f"{size.points:.{digits}f} points between {quoted(contrast.first)} and {quoted(contrast.second)} {span}"
        for (contrast, size), span in zip(ends, spans, strict=True)
    ]
    return (
        f"A study of this size finds differences from {named[0]} to {named[1]} in 80% of cases, after the correction "
        f"for {tests} contrasts."
    )
