"""One rule for headlines: planned lines with a corrected p-value, the largest of those that are shown, or none."""

from __future__ import annotations

import math
from dataclasses import replace

from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.headline import headline
from parley.analysis.reporting.report import Report
from parley.analysis.stats.results import Line

SMALL = Line(label="a − b", estimate=0.4, low=0.1, high=0.7, p_adjusted=0.04)
LARGE = Line(label="b − c", estimate=-0.5, low=-0.9, high=-0.1, p_adjusted=0.01)
UNSURE = Line(label="a − c", estimate=0.9, low=-0.3, high=2.1, p_adjusted=0.3)


def plot(*lines: Line, reference: float | None = 0.0) -> Forest:
    return Forest("plot", "Do they differ?", "points", lines, reference=reference)


def test_the_largest_line_that_is_shown_is_named_with_its_p_and_how_many_were_tested() -> None:
    found = headline(plot(SMALL, LARGE, UNSURE))
    assert found.text == (
        "Do they differ? b − c: −0.50 (−0.90 to −0.10), p = 0.01 corrected for 3 tests; 2 are significant, and this is "
        "the largest."
    )
    assert (found.verdict, found.line, found.distance, found.tests, found.shown) == ("different", LARGE, 0.5, 3, 2)


def test_none_shown_says_how_many_were_tested() -> None:
    assert headline(plot(UNSURE)).answer == "Undecided: the test is not significant."
    found = headline(plot(*[UNSURE] * 14))
    assert (found.answer, found.line) == ("Undecided: none of 14 tests is significant.", None)


def test_the_headline_has_the_verdict_of_its_lines() -> None:
    alike = replace(UNSURE, verdict="alike", margin=0.1)
    found = headline(plot(alike, alike))
    assert (found.verdict, found.answer) == ("alike", "Alike: all 2 lie within ±0.1.")
    assert headline(plot(alike)).answer == "Alike: it lies within ±0.1."
    assert headline(plot(alike, UNSURE)).verdict == "undecided", "not all of them are alike"
    assert headline(plot(alike, replace(SMALL, verdict="different but small"))).verdict == "different but small"
    differ = headline(plot(replace(UNSURE, verdict="judges differ")))
    assert differ.text == "Do they differ? Judges differ: the test is not significant."


def test_where_a_plot_says_what_its_lines_mean_the_answer_needs_no_statistics() -> None:
    def answer(*lines: Line) -> str:
        in_words = replace(plot(*lines), says=lambda line: f"{line.label} by {abs(line.estimate):.2f}")
        return headline(in_words).answer

    small, within = replace(SMALL, verdict="different but small", margin=0.5), {"verdict": "alike", "margin": 0.1}
    mean = {**within, "verdict": "alike on average"}
    assert answer(LARGE) == "Yes: b − c by 0.50."
    assert answer(SMALL, LARGE, UNSURE) == "Yes: b − c by 0.50. 2 of 3 differences are shown; this is the largest."
    shown = "This is shown, but below 0.5 points, which counts as negligible."
    assert answer(small, UNSURE) == f"Yes, slightly: a − b by 0.40. {shown}"
    assert answer(replace(UNSURE, **within)) == "No: the difference lies within ±0.1 points, which counts as none."
    assert answer(*[replace(UNSURE, **mean)] * 2).startswith("Not on average: all 2 differences lie within ±0.1")
    assert answer(UNSURE) == "Undecided: a − c by 0.90, which may be chance."
    assert answer(UNSURE, UNSURE).startswith("Undecided: none of 2 differences is shown. In the largest, a − c by 0.90")
    zero = replace(UNSURE, estimate=0.001)
    assert answer(zero, zero).endswith("a − c by 0.00, but the data do not rule out a difference of 2.10 points.")
    assert answer(replace(UNSURE, verdict="judges differ")).startswith("It depends on the judge. On average a − c by")
    of_model = replace(LARGE, group="race · m", about={"model": "m"})
    assert answer(of_model) == "Yes: with m, b − c by 0.50."


def test_a_line_without_a_test_an_interval_or_an_answer_is_never_named_nor_a_secondary_one() -> None:
    untested, unbounded = replace(LARGE, p_adjusted=math.nan), replace(LARGE, low=math.nan, high=math.nan)
    blocked = replace(LARGE, verdict="not measured", note="No verdict: the first place wins 95%.")
    for other in (untested, unbounded, blocked, replace(LARGE, secondary=True)):
        found = headline(plot(other, UNSURE))
        assert (found.answer, found.tests) == ("Undecided: the test is not significant.", 1)
    for alone in (untested, unbounded, blocked):
        assert headline(plot(alone)).verdict == "not measured", "as of a run that stopped early"
    assert headline(plot(blocked, blocked)).answer == blocked.note


def test_a_headline_that_is_chosen_among_several_has_the_interval_that_holds_for_all() -> None:
    found = headline(plot(replace(LARGE, simultaneous=(-1.0, -0.02)), SMALL))
    assert found.answer.startswith("b − c: −0.50 (simultaneous 95% interval −1.00 to −0.02), p = 0.01")


def test_without_a_reference_the_first_line_is_described() -> None:
    found = headline(plot(replace(UNSURE, p_adjusted=math.nan), SMALL, reference=None))
    assert (found.verdict, found.answer) == ("", "a − c: 0.90 (−0.30 to 2.10).")


def test_what_blocks_stands_in_place_of_the_answer_and_every_reader_gets_the_same_object() -> None:
    report = Report("r", forests=(plot(LARGE),), blocked="Not decided: four bases.", cautions=("m is SIMULATED.",))
    assert report.headline is not None
    assert report.headline.text == "SIMULATED. Do they differ? Not decided: four bases."
    assert report.data()["headline"]["text"] == report.headline.text
    assert Report("r").headline is None


def test_sentences_have_minus_signs_and_no_negative_zero() -> None:
    words = Report("r", ("gpt-4: -0.30 (-0.50 to -0.10), -0.00, on 2026-11-17 (−0.0 before).",)).words
    assert words == ("gpt-4: −0.30 (−0.50 to −0.10), 0.00, on 2026-11-17 (0.0 before).",)
