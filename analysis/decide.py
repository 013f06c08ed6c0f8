"""The only place where a report decides: it turns the evidence on a line into a verdict and a reason.

    decide(Evidence(p=0.01))                      # ("different", "")
    decide(Evidence(p=0.3, p_alike=0.01))         # ("below the margin on average", "")

"Different" is a test that finds a difference. "Alike" needs a mean that is shown to lie within ±margin, and single
clusters that were counted: enough of them, and a share within ±margin that is shown to be large enough. Where replies
could not be read, both must hold whatever those had said. Reasons that leave a question without an answer are evidence
too, so no verdict is later taken back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
from parley.base.text import p_text, plural, signed


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a contrast would be whatever the unread replies had said; see `unread.bounds`.

    Args:
        first_read: The share of the first arm's replies that were read.
        second_read: That of the second's.
        worst_low: The lowest possible value.
        worst_high: The highest.
        worst_p: The corrected p-value at the worst of the two.
    """

    first_read: float
    second_read: float
    worst_low: float
    worst_high: float
    worst_p: float

    @classmethod
    def of(cls, also: Mapping[str, float]) -> Bounds | None:
        """Those among the numbers; None where all was read."""
        if "worst_low" not in also:
            return None
        given = {each.name: also[each.name] for each in fields(cls)}
        return cls(**given | {"worst_p": also.get("worst_p_adjusted", also["worst_p"])})

    def within(self, margin: float) -> bool:
        """Whether the contrast lies within ±margin in any case."""
        return -margin <= self.worst_low and self.worst_high <= margin

    @property
    def words(self) -> str:
        ends = f"{signed(self.worst_low)} to {signed(self.worst_high)}"
        if not self.worst_low <= 0 <= self.worst_high:
            ends += f", p {p_text(self.worst_p)} at the worst"
        return f"among the replies that were read ({self.first_read:.0%} and {self.second_read:.0%}; bounds {ends})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence on a line. Every p-value is corrected in its family.

    Args:
        p: The p-value of no difference; NaN: there is no test, and `note` says why.
        p_alike: The p-value of a difference beyond the margin; NaN: it is not asked.
        margin: The difference that still counts as none.
        counted: What `single_clusters` says; "": only the mean is asked about.
        share: Lower limit of the share of clusters within the margin; NaN where they were not counted.
        least: "Alike" needs a limit of at least this.
        clusters: Number of clusters.
        enough: "Alike" needs at least so many.
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
    counted: str = ""
    share: float = math.nan
    least: float = 1.0
    clusters: int = 0
    enough: int = 0
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
        alike = evidence.share >= evidence.least and evidence.clusters >= evidence.enough
        verdict = ALIKE if alike and not evidence.not_alike else ON_AVERAGE
    elif evidence.p_alike > ALPHA and evidence.clusters >= evidence.needed:
        why = f"neither a difference nor a mean within ±{evidence.margin:g} is shown"
    if evidence.bounds:
        verdict, why = _whatever_was_unread(verdict, why, evidence.margin, evidence.bounds)
    # A mean that differs by more than the margin stays "different"; nothing else is said of judges who disagree.
    if evidence.judges and verdict != DIFFERENT:
        verdict, why = JUDGES_DIFFER, ""
    if evidence.counted and verdict in (SMALL, ALIKE, ON_AVERAGE):
        why = f"the mean lies within ±{evidence.margin:g}{evidence.counted}"
    not_alike = (evidence.not_alike or _needs(evidence)) if verdict == ON_AVERAGE else ""
    few = (
        f"no difference can be significant among {plural(evidence.tests, 'test')} with fewer than {evidence.needed} "
        "bases"
        if evidence.clusters < evidence.needed
        else ""
    )
    differ = f"{evidence.judges} differ" if evidence.judges else ""
    return verdict, "; ".join(filter(None, (evidence.note, why, not_alike, few, differ)))


def _needs(evidence: Evidence) -> str:
    """What "alike" needs of the clusters that were counted."""
    if math.isnan(evidence.share):
        return ""
    if evidence.clusters < evidence.enough:
        return f"alike needs {evidence.enough} of them"
    return f"alike needs at least {evidence.least:.0%}"


def _whatever_was_unread(verdict: Conclusion, why: str, margin: float, bounds: Bounds) -> tuple[Conclusion, str]:
    """The verdict, if it holds at both bounds; of a small difference only that it is one may hold."""
    within = bounds.within(margin)
    holds = within if verdict in (ALIKE, ON_AVERAGE) else bounds.worst_p <= ALPHA
    if verdict != UNDECIDED and not holds:
        return UNREAD, f"{verdict} {bounds.words}"
    return (DIFFERENT if verdict == SMALL and not within else verdict), why


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


WITHIN, WITHIN_LOW = "clusters_within", "clusters_within_low"
"""Further numbers of a line: the clusters whose own difference lies within the margin, and the lower limit of the share
of such clusters, with 95% confidence. A mean near 0 is not enough: +1.5 points on ten bases and −1.5 on ten have one.
"""
NOT_COUNTED: Mapping[str, float] = {WITHIN: math.nan, WITHIN_LOW: math.nan}
"""Where a cluster's own difference has too much noise."""


def single_clusters(lines: Sequence[Line], verb: str = "do") -> str:
    """What follows a mean within the margin: ", and so do 57 of 60 bases (at least 87% of such bases do)".

    "" where only the mean was asked about.

    Args:
        lines: The lines.
        verb: "are" after "is below our margin".
    """
    counts = [line for line in lines if WITHIN_LOW in line.also]
    if not counts:
        return ""
    # Lines that were not counted come first, then the one with the smallest share.
    fewest = min(counts, key=_share_within)
    within, low = fewest.also[WITHIN], fewest.also[WITHIN_LOW]
    bases, several = f"{fewest.cluster}s", len(counts) > 1
    if math.isnan(within):
        return f"; single {bases} are too noisy to count"
    count = f"{within:.0f} of {fewest.clusters} {bases}"
    if math.isnan(low):
        where = f" where fewest {verb}" * several
        return f", and so {verb} {count}{where} (one scenario each: how noisy they are is unknown)"
    least = f"at least {math.floor(100 * low)}% of such {bases}"
    if several:
        return f", and so {verb} {least} in each, {count} where fewest {verb}"
    return f", and so {verb} {count} ({least} {verb})"


def _share_within(line: Line) -> float:
    """The share of clusters within the margin; −1 where they were not counted."""
    within = line.also[WITHIN]
    return -1.0 if math.isnan(within) else within / (line.clusters or 1)


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
    # That the mean lies within the margin says nothing about single clusters: they are not counted.
    p_alike = line.also.get("p_alike_adjusted", math.nan)
    bounds = Bounds.of(line.also)
    return decided(
        line, Evidence(p=line.p_adjusted, p_alike=p_alike, margin=line.margin, bounds=bounds, note=line.note)
    )
