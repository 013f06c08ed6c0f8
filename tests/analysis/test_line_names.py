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


EASY, HARD = (about("accuracy", "default", model="m/1", method="default", context=at) for at in ("easy", "hard"))
OTHER = about("accuracy", "cot", model="m/2", method="cot", context="easy")
F1, EXACT = (
    [about(name, f"a − b, {part}", first="a", second="b", part=part) for part in ("all", "new")]
    for name in ("f1", "exact")
)
PAIRS = [about("d", f"{first} − {second}", first=first, second=second) for first, second in ("ab", "ac", "bc")]
SETS = [Line(group=f"set: {name} · loop", label="by ngrams, again", estimate=1.0) for name in ("mild", "high")]


@pytest.mark.parametrize(
    ("forests", "names"),
    [
        ([forest("accuracy", EASY, HARD)], "easy.accuracy hard.accuracy"),  # what all lines share is left out
        (
            [forest("accuracy", EASY, HARD, OTHER)],
            "m/1.easy.accuracy.default m/1.hard.accuracy.default m/2.easy.accuracy.cot",
        ),
        (
            [forest("search-f1", *F1, table="search"), forest("search-exact", *EXACT, table="search")],
            "search.f1 search.f1.new search.exact search.exact.new",
        ),
        ([forest("gaps", *PAIRS)], "gaps.a-b gaps.a-c gaps.b-c"),
        ([forest("gain", *SETS)], "mild.gain high.gain"),  # lines that have only a group and a label
        ([forest("f", *[Line(label="x")] * 3), forest("g", Line(name="gender", label="y"))], "f f.x f.x-2 gender"),
    ],
)
def test_names_are_short_and_no_two_lines_have_the_same(forests: list[Forest], names: str) -> None:
    assert list(named_lines(forests)) == names.split()


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
