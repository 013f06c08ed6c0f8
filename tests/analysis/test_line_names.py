"""How lines are named, and what a misspelt name is answered with."""

from __future__ import annotations

import pytest

from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.names import find_name, named_lines
from parley.analysis.stats.results import Line
from parley.base.errors import ConfigError


def forest(name: str, *lines: Line, table: str = "") -> Forest:
    return Forest(name, "?", "points", lines, table=table)


def about(measure: str, label: str, **columns: str) -> Line:
    return Line(measure=measure, label=label, about=columns, estimate=1.0)


def test_what_all_lines_share_is_left_out_and_the_model_stands_in_front() -> None:
    one = [about("accuracy", "default", model="m/1", method="default", context=where) for where in ("easy", "hard")]
    assert list(named_lines([forest("accuracy", *one)])) == ["easy.accuracy", "hard.accuracy"]
    two = [about("accuracy", "cot", model="m/2", method="cot", context="easy")]
    assert list(named_lines([forest("accuracy", *one, *two)])) == [
        "m/1.easy.accuracy.default",
        "m/1.hard.accuracy.default",
        "m/2.easy.accuracy.cot",
    ]


def test_arms_measures_and_all() -> None:
    lines = [
        about(measure, f"a − b, {part}", first="a", second="b", part=part)
        for measure in ("f1", "exact")
        for part in ("all", "new")
    ]
    plots = [
        forest(f"search-{measure}", *lines[at : at + 2], table="search") for at, measure in ((0, "f1"), (2, "exact"))
    ]
    assert list(named_lines(plots)) == ["search.f1", "search.f1.new", "search.exact", "search.exact.new"]
    pairs = [about("d", f"{first} − {second}", first=first, second=second) for first, second in ("ab", "ac", "bc")]
    assert list(named_lines([forest("gaps", *pairs)])) == ["gaps.a-b", "gaps.a-c", "gaps.b-c"]


def test_lines_that_have_only_a_group_and_a_label() -> None:
    lines = [Line(group=f"set: {name} · loop", label="by ngrams, again", estimate=1.0) for name in ("mild", "high")]
    assert list(named_lines([forest("gain", *lines)])) == ["mild.gain", "high.gain"]


def test_no_two_lines_have_the_same_name_and_a_given_name_stays() -> None:
    same = [Line(label="x", estimate=number) for number in range(3)]
    assert list(named_lines([forest("f", *same), forest("g", Line(name="gender", label="y"))])) == [
        "f",
        "f.x",
        "f.x-2",
        "gender",
    ]


@pytest.mark.parametrize(
    ("typed", "found"),
    [("gender", "gender"), ("malibu.gender", "gender"), ("Unread", "unread"), ("malibu.x", "malibu.x")],
)
def test_the_study_may_stand_in_front(typed: str, found: str) -> None:
    assert find_name(typed, ["gender", "unread", "malibu.x"], "malibu") == found


def test_an_unknown_name_gets_the_nearest_three() -> None:
    with pytest.raises(ConfigError, match=r"no line is called 'gendre' \(nearest: gender, unread, religion\)"):
        find_name("gendre", ["religion", "gender", "unread", "z"])
    with pytest.raises(ConfigError, match="there are no lines"):
        find_name("gendre", [])
