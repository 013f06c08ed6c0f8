"""How much differences between identities vary over bases, and so the smallest one that a run of this size finds (MDE).

    found = pilot(verdicts)
    found.mde(tests=3)               # what `parley power --from RUN --bases N` says of a run of N bases
    found.planning_sd()              # the standard deviation that a new study is sized by

A study sized by a small pilot's standard deviation, as if it were known, is too small half of the time. So a new one is
sized by an upper confidence limit (R. H. Browne, 1995, Statistics in Medicine 14, 1933-1940).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaincinv

from parley.analysis.malibu.conclusions import Blockers, skewed
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.malibu.planned import Contrast, main_family
from parley.analysis.malibu.score_table import ScenarioGaps
from parley.analysis.malibu.scores import quoted
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.power import detectable

UPPER = 0.9
"""Confidence of the limit that a new study is sized by: nine of ten studies then have the power that was planned.

With 0.8, studies whose pilot of 8 bases was significant found what they were sized for in 66 to 79%: a small spread
makes a pilot significant. With 0.9 they find it in 78 to 88%.
"""
SKEWED = 1.0
"""Skewness that costs power: below it, pairs of a real judge kept theirs. An exponential distribution has 2."""
MORE_IF_SKEWED = 2.5
"""Times the bases where a pilot's differences are skewed. "Different" also needs a t-test that corrects for skewness.

Without it, studies from pilots of 20 bases found a margin of half an SD in 72% (an exponential tail against the
difference) and 63% (a lognormal one); with it, in 86 and 76%.
"""


class Detectable(NamedTuple):
    """The smallest difference that is found with a power of 80%, with its 95% interval."""

    points: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """Standard deviations of the difference between two identities in phase 1, pooled over pairs of identities.

    Args:
        bases: Clusters with a difference.
        pairs: Pairs of identities within a category.
        scenarios: Mean number of scenarios per base.
        sd: SD of a base's mean difference, as the run has it.
        df: Its degrees of freedom: pairs that share bases and identities count for less than their number, and so do
            bases of which a few have most of the variance.
        largest: The largest mean difference of a pair, without its sign.
        skewed: Whether the differences of most pairs are skewed, by more than chance and by more than `SKEWED`.
        between: SD of a base's true difference (one-way analysis of variance); NaN where no base has two scenarios.
        within: SD of a scenario's difference, within a base; NaN where no base has two scenarios.
    """

    bases: int
    pairs: int
    scenarios: float
    sd: float
    df: float
    largest: float
    skewed: bool
    between: float
    within: float

    def of_base(self, scenarios: int | None = None) -> float:
        """The standard deviation of a base's mean difference with this many scenarios per base; None: as in the run."""
        return self.sd if scenarios is None else math.sqrt(self.between**2 + self.within**2 / scenarios)

    def limit(self, tail: float) -> float:
        """The factor that bounds, with this chance, the true standard deviation over the estimated one."""
        return math.sqrt(self.df / (2 * float(gammaincinv(self.df / 2, tail)))) if self.df > 0 else math.nan

    def upper(self, scenarios: int | None = None) -> float:
        """The upper confidence limit of `of_base`."""
        return self.of_base(scenarios) * self.limit(1 - UPPER)

    def planning_sd(self, scenarios: int | None = None) -> float:
        """The standard deviation that a new study is sized by: its upper limit, and more where bases are skewed."""
        return self.upper(scenarios) * (math.sqrt(MORE_IF_SKEWED) if self.skewed else 1.0)

    def mde(self, tests: int) -> Detectable:
        """What the run's bases find with a power of 80% after Holm's correction; its interval is that of the SD."""
        points = detectable(self.bases, self.sd, tests=tests) if self.bases and self.sd > 0 else math.nan
        # An SD estimated too low loses more power than one estimated too high gains: on average over estimates, the
        # effect found in 80% of studies is larger by about 1 / df (0.85 to 1.1 for 1 to 12 tests, by integration).
        uncertain = 1 + 1 / self.df if self.df > 0 else math.nan
        return Detectable(points * uncertain, points * self.limit(0.975), points * self.limit(0.025))


def pilot(verdicts: Verdicts, model: str | None = None) -> Pilot:
    """The variation over bases of one model's differences; without a base a scenario is a base of its own.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        model: The model; None: the only one.
    """
    data = panel_data(verdicts)
    gaps: list[ScenarioGaps] = []
    for own in data.models if model is None else [model]:
        table = data.table(own)
        gaps += [table.gaps(x, y) for _, x, y in data.pairs(own)]
    return pilot_of(gaps)


def pilot_of(gaps: Iterable[ScenarioGaps]) -> Pilot:
    """The variation over bases of some contrasts, pooled.

    Args:
        gaps: The differences of each; those of a single cluster are left out.
    """
    gaps = [one for one in gaps if len(one.by_cluster()) > 1]
    squares = pd.DataFrame([_squares(found) for found in gaps], columns=list(_SQUARES))
    total, df = squares.sum(), float((squares["clusters"] - 1).sum())
    df_within = total["scenarios"] - total["bases"]
    within2 = total["within"] / df_within if df_within else math.nan
    # The expected mean square between bases is that within, plus n0 times the variance between them.
    between2 = (
        (total["between"] / (total["bases"] - len(squares)) - within2) / (total["n0"] / len(squares)) if df else 0
    )
    return Pilot(
        bases=int(squares["clusters"].max()) if len(squares) else 0,
        pairs=len(squares),
        scenarios=float(total["scenarios"] / total["bases"]) if df else math.nan,
        sd=math.sqrt(total["of_means"] / df) if df else math.nan,
        df=_degrees_of_freedom(gaps) if df else math.nan,
        largest=max((abs(float(found.by_cluster().mean())) for found in gaps), default=math.nan),
        skewed=2 * sum(skewed(found.by_cluster(), SKEWED) for found in gaps) > len(gaps),
        between=math.sqrt(max(between2, 0.0)) if between2 == between2 else math.nan,
        within=math.sqrt(within2),
    )


def _degrees_of_freedom(gaps: list[ScenarioGaps]) -> float:
    """Degrees of freedom of the pooled variance, from how much the clusters' own squares vary (Satterthwaite).

    At most those of independent pairs. Fewer than those of one pair where differences have heavy tails, so that the
    limits of the SD are further apart.
    """
    columns = {
        nth: pd.Series(found.by_cluster(), [found.cluster_names[code] for code in np.unique(found.clusters)])
        for nth, found in enumerate(gaps)
    }
    table = pd.DataFrame(columns)
    squares = ((table - table.mean()) ** 2).mean(axis=1)
    spread = float(squares.var())
    per_cluster = 2 * float(squares.mean()) ** 2 / spread if spread > 0 else 1.0
    return (len(table) - 1) * min(per_cluster, float(len(gaps)))


_SQUARES = ("clusters", "bases", "scenarios", "of_means", "between", "within", "n0")


def _squares(gaps: ScenarioGaps) -> dict[str, float]:
    """Sums of squares of one pair's differences: of the clusters' means, and between and within bases."""
    means = gaps.by_cluster()
    known, counts = pd.Series(gaps.values), len(gaps.values)
    groups = known.groupby(gaps.bases)
    by_base, sizes = groups.mean(), groups.size()
    of_means = float(((means - means.mean()) ** 2).sum())
    values = (
        len(means),
        len(by_base),
        counts,
        of_means,
        float((sizes * (by_base - known.mean()) ** 2).sum()),
        float(((known - groups.transform("mean")) ** 2).sum()),
        (counts - float((sizes**2).sum()) / counts) / (len(by_base) - 1) if len(by_base) > 1 else 0.0,
    )
    return dict(zip(_SQUARES, map(float, values), strict=True))


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
        sizes = {
            contrast: (found, found.mde(len(contrasts)))
            for contrast in contrasts
            if (found := pilot_of([data.table(model).contrast(contrast.first, contrast.second)])).pairs
        }
        for contrast, (found, size) in sizes.items():
            numbers = {"mde": size.points, "low": size.low, "high": size.high, "tests": len(contrasts)}
            spread = {"sd": found.sd, "sd_upper": found.upper(), "bases": found.bases}
            rows.append({"model": model, "category": contrast.category, **contrast.sides, **numbers, **spread})
        known = {contrast: size for contrast, (_, size) in sizes.items() if math.isfinite(size.points)}
        if known and not blocked[model].scores:
            words.append(f"{data.prefix(model)}{_size_words(known, len(contrasts))}")
    sides = ["model", "category", "first", "second"]
    table = Table(
        name="mde",
        title="Phase 1: the difference that a study of this size finds",
        frame=pd.DataFrame(rows, columns=[*sides, "mde", "low", "high", "tests", "sd", "sd_upper", "bases"]),
        note="mde: found in 80% of studies after Holm's correction, from the SD of a base's difference (sd); sd_upper: "
        f"its {UPPER:.0%} upper limit. `parley power --from` sizes a new study by an SD that is pooled over the pairs.",
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
