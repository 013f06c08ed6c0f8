"""Who is compared with whom, and which way a stereotype goes: coded from the base's own sentence."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.scenarios import ALL, CATEGORIES, ScenarioError, load_suite, select

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


def test_a_run_resumes_only_with_the_shipped_suites_hash():
    """Whoever changes a text must give the suite another version, too."""
    whole = load_suite("malibu-2")[0]
    assert whole.version == "2.0"
    assert whole.digest() == "0f151e0fcc45c0bd379fb92d2b5febcce10cbd8e96763c6b2b3b74a1ddcb2b37"
