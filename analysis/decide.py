"""The only place where a report decides: it turns the evidence on a line into a verdict and a reason.

    decide(Evidence(p=0.01))                      # ("different", "")
    decide(Evidence(p=0.3, p_alike=0.01))         # ("below the margin on average", "")

"Different" is a test that finds a difference. "Alike" needs four things: the mean is shown to lie within ±margin, no
test finds that the effect differs between clusters, the upper limit of its spread between them is low enough, and there
are enough clusters to include a rare kind. Where replies could not be read, both must hold whatever those had said.
Reasons that leave a question without an answer are evidence too, so no
verdict is later taken back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from parley.analysis.stats.results import (
    ALIKE,
    ALPHA,
    DIFFERENT,
    JUDGES_DIFFER,
    NOT_MEASURED,
    ON_AVERAGE,
    SMALL,
    UNDECIDED,
    UNREAD,
    Conclusion,
    Line,
)
from parley.base.text import plural, signed


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Variation of an effect between clusters, for "alike".

    Args:
        p: The corrected p-value of no variation; NaN where a significant one does not matter.
        high: Upper limit of the SD between clusters; NaN where it cannot be estimated.
        limit: The upper limit must be below this.
        enough: Fewest clusters among which a rare kind is likely to be.
    """

    p: float
    high: float
    limit: float
    enough: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a contrast would be whatever the unread replies had said; see `unread.bounds`.

    Args:
        first_read: The share of the first arm's replies that were read.
        second_read: That of the second's.
        worst_low: The lowest possible value.
        worst_high: The highest.
    """

    first_read: float
    second_read: float
    worst_low: float
    worst_high: float

    @classmethod
    def of(cls, also: Mapping[str, float]) -> Bounds | None:
        """Those among the numbers; None where all was read."""
        return cls(**{each.name: also[each.name] for each in fields(cls)}) if "worst_low" in also else None

    def within(self, margin: float) -> bool:
        """Whether the contrast lies within ±margin in any case."""
        return -margin <= self.worst_low and self.worst_high <= margin

    @property
    def words(self) -> str:
        ends = f"{signed(self.worst_low)} to {signed(self.worst_high)}"
        return f"among the replies that were read ({self.first_read:.0%} and {self.second_read:.0%}; bounds {ends})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence on a line. Every p-value is corrected in its family.

    Args:
        p: The p-value of no difference; NaN: there is no test, and `note` says why.
        p_alike: The p-value of a difference beyond the margin; NaN: it is not asked.
        margin: The difference that still counts as none.
        spread: How much the effect varies between clusters; None: only the mean is asked about.
        clusters: Number of clusters.
        tests: Number of tests in the family.
        needed: Fewest clusters with which that many tests can find any difference.
        bounds: What unread replies could change; None: all were read.
        judges: Those who were shown to differ among themselves: "the judges"; "": nobody.
        blocked: What leaves the question without an answer; "": nothing.
        not_alike: Why nothing here is called alike; "": nothing forbids it.
        note: What the line says already.
    """

    p: float = math.nan
    p_alike: float = math.nan
    margin: float = math.nan
    spread: Variation | None = None
    clusters: int = 0
    tests: int = 1
    needed: int = 0
    bounds: Bounds | None = None
    judges: str = ""
    blocked: str = ""
    not_alike: str = ""
    note: str = ""


def decide(evidence: Evidence) -> tuple[Conclusion, str]:
    """The verdict, and the reason if it needs one."""
    if math.isnan(evidence.p):
        return NOT_MEASURED, evidence.note
    if evidence.blocked:
        return NOT_MEASURED, evidence.blocked
    within = evidence.p_alike <= ALPHA
    verdict, why = UNDECIDED, ""
    if evidence.p <= ALPHA:
        verdict = SMALL if within else DIFFERENT
    elif within:
        verdict, why = _within_margin(evidence)
    elif evidence.p_alike > ALPHA and evidence.clusters >= evidence.needed:
        why = f"neither a difference nor a mean within ±{evidence.margin:g} is shown"
    if evidence.bounds:
        verdict, why = _whatever_was_unread(verdict, why, evidence.margin, evidence.bounds)
    # A mean that differs by more than the margin stays "different"; nothing else is said of judges who disagree.
    if evidence.judges and verdict != DIFFERENT:
        verdict, why = JUDGES_DIFFER, ""
    if evidence.not_alike and verdict in (ALIKE, ON_AVERAGE):
        return ON_AVERAGE, evidence.not_alike
    few = (
        f"no difference can be significant among {plural(evidence.tests, 'test')} with fewer than {evidence.needed} "
        "bases"
        if evidence.clusters < evidence.needed
        else ""
    )
    differ = f"{evidence.judges} differ" if evidence.judges else ""
    return verdict, "; ".join(filter(None, (evidence.note, why, few, differ)))


def _whatever_was_unread(verdict: Conclusion, why: str, margin: float, bounds: Bounds) -> tuple[Conclusion, str]:
    """The verdict, if it holds at both bounds; of a small difference only that it is one may hold."""
    within = bounds.within(margin)
    holds = within if verdict in (ALIKE, ON_AVERAGE) else not bounds.worst_low <= 0 <= bounds.worst_high
    if verdict != UNDECIDED and not holds:
        return UNREAD, f"{verdict} {bounds.words}"
    return (DIFFERENT if verdict == SMALL and not within else verdict), why


def _within_margin(evidence: Evidence) -> tuple[Conclusion, str]:
    """A mean near 0 is not enough: with +1.5 points on ten bases and -1.5 on ten, 40 of 40 runs would be alike."""
    spread, close = evidence.spread, f"the mean is within ±{evidence.margin:g}, but"
    if spread is None:
        return ON_AVERAGE, ""
    if spread.p <= ALPHA:
        return UNDECIDED, f"{close} the effect differs between bases"
    if math.isnan(spread.high):
        return ON_AVERAGE, "by base unknown: one scenario per base"
    if spread.high >= spread.limit:
        return UNDECIDED, f"{close} effects may differ between bases (SD up to {spread.high:.2g})"
    if evidence.clusters < spread.enough:
        return ON_AVERAGE, f"alike needs {spread.enough} clusters: a rare kind of them may be missing"
    return ALIKE, f"but for kinds rarer than {rarest(evidence.clusters):.0%}"


def decided(line: Line, evidence: Evidence) -> Line:
    """The line with its verdict."""
    assert not line.verdict, f"{line.label} is {line.verdict} already"
    verdict, reason = decide(evidence)
    return replace(line, verdict=verdict, note=reason or line.note, missing=line.note)


TESTS = frozenset({"p", "verdict", "note", "holds"})
"""Words in the names of numbers and columns that hold a test or what follows from it: "p_adjusted", "verdict"."""


def is_test(name: str) -> bool:
    """Whether a number or a column with this name is a test, or says what follows from one."""
    return not TESTS.isdisjoint(name.split("_"))


def undecided_yet(line: Line) -> Line:
    """The line of an unfinished run: its estimate and its interval, without tests and without a verdict.

    With no effect, "different" at one of six looks at a run was said in 18% of studies.
    """
    also = {name: number for name, number in line.also.items() if not is_test(name)}
    return replace(
        line,
        p=math.nan,
        statistic=math.nan,
        p_adjusted=math.nan,
        tests=None,
        simultaneous=None,
        also=also,
        verdict="",
        note=line.missing if line.verdict else line.note,
    )


def but_for(lines: Iterable[Line]) -> str:
    """The limit of "alike", in words: "but for kinds of base rarer than 5%"."""
    clusters, noun = min((line.clusters or 1, line.cluster or "cluster") for line in lines)
    return f"but for kinds of {noun} rarer than {rarest(clusters):.0%}"


def rarest(clusters: int) -> float:
    """The share of all clusters that a kind must have to be in 95% of samples of this size."""
    return 1 - math.pow(ALPHA, 1 / clusters)


def together(verdicts: Iterable[Conclusion]) -> Conclusion:
    """The common verdict of several lines: of "alike" and a mean below the margin the latter, else "undecided"."""
    different = set(verdicts)
    if different == {ALIKE, ON_AVERAGE}:
        different = {ON_AVERAGE}
    return different.pop() if len(different) == 1 else UNDECIDED


def concluded(line: Line) -> Line:
    """The line with its verdict, by its own corrected test; unchanged where it is only described.

    Args:
        line: A line with corrected p-values.
    """
    if math.isnan(line.p_adjusted) and math.isnan(line.reference):
        return line
    # That the mean lies within the margin says nothing about single clusters: `spread` is not given.
    p_alike = line.also.get("p_alike_adjusted", math.nan)
    bounds = Bounds.of(line.also)
    return decided(
        line, Evidence(p=line.p_adjusted, p_alike=p_alike, margin=line.margin, bounds=bounds, note=line.note)
    )
