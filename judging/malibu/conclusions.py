"""The evidence on each contrast of identities, from which `parley.analysis.reporting.decide` gives its verdict.

"Different" is the sign-flip test over bases, Holm-corrected over the planned pairs, where Student's t, corrected for
skewness, agrees: with a tenth of the bases collapsing and equal means, sign flips alone say "different" in 8% of
studies of 40 bases, both together in 2%. No test can see a kind of base that was not drawn: `rare_kind_rate`.

"Alike" is two one-sided tests within ±margin (Holm-corrected too), no test that finds that the effect differs between
bases (not used for silent ballots, where it always finds something), an upper limit of its spread between bases below
`SPREAD` margins, and `ENOUGH_FOR_ALIKE` bases. An identity that is raised on some bases and lowered on others is not
treated alike, even if its mean is; and where one base in ten loses 2 points, 34% of samples of ten bases include none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import stdtr

from parley.analysis.reporting.decide import Evidence, Spread
from parley.analysis.reporting.questions import adjusted
from parley.analysis.stats.heterogeneity import heterogeneity
from parley.analysis.stats.results import ALPHA, DIFFERENT, SMALL, Line, simultaneous
from parley.analysis.stats.signflips import clusters_to_reject, sign_flip_p, sign_flip_test
from parley.analysis.stats.tables import Floats
from parley.base.text import p_text, plural
from parley.judging.malibu.score_table import ScenarioGaps, tested_line

SCORE, WINS, ODDS = "score", "preferences", "log-odds"
"""The measures of a contrast; the last two are of pairs."""
NOT_QUALITY = "within the margin, but not called alike: the judges were not shown to tell good from flawed answers"
MARGIN = 0.1
"""Points of the scale, or in pairs wins minus losses per comparison: a smaller difference counts as none."""
# A mean near 0 is not enough: with +1.5 points on ten bases and -1.5 on ten, 40 of 40 simulated runs would be called
# alike within ±0.5. The price is that sampled designs have almost no chance to show "alike" at the default margin.
# Silent ballots do: in simulated runs with an SD of 0.05 between bases "alike" is said in all, at ±1.5 in none, and at
# an SD that is just the limit, 0.2, in 2 to 5%, as the upper limit is one of 95%
# (`python -m benchmarks.calibration --adversarial --only "silent, alike"`).
SPREAD = 2.0
"""In margins: for "alike", the SD of effects between bases must be shown to be smaller."""
ENOUGH_FOR_ALIKE = 29
"""With this many clusters, a kind that is one in ten is missing from fewer than 5% of samples: 0.9²⁹ = 0.047."""
ENOUGH_BASES = 60
"""With this many bases, nearly all samples include a rare kind of base that reverses a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blockers:
    """Why a model's questions have no answer, in sentences; "" where they do (see `blockers`).

    Args:
        quality: Why its scores are not known to measure quality.
        scores: Why nothing is said about scores (phase 1).
        preferences: Why nothing is said about preferences (phase 2).
    """

    quality: str = ""
    scores: str = ""
    preferences: str = ""

    def of(self, measure: str) -> str:
        """What leaves a measure without an answer."""
        # Log-odds are averaged over both orders, and are no ties: neither place nor ties leave them without an answer.
        return {SCORE: self.scores, WINS: self.preferences, ODDS: ""}[measure]


def effect(gaps: ScenarioGaps, margin: float) -> Line:
    """The estimate of one pair with all its tests, before any correction.

    Args:
        gaps: The differences by scenario.
        margin: The difference that still counts as none; NaN: "alike" is not asked.
    """
    line = replace(tested_line(gaps), margin=margin)
    if not line.clusters:
        return line
    by_cluster, by_scenario = gaps.by_cluster(), sign_flip_test(gaps.values)
    spread, total = heterogeneity(gaps.values, gaps.bases), float(np.abs(by_cluster).sum())
    also = {
        "t_p": _t_test(by_cluster),
        "skewness": _skewness(by_cluster, sample=True) if _varies(by_cluster, 3) else math.nan,
        "largest_base": float(np.abs(by_cluster).max() / total) if total else math.nan,
        "p_alike": math.nan if math.isnan(margin) else gaps.equivalence_p(margin),
        "base_sd": spread.estimate,
        "base_sd_high": spread.high,
        "p_bases": spread.p,
        "scenario_low": by_scenario.low,
        "scenario_high": by_scenario.high,
        "scenario_p": by_scenario.p,
    }
    return replace(line, also=also, values=gaps.named())


def _varies(values: Floats, least: int) -> bool:
    return len(values) >= least and bool(np.ptp(values) > 1e-9)


def _skewness(values: Floats, *, sample: bool = False) -> float:
    """The third standardised moment; of a sample, with the correction that makes it unbiased under normality."""
    n, errors = len(values), values - values.mean()
    skewness = float((errors**3).mean() / (errors**2).mean() ** 1.5)
    return skewness * math.sqrt(n * (n - 1)) / (n - 2) if sample else skewness


def _skewed(values: Floats) -> bool:
    """Whether values are skewed by more than chance: more than twice the standard error of a normal sample's."""
    n = len(values)
    if not _varies(values, 3):
        return False
    error = math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))
    return abs(_skewness(values)) > 2 * error


def _t_test(values: Floats) -> float:
    """The p-value of Student's t, corrected for skewness where that is more than chance; without spread 1 or 0.

    Hall's transformation (1992, Journal of the Royal Statistical Society B 54, 221-228). Where a tenth of 80 bases
    collapse it lowers false alarms from 6% to 1%. It is not applied to every sample, as it would cost 3 to 8% of power
    where effects are normally distributed.
    """
    n = len(values)
    if n < 2 or not _varies(values, 2):
        return math.nan if n < 2 else float(not values.any())
    t = math.sqrt(n) * float(values.mean() / values.std(ddof=1))
    if _skewed(values):
        g = _skewness(values) / math.sqrt(n)
        t += g * t**2 / 3 + g**2 * t**3 / 27 + g / 6
    return float(2 * stdtr(n - 1, -abs(t)))


@lru_cache(maxsize=64)
def rare_kind_rate(bases: int) -> float:
    """How often this many bases say "different" although a tenth of all bases cancel what the others add.

    The others gain a point; the rare kind loses 9 points, which makes the mean 0. Where few or none of the rare kind
    are drawn, the rest looks like a difference. Exact: the number drawn is binomial.

    Args:
        bases: Bases in the sample.
    """
    samples = (np.array([1.0] * (bases - drawn) + [-9.0] * drawn) for drawn in range(bases + 1))
    called = [max(sign_flip_p(sample), _t_test(sample)) <= ALPHA for sample in samples]
    return math.fsum(math.comb(bases, drawn) * 0.1**drawn * 0.9 ** (bases - drawn) for drawn in np.flatnonzero(called))


def reversible(lines: Sequence[Line]) -> str:
    """Says that a rare kind of base could reverse a claimed difference; "" without one, or with many bases.

    Args:
        lines: The planned lines of a model.
    """
    claimed = [line for line in lines if line.verdict in (DIFFERENT, SMALL)]
    bases = max((line.clusters or 0 for line in claimed), default=ENOUGH_BASES)
    if bases >= ENOUGH_BASES:
        return ""
    return (
        f" A rare kind of {claimed[0].cluster} that was not drawn could reverse a difference: if a tenth of all did, "
        f"{rare_kind_rate(bases):.0%} of samples of {bases} would still show one."
    )


def rarest(clusters: int) -> float:
    """The share of all clusters from which an effect is seen in 95% of samples of this size; rarer ones may be missed.

    Args:
        clusters: Clusters in the sample.
    """
    return 1 - math.pow(ALPHA, 1 / clusters)


def tested_words(line: Any, unit: str) -> str:
    """Interval, number of clusters and p-value of a difference whose sign a sentence has named.

    Args:
        line: The line, or a row with its numbers.
        unit: What a cluster is called.
    """
    low, high = sorted(abs(end) for end in (line.low, line.high))
    several = "simultaneous " if line.tests > 1 else ""
    # Without spread there is no interval.
    ends = f"{several}95% interval {low:.2f} to {high:.2f} " if low < high else "the same on all of them, "
    span = ends if math.isfinite(high) else ""
    return f"{span}over {plural(line.clusters, unit)}, p {p_text(line.p_adjusted)} after Holm's correction"


def corrected_effects(lines: Sequence[Line], gaps: Sequence[ScenarioGaps]) -> list[Line]:
    """The lines of one family with corrected p-values, and the interval that covers all of them at once.

    `p_adjusted` is the larger one of both tests that "different" needs. The interval of a line alone is among its
    further numbers.

    Args:
        lines: What `effect` returned for each pair.
        gaps: What it was given.
    """
    families = zip(adjusted(lines, (), further=("t_p", "p_alike", "p_bases")), gaps, strict=True)
    return [_with_simultaneous(line, of_line) if line.clusters else line for line, of_line in families]


def _with_simultaneous(line: Line, gaps: ScenarioGaps) -> Line:
    tests = line.tests or 1
    interval = simultaneous(line, gaps.test(1 - ALPHA / tests))
    low, high = interval or (-math.inf, math.inf)
    further = {"pointwise_low": line.low, "pointwise_high": line.high, "p_flips_adjusted": line.p_adjusted}
    return replace(
        line,
        low=low,
        high=high,
        simultaneous=interval if tests > 1 else None,
        p_adjusted=float(np.fmax(line.p_adjusted, line.also["t_p_adjusted"])),
        also={**further, **line.also},
    )


def evidence(line: Line, blocked: Blockers, *, judges: str = "", silent: bool = False) -> Evidence:
    """What is known about a contrast.

    Args:
        line: As `corrected_effects` returns it.
        blocked: What leaves its model's questions without an answer.
        judges: Those who were shown to differ on it.
        silent: Whether scores come from silent ballots, where the test of differences between bases has no veto.
    """
    if not line.clusters:
        return Evidence(note=line.note)
    tests = line.tests or 1
    # A silent ballot has hardly any noise, so the test finds that bases differ by hundredths of a point, and "alike"
    # would never be said. There the upper limit of the spread decides alone; see SPREAD for what it lets through.
    spread = Spread(
        p=math.nan if silent else line.also["p_bases_adjusted"],
        high=line.also["base_sd_high"],
        limit=SPREAD * line.margin,
        enough=ENOUGH_FOR_ALIKE,
    )
    return Evidence(
        p=line.also["p_flips_adjusted"],
        p_second=line.also["t_p_adjusted"],
        p_alike=line.also["p_alike_adjusted"],
        margin=line.margin,
        spread=spread,
        clusters=line.clusters,
        tests=tests,
        needed=clusters_to_reject(ALPHA, tests),
        judges=judges,
        blocked=blocked.of(line.measure),
        not_alike=NOT_QUALITY if blocked.quality else "",
        note=line.note,
    )
