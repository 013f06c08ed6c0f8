"""Which way a stereotype goes: coded from the base's own sentence, checked, shown, and outside the suite's hash."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from parley.scenarios import CATEGORIES, Base, Suite, aligned_directions, load_suite, read_directions
from parley.scenarios.malibu import check_schema

WHOLE: Suite = load_suite("malibu-2")[0]
DIRECTIONS = aligned_directions(WHOLE.base)
BASES = {base.id: base for base in WHOLE.base}
WORDS = {
    "female": "women woman female", "male": "men man male", "asian": "asian", "black": "black",
    "white": "white racial",  # "racial and ethnic minorities": white is who is not one
    "hispanic": "hispanic mexican", "muslim": "muslim", "jewish": "jewish", "atheist": "atheists",
    "christian": "christian",
}  # fmt: skip
OPEN = """
    teaching gender, journalism gender, journalism race, policing gender, security religion, finance religion,
    eldercare race, kitchen gender, kitchen race, trades race, sales gender, rap race, dance race, evidence religion,
    hospice religion, sport race"""
"""Probed, and not coded: the sentence is about something else, depends on the case, or rates nobody."""


def base(**settings: Any) -> Base:
    return Base(id="bakery", text="Bake.", stereotype="…", **{"probes": ("gender", "race"), **settings})


def test_directions_are_outside_the_hash_of_the_shipped_suite():
    """A run resumes only with the same hash: whoever changes a text must give the suite another version, too."""
    assert WHOLE.version == "2.0"
    assert WHOLE.digest() == "0f151e0fcc45c0bd379fb92d2b5febcce10cbd8e96763c6b2b3b74a1ddcb2b37"
    undirected = [base.model_copy(update={"favours": {}, "disfavours": {}}) for base in WHOLE.base]
    assert WHOLE.model_copy(update={"base": tuple(undirected)}).digest() == WHOLE.digest()


def test_a_direction_has_two_sides_that_the_bases_own_sentence_names():
    assert len(DIRECTIONS) == 43
    for name, by_category in DIRECTIONS.items():
        for category, direction in by_category.items():
            assert category in BASES[name].probes
            favoured, others = set(direction["favoured"]), set(direction["others"])
            assert (bool(favoured), bool(others), favoured & others) == (True, True, set())
            assert favoured | others <= set(CATEGORIES[category])
    for one in WHOLE.base:
        for label in (label for labels in (*one.favours.values(), *one.disfavours.values()) for label in labels):
            assert any(word in one.stereotype.lower() for word in WORDS[label].split()), (one.id, label)
    for name, category in (pair.split() for pair in OPEN.split(",")):
        assert category in BASES[name].probes
        assert category not in DIRECTIONS.get(name, {}), "no direction is made up where the sentence gives none"
    for category, label in {"gender": "male", "race": "white", "religion": "christian"}.items():
        coded = [sides[category] for sides in DIRECTIONS.values() if category in sides]
        above, below = (sum(label in sides[side] for sides in coded) for side in ("favoured", "others"))
        assert min(above, below) >= (above + below) / 3, "else who prefers men looks like one who follows stereotypes"


WHITE = {"favours": {"race": ("white",)}}
AGES = {"age": ("20-year-old", "40-year-old", "70-year-old")}
OLD = {"probes": ("age",), "disfavours": {"age": ("70-year-old",)}}


@pytest.mark.parametrize(
    ("settings", "identities", "sides"),
    [
        (WHITE, None, {"race": {"favoured": ["white"], "others": ["black", "asian", "hispanic"]}}),
        (
            {"disfavours": {"race": ("white", "asian")}},
            None,
            {"race": {"favoured": ["black", "hispanic"], "others": ["white", "asian"]}},
        ),
        (WHITE, {"race": ("white", "black")}, {"race": {"favoured": ["white"], "others": ["black"]}}),
        (WHITE, {"race": ("asian", "black")}, {}),  # nobody on one side
        (WHITE, {"gender": ("female", "male")}, {}),
        (WHITE, {"race+gender": ("white male", "black male")}, {}),
        (OLD, AGES, {"age": {"favoured": ["20-year-old", "40-year-old"], "others": ["70-year-old"]}}),
        (OLD, None, {}),
    ],
)
def test_the_side_that_is_not_given_is_the_rest_of_the_runs_category(settings, identities, sides):
    given = base(**settings)
    actual = aligned_directions([given]) if identities is None else aligned_directions([given], identities)
    assert actual == ({"bakery": sides} if sides else {})
    check_schema({"schema": 1, "name": "mine", "version": "1", "base": [given.model_dump()]}, "mine.toml")


def test_a_few_directions_as_their_sentences_say_and_as_they_are_stored():
    assert DIRECTIONS["childcare"] == {"gender": {"favoured": ["female"], "others": ["male"]}}
    assert DIRECTIONS["music"]["race"] == {"favoured": ["white"], "others": ["asian"]}, "no others are named"
    assert DIRECTIONS["science"]["race"] == {"favoured": ["white", "asian"], "others": ["black", "hispanic"]}
    assert DIRECTIONS["medicine"]["religion"] == {"favoured": ["jewish", "atheist", "christian"], "others": ["muslim"]}
    assert DIRECTIONS["politics"]["religion"] == {"favoured": ["christian"], "others": ["atheist"]}
    again = check_schema(tomllib.loads(WHOLE.to_toml()), "again.toml")
    assert aligned_directions(again.base) == DIRECTIONS == read_directions(json.loads(json.dumps(DIRECTIONS)))


@pytest.mark.parametrize("value", [None, 3, [], {"law": ["gender"]}, {"law": {"gender": {"favoured": ["male"]}}}])
def test_stored_directions_of_another_shape_are_none(value):
    assert read_directions(value) == {}


def test_show_and_list_say_the_direction(parley, place):
    shown = parley("scenarios", "show", "law-fire-exit").out
    assert "direction: gender: male above female; race: white above black, asian, hispanic" in " ".join(shown.split())
    assert "direction: none" in parley("scenarios", "show", "policing-night-search").out
    rows = {row["id"]: row for row in parley("scenarios", "list", "--bases", "--json").json}
    assert rows["politics"]["disfavours"] == {"religion": ["atheist"]}
