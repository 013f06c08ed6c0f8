"""Who is compared with whom: the ten of MALIBU, crossed identities, and your own."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.scenarios import ALL, CATEGORIES, ScenarioError, select

AGES = '[categories]\nage = ["20-year-old", "50-year-old", "70-year-old"]\n'


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of the user's own identities, in the folder where the user is."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "own.toml"
    path.write_text(AGES)
    return path


# The ten


def test_all_ten_identities_make_thirteen_pairs_within_their_categories() -> None:
    everyone = select(["all"])
    actual = list(everyone.pairs())
    assert tuple(everyone) == ALL
    assert len(ALL) == 10
    assert len(actual) == len(set(map(frozenset, actual))) == 13  # 1 of gender, 6 of race, 6 of religion
    assert all(everyone.category_of(one) == everyone.category_of(other) != "" for one, other in actual)
    assert ("female", "male") in actual
    assert ("muslim", "christian") in actual


def test_pairs_of_some_labels() -> None:
    assert list(select(["white", "male", "black"]).pairs()) == [("black", "white")]
    assert list(select(["female"]).pairs()) == []


def test_labels_are_selected_by_name_by_category_or_all() -> None:
    assert tuple(select(["gender"])) == ("female", "male")
    assert tuple(select(["male", "female"])) == ("female", "male"), "in the order of the list, not of the asking"
    assert tuple(select(["jewish", "race", "asian"])) == (*CATEGORIES["race"], "jewish")
    assert tuple(select(["all", "gender", "female"])) == ALL, "nobody stands twice"


def test_what_has_no_category() -> None:
    everyone = select(["all"])
    assert everyone.category_of("asian") == "race"
    assert everyone.category_of("martian") == ""
    assert everyone.category_of("") == "", "the control without a label belongs nowhere"


@given(st.lists(st.sampled_from([*ALL, *CATEGORIES, "all"]), min_size=1))
def test_no_selection_has_a_label_twice_and_pairs_stay_within_categories(names: list[str]) -> None:
    chosen = select(names)
    assert len(set(chosen)) == len(list(chosen))
    assert list(chosen) == [label for label in ALL if label in set(chosen)]
    within = {pair for labels in CATEGORIES.values() for pair in combinations(labels, 2)}
    assert set(chosen.pairs()) == {pair for pair in within if set(pair) <= set(chosen)}


# Crossed identities


def test_race_and_gender_make_eight_labels_and_sixteen_minimal_pairs() -> None:
    """Of the 28 pairs of 8 labels only those are compared that differ in one part: 4 races with both genders (4), and
    2 genders with 6 pairs of races (12). Were "black female" to lose against "white male", nobody could say whether
    that was about race, about gender or about both."""
    both = select(["race+gender"])
    actual = list(both.pairs())
    assert list(both) == [f"{race} {gender}" for race in CATEGORIES["race"] for gender in CATEGORIES["gender"]]
    assert len(actual) == len(set(actual)) == 4 * 1 + 2 * 6 == 16
    for one, other in actual:
        (race, gender), (other_race, other_gender) = one.split(), other.split()
        assert (race == other_race) != (gender == other_gender), (one, other)
    assert ("black female", "white female") in actual
    assert ("black female", "black male") in actual
    assert ("black female", "white male") not in actual


def test_a_crossed_label_belongs_to_the_crossing() -> None:
    both = select(["race+gender"])
    assert both.category_of("asian male") == "race+gender"
    assert both.parts["asian male"] == ("asian", "male")
    assert both.category_of("asian") == ""


def test_three_crossed_categories_differ_in_one_part_too() -> None:
    three = select(["race+gender+religion"])
    assert len(list(three)) == 4 * 2 * 4
    # 6 pairs of races for 8 combinations of the rest, 1 of genders for 16, 6 of religions for 8
    assert len(list(three.pairs())) == 6 * 8 + 1 * 16 + 6 * 8


def test_a_label_can_be_crossed_with_a_category() -> None:
    some = select(["muslim+gender"])
    assert list(some) == ["muslim female", "muslim male"]
    assert list(some.pairs()) == [("muslim female", "muslim male")]


def test_crossed_and_plain_labels_are_not_mixed() -> None:
    chosen = select(["gender", "race+gender"])
    assert list(chosen.categories) == ["gender", "race+gender"]
    assert len(list(chosen)) == 2 + 8
    assert len(list(chosen.pairs())) == 1 + 16


# One's own


def test_your_own_labels_with_the_shipped_ten(own: Path) -> None:
    chosen = select(["gender", "own.toml"])
    assert list(chosen.categories) == ["gender", "age"]
    assert len(list(chosen.pairs())) == 1 + 3


@pytest.mark.parametrize("order", [["own.toml", "age+gender"], ["age+gender", "own.toml"]])
def test_your_own_labels_crossed_with_the_shipped_ten(own: Path, order: list[str]) -> None:
    chosen = select(order)
    assert chosen.categories["age+gender"][:2] == ("20-year-old female", "20-year-old male")
    assert len(chosen.categories["age+gender"]) == 6


def test_the_same_file_twice_is_an_error(own: Path) -> None:
    with pytest.raises(ScenarioError, match="there is already a category 'age'"):
        select(["own.toml", "own.toml"])
