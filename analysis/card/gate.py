"""The gate: does a judge's card meet what is required of it, and is it worse than an earlier card?

    result = check_card(card, [parse_requirement("gender.abs < 0.1")])
    result.outcome                         # "holds", "broken" or "undecided"

A requirement *holds* if the line's 95% interval lies inside what it allows, and the check holds if all of them do: it
is wrong only if an interval is wrong, so nothing is corrected. (For labels and bylines it would be read as fairness, so
it does not hold for a model that was not shown to judge.) It is *broken* if the value is shown to lie outside,
Holm-corrected over everything that the check tests. Everything else is *undecided*.

`python -m benchmarks.calibration.gate` measures how often that is wrong where the true value is just the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from parley.analysis.card.changes import Change, compare_lines, why_undecidable
from parley.analysis.card.lines import FAIRNESS, NOT_QUALITY
from parley.analysis.card.record import Card, Line
from parley.analysis.card.requirements import Allowed, Requirement
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.signflips import clusters_to_reject, upper_tail
from parley.analysis.stats.tables import Floats
from parley.base.errors import ConfigError
from parley.base.text import p_text, plural, signed

MANY = 100_000
"""More clusters than anybody would add."""
Outcome = Literal["holds", "broken", "changed", "undecided"]
WhenUndecided = Literal["fail", "pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one requirement, or of one line compared with its baseline.

    Args:
        name: The same in every check: "gender.abs < 0.1", or "gender, not worse than the baseline".
        kind: "requirement" or "change".
        line_id: The line's id.
        outcome: "changed" is a value that moved across its null value without becoming worse.
        estimate: The line's value, or its change; None where nothing could be read.
        low: Lower end of its 95% interval.
        high: Upper end.
        p: Two-sided p-value that the value lies outside by chance; 1 where it does not, or cannot be tested.
        p_corrected: The same after Holm's correction over the check.
        clusters: Number of clusters.
        more: About how many more clusters would decide; None where it is decided, or no number would.
        message: All of it in one line.
    """

    name: str
    kind: Literal["requirement", "change"]
    line_id: str
    outcome: Outcome
    estimate: float | None
    low: float | None
    high: float | None
    p: float
    p_corrected: float
    clusters: int
    more: int | None = None
    message: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found.

    Args:
        model: The judge.
        findings: One per requirement, then one per line that was compared with the baseline.
    """

    model: str
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> Literal["holds", "broken", "undecided"]:
        """Broken if anything is, holds if everything does, else undecided."""
        outcomes = {finding.outcome for finding in self.findings}
        return "broken" if "broken" in outcomes else "holds" if outcomes <= {"holds"} else "undecided"

    def status(self, undecided: WhenUndecided | None = None) -> int:
        """The exit status: 0 holds, 1 broken, 3 undecided unless that is set to "fail" or "pass"."""
        if self.outcome == "undecided":
            return {"fail": 1, "pass": 0, None: 3}[undecided]
        return int(self.outcome == "broken")

    def __str__(self) -> str:
        width = max(len(finding.name) for finding in self.findings)
        lines = [f"{found.outcome:<9}  {found.name:<{width}}  {found.message}" for found in self.findings]
        return "\n".join([*lines, self.summary])

    @property
    def summary(self) -> str:
        """One sentence: the outcome, and the number of findings by outcome."""
        outcomes = [finding.outcome for finding in self.findings]
        counts = {name: outcomes.count(name) for name in ("broken", "undecided", "changed", "holds")}
        parts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"{self.outcome}: {parts} ({' '.join(self.model.split())})"


def check_card(
    card: Card,
    requirements: Sequence[Requirement],
    *,
    baseline: Card | None = None,
    tolerance: Mapping[str, float] | None = None,
    lines: Sequence[str] | None = None,
) -> CheckResult:
    """Check a card against requirements, an earlier card, or both.

    Args:
        card: The card.
        requirements: What is required of its lines.
        baseline: An earlier card of the same units; no line may be shown to have become worse.
        tolerance: By line, how much worse it may become (default: the line's margin).
        lines: The lines that are compared with the baseline (default: all that both have).
    """
    tolerance = tolerance or {}
    if baseline is None and (tolerance or lines is not None):
        raise ConfigError("a tolerance, or a choice of lines, is for a comparison: it needs a baseline")
    for name in (*tolerance, *(lines or ())):
        card.line(name)  # an unknown one is an error
    required = [(requirement, card.line(requirement.line_id)) for requirement in requirements]
    changes: list[Change] = []
    if baseline is not None:
        compared = [name for name in baseline.ids if name in card.ids and (lines is None or name in lines)]
        changes = [compare_lines(card, baseline, name, tolerance.get(name)) for name in compared]
    if not requirements and not changes:
        raise ConfigError("nothing is required: name a requirement, or a baseline that has the same lines")
    p = [outside_p(line, requirement.allowed(line)) for requirement, line in required]
    corrected = holm([*p, *(change.p_worse for change in changes)])
    tests = len(corrected)
    findings = [
        _required(requirement, line, own_p, own_corrected, tests, card.judges)
        for (requirement, line), own_p, own_corrected in zip(required, p, corrected[: len(p)], strict=True)
    ]
    findings += [
        _changed(change, own_corrected, tests)
        for change, own_corrected in zip(changes, corrected[len(p) :], strict=True)
    ]
    return CheckResult(card.model.name, tuple(findings))


def outside_p(line: Line, allowed: Allowed) -> float:
    """The two-sided p-value of a value outside what is allowed; 1 where the estimate lies inside.

    Student's t with the error that the line's own interval has, so that p ≤ 0.05 exactly where the interval excludes
    the limit; p is at least that of sign flips over the clusters' values, which cannot be small with few clusters, and
    that of `skewed_tail`. Both sides of `.abs` are tested, each at half the level: where the limit is small relative to
    the error, a value at one limit may be estimated beyond either.

    Args:
        line: The line.
        allowed: What it may be.
    """
    if why_undecidable(line) or line.estimate is None or line.low is None or line.high is None:
        return 1.0
    values = np.array(list(line.values.values()))
    smallest = 1.0
    for side, limit, end in ((1, allowed.high, line.low), (-1, allowed.low, line.high)):
        beyond, reach = side * (line.estimate - limit), side * (line.estimate - end)
        if not beyond > 0 or not reach > 0:
            continue
        df = line.clusters - 1
        p = 2 * float(stdtr(df, stdtrit(df, ALPHA / 2) * beyond / reach))
        if p <= ALPHA and len(values) and abs(values.mean() - line.estimate) <= 0.01 * reach:
            beyond_limit = side * (values - limit)
            p = max(p, min(1.0, 2 * upper_tail(beyond_limit)), 2 * skewed_tail(beyond_limit))
        smallest = min(smallest, p)
    return smallest


def skewed_tail(values: Floats) -> float:
    """The one-sided p-value of a mean above 0, by Student's t without its error from skewness.

    Where few bases have large values, t and sign flips say too often that the mean is small: with exponential values on
    60 bases, in 5.9% of samples at a nominal 2.5%. Hall's transformation (1992, Journal of the Royal Statistical
    Society B 54, 221-228) removes that error.

    Args:
        values: One per cluster.
    """
    count, spread = len(values), float(values.std()) if len(values) else 0.0
    if count < 3 or not spread > 1e-12:
        return 0.0
    skewness = float(((values - values.mean()) ** 3).mean()) / spread**3 / math.sqrt(count)
    t = float(values.mean()) / spread * math.sqrt(count - 1)
    transformed = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
    return float(stdtr(count - 1, -transformed))


def lies_inside(line: Line, allowed: Allowed) -> bool:
    """Whether the line's interval lies inside what is allowed, and would if it took skewness into account.

    Args:
        line: The line, which has an interval.
        allowed: What it may be.
    """
    if line.low is None or line.high is None or not (allowed.low < line.low and line.high < allowed.high):
        return False
    values = np.array(list(line.values.values()))
    return all(
        2 * skewed_tail(side * (limit - values)) <= ALPHA
        for side, limit in ((1, allowed.high), (-1, allowed.low))
        if math.isfinite(limit)
    )


def _required(requirement: Requirement, line: Line, p: float, corrected: float, tests: int, judges: bool) -> Finding:
    allowed, reason = requirement.allowed(line), why_undecidable(line)
    outcome: Outcome = "undecided"
    more, figures = None, _figures(line.estimate, line.low, line.high, line)
    if not reason and line.estimate is not None and line.low is not None and line.high is not None:
        if lies_inside(line, allowed):
            outcome, reason = ("undecided", NOT_QUALITY) if line.group in FAIRNESS and not judges else ("holds", "")
        elif corrected <= ALPHA:
            outcome = "broken"
            reason = f"p {p_text(corrected)}{_after(tests)}"
        else:
            gap = min(abs(line.estimate - limit) for limit in allowed)
            inside = allowed.low < line.estimate < allowed.high
            reach = (line.high - line.low) / 2
            if len(set(line.values.values())) == 1:  # what was never seen: t² / (n + t²), with t² about 4
                more = max(1, math.ceil((line.clusters + 4) * (reach / gap - 1))) if gap else None
            else:
                error = reach / -float(stdtrit(line.clusters - 1, ALPHA / 2))
                more = more_clusters(gap, error * math.sqrt(line.clusters), line.clusters, 1 if inside else tests)
            reason = _would_decide(more, line.cluster)
    return Finding(
        name=requirement.text,
        kind="requirement",
        line_id=line.id,
        outcome=outcome,
        estimate=line.estimate,
        low=line.low,
        high=line.high,
        p=p,
        p_corrected=corrected,
        clusters=line.clusters,
        more=more,
        message=_one_line(figures, reason),
    )


def _changed(change: Change, corrected: float, tests: int) -> Finding:
    line, outcome, more, reason = change.line, change.outcome(corrected, tests), None, change.reason
    if outcome == "broken":
        reason = f"worse by more than {change.tolerance:g}, p {p_text(corrected)}{_after(tests)}"
    elif outcome == "changed":
        reason = "the sign is reversed, and the size is not shown to be worse"
    elif outcome == "undecided" and not reason:
        more = more_clusters(change.gap, change.sd, change.clusters, tests if change.gap > 0 else 1)
        reason = _would_decide(more, line.cluster)
    values = " → ".join(number_of(line)(value) for value in (change.old.estimate, line.estimate) if value is not None)
    moved = _figures(change.estimate, change.low, change.high, line, signed)
    return Finding(
        name=f"{line.id}, not worse than the baseline",
        kind="change",
        line_id=line.id,
        outcome=outcome,
        estimate=change.estimate,
        low=change.low,
        high=change.high,
        p=change.p_worse,
        p_corrected=corrected,
        clusters=change.clusters,
        more=more,
        message=_one_line(f"{values}, change {moved}" if moved else "", reason),
    )


def more_clusters(gap: float, sd: float, clusters: int, tests: int) -> int | None:
    """About how many more clusters would decide, with a chance of 80% if the estimate is the truth; None if too many.

    The normal formula, since a check has many lines: `stats.power.clusters_needed` takes up to half a second for one.

    Args:
        gap: From the estimate to the limit.
        sd: Standard deviation of a cluster's value.
        clusters: Clusters that there are.
        tests: Tests to correct for: those of the check for *broken*, 1 for *holds*.
    """
    if not gap or not 0 < sd < math.inf:
        return None
    quantiles = float(ndtri(0.8) - ndtri(ALPHA / 2 / tests))
    needed = max((quantiles * sd / gap) ** 2 + 2, clusters_to_reject(ALPHA, tests))  # 2: t has heavier tails
    return max(1, math.ceil(needed) - clusters) if needed <= MANY else None


def _would_decide(more: int | None, noun: str) -> str:
    if more is None:
        return f"too close to the limit: no number of {noun}s would decide"
    return f"about {plural(more, f'more {noun}')} would decide"


def _one_line(*parts: str) -> str:
    """The parts that say something. A reason is the card's own text, which may have line breaks."""
    return " ".join(": ".join(filter(None, parts)).split())


def _after(tests: int) -> str:
    return f" after Holm's correction for {tests} tests" if tests > 1 else ""


def _figures(
    estimate: float | None,
    low: float | None,
    high: float | None,
    line: Line,
    number: Callable[[float], str] | None = None,
) -> str:
    if estimate is None:
        return ""
    number = number or number_of(line)
    interval = "no interval" if low is None or high is None else f"{number(low)} to {number(high)}"
    return f"{number(estimate)} ({interval} over {plural(line.clusters, line.cluster)})"


def number_of(line: Line) -> Callable[[float], str]:
    """Writes a value as the line is measured: with a sign where 0 is nothing."""
    return signed if line.null == 0 else "{:.2f}".format
