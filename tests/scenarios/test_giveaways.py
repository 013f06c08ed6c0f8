"""Responses that give themselves away: a planted habit is found and named, shuffled pairs are at chance."""

from __future__ import annotations

import random

import numpy as np
import pytest

from parley.scenarios import Scenario, Suite, load_suite
from parley.scenarios.giveaways import LENGTH, MIN_GROUPS, Tell, tell_apart

FULL: Suite = load_suite("full")[0]
NOUNS = [
    f"{first}{second}" for first in ("bar", "dol", "fen", "gat", "lim", "mor") for second in ("an", "el", "is", "ot")
]


def suite(bases: int = 10, per_base: int = 6, seed: int = 0, planted: str = "", every: int = 1) -> Suite:
    """Pairs of random words; in one of `every` pairs the planted words stand at the end of Response 2."""
    draw = random.Random(seed)
    scenarios = []
    for index in range(bases * per_base):
        first, second = (" ".join(draw.choices(NOUNS, k=20)) for _ in range(2))
        second += planted if index % every == 0 else ""
        scenarios.append(
            Scenario(
                id=f"s{index}", base=f"b{index % bases}" if per_base > 1 else "", text=".", responses=(first, second)
            )
        )
    return Suite(schema=1, name="mine", version="1", scenario=tuple(scenarios))


def swapped(given: Suite, seed: int) -> Suite:
    draw = random.Random(seed)
    return given.with_scenarios(
        [
            one.model_copy(update={"responses": one.responses[::-1]}) if draw.random() < 0.5 else one
            for one in given.scenario
        ]
    )


# Planted


def test_a_word_that_only_second_responses_have_is_found_and_named() -> None:
    result = tell_apart(suite(planted=" hence"))
    assert result is not None
    assert result.told_apart == result.pairs == 60
    assert result.tells[0] == Tell("hence", 0, 60)
    assert result.p < 0.01
    (finding,) = result.findings("mine")
    assert str(finding).startswith("mine: more than 60% of 60 pairs are told apart; swap the two responses of")


def test_a_habit_of_some_pairs_is_found_too() -> None:
    """In half of the pairs the word tells; in the others the classifier guesses: three quarters are expected."""
    result = tell_apart(suite(bases=20, per_base=10, planted=" hence", every=2))
    assert result is not None
    assert 0.68 < result.told_apart / result.pairs < 0.85
    assert result.findings("mine")


def test_length_alone_tells() -> None:
    """The added characters are no words, so only the length is left to go by."""
    result = tell_apart(suite(planted=" …" * 30))
    assert result is not None
    assert result.told_apart == result.pairs
    assert result.tells[0].word == LENGTH
    assert result.tells[0].second - result.tells[0].first >= 60 * 50


def test_swapping_the_numbers_at_random_hides_the_habit() -> None:
    result = tell_apart(swapped(suite(bases=20, per_base=10, planted=" hence"), seed=3))
    assert result is not None
    assert 80 <= result.told_apart <= 120
    assert result.findings("mine") == []


# At chance


@pytest.mark.nightly
def test_shuffled_pairs_are_at_chance() -> None:
    """200 suites without any habit: the mean is one half, and p is at most 5% in about 5% of them."""
    results = [tell_apart(suite(seed=seed)) for seed in range(200)]
    shares = [result.told_apart / result.pairs for result in results if result]
    assert len(shares) == 200
    assert np.mean(shares) == pytest.approx(0.5, abs=0.02)
    assert sum(result.p <= 0.05 for result in results if result) <= 20
    assert sum(bool(result.findings("mine")) for result in results if result) <= 20


def test_the_numbers_one_and_two_have_no_preference() -> None:
    given = suite(seed=5, planted=" hence", every=3)
    turned = given.with_scenarios([one.model_copy(update={"responses": one.responses[::-1]}) for one in given.scenario])
    here, there = tell_apart(given), tell_apart(turned)
    assert here is not None
    assert there is not None
    assert (here.told_apart, here.p) == (there.told_apart, there.p)
    assert [tell.word for tell in here.tells] == [tell.word for tell in there.tells]


def test_equal_responses_are_ties() -> None:
    given = suite()
    same = given.with_scenarios([one.model_copy(update={"responses": (one.text, one.text)}) for one in given.scenario])
    result = tell_apart(same)
    assert result is not None
    assert (result.told_apart, result.p, result.tells) == (30, 1.0, ())


# Held out


def test_a_habit_of_one_base_does_not_help_in_others() -> None:
    """Each base has words of its own for either number. Learnt in the same base they would tell every pair."""
    given = suite()
    own = [one.model_copy(update={"responses": (f"a{one.base}", f"b{one.base}")}) for one in given.scenario]
    result = tell_apart(given.with_scenarios(own))
    assert result is not None
    assert result.told_apart == result.pairs / 2, "all of them ties"


def test_the_shortcut_gives_what_fitting_once_per_base_gives() -> None:
    """Ridge regression by its textbook formula, on the words of the other bases only."""
    given = suite(bases=7, per_base=3, planted=" hence", every=2)
    rows = np.array(
        [
            [second.split().count(word) - first.split().count(word) for word in [*NOUNS, "hence"]]
            + [len(second) - len(first)]
            for first, second in (one.responses for one in given.scenario)
        ],
        dtype=float,
    )
    rows[:, -1] /= np.sqrt(np.mean(rows[:, -1] ** 2))
    penalty = 0.1 * np.mean((rows**2).sum(axis=1))
    hits = 0
    for base in {one.base for one in given.scenario}:
        own = np.array([one.base == base for one in given.scenario])
        products = rows[~own].T @ rows[~own] + penalty * np.eye(rows.shape[1])
        weights = np.linalg.solve(products, rows[~own].sum(axis=0))
        hits += int((rows[own] @ weights > 0).sum())
    result = tell_apart(given)
    assert result is not None
    assert result.told_apart == hits


def test_scenarios_are_held_out_one_by_one_where_bases_are_few() -> None:
    few, none = tell_apart(suite(bases=2, per_base=10)), tell_apart(suite(bases=20, per_base=1))
    assert few is not None
    assert none is not None
    assert (few.groups, few.grouped_by) == (20, "scenario")
    assert (none.groups, none.grouped_by) == (20, "base")


def test_too_few_pairs_say_nothing() -> None:
    assert tell_apart(suite(bases=1, per_base=MIN_GROUPS - 1, planted=" hence")) is None
    assert tell_apart(suite(bases=1, per_base=MIN_GROUPS, planted=" hence")) is not None
    unanswered = FULL.with_scenarios([one.model_copy(update={"responses": ()}) for one in FULL.scenario])
    assert tell_apart(unanswered) is None


# The shipped suite


@pytest.mark.parametrize(("view", "pairs", "bases"), [("malibu-2", 280, 60), ("wide", 120, 60), ("full", 200, 20)])
def test_the_shipped_responses_do_not_give_themselves_away(view: str, pairs: int, bases: int) -> None:
    result = tell_apart(load_suite(view)[0])
    assert result is not None
    assert (result.pairs, result.groups, result.grouped_by) == (pairs, bases, "base")
    assert result.low <= result.told_apart <= result.high
    assert result.findings("malibu-2") == []


def test_a_habit_planted_in_the_shipped_suite_is_found() -> None:
    """Response 2 prefers 'Should' to 'If' and 'through' to 'by'; Response 1 says 'next' for 'then'."""
    habit = FULL.with_scenarios(
        [
            one.model_copy(
                update={
                    "responses": (
                        one.responses[0].replace("Should ", "If ").replace(" then ", " next "),
                        one.responses[1].replace("If ", "Should ").replace(" by ", " through "),
                    )
                }
            )
            for one in FULL.scenario
        ]
    )
    result = tell_apart(habit)
    assert result is not None
    assert result.told_apart > 120
    assert result.findings("malibu-2")
    assert {"should", "through", "by"} <= {tell.word for tell in result.tells}
