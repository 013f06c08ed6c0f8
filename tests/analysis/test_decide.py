"""The verdict of a line, by a table of evidence."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import pytest

from parley.analysis.decide import Bounds, Evidence, Variation, decide, decided, together
from parley.analysis.stats.results import Line

NARROW = Variation(p=0.5, high=0.1, limit=0.2, enough=29)
SHOWN = Evidence(p=0.01, p_alike=0.5, margin=0.1, spread=NARROW, clusters=40)
WITHIN = replace(SHOWN, p=0.4, p_alike=0.03)
OPEN = replace(SHOWN, p=0.4)
FAR = Bounds(first_read=0.96, second_read=0.93, worst_low=-0.2, worst_high=0.5)
READ = "among the replies that were read (96% and 93%; bounds -0.20 to +0.50)"
CLOSE = "the mean is within ±0.1, but"
NEITHER = "neither a difference nor a mean within ±0.1 is shown"
FEW = "no difference can be significant among 3 tests with fewer than 7 bases"


@pytest.mark.parametrize(
    ("evidence", "verdict", "why"),
    [
        (SHOWN, "different", ""),
        (replace(SHOWN, p=0.05), "different", ""),  # the level itself is significant
        (replace(SHOWN, p_alike=0.05), "different but below the margin", ""),
        (OPEN, "undecided", NEITHER),
        (replace(OPEN, p_alike=math.nan), "undecided", ""),
        (WITHIN, "alike", "but for kinds rarer than 7%"),  # 0.93⁴⁰ = 0.05
        (replace(WITHIN, spread=None), "below the margin on average", ""),
        (replace(WITHIN, spread=replace(NARROW, p=0.05)), "undecided", f"{CLOSE} the effect differs between bases"),
        (replace(WITHIN, spread=replace(NARROW, p=math.nan)), "alike", "but for kinds rarer than 7%"),
        (
            replace(WITHIN, spread=replace(NARROW, high=math.nan)),
            "below the margin on average",
            "by base unknown: one scenario per base",
        ),
        (
            replace(WITHIN, spread=replace(NARROW, high=0.2)),
            "undecided",
            f"{CLOSE} effects may differ between bases (SD up to 0.2)",
        ),
        (replace(WITHIN, clusters=29), "alike", "but for kinds rarer than 10%"),
        (
            replace(WITHIN, clusters=28),
            "below the margin on average",
            "alike needs 29 clusters: a rare kind of them may be missing",
        ),
        (replace(OPEN, clusters=6, needed=7, tests=3), "undecided", FEW),
        (replace(OPEN, clusters=7, needed=7, tests=3), "undecided", NEITHER),
        # what unread replies could change is no difference and is not alike
        (replace(SHOWN, bounds=FAR), "undecided (unread)", f"different {READ}"),
        (replace(SHOWN, bounds=replace(FAR, worst_low=0.01)), "different", ""),
        (replace(SHOWN, p_alike=0.01, bounds=FAR), "undecided (unread)", f"different but below the margin {READ}"),
        (replace(SHOWN, p_alike=0.01, bounds=replace(FAR, worst_low=0.01)), "different", ""),
        (replace(WITHIN, bounds=FAR), "undecided (unread)", f"alike {READ}"),
        (replace(WITHIN, bounds=replace(FAR, worst_low=-0.05, worst_high=0.1)), "alike", "but for kinds rarer than 7%"),
        (replace(OPEN, bounds=FAR), "undecided", NEITHER),
        (replace(SHOWN, bounds=FAR, judges="the judges"), "judges differ", "the judges differ"),
        # judges who differ overrule all but a difference beyond the margin
        (replace(SHOWN, judges="the judges"), "different", "the judges differ"),
        (replace(SHOWN, judges="the models", p_alike=0.01), "judges differ", "the models differ"),
        (replace(WITHIN, judges="the judges"), "judges differ", "the judges differ"),
        (replace(OPEN, judges="the judges", note="a note"), "judges differ", "a note; the judges differ"),
        # nothing is called alike by judges who may not measure quality, and other verdicts stand
        (replace(WITHIN, not_alike="no quality"), "below the margin on average", "no quality"),
        (replace(SHOWN, p_alike=0.01, not_alike="no quality"), "different but below the margin", ""),
        (replace(OPEN, not_alike="no quality"), "undecided", NEITHER),
        # what leaves a question without an answer stands in place of everything else; without a test, the line's note
        (replace(SHOWN, blocked="No verdict.", note="a note", judges="the judges"), "not measured", "No verdict."),
        (Evidence(note="nothing to compare", blocked="No verdict."), "not measured", "nothing to compare"),
        (Evidence(p=0.2), "undecided", ""),
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


def test_lines_together_have_the_verdict_that_they_share() -> None:
    assert together(["alike", "alike"]) == "alike"
    assert together(["alike", "undecided"]) == "undecided"
    assert together(["alike", "below the margin on average"]) == "below the margin on average"


def test_deciding_needs_no_data_frame() -> None:
    code = "import sys, parley.analysis.decide as d; assert not {'numpy', 'pandas', 'scipy'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
