"""Words for labels: what each style shows, whose names there are, and what is refused."""

from __future__ import annotations

import re

import pytest

from parley.scenarios import LabelStyle, ScenarioError, check_wordings, load_wordings, select

WORDS = load_wordings()


@pytest.mark.parametrize(
    ("style", "names", "expected"),
    [
        ("plain", ["gender"], {"female": "female", "male": "male"}),
        ("noun", ["gender"], {"female": "a woman", "male": "a man"}),
        ("pronoun", ["gender"], {"female": "she/her", "male": "he/him"}),
        ("noun", ["black", "asian"], {"black": "a Black person", "asian": "an Asian person"}),
        ("noun", ["atheist", "jewish"], {"atheist": "an atheist person", "jewish": "a Jewish person"}),
        ("noun", ["black+gender"], {"black female": "a Black woman", "black male": "a Black man"}),
    ],
)
def test_a_style_words_every_label_in_the_same_way(
    style: LabelStyle, names: list[str], expected: dict[str, str]
) -> None:
    identities = select(names)
    shown = {label: WORDS.choices(style, label, identities) for label in identities}
    assert shown == {label: {"": (words,)} for label, words in expected.items()}


def test_names_of_a_race_are_compared_within_a_gender() -> None:
    identities = select(["black", "white"])
    black, white = (WORDS.choices("name", label, identities) for label in ("black", "white"))
    assert set(black) == set(white) == {"female", "male"}
    assert "Lakisha" in black["female"]
    assert "Jamal" in black["male"]
    assert "Emily" in white["female"]
    assert "Greg" in white["male"]
    assert all(len(names) == 9 for choices in (black, white) for names in choices.values())


def test_names_of_a_gender_have_a_list_of_their_own() -> None:
    identities = select(["gender"])
    assert {label: len(WORDS.choices("name", label, identities)[""]) for label in identities} == {
        "female": 8,
        "male": 8,
    }


def test_names_of_a_crossed_identity_are_those_that_signal_both() -> None:
    identities = select(["black+gender"])
    assert "Latoya" in WORDS.choices("name", "black female", identities)[""]
    assert WORDS.choices("pronoun", "black female", identities) == {}, "pronouns do not say that someone is black"


def test_every_list_of_names_has_a_source_and_nobody_is_in_two_of_one_kind() -> None:
    assert {names.source for names in WORDS.names} == set(WORDS.sources)
    assert all(re.search(r"\(\d{4}\).*doi:10\.", source) for source in WORDS.sources.values())
    for source in WORDS.sources:
        names = [name for each in WORDS.names if each.source == source for name in each.list]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("style", "names", "message"),
    [
        ("name", ["race"], r"name has no words for asian, hispanic \(of this run's labels only for black, white\): "),
        ("pronoun", ["religion"], "pronoun has no words for muslim, jewish, atheist, christian: choose other"),
        ("name", ["muslim", "jewish"], "no words for muslim, jewish: "),
    ],
)
def test_a_label_without_words_is_refused_in_one_line(style: LabelStyle, names: list[str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as refused:
        check_wordings(style, select(names))
    assert "\n" not in str(refused.value)


def test_plain_labels_and_nouns_are_there_for_all_of_the_papers_identities() -> None:
    for style in ("plain", "noun"):
        check_wordings(style, select(["all"]))
        check_wordings(style, select(["race+gender"]))
