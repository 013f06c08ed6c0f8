"""The gate: do the lines of a run, a card or a comparison meet what is required, and are they worse than before?

    result = check_lines(checked_card(card), [parse_requirement("gender.abs < 0.1")])
    result.outcome                         # "holds", "broken" or "undecided"

A requirement *holds* if the line's 95% interval lies inside what it allows, and the check holds if all of them do: it
is wrong only if an interval is wrong, so nothing is corrected. (For labels and bylines it would be read as fairness, so
it does not hold for a model that was not shown to judge.) It is *broken* if the value is shown to lie outside,
Holm-corrected over everything that the check tests, and over the looks that are taken: a gate that runs every night
would be broken one day. Everything else is *undecided*.

`python -m benchmarks.calibration.gate` measures how often that is wrong where the true value is just the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from parley.analysis.gate.changes import (
    Checked,
    change,
    cluster_noun,
    clusters_of,
    counted,
    other_units,
    why_undecidable,
)
from parley.analysis.gate.requirements import Allowed, Requirement
from parley.analysis.reporting.names import find_name
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALIKE, ALPHA, Line
from parley.analysis.stats.signflips import clusters_to_reject, upper_tail
from parley.analysis.stats.tables import Floats
from parley.base.errors import ConfigError
from parley.base.text import p_text, plural, signed

MANY = 100_000
"""More clusters than anybody would add."""
NEAR = 0.01
"""An estimate is the mean of the clusters' values if it is this close to it, in halves of its interval."""
Outcome = Literal["holds", "broken", "changed", "undecided"]
WhenUndecided = Literal["fail", "pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one requirement, or of one line compared with its baseline.

    Args:
        name: The same in every check: "gender.abs < 0.1", or "gender, not worse than the baseline".
        kind: "requirement" or "change".
        line: The line, or its change. Its p is that of a value outside what is allowed, 1 where it is inside or cannot
            be tested, and is corrected (Holm) over the check.
        outcome: "changed" is a value that moved across its reference value without becoming worse.
        more: About how many more clusters would decide; None where it is decided, or no number would.
        message: All of it in one line.
    """

    name: str
    kind: Literal["requirement", "change"]
    line: Line
    outcome: Outcome
    more: int | None = None
    message: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found.

    Args:
        model: The judge, or what else was checked.
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


def check_lines(
    checked: Checked,
    requirements: Sequence[Requirement],
    *,
    baseline: Checked | None = None,
    tolerance: Mapping[str, float] | None = None,
    lines: Sequence[str] | None = None,
    looks: int = 1,
) -> CheckResult:
    """Check lines against requirements, an earlier run or card, or both.

    Args:
        checked: The lines.
        requirements: What is required of them.
        baseline: An earlier run or card of the same units; no line may be shown to have become worse.
        tolerance: By line, how much worse it may become (default: the line's margin).
        lines: The lines that are compared with the baseline (default: all that both have, with a margin or tolerance).
        looks: How often the check is made, on ballots that are cast anew: all of them together are wrong in 5%.
    """
    if baseline is None and (tolerance or lines is not None):
        raise ConfigError("a tolerance, or a choice of lines, is for a comparison: it needs a baseline")

    def known(name: str) -> str:
        return find_name(name, checked.lines, checked.study)

    allowed = {known(name): limit for name, limit in (tolerance or {}).items()}
    chosen = None if lines is None else [known(name) for name in lines]
    required = [(requirement, checked.lines[known(requirement.line_id)]) for requirement in requirements]
    changes = list(_changes(checked, baseline, allowed, chosen)) if baseline is not None else []
    if not required and not changes:
        raise ConfigError(
            "nothing is required: name a requirement, or a baseline with the same lines and --tolerance LINE=X for "
            "those that have no margin"
        )
    tested = [replace(line, p=outside_p(line, requirement.allowed(line))) for requirement, line in required] + changes
    p = holm([line.p for line in tested])
    corrected = [
        replace(line, p_adjusted=min(1.0, own * looks), tests=len(p) * looks)
        for line, own in zip(tested, p, strict=True)
    ]
    findings = [
        _required(requirement, line, checked.unproven.get(line.name, ""))
        for (requirement, _), line in zip(required, corrected[: len(required)], strict=True)
    ]
    return CheckResult(checked.name, (*findings, *map(_changed, corrected[len(required) :])))


def _changes(
    checked: Checked, baseline: Checked, tolerance: Mapping[str, float], chosen: Sequence[str] | None
) -> Iterator[Line]:
    if different := other_units(checked.units, baseline.units):
        raise ConfigError(f"{checked.name} and {baseline.name} do not cover the same units: they differ in {different}")
    for name in baseline.lines:
        if name not in checked.lines or not (chosen is None or name in chosen):
            continue
        limit = tolerance.get(name, checked.lines[name].margin)
        if math.isfinite(limit):
            yield change(checked, baseline, name, limit)
        elif chosen:
            raise ConfigError(f"the line {name} has no margin: --tolerance {name}=X says how much worse it may become")


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
    if why_undecidable(line):
        return 1.0
    if counted(line):
        return 1.0 if allowed.low <= line.estimate <= allowed.high else 0.0
    values = np.array(list(line.values.values()))
    smallest = 1.0
    for side, limit, end in ((1, allowed.high, line.low), (-1, allowed.low, line.high)):
        beyond, reach = side * (line.estimate - limit), side * (line.estimate - end)
        if not beyond > 0 or not reach > 0:
            continue
        df = clusters_of(line) - 1
        p = 2 * float(stdtr(df, stdtrit(df, ALPHA / 2) * beyond / reach))
        if p <= ALPHA and len(values) and abs(values.mean() - line.estimate) <= NEAR * reach:
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
    if not (allowed.low < line.low and line.high < allowed.high):
        return False
    if counted(line):
        return True
    values = np.array(list(line.values.values()))
    if len(values) and abs(shift := line.estimate - values.mean()) > NEAR * (line.high - line.low) / 2:
        values = values + shift  # an estimate that is weighted otherwise: the values say how skewed clusters are
    return all(
        2 * skewed_tail(side * (limit - values)) <= ALPHA
        for side, limit in ((1, allowed.high), (-1, allowed.low))
        if math.isfinite(limit)
    )


def _required(requirement: Requirement, line: Line, unproven: str) -> Finding:
    allowed, reason, tests = requirement.allowed(line), why_undecidable(line), line.tests or 1
    outcome: Outcome = "undecided"
    more = None
    if not reason and lies_inside(line, allowed):
        outcome, reason = ("undecided", unproven) if unproven else ("holds", "")
    elif not reason and line.p_adjusted <= ALPHA:
        outcome, reason = "broken", "" if counted(line) else f"p {p_text(line.p_adjusted)}{_after(tests)}"
    elif not reason:
        gap, clusters = min(abs(line.estimate - limit) for limit in allowed), clusters_of(line)
        inside, reach = allowed.low < line.estimate < allowed.high, (line.high - line.low) / 2
        if len(set(line.values.values())) == 1:  # what was never seen: t² / (n + t²), with t² about 4
            more = max(1, math.ceil((clusters + 4) * (reach / gap - 1))) if gap else None
        else:
            sd = reach / -float(stdtrit(clusters - 1, ALPHA / 2)) * math.sqrt(clusters)
            more = more_clusters(gap, sd, clusters, 1 if inside else tests)
        reason = _would_decide(more, line)
    return Finding(
        name=requirement.text,
        kind="requirement",
        line=line,
        outcome=outcome,
        more=more,
        message=_one_line(_figures(line, number_of(line, requirement.limit)), reason),
    )


def _changed(line: Line) -> Finding:
    """The outcome of a change: the line is that of `changes.change`, corrected."""
    tests, more, reason = line.tests or 1, None, line.note
    outcome: Outcome = "holds" if line.verdict == ALIKE else "undecided"
    if line.p_adjusted <= ALPHA:
        outcome = "broken"
        reason = f"worse by more than {line.margin:g}, p {p_text(line.p_adjusted)}{_after(tests)}"
    elif line.also["p_moved"] * tests <= ALPHA:
        outcome = "changed"
        reason = "the sign is reversed, and the size is not shown to be worse"
        if not line.worse:
            reason = f"it moved by more than {line.margin:g}, and nothing says which side is worse"
    elif outcome == "undecided" and not reason:
        gap, clusters = line.also["gap"], clusters_of(line)
        more = more_clusters(gap, line.standard_error * math.sqrt(clusters), clusters, tests if gap > 0 else 1)
        reason = _would_decide(more, line)
    number = number_of(line, line.margin)
    values = " → ".join(number(line.also[side]) for side in ("before", "after") if math.isfinite(line.also[side]))
    moved = _figures(line, number_of(replace(line, reference=0.0), line.margin))
    return Finding(
        name=f"{line.name}, not worse than the baseline",
        kind="change",
        line=line,
        outcome=outcome,
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


def _would_decide(more: int | None, line: Line) -> str:
    if more is None:
        return f"too close to the limit: no number of {cluster_noun(line)}s would decide"
    return f"about {plural(more, f'more {cluster_noun(line)}')} would decide"


def _one_line(*parts: str) -> str:
    """The parts that say something. A reason is the card's own text, which may have line breaks."""
    return " ".join(": ".join(filter(None, parts)).split())


def _after(tests: int) -> str:
    return f" after Holm's correction for {tests} tests" if tests > 1 else ""


def _figures(line: Line, number: Callable[[float], str]) -> str:
    if math.isnan(line.estimate):
        return ""
    if counted(line) and line.method:
        return f"{number(line.estimate)} (all {line.n:,} counted)"
    interval = f"{number(line.low)} to {number(line.high)}" if line.bounded else "no interval"
    return f"{number(line.estimate)} ({interval} over {plural(clusters_of(line), cluster_noun(line))})"


def number_of(line: Line, limit: float) -> Callable[[float], str]:
    """Writes a value with one digit more than the limit has: with a sign where 0 is nothing."""
    digits = max(2, len(f"{limit:f}".rstrip("0").partition(".")[2]) + 1)
    return (lambda value: signed(value, digits)) if line.reference == 0 else f"{{:.{digits}f}}".format
