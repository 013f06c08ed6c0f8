"""Labels as a probability sample: the probability that a text was shown, found by drawing many times."""

from __future__ import annotations

import random
from collections import Counter

import pandas as pd
import pytest

from parley.analysis.labels import non_response, rated_texts, shown_probability
from parley.reports.labels.draws import probabilities, systematic

SPREAD = [0.0, 0.0, 1.0, 2.0, 5.0, 0.5, 0.0, 9.0]


def test_a_draw_has_the_stated_size_and_probabilities():
    chances = probabilities(SPREAD, 3, 0.4)
    generator = random.Random(0)
    drawn: Counter[int] = Counter()
    for _ in range(4000):
        order = list(range(8))
        generator.shuffle(order)
        sample = [order[n] for n in systematic([chances[n] for n in order], generator.random())]
        assert len(set(sample)) == 3
        drawn.update(sample)
    assert [drawn[n] / 4000 for n in range(8)] == pytest.approx(chances, abs=0.03)  # 4 standard errors


def frames(labels, drawn):
    columns = ["draw", "text_id", "probability", "rater", "question", "value", "simulated"]
    table = pd.DataFrame(labels, columns=columns).assign(subject="", judge_value=1.0)
    table["unit"] = table["text_id"]
    table["position"] = table.groupby(
        ["draw", "rater"]
    ).cumcount()  # each rater in its own order, unless a test says so
    return table, pd.DataFrame(drawn, columns=["draw", "unit", "text_id", "probability", "position"])


def test_a_text_is_shown_with_its_probability_however_early_raters_stop():
    """Two draws of three texts of four; a rater stops after two items of the first and one of the second."""
    generator = random.Random(1)
    shown: Counter[str] = Counter()
    for _ in range(4000):
        first, second = generator.sample("abcd", 3), generator.sample("abcd", 2)
        shown.update({*first[:2], *second[:1]})
    drawn = [(1, text, text, 3 / 4, n if n < 3 else None) for n, text in enumerate("abcd")]
    drawn += [(2, text, text, 2 / 4, n if n < 2 else None) for n, text in enumerate("abcd")]
    rows = [(1, "a", 0.75, "Ann", "q", 5.0, False), (1, "b", 0.75, "Ann", "q", None, False)]
    rows += [(2, "a", 0.5, "Ann", "q", 5.0, False)]
    computed = shown_probability(*frames(rows, drawn))
    assert computed["d"] == pytest.approx(1 - (1 - 1 / 2) * (1 - 1 / 4))
    assert [shown[text] / 4000 for text in "abcd"] == pytest.approx(list(computed[list("abcd")]), abs=0.035)


def test_what_a_rater_labels_after_leaving_an_item_out_may_have_been_chosen():
    drawn = [(1, text, text, 1.0, place) for place, text in enumerate("abcde")]
    labels, population = frames([(1, text, 1.0, "Ann", "q", 5.0, False) for text in "bde"], drawn)
    labels["position"] = [0, 2, 1]  # her own order is b, e, d, …
    assert sorted(rated_texts(labels, population, "q")["text_id"]) == ["b", "d", "e"]
    labels["position"] = [0, 3, 1]  # she left the third one out
    assert sorted(rated_texts(labels, population, "q")["text_id"]) == ["b", "e"]
    imported = labels.assign(unit=["a", "b", "e"], text_id=["a", "b", "e"], position=[4, 2, 3])
    assert sorted(rated_texts(imported, population, "q")["text_id"]) == ["a", "b"], "in the draw's order, up to the gap"


def test_raters_are_averaged_and_neither_queues_nor_simulated_labels_enter():
    drawn = [(1, "u", "a", 0.5, 0), (1, "v", "a", 0.5, None), (1, "w", "b", 0.5, 1), (2, "x", "c", None, 0)]
    rows = [
        (1, "a", 0.5, "Ann", "q", 4.0, False),
        (1, "a", 0.5, "Ben", "q", 8.0, False),
        (1, "a", 0.5, "sim", "q", 0.0, True),
        (1, "b", 0.5, "Ann", "q", None, False),
        (2, "c", None, "Ann", "q", 9.0, False),
    ]
    labels, population = frames(rows, drawn)
    (text,) = rated_texts(labels, population, "q").itertuples()
    assert (text.text_id, text.value, text.raters, text.variance, text.probability) == ("a", 6.0, 2, 8.0, 0.5)
    only_simulated = rated_texts(labels[labels["simulated"]], population, "q")
    assert list(only_simulated["simulated"]) == [True]
    assert rated_texts(labels, population, "other").empty
    skips = non_response(labels).set_index("rater")
    assert (skips.loc["Ann", "answered"], skips.loc["Ann", "skipped"]) == (2, 1)
