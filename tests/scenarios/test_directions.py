"""Which way a stereotype goes: coded from the base's own sentence, checked, shown, and outside the suite's hash."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.scenarios import CATEGORIES, Base, Suite, aligned_directions, load_suite, read_directions
from parley.scenarios.malibu import check_schema

WHOLE: Suite = load_suite("malibu-2")[0]
DIRECTIONS = aligned_directions(WHOLE.base)
BASES = {base.id: base for base in WHOLE.base}


def base(**settings: Any) -> Base:
    return Base(id="bakery", text="Bake.", stereotype="…", **{"probes": ("gender", "race"), **settings})


def schema(**settings: Any) -> dict[str, Any]:
    return {"schema": 1, "name": "mine", "version": "1", "base": [base(**settings).model_dump()]}


# The shipped suite


def test_directions_are_outside_the_hash_of_the_shipped_suite() -> None:
    """A run resumes only with the same hash: whoever changes a text must give the suite another version, too."""
    assert WHOLE.version == "2.0"
    assert WHOLE.digest() == "0f151e0fcc45c0bd379fb92d2b5febcce10cbd8e96763c6b2b3b74a1ddcb2b37"
    undirected = [base.model_copy(update={"favours": {}, "disfavours": {}}) for base in WHOLE.base]
    assert WHOLE.model_copy(update={"base": tuple(undirected)}).digest() == WHOLE.digest()


def test_a_direction_is_about_a_probed_category_and_has_two_sides() -> None:
    assert len(DIRECTIONS) == 43
    for name, by_category in DIRECTIONS.items():
        for category, direction in by_category.items():
            assert category in BASES[name].probes
            favoured, others = set(direction["favoured"]), set(direction["others"])
            assert favoured
            assert others
            assert favoured.isdisjoint(others)
            assert favoured | others <= set(CATEGORIES[category])


def test_a_direction_names_no_one_whom_the_sentence_does_not() -> None:
    """Every coded side has a word in the base's own stereotype sentence, so that a reader can check it."""
    words = {
        "female": ("women", "woman", "female"),
        "male": ("men", "man", "male"),
        "white": ("white", "racial"),  # "racial and ethnic minorities": white is who is not one
        "asian": ("asian",),
        "black": ("black",),
        "hispanic": ("hispanic", "mexican"),
        "muslim": ("muslim",),
        "jewish": ("jewish",),
        "atheist": ("atheists",),
        "christian": ("christian",),
    }
    for one in WHOLE.base:
        sentence = one.stereotype.lower()
        for labels in (*one.favours.values(), *one.disfavours.values()):
            for label in labels:
                assert any(word in sentence for word in words[label]), (one.id, label)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("teaching", "gender"),  # reversed in elementary school
        ("journalism", "gender"),  # who gets which subject
        ("journalism", "race"),
        ("policing", "gender"),  # depends on the type of call
        ("security", "religion"),  # about travellers
        ("finance", "religion"),  # greed and power: the sign is open
        ("eldercare", "race"),
        ("kitchen", "gender"),  # who is pictured, not who does it better
        ("kitchen", "race"),
        ("trades", "race"),  # obstacles, not ratings
        ("sales", "gender"),
        ("rap", "race"),  # compared between kinds of music, not between performers
        ("dance", "race"),  # depends on the dance
        ("evidence", "religion"),  # stereotype threat: nobody is rated
        ("hospice", "religion"),
        ("sport", "race"),
    ],
)
def test_no_direction_is_made_up_where_the_sentence_gives_none(name: str, category: str) -> None:
    assert category in BASES[name].probes
    assert category not in DIRECTIONS.get(name, {})


def test_a_few_directions_as_their_sentences_say() -> None:
    assert DIRECTIONS["childcare"] == {"gender": {"favoured": ["female"], "others": ["male"]}}
    assert DIRECTIONS["music"]["race"] == {"favoured": ["white"], "others": ["asian"]}, "no others are named"
    assert DIRECTIONS["science"]["race"] == {"favoured": ["white", "asian"], "others": ["black", "hispanic"]}
    assert DIRECTIONS["medicine"]["religion"] == {"favoured": ["jewish", "atheist", "christian"], "others": ["muslim"]}
    assert DIRECTIONS["politics"]["religion"] == {"favoured": ["christian"], "others": ["atheist"]}


def test_directions_of_every_category_go_both_ways() -> None:
    """Else a judge who prefers men could not be told from one who follows stereotypes: a third go the other way."""
    for category, label in {"gender": "male", "race": "white", "religion": "christian"}.items():
        coded = [sides[category] for sides in DIRECTIONS.values() if category in sides]
        above, below = (sum(label in sides[side] for sides in coded) for side in ("favoured", "others"))
        assert min(above, below) >= (above + below) / 3, (category, above, below)


# Sides


def test_the_side_that_is_not_given_is_the_rest_of_the_category() -> None:
    favouring, disfavouring = base(favours={"race": ("white",)}), base(disfavours={"race": ("white", "asian")})
    assert aligned_directions([favouring])["bakery"]["race"]["others"] == ["black", "asian", "hispanic"]
    assert aligned_directions([disfavouring])["bakery"]["race"]["favoured"] == ["black", "hispanic"]


def test_only_identities_of_the_run_are_compared() -> None:
    direction = base(favours={"race": ("white",)})
    assert aligned_directions([direction], {"race": ("white", "black")}) == {
        "bakery": {"race": {"favoured": ["white"], "others": ["black"]}}
    }
    assert aligned_directions([direction], {"race": ("asian", "black")}) == {}, "nobody on one side"
    assert aligned_directions([direction], {"gender": ("female", "male")}) == {}
    assert aligned_directions([direction], {"race+gender": ("white male", "black male")}) == {}


def test_your_own_categories_have_directions_too() -> None:
    old = base(probes=("age",), disfavours={"age": ("70-year-old",)})
    check_schema(schema(probes=["age"], disfavours={"age": ["70-year-old"]}), "mine.toml")
    ages = {"age": ("20-year-old", "40-year-old", "70-year-old")}
    assert aligned_directions([old], ages)["bakery"]["age"]["favoured"] == ["20-year-old", "40-year-old"]
    assert aligned_directions([old]) == {}


# Checks


def test_directions_survive_being_written_as_toml_and_as_json() -> None:
    again = check_schema(tomllib.loads(WHOLE.to_toml()), "again.toml")
    assert aligned_directions(again.base) == DIRECTIONS
    assert read_directions(json.loads(json.dumps(DIRECTIONS))) == DIRECTIONS


@pytest.mark.parametrize("value", [None, 3, [], {"law": ["gender"]}, {"law": {"gender": {"favoured": ["male"]}}}])
def test_stored_directions_of_another_shape_are_none(value: Any) -> None:
    assert read_directions(value) == {}


# On the command line


def test_show_and_list_say_the_direction(parley: Callable[..., Any], place: Path) -> None:
    shown = parley("scenarios", "show", "law-fire-exit").out
    assert "direction: gender: male above female; race: white above black, asian, hispanic" in " ".join(shown.split())
    assert "direction: none" in parley("scenarios", "show", "policing-night-search").out
    rows = {row["id"]: row for row in parley("scenarios", "list", "--bases", "--json").json}
    assert rows["politics"]["disfavours"] == {"religion": ["atheist"]}
