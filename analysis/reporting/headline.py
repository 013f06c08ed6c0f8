"""The headline of a report: one rule for the list of runs, a run's page, the terminal and `--json`.

It answers the question of the report's first forest plot, whose primary lines (those that are not `secondary`) were
planned. The headline names the largest of those that are shown after correction for all of them, whichever families
(models) they are in: with one correction for each of six models it named an effect in 27% of studies that had none.
Without one it says how many were tested. Where the plot says what a line means (`Forest.says`), the answer needs no
statistics to be read, and the plot has the interval. A line without a test is never named, however far it is from the
reference: the largest of 14 uncorrected intervals named a bias in 44% of studies that had none. Nor is a line that
something leaves without an answer ("not measured"); where all lines are, the answer is what does so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from parley.analysis.reporting.decide import Evidence, but_for, decide, together
from parley.analysis.reporting.forest import Forest, drawn, in_numbers, interval, number_format
from parley.analysis.stats.results import (
    ALIKE,
    ALPHA,
    JUDGES_DIFFER,
    NOT_MEASURED,
    ON_AVERAGE,
    SMALL,
    UNDECIDED,
    Line,
    Verdict,
    clusters_to_reject,
    needed_words,
)
from parley.base.text import as_written, p_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The main question of a report, and its answer.

    Args:
        question: The question.
        answer: The answer in one sentence.
        verdict: That of the line that is named; of all primary lines where none is shown and they have the same one,
            else "undecided"; "not measured" where nothing could be tested; "" where a value is only described.
        line: The line that the answer names; None if it names none.
        distance: That line's distance from the reference value, for sorting; None without such a line.
        tests: Number of primary lines that were tested.
        shown: How many of them are shown.
        prefix: What stands before the question, such as "SIMULATED. ".
    """

    question: str
    answer: str
    verdict: Verdict
    line: Line | None = None
    distance: float | None = None
    tests: int = 0
    shown: int = 0
    prefix: str = ""

    @property
    def text(self) -> str:
        """Question and answer in one line."""
        return f"{self.prefix}{self.question} {self.answer}"

    def data(self) -> dict[str, Any]:
        """The fields by name, with `text`."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"text": self.text, **given, "line": self.line.data() if self.line else None}


def headline(forest: Forest, *, blocked: str = "", prefix: str = "") -> Headline:
    """The answer that a plot gives to its question.

    Args:
        forest: The plot.
        blocked: What leaves the question without an answer; it replaces the answer.
        prefix: What stands before the question.
    """

    def answered(verdict: Verdict, answer: str, **more: Any) -> Headline:
        return Headline(question=forest.question, answer=answer, verdict=verdict, prefix=prefix, **more)

    def unanswered(why: str) -> Headline:
        return answered(*decide(Evidence(note=why)))

    if blocked:
        return unanswered(blocked)
    plotted = zip(forest.lines, drawn(forest.lines), strict=True)
    lines = [line for line, shown in plotted if not line.secondary and shown.bounded]
    if forest.constant:
        return answered("", forest.constant)
    if forest.reference is None and lines:
        return answered("", f"{_place(lines[0], forest)} {in_numbers(lines[0], forest)}.", line=lines[0])
    with_test = [line for line in lines if not math.isnan(line.p_adjusted)]
    tested = [line for line in with_test if line.verdict != NOT_MEASURED]
    if not with_test:
        return unanswered(
            _too_few(forest)
            or ("Described, not tested." if lines else "Not known: the data are too few for an interval.")
        )
    if not tested:
        return unanswered(with_test[0].note)
    shown = [line for line in tested if _p(line, len(with_test)) <= ALPHA]

    def distance(line: Line) -> float:
        return abs(line.estimate - float(forest.reference or 0))

    largest = max(shown or tested, key=distance)
    if not shown:
        alone = any(line.shown for line in tested)
        verdict = UNDECIDED if alone else together(line.verdict for line in tested)
        unshown = _within if verdict in (ALIKE, ON_AVERAGE) else _unshown_in_words if forest.says else _unshown
        return answered(verdict, unshown(verdict, tested, largest, forest), tests=len(tested))
    words = _shown_in_words if forest.says else _shown
    return answered(
        largest.verdict,
        words(largest, forest, shown, len(with_test)),  # what is not measured was corrected for too
        line=largest,
        distance=distance(largest),
        tests=len(with_test),
        shown=len(shown),
    )


def _p(line: Line, tests: int) -> float:
    """The p-value of a line, corrected for all tests: its family may err in the share of alpha that its tests have."""
    return min(1.0, line.p_adjusted * max(1.0, tests / (line.tests or tests)))


def _too_few(forest: Forest) -> str:
    """How many clusters the tests of a plot need, if it has fewer; "" otherwise."""
    lines = [line for line in forest.lines if not line.secondary and line.cluster]
    most, tests = (
        max((line.clusters or 0 for line in lines), default=0),
        max((line.tests or 0 for line in lines), default=0),
    )
    if not tests or most >= clusters_to_reject(ALPHA, tests):
        return ""
    need = needed_words(tests, lines[0].cluster)
    return f"Too few {lines[0].cluster}s: {need}, and there {'is' if most == 1 else 'are'} {most}."


def _unshown(verdict: Verdict, lines: Sequence[Line], largest: Line, forest: Forest) -> str:
    """The common conclusion of lines without a difference, with the reason."""
    none = {1: "the test is not", 2: "neither test is"}.get(len(lines), f"none of {len(lines)} tests is")
    return f"{verdict.capitalize()}: {none} significant."


def _unshown_in_words(verdict: Verdict, lines: Sequence[Line], largest: Line, forest: Forest) -> str:
    answer = f"{_said(largest, forest)}, {_unsure(lines, largest, forest)}."
    if verdict == JUDGES_DIFFER:
        return f"It depends on the judge. On average {answer}"
    none = {1: "", 2: "neither difference is shown. In the largest, "}
    return (
        f"Undecided: {none.get(len(lines), f'none of the {len(lines)} differences is shown. In the largest, ')}{answer}"
    )


def _within(verdict: Verdict, lines: Sequence[Line], largest: Line, forest: Forest) -> str:
    """The claim of "alike", and what so few clusters cannot exclude; for a mean, only that it is small on these."""
    margin = f"{largest.margin:g}{' points' if forest.says else ''}"
    if verdict == ON_AVERAGE:
        which = "the mean difference is" if len(lines) == 1 else "mean differences are"
        return f"On these {lines[0].cluster or 'cluster'}s, {which} shown to lie within ±{margin}."
    which = "the difference lies" if len(lines) == 1 else f"all {len(lines)} differences lie"
    return f"Alike: {which} within ±{margin}, {but_for(lines)}."


def _unsure(lines: Sequence[Line], largest: Line, forest: Forest) -> str:
    """Why no difference is claimed; if the largest is printed as 0, what the data do not exclude."""
    written = number_format(forest)
    if written(largest.estimate) != written(0.0):
        return "which may be chance"
    furthest = max((end for line in lines for end in (line.low, line.high)), key=abs)
    if written(furthest) == written(0.0):
        return "and any difference is smaller than these decimals"
    return f"but the data do not rule out a difference of {written(furthest).lstrip('+−')} points"


def _shown(line: Line, forest: Forest, shown: Sequence[Line], tests: int) -> str:
    numbers = in_numbers(line, forest, simultaneous=tests > 1)
    corrected = f" corrected for {all_tests} tests" if (all_tests := max(tests, line.tests or 0)) > 1 else ""
    largest = (
        f"; {len(shown)} of {tests} differences are significant, and this is the largest" if len(shown) > 1 else ""
    )
    return f"{_place(line, forest)} {numbers}, p {p_text(_p(line, tests))}{corrected}{largest}."


def _shown_in_words(line: Line, forest: Forest, shown: Sequence[Line], tests: int) -> str:
    small = f"Below our margin of {line.margin:g} points:"
    begins = {SMALL: small, JUDGES_DIFFER: "It depends on the judge. On average"}
    others = (other for other in shown if other != line and other.about.model == line.about.model)
    ties = [line, *(other for other in others if round(abs(other.estimate) - abs(line.estimate), 2) == 0)]
    largest = "this is the largest planned contrast" if line.about.contrast else "this is the largest"
    which = "planned contrasts are significant" if len(ties) > 1 else f"differences are significant; {largest}"
    further = _apart(ties) or f" {len(shown)} of {tests} {which}." if len(shown) > 1 else ""
    (wide,) = drawn([line])
    ends = f" ({interval(wide.low, wide.high, number_format(forest), excluded=True)})" if line.verdict == SMALL else ""
    return f"{begins.get(line.verdict, 'Yes:')} {_said(line, forest)}{ends}.{further}"


def _apart(ties: Sequence[Line]) -> str:
    """The label that stands apart, where the largest differences are equal because it is on the same side of each."""
    ends = [(c.first, c.second)[:: 1 if line.estimate > 0 else -1] for line in ties if (c := line.about.contrast)]
    for way, side in enumerate(("above", "below")):
        if len(ends) > 1 and len({end[way] for end in ends}) == 1:
            label, *others = (
                f"'{as_written(', '.join(end))}'" for end in (ends[0][way], *(e[1 - way] for e in ends[1:]))
            )
            return f" {label} stands apart: it is as far {side} {' and '.join(others)}."
    return ""


def _said(line: Line, forest: Forest) -> str:
    """The meaning of the line, with its model if there are several."""
    model = line.about.model
    assert forest.says is not None
    return f"{f'with {model}, ' if model and model in line.group else ''}{forest.says(line)}"


def _place(line: Line, forest: Forest) -> str:
    label = forest.axis if line.label == "all" else line.label
    return f"{line.heading}: {label}" if line.group else f"{label}:"
