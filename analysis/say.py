"""Every number, interval, sentence and headline of a report.

A headline is made by one rule for the list of runs, a run's page, the terminal and `--json`. It answers the question of
the report's first forest plot, whose primary lines (those that are not `secondary`) were planned. It names the largest
of those that are significant after correction for all of them, whichever families (models) they are in: with one
correction for each of six models it named an effect in 27% of studies that had none. Without one it says how many were
tested. Where the plot says what a line means (`Forest.says`), the answer needs no statistics to be read, and the plot
has the interval. A line without a test is never named, however far it is from the reference: the largest of 14
uncorrected intervals named a bias in 44% of studies that had none. Nor is a line named that has no answer ("not
measured"); if no line has one, the headline says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd
from pandas.api.types import is_float_dtype

from parley.analysis.decide import Evidence, decide, single_clusters, together
from parley.analysis.effects import ALL, Question, Scale
from parley.analysis.stats.results import (
    ALIKE,
    ALPHA,
    JUDGES_DIFFER,
    NOT_MEASURED,
    ON_AVERAGE,
    SMALL,
    UNDECIDED,
    UNREAD,
    Conclusion,
    Line,
    clusters_to_reject,
    needed_words,
)
from parley.base.text import as_written, p_text, plural, signed

WIDE = 20.0
"""Values as large as this are shown with one decimal."""


@dataclass(frozen=True, slots=True)
class Forest:
    """The lines that answer one question.

    Args:
        name: File name without suffix.
        question: The question in words; the plot's title.
        axis: The label of the axis, with the unit: "difference in score (points of 10)".
        lines: The lines, in order.
        reference: The value that means "no difference"; None without one.
        scale: "share" for values from 0 to 1 that are shown as percentages.
        table: Name of the report's table with the same numbers.
        note: How the intervals and p-values were made.
        constant: The headline if no line has an interval because nothing varies; "" otherwise.
        says: Puts the estimate of a line in words, for readers who know no statistics; None: the headline has numbers.
    """

    name: str
    question: str
    axis: str
    lines: tuple[Line, ...]
    reference: float | None = 0.0
    scale: Scale = "points"
    table: str = ""
    note: str = ""
    constant: str = ""
    says: Callable[[Line], str] | None = None

    def data(self) -> dict[str, Any]:
        """The fields by name, lines as their own data, with the intervals that are drawn."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "says"}
        lines = [line.data() | dict(zip(("low", "high"), line.interval, strict=True)) for line in self.lines]
        return {**given, "lines": lines}


def decimals(largest: float) -> int:
    """The decimals of a plot's points, from the largest absolute value."""
    return 1 if largest >= WIDE else 2


def number_format(forest: Forest) -> Callable[[float], str]:
    """The format of a plot's numbers: "+0.73" if they are differences, "62%" if they are shares, never "-0.00"."""
    difference = forest.reference == 0
    factor, unit = (100, "%") if forest.scale == "share" else (1, "")
    ends = (end for each in forest.lines for end in (each.estimate, each.low, each.high) if math.isfinite(end))
    largest = max((abs(factor * end) for end in ends), default=0.0)
    digits = (0 if not difference else 1) if unit else decimals(largest)

    def written(value: float) -> str:
        text = signed(factor * value, digits).replace("-", "−")
        return (text if difference else text.removeprefix("+")) + unit

    return written


def in_numbers(line: Line, forest: Forest, *, simultaneous: bool = False) -> str:
    """An estimate with its interval: "+0.73 (+0.41 to +1.05)", "62% (18% to 93%)".

    Args:
        line: The estimate.
        forest: The plot that it is in, which says how numbers are shown.
        simultaneous: Whether to say of an interval that covers all primary lines at once that it does.
    """
    written = number_format(forest)
    if not line.bounded:
        return f"{written(line.estimate)} (no interval)"
    kind = "simultaneous 95% interval " if simultaneous and line.simultaneous else ""
    return f"{written(line.estimate)} ({kind}{span(line, forest)})"


def span(line: Line, forest: Forest) -> str:
    """A line's interval in words."""
    return interval(*line.interval, number_format(forest), forest.reference, excluded=line.shown)


def interval(
    low: float, high: float, written: Callable[[float], str], reference: float | None = 0.0, *, excluded: bool = False
) -> str:
    """An interval in words: "+0.41 to +1.05"; where it excludes an end that is written as 0, "above 0, up to 0.06".

    Args:
        low: Lower end.
        high: Upper end.
        written: How a number is written.
        reference: The value that means "no difference"; None without one.
        excluded: Whether a test excludes the reference: a simultaneous interval may then end at it.
    """
    if reference is not None:
        none = written(reference)
        name = none if reference else "0"
        if written(low) == none and (low > reference or (excluded and low == reference)):
            return f"above {name}, up to {written(high).removeprefix('+')}"
        if written(high) == none and (high < reference or (excluded and high == reference)):
            return f"below {name}, down to {written(low)}"
    return f"{written(low)} to {written(high)}"


def format_interval(low: float, high: float, form: str = ".2f", *, excluded: bool = False) -> str:
    """An interval for a sentence, as in "0.10 to 0.30"; "" where there is none.

    Args:
        low: Lower end; -inf where it is not bounded.
        high: Upper end; inf where it is not bounded.
        form: Format of the numbers.
        excluded: As in `interval`.
    """
    if math.isnan(low) or math.isnan(high):
        return ""

    def written(end: float) -> str:
        return format_cell(end) if math.isinf(end) else format(round(end, 9) + 0.0, form)

    return interval(low, high, written, excluded=excluded)


def format_cells(frame: pd.DataFrame) -> list[list[str]]:
    """The rows of a table for reading, a paper's numbers with all their decimals, and ours with as many.

    The end of an interval that is 0, which the row's test excludes, says so.
    """
    rows = [[format_cell(value) for value in row] for row in frame.itertuples(index=False)]
    names = list(frame.columns)
    printed = [name for name in names if str(name).startswith("paper_") and is_float_dtype(frame[name])]
    digits = max((2, *(len(f"{value:.9g}".partition(".")[2]) for name in printed for value in frame[name].dropna())))
    for name in [*printed, *({"ours", "low", "high"} & set(names) if printed else ())]:
        for row, value in zip(rows, frame[name].astype(float), strict=True):
            row[names.index(name)] = "–" if math.isnan(value) else f"{value:.{digits}f}"
    if "p_adjusted" in names:
        for row, values in zip(rows, frame.itertuples(index=False), strict=True):
            for end, words in (("low", "above 0"), ("high", "below 0")):
                if end in names and values[names.index("p_adjusted")] <= ALPHA and values[names.index(end)] == 0:
                    row[names.index(end)] = words
    return rows


def format_cell(value: Any) -> str:
    """A cell for reading: two decimals (small numbers: two significant digits), "–" where there is nothing.

    The end of an interval that is not bounded is −∞ or ∞.
    """
    if isinstance(value, str):
        return value or "–"
    if isinstance(value, float):  # most cells
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return "–" if math.isnan(value) else f"{value:.2g}" if 0 < abs(value) < 0.01 else f"{value + 0.0:.2f}"
    value = json_values(value)
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def out_of_reach(cluster: str, *families: Sequence[Line]) -> Iterator[str]:
    """A note if there are too few clusters for any line to be significant, however large the differences.

    Args:
        cluster: What a cluster is called.
        families: The lines of each family.
    """
    tests = [sum(not math.isnan(line.p) for line in family) for family in families]
    clusters = max((line.clusters or 0 for family in families for line in family), default=0)
    fewest = min(filter(None, tests), default=0)
    if fewest and clusters < clusters_to_reject(ALPHA, fewest):
        yield f"With {plural(clusters, cluster)} no difference could be significant: {needed_words(fewest, cluster)}."


Sentence = Callable[[Line, Forest], str]
"""Puts a line in words; its plot gives the format of numbers."""


def sentence(question: Question, line: Line, forest: Forest) -> str:
    """Such as "m1, answerable: F1 is 71.2 points of 100 (64.0 to 77.9), over 35 paragraphs."."""
    size, named = number_format(forest)(line.estimate), [*line.group]
    if line.about.contrast:
        named.append(" compared with ".join(line.about.contrast.names))
        size = f"{'higher' if line.estimate > 0 else 'lower'} by {size.lstrip('+−').replace('%', ' percentage points')}"
    elif not question.each and line.label != ALL:
        named.append(line.label.removeprefix(f"{line.measure}, "))
    if (part := line.about.columns.get(question.each, ALL)) != ALL:
        named.append(part)
    if question.reference is not None and "model" in question.family and line.about.model in line.group:
        named.append("by itself")  # the headline is corrected for all models
    says = filter(None, (question.estimand(line.measure).words, "is", size, question.unit))
    return stated(", ".join(named), " ".join(says), line, forest, question.cluster)


def stated(about: str, says: str, line: Line, forest: Forest, cluster: str) -> str:
    """A sentence with a line's interval, p-value and number of clusters, for reports that say their lines themselves.

    Args:
        about: What stands before the colon; "": the sentence stands alone.
        says: What is said, such as "a fence reduces the effect by 1.20 points".
        line: The line.
        forest: The plot that it is in.
        cluster: What a cluster is called.
    """
    ends = f"{'simultaneous ' if line.simultaneous else ''}{span(line, forest)}" if line.bounded else "no interval"
    test = f"; p {p_text(line.p_adjusted)}" if forest.reference is not None else ""
    read = f": {line.note}" if line.verdict == UNREAD else ""
    sentence = f"{says} ({ends}{test}), over {plural(line.clusters or 0, cluster)}{read}."
    return f"{about}: {sentence}" if about else sentence[0].upper() + sentence[1:]


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
    verdict: Conclusion
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

    def answered(verdict: Conclusion, answer: str, **more: Any) -> Headline:
        return Headline(question=forest.question, answer=answer, verdict=verdict, prefix=prefix, **more)

    def unanswered(why: str) -> Headline:
        return answered(*decide(Evidence(note=why)))

    if blocked:
        return unanswered(blocked)
    lines = [line for line in forest.lines if not line.secondary and line.bounded]
    if forest.constant:
        return answered("", forest.constant)
    if forest.reference is None and lines:
        return answered("", f"{_place(lines[0], forest)} {in_numbers(lines[0], forest)}.", line=lines[0])
    with_test = [line for line in lines if not math.isnan(line.p_adjusted)]
    tested = [line for line in with_test if line.verdict != NOT_MEASURED]
    if not with_test:
        why = next((line.missing for line in forest.lines if not line.secondary and line.p == line.p), "")
        unknown = f"Not known: {why or 'the data are too few for an interval'}."
        return unanswered(_too_few(forest) or ("Described, not tested." if lines else unknown))
    if not tested:
        return unanswered(with_test[0].note)
    shown = [line for line in tested if _p(line, len(with_test)) <= ALPHA and line.verdict != UNREAD]

    def distance(line: Line) -> float:
        return abs(line.estimate - float(forest.reference or 0))

    largest = max(shown or tested, key=distance)
    if not shown and (unread := [line for line in tested if line.verdict == UNREAD]):
        return answered(UNREAD, _unread(max(unread, key=distance), forest), tests=len(tested))
    if not shown:
        alone = any(line.shown for line in tested)
        verdict = UNDECIDED if alone else together(line.verdict for line in tested)
        unshown = _within if verdict in (ALIKE, ON_AVERAGE) else _unshown_in_words if forest.says else _unshown
        few = _too_few(forest) if verdict == UNDECIDED else ""
        return answered(verdict, few or unshown(verdict, tested, largest, forest), tests=len(tested))
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


def _unshown(verdict: Conclusion, lines: Sequence[Line], largest: Line, forest: Forest) -> str:
    """The common conclusion of lines without a difference, with the reason."""
    none = {1: "the test is not", 2: "neither test is"}.get(len(lines), f"none of {len(lines)} tests is")
    return f"{verdict.capitalize()}: {none} significant."


def _unread(line: Line, forest: Forest) -> str:
    """What would be claimed if the replies that were read were all."""
    says = _said(line, forest) if forest.says else f"{_place(line, forest)} {in_numbers(line, forest)}"
    return f"{UNREAD.capitalize()}: {says}; {line.note}."


def _unshown_in_words(verdict: Conclusion, lines: Sequence[Line], largest: Line, forest: Forest) -> str:
    answer = f"{_said(largest, forest)}, {_unsure(lines, largest, forest)}."
    if verdict == JUDGES_DIFFER:
        return f"It depends on the judge. On average {answer}"
    none = {1: "", 2: "neither difference is shown. In the largest, "}
    return (
        f"Undecided: {none.get(len(lines), f'none of the {len(lines)} differences is shown. In the largest, ')}{answer}"
    )


def _within(verdict: Conclusion, lines: Sequence[Line], largest: Line, forest: Forest) -> str:
    """The claim about the mean, and how many single clusters were counted within the margin."""
    within = f"within ±{largest.margin:g}{' points' if forest.says else ''}{single_clusters(lines)}."
    if verdict == ON_AVERAGE:
        which = "the mean difference is" if len(lines) == 1 else "mean differences are"
        return f"On these {lines[0].cluster or 'cluster'}s, {which} shown to lie {within}"
    return (
        f"Alike: {'the mean difference lies' if len(lines) == 1 else f'all {len(lines)} mean differences lie'} {within}"
    )


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
    small = f"Below our margin of {line.margin:g} points{single_clusters([line], 'are')}:"
    begins = {SMALL: small, JUDGES_DIFFER: "It depends on the judge. On average"}
    others = (other for other in shown if other != line and other.about.model == line.about.model)
    ties = [line, *(other for other in others if round(abs(other.estimate) - abs(line.estimate), 2) == 0)]
    largest = "this is the largest planned contrast" if line.about.contrast else "this is the largest"
    which = "planned contrasts are significant" if len(ties) > 1 else f"differences are significant; {largest}"
    further = _apart(ties) or f" {len(shown)} of {tests} {which}." if len(shown) > 1 else ""
    ends = f" ({span(line, forest)})" if line.verdict == SMALL else ""
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


def json_values(value: Any) -> Any:
    """The value in JSON's types: frames as lists of rows, NaN and infinity as None, numpy's numbers as Python's."""
    if isinstance(value, pd.DataFrame):
        return [{str(k): json_values(v) for k, v in row.items()} for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(key): json_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
