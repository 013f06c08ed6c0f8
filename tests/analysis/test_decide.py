"""The verdict of a line, by a table of evidence."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from parley.analysis.decide import WITHIN as COUNT
from parley.analysis.decide import (
    WITHIN_LOW,
    Bounds,
    Evidence,
    concluded,
    decide,
    decided,
    is_test,
    single_clusters,
    together,
    undecided_yet,
)
from parley.analysis.stats.results import Line

COUNTED = ", and so do 39 of 40 bases (at least 88% of such bases do)"
SHOWN = Evidence(p=0.01, p_alike=0.5, margin=0.1, counted=COUNTED, share=0.88, least=0.8, clusters=40, enough=29)
WITHIN = replace(SHOWN, p=0.4, p_alike=0.03)
OPEN = replace(SHOWN, p=0.4)
CLOSE, NOISY = f"the mean lies within ±0.1{COUNTED}", "; single bases are too noisy to count"
FAR = Bounds(first_read=0.96, second_read=0.93, worst_low=-0.2, worst_high=0.5, worst_p=1.0)
READ = "among the replies that were read (96% and 93%; bounds -0.20 to +0.50)"
FROM_0 = "among the replies that were read (96% and 93%; bounds 0.00 to +0.50)"
BARELY = "alike among the replies that were read (96% and 93%; bounds -0.05 to +0.11)"
NEITHER = "neither a difference nor a mean within ±0.1 is shown"
FEW = "no difference can be significant among 3 tests with fewer than 7 bases"


@pytest.mark.parametrize(
    ("evidence", "verdict", "why"),
    [
        (SHOWN, "different", ""),
        (replace(SHOWN, p=0.05), "different", ""),  # the level itself is significant
        (replace(SHOWN, p_alike=0.05), "different but below the margin", CLOSE),
        (OPEN, "undecided", NEITHER),
        (replace(OPEN, p_alike=math.nan), "undecided", ""),
        (WITHIN, "alike", CLOSE),
        (
            replace(WITHIN, counted="", share=math.nan),
            "below the margin on average",
            "",
        ),  # only the mean is asked about
        (replace(WITHIN, share=0.8), "alike", CLOSE),
        (replace(WITHIN, share=0.79), "below the margin on average", f"{CLOSE}; alike needs at least 80%"),
        (
            replace(WITHIN, counted=NOISY, share=math.nan),
            "below the margin on average",
            f"the mean lies within ±0.1{NOISY}",
        ),
        (replace(WITHIN, clusters=29), "alike", CLOSE),
        (replace(WITHIN, clusters=28), "below the margin on average", f"{CLOSE}; alike needs 29 of them"),
        (replace(OPEN, clusters=6, needed=7, tests=3), "undecided", FEW),
        (replace(OPEN, clusters=7, needed=7, tests=3), "undecided", NEITHER),
        # what unread replies could change is no difference and is not alike
        (replace(SHOWN, bounds=FAR), "undecided (unread)", f"different {READ}"),
        (replace(SHOWN, bounds=replace(FAR, worst_low=0.01, worst_p=0.05)), "different", ""),
        (
            replace(SHOWN, bounds=replace(FAR, worst_low=0.01, worst_p=0.2)),
            "undecided (unread)",
            f"different {READ.replace('-0.20', '+0.01').removesuffix(')')}, p = 0.2 at the worst)",
        ),
        (replace(SHOWN, bounds=replace(FAR, worst_low=0.0)), "undecided (unread)", f"different {FROM_0}"),
        (replace(SHOWN, p_alike=0.01, bounds=FAR), "undecided (unread)", f"different but below the margin {READ}"),
        (replace(SHOWN, p_alike=0.01, bounds=replace(FAR, worst_low=0.01, worst_p=0.01)), "different", ""),
        (replace(WITHIN, bounds=FAR), "undecided (unread)", f"alike {READ}"),
        (replace(WITHIN, bounds=replace(FAR, worst_low=-0.05, worst_high=0.1)), "alike", CLOSE),
        (replace(WITHIN, bounds=replace(FAR, worst_low=-0.1, worst_high=0.05)), "alike", CLOSE),  # at the margin itself
        (
            replace(WITHIN, bounds=replace(FAR, worst_low=-0.05, worst_high=0.11)),
            "undecided (unread)",
            BARELY,
        ),
        (replace(OPEN, bounds=FAR), "undecided", NEITHER),
        (replace(SHOWN, bounds=FAR, judges="the judges"), "judges differ", "the judges differ"),
        # judges who differ overrule all but a difference beyond the margin
        (replace(SHOWN, judges="the judges"), "different", "the judges differ"),
        (replace(SHOWN, judges="the models", p_alike=0.01), "judges differ", "the models differ"),
        (replace(WITHIN, judges="the judges"), "judges differ", "the judges differ"),
        (replace(OPEN, judges="the judges", note="a note"), "judges differ", "a note; the judges differ"),
        # nothing is called alike by judges who may not measure quality, and other verdicts stand
        (replace(WITHIN, not_alike="no quality"), "below the margin on average", f"{CLOSE}; no quality"),
        (replace(SHOWN, p_alike=0.01, not_alike="no quality"), "different but below the margin", CLOSE),
        (replace(OPEN, not_alike="no quality"), "undecided", NEITHER),
        # what leaves a question without an answer stands in place of everything else; without a test, the line's note
        (replace(SHOWN, blocked="No verdict.", note="a note", judges="the judges"), "not measured", "No verdict."),
        (Evidence(note="nothing to compare", blocked="No verdict."), "not measured", "nothing to compare"),
        (Evidence(p=0.2), "undecided", ""),
        # what is not said asks for nothing: a share of all clusters, however few
        (Evidence(p=0.2, p_alike=0.01, share=1.0), "alike", ""),
        (Evidence(p=0.2, p_alike=0.01, share=0.99), "below the margin on average", "alike needs at least 100%"),
        (Evidence(p=0.2, p_alike=0.01, share=1.0, enough=1), "below the margin on average", "alike needs 1 of them"),
        (Evidence(p=0.02, p_alike=0.01, note="a note"), "different but below the margin", "a note"),
    ],
)
def test_the_evidence_decides(evidence: Evidence, verdict: str, why: str) -> None:
    assert decide(evidence) == (verdict, why)


def test_a_line_is_decided_once() -> None:
    line = decided(Line(p_adjusted=0.01), Evidence(p=0.01, note="a note"))
    assert (line.verdict, line.note) == ("different", "a note")
    with pytest.raises(AssertionError, match="is different already"):
        decided(line, Evidence(p=0.5))


def test_a_line_is_concluded_by_its_own_corrected_tests_and_bounds() -> None:
    line = Line(p_adjusted=0.3, margin=0.1, note="a note", reference=0.0, also={"p_alike_adjusted": 0.04})
    assert (concluded(line).verdict, concluded(line).note) == ("below the margin on average", "a note")
    assert concluded(replace(line, also={})).verdict == "undecided"
    assert concluded(replace(line, p_adjusted=math.nan)).verdict == "not measured", "nothing tests it"
    described = replace(line, p_adjusted=math.nan, reference=math.nan)
    assert concluded(described) is described, "it is only described"
    bounds = {"first_read": 0.9, "second_read": 0.8, "worst_low": -0.3, "worst_high": 0.2, "worst_p": 1.0}
    assert concluded(replace(line, also={**line.also, **bounds})).verdict == "undecided (unread)"
    assert Bounds.of(bounds) == Bounds(**bounds)
    assert Bounds.of({"first_read": 0.9}) is None


def test_an_unfinished_runs_line_keeps_its_estimate_and_loses_every_test() -> None:
    line = Line(estimate=0.3, p=0.01, statistic=3.0, p_adjusted=0.02, tests=3, simultaneous=(0.1, 0.5))
    line = replace(line, note="why", missing="a note", verdict="different", also={"p_alike": 0.2, "base_sd": 0.1})
    early = undecided_yet(line)
    assert (early.estimate, early.also, early.verdict, early.note) == (0.3, {"base_sd": 0.1}, "", "a note")
    assert (early.tests, early.simultaneous) == (None, None)
    assert all(math.isnan(number) for number in (early.p, early.statistic, early.p_adjusted))
    assert undecided_yet(replace(line, verdict="")).note == "why", "nothing was decided yet"
    assert [name for name in ("p", "p_alike_adjusted", "holds", "base_sd", "note") if not is_test(name)] == ["base_sd"]


def counted(within: float, low: float, **fields: Any) -> Line:
    return Line(**{"n": 120, "clusters": 60, "cluster": "base", "also": {COUNT: within, WITHIN_LOW: low}, **fields})


def test_single_clusters_are_counted_in_words() -> None:
    most, fewer, noisy = counted(60, 0.9513), counted(55, 0.8315), counted(math.nan, math.nan)
    assert single_clusters([most]) == ", and so do 60 of 60 bases (at least 95% of such bases do)"
    assert single_clusters([most, fewer], "are") == (
        ", and so are at least 83% of such bases in each, 55 of 60 bases where fewest are"
    )
    assert single_clusters([most, noisy]) == "; single bases are too noisy to count"
    unknown = counted(59, math.nan)
    assert single_clusters([unknown]) == (
        ", and so do 59 of 60 bases (one scenario each: how noisy they are is unknown)"
    )
    fewest = counted(52, math.nan)
    assert single_clusters([unknown, fewest, counted(60, math.nan)]) == (
        ", and so do 52 of 60 bases where fewest do (one scenario each: how noisy they are is unknown)"
    ), "the first line of three had the most, and the headline said so of all"
    assert single_clusters([Line(clusters=60)]) == "", "only the mean was asked about"


def test_lines_together_have_the_verdict_that_they_share() -> None:
    assert together(["alike", "alike"]) == "alike"
    assert together(["alike", "undecided"]) == "undecided"
    assert together(["alike", "below the margin on average"]) == "below the margin on average"


def test_deciding_needs_no_data_frame() -> None:
    code = "import sys, parley.analysis.decide as d; assert not {'numpy', 'pandas', 'scipy'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
