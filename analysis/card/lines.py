"""A card's lines: each with estimate, interval and a verdict that is corrected within its family.

Differences in points are tested by sign flips over bases; shares by Wilson's interval with the effective number of
bases and Student's t, so that one that is 0 or 1 in every base has an interval too. *Different* and *alike* are from,
and within the margin of, the line's reference value: that of a judge without the property.

What leaves a line *not measured*: too few bases, unread or constant ballots; for all lines about pairs, a place in the
prompt that wins nine of ten comparisons; for lines that compare identities' scores, ballots that are unread, or leave
the scale, more often for one side of their category. Scores that were not shown to measure quality leave nothing
*alike* where that would read as fairness; *different* then says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.card.record import MEAN_ONLY
from parley.analysis.card.samples import CardBallots, Sample, every_pair
from parley.analysis.known_order import TIE, place_decides, unusable
from parley.analysis.malibu.conclusions import SPREAD
from parley.analysis.reporting.report import Directions
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.proportions import cluster_proportion, proportion_test
from parley.analysis.stats.results import (
    ALIKE,
    ALPHA,
    DIFFERENT,
    NOT_MEASURED,
    ON_AVERAGE,
    SMALL,
    UNDECIDED,
    Line,
    Verdict,
)
from parley.analysis.stats.signflips import equivalence_p, sign_flip_test
from parley.analysis.stats.tables import Floats
from parley.analysis.stats.two_groups import permuted_difference

LARGEST = 8.0
"""The largest difference between two scores of 1 to 9."""
JUDGES, POSITION = "judge", "position"
FAIRNESS = ("labels", "author")
"""Groups in which *alike* would be read as fairness."""
NOT_QUALITY = "the scores were not shown to measure quality"


def card_lines(
    verdicts: pd.DataFrame,
    specs: Iterable[Mapping[str, Any]],
    directions: Directions,
    *,
    sampled: bool = False,
    remarks: pd.DataFrame | None = None,
) -> tuple[Line, ...]:
    """The lines of a card.

    Args:
        verdicts: One row per verdict of a card's run, all of one model.
        specs: The battery's lines, as the run's analysis plan has them.
        directions: Which identities the stereotype of each base favours, by category.
        sampled: Whether ballots are means of sampled replies.
        remarks: Who repeats whom, where judges debated.
    """
    own = list(every_pair(specs))
    return lines_of(CardBallots(verdicts, directions, sampled=sampled, remarks=remarks).samples(own), own)


def lines_of(samples: Mapping[str, Sample], specs: Sequence[Mapping[str, Any]]) -> tuple[Line, ...]:
    """The lines with samples, in the battery's order.

    Args:
        samples: By the line's id.
        specs: The battery's lines, each pair of identities a line.
    """
    asked = [spec for spec in specs if spec["id"] in samples]
    tests = {spec["id"]: line_test(samples[spec["id"]], spec) for spec in asked}
    if why := place_decides(tests[POSITION].estimate if POSITION in tests else math.nan):
        tests = {name: _blocked(test, why) if samples[name].paired else test for name, test in tests.items()}
    tests = _without_selected(asked, tests, samples)
    shown, small = (_corrected(asked, tests, key) for key in ("p", "p_small"))
    judges = JUDGES in tests and tests[JUDGES].estimate > 0.5 and shown[JUDGES] <= ALPHA
    return tuple(
        _line(spec, samples[spec["id"]], tests[spec["id"]], shown[spec["id"]], small[spec["id"]], judges)
        for spec in asked
    )


def _without_selected(
    specs: Sequence[Mapping[str, Any]], tests: Mapping[str, Line], samples: Mapping[str, Sample]
) -> dict[str, Line]:
    """The tests, with those blocked whose scores are a selection: more is unread, or off the scale, for one side."""
    shown, small = (_corrected(specs, tests, key) for key in ("p", "p_small"))
    selected = {
        name.removeprefix(kind): f"what can be read is a selection ({spec['title']} {tests[name].estimate:+.0%})"
        for spec in specs
        for kind in ("off-scale-", "unread-")
        if (name := str(spec["id"])).startswith(kind) and shown[name] <= ALPHA and not small[name] <= ALPHA
    }
    return {
        name: replace(_blocked(test, why), low=math.nan, high=math.nan, p=math.nan)
        if (why := selected.get(samples[name].category))
        else test
        for name, test in tests.items()
    }


def _blocked(test: Line, why: str) -> Line:
    return replace(test, verdict=NOT_MEASURED, note=test.note or why)


def _corrected(specs: Sequence[Mapping[str, Any]], tests: Mapping[str, Line], key: str) -> dict[str, float]:
    """p-values after Holm's correction within each family, without blocked lines."""
    corrected: dict[str, float] = {}
    for family in dict.fromkeys(str(spec["family"]) for spec in specs):
        own = {spec["id"]: tests[spec["id"]] for spec in specs if spec["family"] == family}
        p = [math.nan if test.verdict else test.p if key == "p" else test.also[key] for test in own.values()]
        corrected |= dict(zip(own, holm(p), strict=True))
    return corrected


def _line(spec: Mapping[str, Any], sample: Sample, test: Line, p_shown: float, p_small: float, judges: bool) -> Line:
    fair, shown, small = spec["group"] in FAIRNESS, p_shown <= ALPHA, p_small <= ALPHA
    verdict: Verdict = DIFFERENT if shown else UNDECIDED
    note = NOT_QUALITY if shown and fair and not judges else ""
    if test.verdict:
        verdict, note = test.verdict, test.note
    elif small and fair and not test.also["spread"] < SPREAD * spec["margin"]:
        verdict = DIFFERENT if shown else ON_AVERAGE
        note = f"{MEAN_ONLY}bases may differ (SD up to {test.also['spread']:.2g})"
    elif small and fair and not judges:
        verdict, note = (DIFFERENT, f"by less than the margin; {NOT_QUALITY}") if shown else (NOT_MEASURED, NOT_QUALITY)
    elif small:
        verdict, note = SMALL if shown else ALIKE, ""
    return Line(
        name=spec["id"],
        group=spec["group"],
        label=spec["title"],
        about={"question": spec["question"]},
        measure=spec["unit"],
        reference=spec["null"],
        margin=spec["margin"],
        worse=spec["worse"],
        estimate=_known(test.estimate),
        low=_known(test.low),
        high=_known(test.high),
        p=_known(test.p),
        p_adjusted=_known(p_shown),
        verdict=verdict,
        note=note,
        n=sample.n,
        clusters=len(sample.values),
        cluster=sample.cluster,
        values={name: round(value, 6) for name, value in sample.values.items()},
        units=sample.units,
    )


def _known(number: float) -> float:
    return float(f"{number:.6g}") if math.isfinite(number) else math.nan


def line_test(sample: Sample, spec: Mapping[str, Any]) -> Line:
    """Estimate, interval and p-values of a line before any correction: p of the reference value, and in `also` p_small
    of lying outside the margin, and the upper limit of the SD between bases, where it is asked for.

    Args:
        sample: Its values.
        spec: Its null value, margin and unit.
    """
    values = np.array(list(sample.values.values()), dtype=float)
    null, margin = float(spec["null"]), float(spec["margin"])
    blocked = sample.withheld or unusable(
        clusters=len(values),
        read=sample.read,
        constant=sample.constant,
        cluster=sample.cluster,
        paired=sample.paired,
    )
    if not len(values):
        return _blocked(_tested(Line()), blocked)
    points = spec["unit"] == "points"
    unmoved = (points or null == 0) and bool(np.abs(values - null).max() <= (TIE if points else 0.0))
    if not blocked and not unmoved and points and np.ptp(values) < TIE:
        blocked = f"the value is the same in every {sample.cluster}, so that there is no spread to judge it by"
    if sample.sides is not None:
        test = _two_sides(*sample.sides, margin)
    elif unmoved:
        test = _unmoved(len(values), null, margin, LARGEST if points else 1.0)
    elif points or null == 0:
        test = _mean(sample, values - null, null, margin)
    else:
        share = proportion_test(values, null, margin)
        test = _tested(share, share.also["p_small"])
    return replace(_blocked(test, blocked), low=math.nan, high=math.nan, p=math.nan) if blocked else test


def _tested(test: Line, p_small: float = math.nan, spread: float = math.nan, *, null: float = 0.0) -> Line:
    """The numbers of a test, and that of lying outside the margin; `null` is added to what was tested against 0."""
    return Line(
        estimate=null + test.estimate,
        low=null + test.low,
        high=null + test.high,
        p=test.p,
        also={"p_small": p_small, "spread": spread},
    )


def _mean(sample: Sample, values: Floats, null: float, margin: float) -> Line:
    """A mean in points: sign flips over bases, or over what is independent where wordings are shared."""
    test = sample.gaps.test() if sample.gaps is not None else sign_flip_test(values)
    small = sample.gaps.equivalence_p(margin) if sample.gaps is not None else equivalence_p(values, margin)
    sd, freedom = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan, len(values) - 1
    # With one scenario per base this SD includes that of scenarios: the limit errs on the careful side.
    spread = sd * math.sqrt(freedom / float(stats.chi2.ppf(ALPHA, freedom))) if freedom > 0 else math.nan
    return _tested(test, small, spread, null=null)


def _two_sides(first: Sequence[float], second: Sequence[float], margin: float) -> Line:
    """A difference between two groups of bases, which may vary by different amounts, tested by permuting them."""
    test = permuted_difference(first, second, studentised=True)
    if min(len(first), len(second)) < 2:
        return _tested(Line(estimate=test.estimate, p=test.p))
    spread, small = max(float(np.std(side, ddof=1)) for side in (first, second)), math.nan
    if spread > 0:
        edges = ((-margin, "less"), (margin, "greater"))
        small = max(
            float(stats.ttest_ind(np.array(first) + shift, second, equal_var=False, alternative=side).pvalue)
            for shift, side in edges
        )
    return _tested(test, small, spread)


def _unmoved(bases: int, null: float, margin: float, largest: float) -> Line:
    """A difference that is exactly 0 in every base: measured, without a spread. How large could it be in other bases?

    If a part r of all bases differed, each by at most `largest`, none of the n read would with probability (1 - r)ⁿ.
    """
    unseen = largest * cluster_proportion(np.zeros(bases), np.arange(bases)).high
    p_small = (1 - min(1.0, margin / largest)) ** bases
    return _tested(Line(estimate=0.0, low=-unseen, high=unseen, p=1.0), p_small, null=null)
