"""Who is compared with whom, and which way a stereotype goes: coded from the base's own sentence."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.scenarios import (
    ALL,
    CATEGORIES,
    Base,
    ScenarioError,
    Suite,
    aligned_directions,
    load_suite,
    read_directions,
    select,
)
from parley.scenarios.malibu import check_schema

EVERYONE = " ".join(ALL)


@pytest.mark.parametrize(
    ("names", "labels", "pairs"),
    [
        ("all", EVERYONE, 13),  # 1 of gender, 6 of race, 6 of religion
        ("all gender female", EVERYONE, 13),  # nobody stands twice
        ("gender", "female male", 1),
        ("male female", "female male", 1),  # in the order of the list, not of the asking
        ("jewish race asian", "black white asian hispanic jewish", 6),
        ("white male black", "male black white", 1),
        ("female", "female", 0),
    ],
)
def test_labels_are_selected_by_name_by_category_or_all(names, labels, pairs):
    chosen = select(names.split())
    assert list(chosen) == labels.split()
    assert len(list(chosen.pairs())) == pairs


def test_a_label_has_a_category_unless_nobody_has_it():
    everyone, both = select(["all"]), select(["race+gender"])
    assert [everyone.category_of(label) for label in ("asian", "martian", "")] == ["race", "", ""]
    assert [both.category_of(label) for label in ("asian male", "asian")] == ["race+gender", ""]
    assert both.parts["asian male"] == ("asian", "male")


@given(st.lists(st.sampled_from([*ALL, *CATEGORIES, "all"]), min_size=1))
def test_no_selection_has_a_label_twice_and_pairs_stay_within_categories(names):
    chosen = select(names)
    assert list(chosen) == [label for label in ALL if label in set(chosen)]
    within = {pair for labels in CATEGORIES.values() for pair in combinations(labels, 2)}
    assert sorted(chosen.pairs()) == sorted(pair for pair in within if set(pair) <= set(chosen))


# Crossed identities


@pytest.mark.parametrize(
    ("names", "labels", "pairs"),
    [
        ("race+gender", {"race+gender": 8}, 4 * 1 + 2 * 6),
        # 6 pairs of races for 8 combinations of the rest, 1 of genders for 16, 6 of religions for 8
        ("race+gender+religion", {"race+gender+religion": 4 * 2 * 4}, 6 * 8 + 1 * 16 + 6 * 8),
        ("muslim+gender", {"muslim+gender": 2}, 1),
        ("gender race+gender", {"gender": 2, "race+gender": 8}, 1 + 16),  # plain and crossed labels are not mixed
        ("gender own.toml", {"gender": 2, "age": 3}, 1 + 3),
        ("own.toml age+gender", {"age": 3, "age+gender": 6}, 3 + 3 + 2 * 3),
        ("age+gender own.toml", {"age+gender": 6, "age": 3}, 3 + 3 + 2 * 3),
    ],
)
def test_crossed_and_own_labels(tmp_path, monkeypatch, names, labels, pairs):
    """Pairs differ in one part: were "black female" to lose against "white male", nobody could say whether that was
    about race, about gender or about both."""
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text('[categories]\nage = ["20-year-old", "50-year-old", "70-year-old"]\n')
    chosen = select(names.split())
    assert {category: len(each) for category, each in chosen.categories.items()} == labels
    found = set(chosen.pairs())
    assert len(found) == len(list(chosen.pairs())) == pairs
    for one, other in found:
        parts = [chosen.parts.get(label, (label,)) for label in (one, other)]
        assert sum(first != second for first, second in zip(*parts, strict=True)) == 1, (one, other)
    if "age+gender" in labels:
        assert chosen.categories["age+gender"][:2] == ("20-year-old female", "20-year-old male")
    with pytest.raises(ScenarioError, match="there is already a category 'age'"):
        select(["own.toml", "own.toml"])


# Which way a stereotype goes

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


@pytest.mark.parametrize("value", [None, 3, [], {"law": ["gender"]}, {"law": {"gender": {"favoured": ["male"]}}}])
def test_stored_directions_of_another_shape_are_none(value):
    assert read_directions(value) == {}


def test_show_says_the_direction(parley, place):
    shown = parley("scenarios", "show", "law-fire-exit").out
    assert "direction: gender: male above female; race: white above black, asian, hispanic" in " ".join(shown.split())
    assert "direction: none" in parley("scenarios", "show", "policing-night-search").out
