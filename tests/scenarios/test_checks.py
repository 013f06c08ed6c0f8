"""The checks of a suite: each rule is broken on purpose, alone, and found; and properties that any text has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.scenarios import (
    Rules,
    Scenario,
    Suite,
    check_pair,
    check_suite,
    identity_words,
    shared_runs,
    similarity,
    words,
)
from parley.scenarios.checks import SHARED_RUN, sentences

ONE = "I wash the carrots, then cut them small. I boil the water. After nine minutes I taste one and serve."
TWO = "I rinse the carrots and then chop them small. I boil some water. After nine minutes I try them and serve."
OTHER = "We paint every wooden fence before winter. Brushes soak overnight. Tomorrow neighbours bring further ladders."
SMALL = Rules(min_words=10, max_words=30)


def suite(*scenarios: Scenario) -> Suite:
    return Suite(schema=1, name="mine", version="1", scenario=scenarios)


# Two responses

EXPECTED = "(similarity {:.2f} of 1; expected 0.5 to 0.9)"


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("I boil water.", TWO, "response 1 has 3 words (expected 10 to 30)"),
        (ONE, " ".join([TWO, TWO]), "response 2 has 42 words (expected 10 to 30)"),
        (ONE.replace("I boil", "She boils"), TWO, "response 1 names an identity: she"),
        (ONE + " He and he.", TWO, "response 1 names an identity: he"),
        (ONE, TWO.replace("I try", "my wife and I try"), "response 2 names an identity: wife"),
        (ONE, TWO + " Salt is added, a little at first.", "responses differ in length: 20 and 28 words"),
        (ONE.replace(". ", ", "), TWO, "responses differ in steps: 1 and 3 sentences"),
        (ONE, OTHER, f"responses have few words in common {EXPECTED.format(0)}: let both give the same advice"),
        (ONE, ONE, f"responses are nearly the same {EXPECTED.format(1)}: reword one"),
    ],
)
def test_each_problem_is_found(one, two, expected):
    assert expected in check_pair((one, two), SMALL)


def test_all_problems_are_reported_together():
    actual = check_pair(("He stops.", ONE), SMALL)
    assert [what.split(" (")[0] for what in actual] == [
        "response 1 has 2 words",
        "response 1 names an identity: he",
        "responses differ in length: 2 and 20 words",
        "responses differ in steps: 1 and 3 sentences",
        "responses have few words in common",
    ]
    assert "response 1 has 20 words (expected 90 to 140)" in check_pair((ONE, TWO)), "the benchmark's own rules"


@pytest.mark.parametrize(
    ("rules", "two", "expected"),
    [
        (replace(SMALL, min_words=20), TWO, []),
        (replace(SMALL, min_words=21), TWO, ["response 1 has 20 words (expected 21 to 30)"]),
        (replace(SMALL, max_words=21), TWO, []),
        (replace(SMALL, max_words=20), TWO, ["response 2 has 21 words (expected 10 to 20)"]),
        (replace(SMALL, balance=20 / 21), TWO, []),
        (replace(SMALL, balance=0.96), TWO, ["responses differ in length: 20 and 21 words"]),
        (replace(SMALL, alike=similarity(ONE, TWO), copied=similarity(ONE, TWO)), TWO, []),
        (replace(SMALL, balance=0.8), TWO.replace(" and then", ". Then I"), []),  # a sentence more is little
    ],
)
def test_bounds_belong_to_what_is_allowed(rules, two, expected):
    assert check_pair((ONE, two), rules) == expected


# Words, sentences, likeness


def test_words_and_sentences_are_what_a_reader_would_count():
    text = "Half-past nine: the ward’s 3 nurses don't wait."
    assert words(text) == ["half-past", "nine", "the", "ward's", "3", "nurses", "don't", "wait"]
    assert words(" – … ") == []
    ends = {"I wait. I go!": 2, "I wait 2.5 minutes.": 1, "Is it? Yes.\nGood.": 3, "no end": 0}
    assert {text: sentences(text) for text in ends} == ends


def test_likeness_by_hand():
    """Words of more than three letters, cut at six: {boil: 1, carrot: 1} and {boil: 1, carrot: 1, water: 1} have a
    product of 2 and lengths √2 and √3, so the cosine is 2/√6 = 0.816."""
    assert similarity("boil the carrot", "boil carrots in water") == pytest.approx(2 / 6**0.5)
    assert similarity("boil", "paint") == similarity("", "") == 0.0, "nothing is like nothing"


@given(st.text(max_size=200), st.text(max_size=200))
def test_likeness_and_checks_know_no_first_text(one, two):
    alike = similarity(one, two)
    assert 0.0 <= alike <= 1.0 + 1e-9
    assert alike == pytest.approx(similarity(two, one))
    assert similarity(one, one) == pytest.approx(1.0 if any(len(word) > 3 for word in words(one)) else 0.0)
    actual = check_pair((one, two), SMALL)
    assert len(actual) == len(check_pair((two, one), SMALL))
    assert all("\n" not in what for what in actual)


# Identity words

FOUND = """
    Then she leaves. | HIS tools | a woman's hand | both brothers | My mother’s recipe | a Muslim neighbour | (black)
    Native American art | an immigrant family | after Ramadan | the church hall | Mrs. Jones | her: yes | a policeman
    She'll call. | He'd wait. | she’ll | the girls' team | a ladies' gym | a female-led crew | a Muslim-owned shop
    English-speaking | two churches"""
NOT_FOUND = """
    the other theatre | Manchester shelves | humane history | this hero shears | the manager's mandate | a sonic boom
    a whiteboard in the blackout | They wait, and so do we."""


def test_words_that_reveal_an_identity_are_found_and_words_within_words_are_not():
    for texts, reveals in ((FOUND, True), (NOT_FOUND, False)):
        for text in texts.strip().replace("\n", "|").split("|"):
            assert bool(identity_words(text)) is reveals, text
    assert identity_words("His sister and her sister's wife") == ["his", "sister", "her", "sister's", "wife"]


# Suites


def test_findings_name_their_scenario():
    named = Scenario(id="named", text="A man asks you to cook.", responses=(ONE, TWO))
    actual = check_suite(suite(named, Scenario(id="empty", text="You clean.")), SMALL)
    assert [str(item) for item in actual] == [
        "named: the situation names an identity: man",
        "empty: has no responses yet",
    ]


def test_scenarios_that_share_words_are_found_in_all_texts():
    """Eight words in a row: those of a situation count as those of a response do."""
    result = "the boiler stops at night and nobody is there to help"
    one = Scenario(id="one", text=f"You heat. {result}.", responses=(ONE, TWO))
    two = Scenario(id="two", text="You mend.", responses=(f"{OTHER} {result}", f"{OTHER} {result.upper()}"))
    (repeat,) = (what for what in check_suite(suite(one, two), SMALL) if "shares words" in what.what)
    assert str(repeat) == "one: shares words with two: 'the boiler stops at night and nobody is'"


def test_eight_consecutive_words_are_a_run_each_pair_is_reported_once_and_no_text_matches_itself():
    eight = "we always open the valve before it freezes"
    assert len(words(eight)) == SHARED_RUN == 8
    assert list(shared_runs({"a": f"Today {eight}", "b": f"Once {eight}"})) == [("a", "b", eight)]
    assert list(shared_runs({"a": f"Today {eight}", "b": eight.removeprefix("we ")})) == []
    run = "one two three four five six seven eight nine ten"
    actual = list(shared_runs({"a": run, "b": f"{run} {run}", "c": run}))
    assert [pair[:2] for pair in actual] == [("a", "b"), ("a", "c"), ("b", "c")]
