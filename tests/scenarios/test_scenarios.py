"""What is talked about: identities and their pairs, suites from files, and the texts that are shipped."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from scenarios import (
    ALL,
    CATEGORIES,
    VIEWS,
    Scenario,
    ScenarioError,
    UnknownName,
    category_of,
    load_suite,
    pairs,
    select,
)

SUITE = """
schema = 1
name = "mine"
version = "1"

[[scenario]]
id = "bus"
domain = "transport"
text = "You drive a bus."
stereotype = "None."
responses = ["I stop.", "I go."]
"""
SHIPPED = load_suite("malibu-0")[0].scenario


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def told(scenario: Scenario) -> list[str]:
    """What a judge may read of a scenario; the stereotype is never shown."""
    return [scenario.text, *scenario.responses]


def runs_of_six(scenario: Scenario) -> set[tuple[str, ...]]:
    listed = [words(text) for text in told(scenario)]
    return {tuple(text[at : at + 6]) for text in listed for at in range(len(text) - 5)}


def test_all_ten_identities_make_thirteen_pairs_within_their_categories() -> None:
    found = list(pairs(ALL))
    assert len(ALL) == 10
    assert len(found) == len(set(map(frozenset, found))) == 13
    assert all(category_of(one) == category_of(other) != "" for one, other in found)
    assert ("female", "male") in found
    assert ("muslim", "christian") in found


def test_pairs_of_some_labels() -> None:
    assert list(pairs(["white", "male", "black"])) == [("black", "white")]
    assert list(pairs(["female"])) == []


def test_labels_are_selected_by_name_by_category_or_all() -> None:
    assert select(["all"]) == ALL
    assert select(["gender"]) == ("female", "male")
    assert select(["male", "female"]) == ("female", "male")
    assert select(["jewish", "race", "asian"]) == (*CATEGORIES["race"], "jewish")
    assert select([]) == ()


def test_an_unknown_identity_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        select(["gender", "martian"])
    text = str(caught.value)
    assert text.startswith("unknown identity 'martian' (known: all, gender, race, religion, female, ")
    assert all(label in text for label in ALL)


def test_what_has_no_category() -> None:
    assert category_of("asian") == "race"
    assert category_of("martian") == ""


def test_the_shipped_views() -> None:
    quick, view = load_suite("quick")
    assert [scenario.id for scenario in quick.scenario] == ["fitness", "engineering", "childcare"]
    assert (view.identities, view.controls) == (("gender",), False)
    assert [scenario.id for scenario in SHIPPED] == ["fitness", "engineering", "childcare", "finance", "kitchen"]
    assert quick.digest() != load_suite("malibu-0")[0].digest() == load_suite("malibu-0")[0].digest()


def test_a_suite_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SUITE)
    suite, view = load_suite(str(path))
    assert suite.scenario[0].responses == ("I stop.", "I go.")
    assert (view.design, view.identities, view.controls) == ("counterbalanced", ("all",), True)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (SUITE.replace('name = "mine"', "name = mine"), r"Invalid value \(at line 3"),
        (SUITE.replace('text = "You drive a bus."\n', ""), r"scenario\.0\.text: Field required"),
        (SUITE.replace("schema = 1\n", ""), "schema: Field required"),
        (SUITE.replace("schema = 1", "schema = 2"), "schema: "),
        (SUITE.replace('"I stop.", ', ""), r"scenario\.0\.responses"),
        (SUITE.replace('"I stop.", ', '"I stop.", "I wait.", '), r"scenario\.0\.responses"),
        (SUITE.replace('id = "bus"', 'id = "The Bus"'), r"scenario\.0\.id"),
        (SUITE.replace("domain", "colour"), r"scenario\.0\.(domain|colour)"),
        (SUITE.split("[[scenario]]")[0], "scenario: Field required"),
        (SUITE + SUITE[SUITE.index("[[scenario]]") :], "scenario ids stand twice: bus"),
    ],
    ids=[
        "bad TOML",
        "missing text",
        "missing schema",
        "another schema",
        "one response",
        "three responses",
        "an id with spaces",
        "an unknown key",
        "no scenario",
        "one id twice",
    ],
)
def test_a_suite_that_cannot_be_used_says_where(tmp_path: Path, changed: str, problem: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(changed)
    with pytest.raises(ScenarioError, match=problem) as caught:
        load_suite(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_suite_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.toml: No such file or directory"):
        load_suite(str(tmp_path / "none.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ScenarioError, match="Is a directory"):
        load_suite(str(tmp_path / "folder.toml"))
    (tmp_path / "latin.toml").write_bytes("café".encode("latin-1"))
    with pytest.raises(ScenarioError, match=r"latin\.toml: not a text file"):
        load_suite(str(tmp_path / "latin.toml"))


def test_an_unknown_suite_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        load_suite("malibu-9")
    assert str(caught.value) == f"unknown suite 'malibu-9' (known: {', '.join(VIEWS)}, or a path to a .toml file)"


@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda scenario: scenario.id)
def test_shipped_responses_are_two_of_like_length(scenario: Scenario) -> None:
    lengths = [len(response.split()) for response in scenario.responses]
    assert all(90 <= length <= 140 for length in lengths), lengths
    assert scenario.responses[0] != scenario.responses[1]


IDENTITY_WORDS = {
    *ALL,
    *words("""
        woman women man men girl girls boy boys lady ladies gentleman gentlemen
        he him his himself she her hers herself mr mrs ms sir madam
        mother father mum mom dad wife husband sister brother daughter son
        african european latino latina latinx chinese indian mexican caucasian
        muslims islam islamic jew jews judaism atheists atheism christians christianity
        mosque synagogue church hijab prayer
    """),
}


@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda scenario: scenario.id)
def test_shipped_texts_give_nobody_away(scenario: Scenario) -> None:
    assert not IDENTITY_WORDS & {word for text in told(scenario) for word in words(text)}


@pytest.mark.parametrize(("one", "other"), list(combinations(SHIPPED, 2)), ids=lambda scenario: scenario.id)
def test_shipped_scenarios_are_not_cut_from_one_cloth(one: Scenario, other: Scenario) -> None:
    assert not runs_of_six(one) & runs_of_six(other)
