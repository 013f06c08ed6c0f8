"""Samples and orders of answers: stratified, seeded, and never the first n."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from parley.scenarios import ScenarioError
from parley.scenarios.bbq import BbqRow, only, sample, shuffled
from parley.scenarios.bbq.rows import Answer

ANSWERS = (Answer("a", "a", "old"), Answer("b", "b", "nonOld"), Answer("c", "c", "unknown"))


def rows(**sizes: int) -> list[BbqRow]:
    return [
        BbqRow(
            category=category,
            example_id=number,
            question_index=1,
            polarity="neg" if number % 4 < 2 else "nonneg",
            condition="ambig" if number % 2 == 0 else "disambig",
            context="",
            question="",
            answers=ANSWERS,
            groups=("old",),
            label=2,
            unknown=2,
        )
        for category, size in sizes.items()
        for number in range(size)
    ]


def strata(chosen: list[BbqRow]) -> Counter[tuple[str, str, str]]:
    return Counter((row.category, row.condition, row.polarity) for row in chosen)


def test_mabrfs_110_are_ten_a_category_and_five_a_context() -> None:
    sizes = {f"c{number}": 400 for number in range(11)}
    chosen = sample(rows(**sizes), 110, seed=0)
    assert set(Counter(row.category for row in chosen).values()) == {10}
    assert set(Counter((row.category, row.condition) for row in chosen).values()) == {5}
    assert set(strata(chosen).values()) == {2, 3}


def test_a_small_category_gives_all_it_has_and_the_others_the_rest() -> None:
    chosen = sample(rows(Age=400, SES=8), 100, seed=0)
    assert Counter(row.category for row in chosen) == {"Age": 92, "SES": 8}


def test_the_same_seed_gives_the_same_rows_whatever_their_order() -> None:
    everything = rows(Age=400, SES=400)
    assert sample(everything, 40, seed=7) == sample(everything[::-1], 40, seed=7)
    assert sample(everything, 40, seed=7) != sample(everything, 40, seed=8)


def test_any_beginning_of_a_sample_is_balanced_too() -> None:
    chosen = sample(rows(Age=400, SES=400), 80, seed=0)
    for end in range(8, 80, 8):
        assert set(strata(chosen[:end]).values()) == {end // 8}


def test_an_unknown_category_is_an_error_that_names_it() -> None:
    with pytest.raises(ScenarioError, match=r"the data has no category 'Agee' \(it has: Age, SES\)"):
        only(rows(Age=4, SES=4), ["Agee"])


def test_answers_are_shown_in_an_order_of_their_own_by_the_seed() -> None:
    everything = rows(Age=600)
    orders = [shuffled(row, seed=0) for row in everything]
    assert orders == [shuffled(row, seed=0) for row in everything]
    assert orders != [shuffled(row, seed=1) for row in everything]
    counts = Counter(orders)
    assert set(counts) == set(permutations(range(3)))
    assert min(counts.values()) > 60, "each of six orders about a hundred times in 600"
