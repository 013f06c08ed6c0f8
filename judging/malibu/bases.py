"""The effect of identity by base, and the smallest difference that a run of this size can detect (MDE).

spread = StudySize.of(table.gaps("male", "female"))
spread.mde(tests=3)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from scipy.special import gammaincinv

from parley.analysis.clusters import has_wordings
from parley.analysis.effects import of_model
from parley.analysis.page.report import Section, Table
from parley.analysis.stats.power import detectable
from parley.analysis.stats.results import ALPHA, Contrast, Line
from parley.base.text import p_text, plural
from parley.judging.malibu.contrasts import PAIRS, PRIMARY, SCORE, contrast_of, families, pairs_of
from parley.judging.malibu.decisions import Blockers
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.score_table import ScenarioGaps
from parley.judging.malibu.words import quoted

if TYPE_CHECKING:
    pass

ABOUT = ("model", "category", "first", "second")


def by_base_section(
    data: PanelData,
    planned: Sequence[Line],
    blocked: Mapping[str, Blockers],
    margin: float,
) -> Section:
    """The differences by base, as a table, and where they vary.

    Args:
        data: The verdicts.
        planned: The planned lines.
        blocked: Reasons that leave questions without an answer, by model.
        margin: The margin of the lines.
    """
    pairs = pairs_of(planned, SCORE)
    rows = pd.DataFrame(
        {**{name: line.about.columns[name] for name in ABOUT}, "base": base, "difference": value}
        for line in pairs
        for base, value in line.values.items()
    )
    table = Table(
        name="by_base",
        title=f"Phase 1: differences by {data.cluster_noun}",
        frame=rows,
        note="First minus second, all metrics together.",
    )
    words = (
        f"{data.prefix(model)}{text}"
        for model in data.models
        if not blocked[model].scores and (text := _varying(of_model(pairs, model), data, margin))
    )
    return Section(tables=(table,), words=tuple(words))


def _varying(pairs: Sequence[Line], data: PanelData, margin: float) -> str:
    """A sentence on how many pairs' differences vary between bases, and which varies most."""
    tested = [line for line in pairs if not math.isnan(line.p)]
    # Silent ballots have hardly any noise, so bases always differ a little; only large differences are reported.
    varying = [
        line
        for line in tested
        if line.also["p_bases_adjusted"] <= ALPHA
        and (line.also["base_sd"] >= margin or not data.read_silently(line.about.model))
    ]
    if not varying:
        return ""
    most = max(varying, key=lambda line: line.also["base_sd"])
    first, second = contrast_of(most).names
    # Each base has its own label wordings, or shares them with few others, so either may cause the variation.
    worded = has_wordings(data.verdicts)
    where, each = (
        ("with the base or its label wording", "base and wording") if worded else ("from base to base", "base")
    )
    return (
        f"In {len(varying)} of {plural(len(tested), 'pair')} the difference varies {where}"
        f"{', most' if len(varying) > 1 else ':'} between '{first}' and '{second}' (SD of "
        f"{most.also['base_sd']:.2f} points, p {p_text(most.also['p_bases_adjusted'])} after Holm's correction). The "
        f"mean does not describe every {each}."
    )


class Detectable(NamedTuple):
    """The smallest difference detected with a power of 80%, with its 95% interval."""

    points: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySize:
    """Variation of a contrast of phase 1 over its clusters: bases, or scenarios without a base.

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
    def of(cls, gaps: ScenarioGaps) -> StudySize:
        """The spread of a contrast's differences over at least two clusters."""
        means = gaps.by_cluster()
        squares = (means - means.mean()) ** 2
        spread = float(squares.var(ddof=1))
        per_cluster = 2 * float(squares.mean()) ** 2 / spread if spread > 0 else 1.0
        return cls(clusters=len(means), sd=float(means.std(ddof=1)), df=(len(means) - 1) * min(per_cluster, 1.0))

    def mde(self, tests: int) -> Detectable:
        """The difference detected with a power of 80% after Holm's correction; its interval is that of the SD."""
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
    """The differences that a run of this size can detect: a table with one row per contrast, and a sentence.

    Each contrast has its own, since contrasts vary by different amounts: a size from their mean variation would be
    missed by most studies of the most variable one.

    Args:
        data: The verdicts.
        blocked: What leaves questions without an answer, by model.
    """
    rows: list[dict[str, Any]] = []
    words: list[str] = []
    for model in data.models:
        by_family = families(data, model)
        contrasts = by_family[PRIMARY] or by_family[PAIRS]
        finite: dict[Contrast, Detectable] = {}
        for contrast in contrasts:
            gaps = data.table(model).contrast(contrast.first, contrast.second)
            if len(gaps.by_cluster()) < 2:
                continue
            spread = StudySize.of(gaps)
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
