"""Questions as data, the lines that answer them, and the one that becomes the headline."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from parley.analysis.effects import (
    Estimand,
    Question,
    Scale,
    against,
    answer,
    bootstrapped,
    by_cluster,
    corrected,
    corrected_differences,
    every_two,
    gaps,
    successive,
)
from parley.analysis.page.report import Report, answered, joined
from parley.analysis.say import Forest, format_cells, headline, in_numbers, interval, number_format, out_of_reach
from parley.analysis.stats.results import About, Conclusion, Contrast, Estimate, Line

HELP = Question(
    name="help",
    ask="Does help change the score?",
    measures={"score": "score", "other": "other score"},
    unit="points",
    arms="arm",
    item=("item",),
    cluster="text",
    each="kind",
)


def frame(gaps: list[float], models: tuple[str, ...] = ("m",)) -> pd.DataFrame:
    """Two items a text, with help and without; the second item of a text is hard."""
    rows = [
        {"model": model, "arm": arm, "item": f"{text}-{number}", "text": f"t{text}", "kind": kind}
        | {"score": base + gap * (arm == "help"), "other": 1.0}
        for model in models
        for arm in ("none", "help")
        for text, gap in enumerate(gaps)
        for number, (kind, base) in enumerate((("easy", 5.0), ("hard", 3.0)))
    ]
    return pd.DataFrame(rows)


def test_a_contrast_is_tested_over_clusters_all_items_first_then_each_kind() -> None:
    lines = answer(HELP, frame([1, 2, 3, 4, 5, 6]))
    assert [(line.measure, line.label, line.secondary) for line in lines[:3]] == [
        ("score", "help − none, all", False),
        ("other", "help − none, all", True),
        ("score", "help − none, easy", True),
    ]
    first = lines[0]
    assert (first.estimate, first.n, first.clusters) == (3.5, 12, 6), "items are averaged within their text"
    assert first.p == pytest.approx(2 / 2**6), "six texts, all signs alike: two of 64 patterns"
    assert first.about.columns == {"model": "m", "first": "help", "second": "none", "kind": "all"}
    assert first.units == {"arm": ("help", "none")}
    assert lines[2].units == {"arm": ("help", "none"), "kind": ("easy",)}
    assert (first.group, first.cluster, first.reference) == ((), "text", 0.0)
    two = answer(HELP, frame([1, 2, 3, 4, 5, 6], ("m", "n")))
    assert list(dict.fromkeys(line.group for line in two)) == [("m",), ("n",)], "two models have headings"


def test_two_arms_are_compared_as_the_question_pairs_them() -> None:
    assert list(every_two("abc")) == [("b", "a"), ("c", "a"), ("c", "b")]
    assert list(successive("abc")) == [("b", "a"), ("c", "b")]
    assert list(against("b")("abc")) == [("a", "b"), ("c", "b")]
    assert list(against("x")("abc")) == [], "the baseline was not run"


def test_a_level_is_tested_against_its_null_and_keeps_its_own_scale() -> None:
    level = replace(HELP, arms="", item=(), each="", by=("model", "arm"), null=3.0, margin=0.5)
    none, helped = (line for line in answer(level, frame([1, 2, 3, 4, 5, 6])) if line.measure == "score")
    assert (none.label, helped.label, helped.estimate, helped.reference) == ("arm: none", "arm: help", 7.5, 3.0)
    assert 3.0 < helped.low < 7.5 < helped.high
    assert helped.p == pytest.approx(2 / 2**6), "every text lies above 3"
    assert helped.also["p_alike"] > 0.9 > 0.05 > none.p
    assert sum(helped.values.values()) / 6 == pytest.approx(7.5), "the texts' own levels, not their distances from 3"


def test_a_gap_is_a_mean_by_cluster_without_the_noise_of_floating_point() -> None:
    differences = pd.Series([0.1 + 0.2 - 0.3, 2.0, 4.0, math.nan])
    assert gaps(differences, pd.Series(["a", "b", "b", "c"])).to_dict() == {"a": 0.0, "b": 3.0}, "c was not read"


def test_a_measure_says_what_its_own_plot_asks_and_a_question_what_its_columns_do_not_give() -> None:
    def further(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
        return {"label": f"{about.model}'s {measure}", "group": ("all",), "also": {"rows": len(rows)}}

    question = replace(
        HELP,
        each="",
        measures={
            "score": "score",
            "other": Estimand(words="other score", ask="And the other?", note="By hand.", reference=None, says=str),
        },
        further=further,
        plotted=lambda lines: [*reversed(lines)],
        stated=False,
    )
    made = answered(question, frame([1, 2, 3, 4, 5, 6], ("one", "two")))
    assert [line.label for line in made.forests[0].lines] == ["two's score", "one's score"]
    assert {(line.group, line.also["rows"]) for line in made.forests[0].lines} == {(("all",), 12)}
    assert [(plot.question, plot.reference, plot.says) for plot in made.forests] == [
        ("Does help change the score?", 0.0, None),
        ("And the other?", None, str),
    ]
    assert made.forests[1].note == "By hand." != made.forests[0].note
    assert made.words == [], "nothing is stated, though the score's lines are significant"
    whole = joined([made, made])
    assert (len(whole.tables), len(whole.forests)) == (2, 4)


def test_plots_and_sentences_give_the_interval_that_holds_for_all_planned_lines() -> None:
    line = Line(estimate=1.0, low=0.5, high=1.5, simultaneous=(0.25, 1.75))
    assert (line.interval, replace(line, simultaneous=None).interval) == ((0.25, 1.75), (0.5, 1.5))
    forest = Forest("name", "Question?", "axis", (line,))
    assert (forest.data()["lines"][0]["low"], in_numbers(line, forest)) == (0.25, "+1.00 (+0.25 to +1.75)")
    assert not replace(line, low=-math.inf, simultaneous=None).bounded


def test_a_family_is_a_model_and_planned_lines_are_corrected_apart() -> None:
    lines = corrected(
        [Line.of(Estimate(p=p), about=About.of(model=model)) for p, model in ((0.01, "a"), (0.04, "a"), (0.04, "b"))]
        + [Line.of(Estimate(p=p), about=About.of(model="a"), secondary=True) for p in (0.01, 0.02, 0.03)]
    )
    # Holm by hand: 2 · 0.01 and 0.04; 0.04 alone; 3 · 0.01, 2 · 0.02, and 0.03, which may not fall below 0.04.
    assert [line.p_adjusted for line in lines] == pytest.approx([0.02, 0.04, 0.04, 0.03, 0.04, 0.04])
    assert all(line.shown for line in lines)


def test_planned_lines_have_intervals_that_hold_for_all_of_their_family() -> None:
    """Six texts, all signs alike: p = 2 / 64, shown alone, and not where two others are planned too."""
    values = {str(n): 1.0 + n for n in range(6)}
    one, *others = (Line.of(Estimate(p=p), values=values, reference=0.0) for p in (2 / 64, 0.5, 0.5))
    together = corrected_differences([one, *others], ())
    assert together[0].verdict == "undecided"
    assert together[0].simultaneous is None, "six texts cannot exclude anything at 1 - 0.05 / 3"
    alone = corrected_differences([one, *(replace(line, secondary=True) for line in others)], ())
    assert [(line.p_adjusted, line.verdict) for line in alone] == [
        (2 / 64, "different"),
        (1, "undecided"),
        (1, "undecided"),
    ]
    many = [replace(replace(one, p=0.001), values={str(n): 1.0 + n % 3 for n in range(20)})] * 2
    wide, _ = corrected_differences(many, ())
    assert wide.simultaneous
    with pytest.raises(AssertionError, match="is different already"):
        corrected_differences([wide], ())


def test_a_question_with_a_margin_can_say_small_and_alike() -> None:
    """Two one-sided tests: twelve texts within the margin on both sides give 2⁻¹²."""
    near, small = [0.1, -0.1] * 6, [0.1, 0.2] * 6
    for by_text, verdict in (
        (near, "below the margin on average"),
        (small, "different but below the margin"),
        ([2.0, 3.0] * 6, "different"),
        ([2.0, -2.0] * 6, "undecided"),
    ):
        line = answer(replace(HELP, margin=0.5), frame(by_text))[0]
        assert (line.verdict, line.margin) == (verdict, 0.5)
    assert line.note == "neither a difference nor a mean within ±0.5 is shown"
    assert answer(replace(HELP, margin=0.5), frame(near))[0].also["p_alike"] == 2**-12
    assert answer(HELP, frame(near))[0].verdict == "undecided", "without a margin nothing is called alike"


def test_the_values_of_clusters_average_to_the_estimate_also_where_rows_count_equally() -> None:
    values = pd.Series([1.0, 0.0, 1.0, 1.0, 0.0])
    clusters = pd.Series(["a", "b", "b", "b", "c"])
    assert by_cluster(values, clusters, 5 / 9) == pytest.approx({"a": 1.0, "b": 2 / 3, "c": 0.0})
    by_row = by_cluster(values, clusters, 0.6)
    assert sum(by_row.values()) / 3 == pytest.approx(0.6)
    assert by_row["b"] == pytest.approx(0.6 + 3 * 3 / 5 * (2 / 3 - 0.6)), "what the cluster adds, times three"
    assert by_cluster(values, clusters, 0.9) == {}, "another statistic"
    unread, named = pd.Series([3.0, 3.0, math.nan, -3.0 + 1e-15]), pd.Series(["z", "z", "unread", "a"])
    near_0 = by_cluster(unread, named, 0.0)
    assert list(near_0.items()) == [("z", 3.0), ("a", -3.0 + 1e-15)], "in the rows' order"


def test_a_bootstrapped_level_counts_clusters_equally_unless_rows_are_to_count() -> None:
    values, clusters = pd.Series([1.0, 0.0, 1.0, 1.0, 0.0] * 4), pd.Series([*"abbbc", *"deeef", *"ghhhi", *"jkkkl"])
    assert bootstrapped(20)(values, clusters).estimate == pytest.approx(5 / 9)
    assert bootstrapped(20, by_row=True)(values, clusters).estimate == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("estimate", "scale", "reference", "written"),
    [
        (20.0, "points", 0.0, "+20.0"),  # from 20 points on, one decimal
        (19.5, "points", 0.0, "+19.50"),
        (-0.001, "points", 0.0, "0.00"),
        (0.625, "share", 0.0, "+62.5%"),
        (0.625, "share", 0.5, "62%"),
    ],
)
def test_a_plots_numbers_have_the_decimals_of_its_largest(
    estimate: float, scale: Scale, reference: float, written: str
) -> None:
    only = Forest("plot", "How much?", "points", (line("a", estimate, 0.0, 0.0, 1.0, ""),), reference, scale)
    assert number_format(only)(estimate) == written
    assert number_format(replace(only, lines=()))(0.25) in ("+0.25", "+25.0%", "25%"), "a plot without lines"


def test_too_few_clusters_for_any_test_are_noted_by_the_smallest_family() -> None:
    def family(tests: int, clusters: int) -> list[Line]:
        return [replace(UNSURE, p=0.2, clusters=clusters)] * tests

    few = "With 5 bases no difference could be significant: 1 test needs at least 6 bases."
    assert list(out_of_reach("base", family(1, 5), family(3, 5))) == [few]
    assert list(out_of_reach("base", family(1, 6), family(3, 6))) == []
    assert list(out_of_reach("base", [replace(UNSURE, p=math.nan, clusters=2)])) == [], "nothing is tested"


def line(label: str, estimate: float, low: float, high: float, p: float, verdict: Conclusion) -> Line:
    return Line.of(Estimate(estimate=estimate, low=low, high=high), label=label, p_adjusted=p, verdict=verdict)


SMALL = line("a − b", 0.4, 0.1, 0.7, 0.04, "different")
LARGE = line("b − c", -0.5, -0.9, -0.1, 0.01, "different")
UNSURE = line("a − c", 0.9, -0.3, 2.1, 0.3, "undecided")


def plot(*lines: Line, reference: float | None = 0.0) -> Forest:
    return Forest("plot", "Do they differ?", "points", lines, reference=reference)


def test_the_largest_line_that_is_shown_is_named_with_its_p_and_how_many_were_tested() -> None:
    found = headline(plot(SMALL, LARGE, UNSURE))
    assert found.text == (
        "Do they differ? b − c: −0.50 (−0.90 to −0.10), p = 0.01 corrected for 3 tests; 2 of 3 differences are "
        "significant, and this is the largest."
    )
    assert (found.verdict, found.line, found.distance, found.tests, found.shown) == ("different", LARGE, 0.5, 3, 2)


COUNTED = {"clusters_within": 57, "clusters_within_low": 0.8761}
WITHIN = replace(UNSURE, clusters=60, verdict="alike", margin=0.1, cluster="base", also=COUNTED)
SO_DO = "and so do 57 of 60 bases (at least 87% of such bases do)"
SO_DO_ALL = "and so do at least 87% of such bases in each, 57 of 60 bases where fewest do"
UNTESTED, UNBOUNDED = replace(LARGE, p_adjusted=math.nan), replace(LARGE, low=math.nan, high=math.nan)
FEW = replace(UNBOUNDED, p_adjusted=math.nan, cluster="base", tests=15, clusters=6)
BLOCKED = replace(LARGE, verdict="not measured", note="No verdict: the first place wins 95%.")
SIMULTANEOUS = replace(LARGE, simultaneous=(-1.0, -0.02))
DRAWN = [replace(replace(line, low=math.nan, high=math.nan), simultaneous=(-1.0, 2.5)) for line in (UNSURE, LARGE)]
ALL = "b − c: −0.50 (simultaneous 95% interval −1.00 to {}), p = 0.01 corrected for 2 tests"
ALONE = "a − b: +0.40 (+0.10 to +0.70), p = 0.04 corrected for 2 tests."
OPEN = "Undecided: the test is not significant."


@pytest.mark.parametrize(
    ("lines", "verdict", "answer"),
    [
        ([UNSURE], "undecided", OPEN),
        ([UNSURE] * 14, "undecided", "Undecided: none of 14 tests is significant."),
        ([WITHIN, WITHIN], "alike", f"Alike: all 2 mean differences lie within ±0.1, {SO_DO_ALL}."),
        ([WITHIN], "alike", f"Alike: the mean difference lies within ±0.1, {SO_DO}."),
        ([WITHIN, UNSURE], "undecided", "Undecided: neither test is significant."),  # not all of them are alike
        ([WITHIN, replace(SMALL, verdict="different but below the margin")], "different but below the margin", ALONE),
        ([replace(UNSURE, verdict="judges differ")], "judges differ", "Judges differ: the test is not significant."),
        # what has no test, no interval or no answer is never named, nor is a secondary line
        *(([other, UNSURE], "undecided", OPEN) for other in (UNTESTED, UNBOUNDED, BLOCKED)),
        ([replace(LARGE, secondary=True), UNSURE], "undecided", OPEN),
        ([UNTESTED], "not measured", "Described, not tested."),
        ([UNBOUNDED], "not measured", "Not known: the data are too few for an interval."),
        ([FEW] * 15, "not measured", "Too few bases: 15 tests need at least 10 bases, and there are 6."),
        ([BLOCKED, BLOCKED], "not measured", BLOCKED.note),
        # four tests of seven clusters cannot find anything, so that a difference of any size would "be chance"
        (
            [replace(UNSURE, tests=4, clusters=7, cluster="prompt")] * 4,
            "undecided",
            "Too few prompts: 4 tests need at least 8 prompts, and there are 7.",
        ),
        (
            [replace(UNSURE, tests=4, clusters=8, cluster="prompt")] * 4,
            "undecided",
            "Undecided: none of 4 tests is significant.",
        ),
        # what is chosen among several has the interval that holds for all, as drawn
        (
            [SIMULTANEOUS, SMALL],
            "different",
            f"{ALL.format('−0.02')}; 2 of 2 differences are significant, and this is the largest.",
        ),
        (DRAWN, "different", f"{ALL.format('+2.50')}."),
    ],
)
def test_the_headline_has_the_verdict_of_its_lines(lines: list[Line], verdict: str, answer: str) -> None:
    found = headline(plot(*lines))
    assert (found.verdict, found.answer) == (verdict, answer)
    assert (found.line is None) == (found.shown == 0)


def test_a_headline_over_several_models_is_corrected_for_all_of_their_tests() -> None:
    """Each model's family was corrected within itself: over six models without an effect, 27% of headlines said one."""
    of_three = [replace(line, tests=3) for line in (SMALL, LARGE, UNSURE)]
    assert headline(plot(*of_three)).answer.startswith(
        "b − c: −0.50 (−0.90 to −0.10), p = 0.01 corrected for 3 tests; 2"
    )
    both = headline(plot(*of_three, *[replace(UNSURE, tests=3)] * 3))
    assert (both.tests, both.shown) == (6, 1)
    assert both.answer == "b − c: −0.50 (−0.90 to −0.10), p = 0.02 corrected for 6 tests."
    six = headline(plot(*of_three, *[replace(UNSURE, tests=3)] * 15))
    assert (six.verdict, six.answer) == ("undecided", "Undecided: none of 18 tests is significant."), "6 × 0.01 > 0.05"


@pytest.mark.parametrize(
    ("low", "high", "reference", "excluded", "words"),
    [
        (0.003, 0.07, 0.0, False, "above 0, up to 0.07"),  # it was "0.00 to 0.07, p = 0.047"
        (-0.07, -0.003, 0.0, False, "below 0, down to -0.07"),
        (0.0, 0.07, 0.0, True, "above 0, up to 0.07"),  # a simultaneous interval ends at what Holm excludes
        (0.0, 0.07, 0.0, False, "0.00 to 0.07"),
        (-0.003, 0.07, 0.0, False, "0.00 to 0.07"),
        (0.502, 0.6, 0.5, False, "above 0.50, up to 0.60"),
        (0.003, 0.07, None, False, "0.00 to 0.07"),
    ],
)
def test_an_interval_never_ends_at_what_it_excludes(
    low: float, high: float, reference: float | None, excluded: bool, words: str
) -> None:
    assert (
        interval(low, high, lambda end: f"{end + 0.0:.2f}".replace("-0.00", "0.00"), reference, excluded=excluded)
        == words
    )


def test_a_tables_cell_does_not_end_at_what_its_test_excludes() -> None:
    rows = pd.DataFrame({"low": [0.0, 0.0, -1.0], "high": [1.0, 1.0, 0.0], "p_adjusted": [0.04, 0.06, 0.04]})
    assert [row[:2] for row in format_cells(rows)] == [["above 0", "1.00"], ["0.00", "1.00"], ["-1.00", "below 0"]]


def test_without_a_reference_the_first_line_is_described() -> None:
    found = headline(plot(replace(UNSURE, p_adjusted=math.nan), SMALL, reference=None))
    assert (found.verdict, found.answer) == ("", "a − c: 0.90 (−0.30 to 2.10).")


def test_where_a_plot_says_what_its_lines_mean_the_answer_needs_no_statistics() -> None:
    def answer(*lines: Line) -> str:
        in_words = replace(plot(*lines), says=lambda line: f"{line.label} by {abs(line.estimate):.2f}")
        return headline(in_words).answer

    small = replace(SMALL, verdict="different but below the margin", margin=0.5, simultaneous=(0.0, 0.7))
    mean = replace(WITHIN, verdict="below the margin on average", also={})
    counted = replace(small, clusters=60, cluster="base", also=COUNTED)
    assert answer(LARGE) == "Yes: b − c by 0.50."
    assert answer(SMALL, LARGE, UNSURE) == (
        "Yes: b − c by 0.50. 2 of 3 differences are significant; this is the largest."
    )
    apart = [
        replace(replace(LARGE, estimate=size), about=About.of(Contrast("accent", (first,), (second,))))
        for first, second, size in (("black", "Texan", -0.3), ("Texan", "German", 0.301), ("black", "German", 0.1))
    ]
    assert answer(*apart) == "Yes: b − c by 0.30. 'Texan' stands apart: it is as far above 'Black'."
    assert answer(apart[0], replace(apart[1], estimate=-0.3)).endswith(" 2 of 2 planned contrasts are significant."), (
        "Texan is between"
    )
    assert answer(small, UNSURE) == "Below our margin of 0.5 points: a − b by 0.40 (above 0, up to 0.70)."
    assert answer(counted, UNSURE) == (
        "Below our margin of 0.5 points, and so are 57 of 60 bases (at least 87% of such bases are): a − b by 0.40 "
        "(above 0, up to 0.70)."
    )
    assert answer(WITHIN) == f"Alike: the mean difference lies within ±0.1 points, {SO_DO}."
    assert answer(mean, mean) == "On these bases, mean differences are shown to lie within ±0.1 points."
    assert answer(UNSURE) == "Undecided: a − c by 0.90, which may be chance."
    assert answer(UNSURE, UNSURE).startswith("Undecided: neither difference is shown. In the largest, a − c by 0.90")
    zero = replace(UNSURE, estimate=0.001)
    assert answer(zero, zero).endswith("a − c by 0.00, but the data do not rule out a difference of 2.10 points.")
    assert answer(replace(zero, low=-0.002, high=0.004)).endswith("and any difference is smaller than these decimals.")
    assert answer(replace(UNSURE, verdict="judges differ")).startswith("It depends on the judge. On average a − c by")
    of_model = replace(LARGE, group=("race", "m"), about=About.of(model="m"))
    assert answer(of_model) == "Yes: with m, b − c by 0.50."


def test_what_blocks_stands_in_place_of_the_answer_and_every_reader_gets_the_same_object() -> None:
    report = Report("r", forests=(plot(LARGE),), blocked="Not decided: four bases.", cautions=("m is SIMULATED.",))
    assert report.headline is not None
    assert report.headline.text == "SIMULATED. Do they differ? Not decided: four bases."
    assert report.data()["headline"]["text"] == report.headline.text
    assert Report("r").headline is None


def test_sentences_have_minus_signs_and_no_negative_zero() -> None:
    words = Report("r", ("gpt-4: -0.30 (-0.50 to -0.10), -0.00, on 2026-11-17 (−0.0 before).",)).words
    assert words == ("gpt-4: −0.30 (−0.50 to −0.10), 0.00, on 2026-11-17 (0.0 before).",)
