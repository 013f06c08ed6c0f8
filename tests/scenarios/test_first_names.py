"""First names: whose there are, and what else they signal."""

from __future__ import annotations

import re

from parley.scenarios import load_first_names, select

NAMES = load_first_names()


def test_names_of_a_race_are_compared_within_a_gender() -> None:
    identities = select(["black", "white"])
    black, white = (NAMES.of(label, identities) for label in ("black", "white"))
    assert set(black) == set(white) == {"female", "male"}
    assert "Lakisha" in black["female"]
    assert "Jamal" in black["male"]
    assert "Emily" in white["female"]
    assert "Greg" in white["male"]
    assert all(len(names) == 9 for choices in (black, white) for names in choices.values())


def test_names_of_a_gender_have_a_list_of_their_own() -> None:
    identities = select(["gender"])
    assert {label: len(NAMES.of(label, identities)[""]) for label in identities} == {
        "female": 8,
        "male": 8,
    }


def test_names_of_a_crossed_identity_are_those_that_signal_both() -> None:
    identities = select(["black+gender"])
    assert "Latoya" in NAMES.of("black female", identities)[""]
    assert NAMES.of("asian", select(["asian", "white"])) == {}


def test_every_list_of_names_has_a_source_and_nobody_is_in_two_of_one_kind() -> None:
    assert {names.source for names in NAMES.names} == set(NAMES.sources)
    assert all(re.search(r"\(\d{4}\).*doi:10\.", source) for source in NAMES.sources.values())
    for source in NAMES.sources:
        names = [name for each in NAMES.names if each.source == source for name in each.list]
        assert len(set(names)) == len(names)
